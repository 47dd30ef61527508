"""Estimates: how many rows a node has, and how many distinct values an expression."""

from __future__ import annotations

from collections.abc import Sequence
from math import pow, prod
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from olapdb.lazy import LazyModule
from olapdb.optimize.origins import conditions_of, conditions_over_table, origin, traced
from olapdb.optimize.statistics import Samples, Statistics
from olapdb.plan import nodes
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InSubquery,
    InValues,
    columns_of,
)

if TYPE_CHECKING:
    from olapdb.optimize import key_ranges, value_bounds
else:
    key_ranges = LazyModule("olapdb.optimize.key_ranges")
    value_bounds = LazyModule("olapdb.optimize.value_bounds")

UNKNOWN = 0.25
"""The part of the rows that a condition keeps of which nothing is known."""
RANGE = 1 / 3
PATTERN = 0.1
LONELY = 0.1
"""The part of the rows that are expected to have no partner where all seem to have one."""
_LEAST = 0.001
"""The part of the rows that a range keeps at least."""
_RANGES = {"less": 1, "lessOrEquals": 1, "greater": -1, "greaterOrEquals": -1}
_FLIPPED = {"less": "greater", "lessOrEquals": "greaterOrEquals"}
_FLIPPED |= {after: before for before, after in _FLIPPED.items()}


