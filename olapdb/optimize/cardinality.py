"""Estimates: how many rows a node has, and how many distinct values an expression."""

from __future__ import annotations

from collections.abc import Sequence
from math import pow, prod

import pyarrow as pa

from olapdb.optimize.statistics import Statistics
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

UNKNOWN = 0.25
"""The part of the rows that a condition keeps of which nothing is known."""
RANGE = 1 / 3
PATTERN = 0.1
_LEAST = 0.001
"""The part of the rows that a range keeps at least."""
_RANGES = {"less": 1, "lessOrEquals": 1, "greater": -1, "greaterOrEquals": -1}
_FLIPPED = {"less": "greater", "lessOrEquals": "greaterOrEquals"}
_FLIPPED |= {after: before for before, after in _FLIPPED.items()}


class Estimator:
    """Estimates over the statistics of one snapshot. Numbers of rows are at least 1."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
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
                conditions = [*conjuncts(node.predicate), *conjuncts(node.prewhere)]
                return self._statistics(node.table).rows * self._kept(conditions, node)
            case nodes.Filter():
                return self.rows(node.child) * self._kept(conjuncts(node.predicate), node.child)
            case nodes.Aggregate():
                groups = prod((self.distinct(e, node.child) for _, e in node.keys), start=1.0)
                return min(groups, self.rows(node.child))
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
        """Return the rows of a join: every pair, over the distinct values of the keys."""
        left, right = self.rows(node.left), self.rows(node.right)
        ours, theirs, divisor = 1.0, 1.0, 1.0
        for one, other in zip(node.left_keys, node.right_keys, strict=True):
            values, partners = self.distinct(one, node.left), self.distinct(other, node.right)
            ours, theirs = min(ours * values, left), min(theirs * partners, right)
            divisor *= max(values, partners)
        if node.strictness in ("SEMI", "ANTI"):
            with_partner = left * min(1.0, theirs / ours)
            return with_partner if node.strictness == "SEMI" else left - with_partner
        if len(node.left_keys) > 1:
            # Of several keys the side that can have fewer combinations has all there are.
            divisor = min(
                divisor,
                self._combinations_max(node.left_keys, node.left),
                self._combinations_max(node.right_keys, node.right),
            )
        pairs = left * right / divisor
        if node.strictness == "ANY":
            pairs = min(pairs, left)
        return max(pairs, left if node.kind in ("LEFT", "FULL") else 0)

    def table_rows(self, node: nodes.Node) -> float:
        """Return the rows of a scan's table without conditions, the rows of any other node."""
        return self._table_rows(node) if isinstance(node, nodes.Scan) else self.rows(node)

    def _table_rows(self, scan: nodes.Scan) -> float:
        """Return the rows of a table."""
        return max(float(self._statistics(scan.table).rows), 1.0)

    def _combinations_max(self, keys: Sequence[Expression], node: nodes.Node) -> float:
        """Return the most combinations of values that keys can have without conditions.

        Keys of one table have at most its rows, those of several tables each with each; of keys of
        which one is computed it is the rows of the node."""
        origins = [_origin(key.name, node) if isinstance(key, ColumnRef) else None for key in keys]
        by_scan: dict[int, tuple[nodes.Scan, float]] = {}
        for origin in origins:
            if origin is None:
                return self.rows(node)
            scan, column = origin
            values = by_scan.get(id(scan), (scan, 1.0))[1]
            by_scan[id(scan)] = scan, values * self._values(scan, column, self._table_rows(scan))
        return prod(min(self._table_rows(scan), values) for scan, values in by_scan.values())

    def distinct(self, expression: Expression, node: nodes.Node) -> float:
        """Return about how many distinct values an expression has over a node's rows."""
        rows = self.rows(node)
        if isinstance(expression, Constant):
            return 1.0
        if isinstance(expression, Call | Cast):
            inputs = (
                self.distinct(ColumnRef(expression.type, n), node) for n in columns_of(expression)
            )
            return min(prod(inputs, start=1.0), rows)
        if not isinstance(expression, ColumnRef):
            return rows
        found = _origin(expression.name, node)
        if found is None:
            return rows
        return self._values(*found, rows)

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

    def selectivity(self, condition: Expression, node: nodes.Node) -> float:
        """Return the part of a node's rows of which a condition holds, from 0 to 1.

        The rows are those before any condition of a Scan."""
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
        found, value = _origin(left.name, source), _number(right.value)
        if found is None or value is None:
            return None
        low, high, _ = self._statistics(found[0].table).bounds.get(found[1], (None, None, 0))
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


def _origin(name: str, node: nodes.Node) -> tuple[nodes.Scan, str] | None:
    """Return the scan and the table's column that a column of a node is, None for a computed one."""
    match node:
        case nodes.Scan():
            columns = [*node.columns, *((u, c) for u, c, _ in node.predicate_columns)]
            return next(((node, column) for unique, column in columns if unique == name), None)
        case nodes.Project():
            expression = dict(node.expressions).get(name)
            inner = expression.name if isinstance(expression, ColumnRef) else None
            return None if inner is None else _origin(inner, node.child)
        case nodes.Aggregate():
            key = dict(node.keys).get(name)
            return _origin(key.name, node.child) if isinstance(key, ColumnRef) else None
        case nodes.Shared():
            at = next((at for at, f in enumerate(node.fields) if f.name == name), None)
            return None if at is None else _origin(node.child.schema[at].name, node.child)
        case nodes.Union() | nodes.SetDifference():
            return None
        case _:
            found = (_origin(name, child) for child in node.children())
            return next((one for one in found if one is not None), None)


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