class Estimator:
    """Estimates over the statistics of one snapshot. Numbers of rows are at least 1."""

    def __init__(self, statistics: Statistics, samples: Samples | None = None) -> None:
        self._statistics = statistics
        self._samples = samples
        self._rows: dict[int, tuple[nodes.Node, float]] = {}

    def rows(self, node: nodes.Node) -> float:
        """Return about how many rows a node has."""
        if id(node) not in self._rows:
            self._rows[id(node)] = (node, max(self._estimate(node), 1.0))
        return self._rows[id(node)][1]

    def _estimate(self, node: nodes.Node) -> float:
        """Return the estimate of one node from those of its inputs."""
        match node:
            case nodes.Scan():
                return self._statistics(node.table).rows * self._kept_of_scan(node)
            case nodes.Filter():
                return self.rows(node.child) * self._kept(conjuncts(node.predicate), node.child)
            case nodes.Aggregate():
                return self._combinations([e for _, e in node.keys], node.child)
            case nodes.Distinct():
                keys = node.keys or [ColumnRef(f.type, f.name) for f in node.child.schema]
                return self._combinations(keys, node.child)
            case nodes.Join():
                return self._join(node)
            case nodes.Limit() if node.count is not None:
                return min(node.count, self.rows(node.child))
            case nodes.Sort() if node.limit is not None:
                return min(node.limit, self.rows(node.child))
            case nodes.Values():
                return float(node.rows.num_rows)
            case nodes.Numbers():
                return 1e6 if node.count is None else node.count
            case _:
                return sum(map(self.rows, node.children())) or 1_000.0

    def _join(self, node: nodes.Join) -> float:
        """Return the expected rows of a join: the number of all pairs, divided by the number of
        distinct keys."""
        left = self.rows(node.left)
        if node.strictness in ("SEMI", "ANTI"):
            with_partner = left * self.matched(node, "left")
            if node.strictness == "SEMI":
                return with_partner
            return max(left - with_partner, left * LONELY)
        # Rows without a partner, since their keys are out of the other side's bounds, are in no pair.
        ours = self.narrowed(node.left, node.left_keys, node.right, node.right_keys)
        theirs = self.narrowed(node.right, node.right_keys, node.left, node.left_keys)
        divisor = 1.0
        for left_key, right_key in zip(node.left_keys, node.right_keys, strict=True):
            divisor *= max(self.domain(left_key, ours), self.domain(right_key, theirs))
        if len(node.left_keys) > 1:
            # Keys are not independent: there are no more combinations than the smaller side can have.
            divisor = min(
                divisor,
                self._combinations_max(node.left_keys, node.left),
                self._combinations_max(node.right_keys, node.right),
            )
        pairs = self.rows(ours) * self.rows(theirs) / divisor
        if node.strictness == "ANY":
            pairs = min(pairs, left)
        return max(pairs, left if node.kind in ("LEFT", "FULL") else 0)

    def narrowed(
        self,
        node: nodes.Node,
        keys: Sequence[Expression],
        other: nodes.Node,
        other_keys: Sequence[Expression],
    ) -> nodes.Node:
        """Return the node with conditions that keep its keys within the bounds of the other node's keys, to estimate
        the rows that a join can use; the same node where that drops nothing."""
        return key_ranges.narrowed(node, keys, other, other_keys, self._statistics)

    def matched(self, join: nodes.Join, side: Literal["left", "right"]) -> float:
        """Return the share, 0 to 1, of the rows of one side of a join whose keys the other side is expected to have:
        the distinct keys of the other side over all values that this side's keys can have."""
        sides = [(join.left, join.left_keys), (join.right, join.right_keys)]
        (node, keys), (other, other_keys) = sides if side == "left" else reversed(sides)
        possible = prod((self.domain(key, node) for key in keys), start=1.0)
        if len(keys) > 1:
            possible = min(possible, self._combinations_max(keys, node))
        return min(1.0, self._combinations(other_keys, other) / possible)

    def table_rows(self, node: nodes.Node) -> float:
        """Return the rows of a scan's table without conditions, the rows of any other node."""
        return self._table_rows(node) if isinstance(node, nodes.Scan) else self.rows(node)

    def _table_rows(self, scan: nodes.Scan) -> float:
        """Return the number of rows of a table, whatever conditions the scan has."""
        return max(float(self._statistics(scan.table).rows), 1.0)

    def _combinations_max(self, keys: Sequence[Expression], node: nodes.Node) -> float:
        """Return the most combinations of values that keys can have without conditions.

        Keys of one table have at most its rows, those of several tables each with each; of keys of
        which one is computed it is the rows of the node."""
        places = [origin(key.name, node) if isinstance(key, ColumnRef) else None for key in keys]
        by_scan: dict[int, tuple[nodes.Scan, float]] = {}
        for place in places:
            if place is None:
                return self.rows(node)
            scan, column = place
            values = by_scan.get(id(scan), (scan, 1.0))[1]
            by_scan[id(scan)] = scan, values * self._values(scan, column, self._table_rows(scan))
        return prod(min(self._table_rows(scan), values) for scan, values in by_scan.values())

    def _combinations(self, keys: Sequence[Expression], node: nodes.Node) -> float:
        """Return about how many combinations of values keys have over a node's rows."""
        rows, groups = self.rows(node), 1.0
        by_scan: dict[int, tuple[nodes.Scan, list[Expression], float]] = {}
        for key in keys:
            place = traced(key, node)
            values = self.domain(key, node)
            if place is None:
                groups *= values
            else:
                scan, expression = place
                _, expressions, product = by_scan.get(id(scan), (scan, [], 1.0))
                by_scan[id(scan)] = scan, [*expressions, expression], product * values
        for scan, expressions, product in by_scan.values():
            together = None
            if len(expressions) > 1 and self._samples is not None:
                together = self._samples.distinct(
                    scan.table, expressions, conditions_over_table(scan)
                )
            table_rows = self._table_rows(scan)
            product = min(product, table_rows, together or product)
            # The values that some rows of the table have: Yao 1977.
            if rows < table_rows:
                product *= 1 - pow(1 - rows / table_rows, table_rows / product)
            groups *= product
        return min(groups, rows)

    def distinct(self, expression: Expression, node: nodes.Node) -> float:
        """Return about how many distinct values an expression has over a node's rows."""
        return min(self.domain(expression, node), self.rows(node))

    def domain(self, expression: Expression, node: nodes.Node) -> float:
        """Return about how many distinct values an expression can have: over a table's rows, those that meet
        the conditions on its own columns, whatever other conditions leave."""
        if isinstance(expression, Constant):
            return 1.0
        place = traced(expression, node)
        if place is not None:
            return self._domain_of_table(*place)
        if isinstance(expression, Call | Cast):
            inputs = (
                self.domain(ColumnRef(expression.type, n), node) for n in columns_of(expression)
            )
            possible = min(prod(inputs, start=1.0), value_bounds.values_max(expression))
            return min(possible, self.rows(node))
        grouping = (
            value_bounds.counting(expression.name, node)
            if isinstance(expression, ColumnRef)
            else None
        )
        if grouping is None:
            return self.rows(node)
        return min(value_bounds.counts_max(self.rows(grouping.child)), self.rows(node))

    def _domain_of_table(self, scan: nodes.Scan, expression: Expression) -> float:
        """Return the distinct values of an expression over a table's names of columns."""
        rows, used = self._table_rows(scan), columns_of(expression)
        own = [
            condition for condition in conditions_over_table(scan) if columns_of(condition) & used
        ]
        if own:
            rows = self.rows(scan)
        sampled = None
        if self._samples is not None and (own or not isinstance(expression, ColumnRef)):
            sampled = self._samples.distinct(scan.table, [expression], own)
        if sampled is not None:
            return max(1.0, min(sampled, rows))
        possible = prod((self._values(scan, name, rows) for name in used), start=1.0)
        return min(possible, value_bounds.values_max(expression), rows)

    def _values(self, scan: nodes.Scan, column: str, rows: float) -> float:
        """Return about how many distinct values a table's column has, at most `rows`."""
        statistics = self._statistics(scan.table)
        counted = statistics.distinct(column)
        if counted is not None:
            return max(1.0, min(counted, rows))
        low, high, _ = statistics.bounds.get(column, (None, None, 0))
        if isinstance(low, int) and isinstance(high, int):
            return float(max(1, min(high - low + 1, statistics.rows, rows)))
        if isinstance(low, str) and scan.table.sorting_key:
            return max(1.0, min(rows, max(5.0, pow(float(statistics.rows), 0.4))))
        return rows

    def _kept(self, conditions: list[Expression], node: nodes.Node) -> float:
        """Return the part of a node's rows of which all conditions hold.

        The ends of an interval of one column are judged together where its bounds are known, other
        conditions as independent."""
        kept = 1.0
        ends: dict[str, list[float]] = {}
        for condition in conditions:
            column = _ranged_column(condition)
            part = None if column is None else self._below_or_above(condition, _unfiltered(node))
            if column is None or part is None:
                # Two parts that are guesses do not say whether the ends meet.
                kept *= self.selectivity(condition, node)
            else:
                ends.setdefault(column, []).append(part)
        for parts in ends.values():
            outside = sum(1 - part for part in parts)
            # Two lower ends, or ends that do not meet, leave the smaller part or nothing.
            kept *= 1 - outside if outside < 1 else min(parts) * _LEAST
        return kept

    def _kept_of_scan(self, scan: nodes.Scan) -> float:
        """Return the part of a table's rows that meets the conditions of its scan."""
        pairs = [
            (condition, over)
            for condition, over in zip(
                conditions_of(scan), conditions_over_table(scan), strict=True
            )
        ]
        if self._samples is None or not pairs:
            return self._kept([condition for condition, _ in pairs], scan)
        tried = [self._samples.kept(scan.table, [over]) is not None for _, over in pairs]
        kept = self._kept(
            [c for (c, _), by_sample in zip(pairs, tried, strict=True) if not by_sample], scan
        )
        known = [pair for pair, by_sample in zip(pairs, tried, strict=True) if by_sample]
        counted = self._samples.kept(scan.table, [over for _, over in known]) if known else None
        if counted is None:
            return kept * self._kept([condition for condition, _ in known], scan)
        rows, of_rows = counted
        if of_rows >= self._statistics(scan.table).rows:
            return kept * rows / max(of_rows, 1)
        guess = self._kept([condition for condition, _ in known], scan)
        return kept * (rows + guess) / (of_rows + 1)

    def selectivity(self, condition: Expression, node: nodes.Node) -> float:
        """Return the part of a node's rows of which a condition holds, from 0 to 1.

        The rows are those before any condition of a Scan."""
        place = None if self._samples is None else traced(condition, node)
        if place is not None and self._samples is not None:
            counted = self._samples.kept(place[0].table, [place[1]])
            if counted is not None and counted[0]:
                return counted[0] / counted[1]
        return self._guess(condition, node)

    def _guess(self, condition: Expression, node: nodes.Node) -> float:
        """Return the part of the rows that a condition keeps by statistics, or by its form."""
        source = _unfiltered(node)
        match condition:
            case Call(name="and"):
                return self._kept(conjuncts(condition), node)
            case Call(name="or"):
                others = (1 - self.selectivity(c, node) for c in condition.arguments)
                return 1 - prod(others, start=1.0)
            case Call(name="not"):
                return 1 - self.selectivity(condition.arguments[0], node)
            case Call(name="equals"):
                return 1 / max(self.distinct(e, source) for e in condition.arguments)
            case Call(name="notEquals"):
                return 1 - 1 / max(1.1, *(self.distinct(e, source) for e in condition.arguments))
            case Call(name=name) if name in _RANGES:
                part = self._below_or_above(condition, source)
                return RANGE if part is None else part
            case Call(name="like" | "ilike" | "startsWith" | "endsWith"):
                return PATTERN
            case Call(name="notLike" | "notILike"):
                return 1 - PATTERN
            case InValues():
                kept = min(1.0, len(condition.values) / self.distinct(condition.argument, source))
                return 1 - kept if condition.negated else kept
            case InSubquery():
                kept = self._in_subquery(condition, source)
                return 1 - kept if condition.negated else kept
            case _:
                return UNKNOWN

    def _in_subquery(self, condition: InSubquery, source: nodes.Node) -> float:
        """Return the part of the rows whose values are among those of a subquery."""
        compared = (self.distinct(e, source) for e in condition.arguments)
        return min(1.0, self.rows(condition.plan) / prod(compared, start=1.0))

    def _below_or_above(self, condition: Expression, source: nodes.Node) -> float | None:
        """Return the part of the rows on one side of a constant, None where bounds do not tell it."""
        if not isinstance(condition, Call):
            return None
        name, (left, right) = condition.name, condition.arguments
        if isinstance(left, Constant):
            name, left, right = _FLIPPED[name], right, left
        if not isinstance(left, ColumnRef) or not isinstance(right, Constant):
            return None
        place, value = origin(left.name, source), _number(right.value)
        if place is None or value is None:
            return None
        low, high, _ = self._statistics(place[0].table).bounds.get(place[1], (None, None, 0))
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            return None
        below = (value - low + 1) / (high - low + 1)
        part = below if _RANGES[name] > 0 else 1 - below
        return min(1.0, max(part, _LEAST))


def _ranged_column(condition: Expression) -> str | None:
    """Return the column that a comparison with a constant bounds on one side, None for others."""
    if not isinstance(condition, Call) or condition.name not in _RANGES:
        return None
    left, right = condition.arguments
    if isinstance(left, Constant):
        left, right = right, left
    is_range = isinstance(left, ColumnRef) and isinstance(right, Constant)
    return left.name if is_range and isinstance(left, ColumnRef) else None


def _unfiltered(node: nodes.Node) -> nodes.Node:
    """Return a scan without its conditions; any other node as it is."""
    if isinstance(node, nodes.Scan):
        return nodes.Scan(
            node.table, node.columns, node.types, predicate_columns=node.predicate_columns
        )
    return node


def _number(value: pa.Scalar) -> float | None:
    """Return a constant as bounds have it: dates in days, times in ticks; None if it has no number."""
    if not value.is_valid:
        return None
    if pa.types.is_temporal(value.type):
        return float(value.value)
    if pa.types.is_integer(value.type) or pa.types.is_floating(value.type):
        return float(value.as_py())
    return None
