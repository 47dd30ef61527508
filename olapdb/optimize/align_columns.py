"""Joins of the same tables read the same columns, so that they run once where each place needs others.

    SELECT part, sum(cost) AS s FROM supplies JOIN suppliers USING (supplier) GROUP BY part
    HAVING s > (SELECT sum(cost) / 100 FROM supplies JOIN suppliers USING (supplier))

The first join reads `part`, the second one does not. Here both read it, and a Project above the second drops
it: then they are one subplan, which `share_subplans` runs once. Inner joins of stored tables are compared, by
their keys and conditions. Left as they are: joins whose rows are too many to be kept, and those below another
join whose keys may drop rows of a large table first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field, replace
from itertools import count

from olapdb.config import tuning
from olapdb.optimize.cardinality import Estimator
from olapdb.plan import nodes
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import (
    Call,
    ColumnRef,
    Constant,
    Expression,
    transform,
    walk,
    with_children,
)
from olapdb.plan.fingerprint import fingerprint
from olapdb.plan.tree import (
    all_nodes,
    all_scans,
    expressions_of,
    map_subqueries,
    subqueries_of,
    with_inputs,
)
from olapdb.records import dataclass
from olapdb.types import DataType, String, plain

_NUMBER_BYTES = 16
_TEXT_BYTES = 64
"""The bytes of a value, as the size of rows to be kept is estimated."""
_SHARE_OF_KEPT = 4
"""Align rows only of at most this part of the bytes that are kept: estimates may be wrong."""

_Columns = dict[str, DataType]
"""The names of a table's columns, and their types."""


def align_columns(root: nodes.Node, estimator: Estimator) -> nodes.Node:
    """Return the plan in which joins of the same tables read the same columns, where that lets them run once."""
    groups: dict[Hashable, dict[int, nodes.Join]] = {}
    for join, is_below_join in _joins(root):
        if _pays(join, is_below_join, estimator) and (key := _shape(join)) is not None:
            groups.setdefault(key, {})[id(join)] = join
    alignment = _Alignment(root)
    for group in sorted(map(list, map(dict.values, groups.values())), key=_size, reverse=True):
        alignment.add(group)
    return alignment.rebuilt(root) if alignment.aligned else root


def _joins(root: nodes.Node) -> Iterator[tuple[nodes.Join, bool]]:
    """Yield the joins of a plan and of its subqueries, and whether each is below another one."""
    seen: set[tuple[int, bool]] = set()
    waiting = [(root, False)]
    while waiting:
        node, is_below = waiting.pop()
        if (id(node), is_below) in seen:
            continue
        seen.add((id(node), is_below))
        is_join = isinstance(node, nodes.Join)
        if isinstance(node, nodes.Join):
            yield node, is_below
        waiting += [(child, is_below or is_join) for child in node.children()]
        waiting += [(subquery, False) for subquery in subqueries_of(node)]


def _size(group: Sequence[nodes.Join]) -> int:
    """Return the number of tables that each join of a group joins."""
    return len(_scans(group[0]))


def _scans(node: nodes.Node) -> list[nodes.Scan]:
    """Return the tables that inner joins read, in the order of the plan."""
    if isinstance(node, nodes.Scan):
        return [node]
    return [scan for child in node.children() for scan in _scans(child)]


def _pays(join: nodes.Join, is_below_join: bool, estimator: Estimator) -> bool:
    """Return whether to run a join once for all places: its rows, with all columns that it reads, are likely
    kept, and no filter of a join above would drop rows of a large table before."""
    if not _is_inner(join):
        return False
    scans = _scans(join)
    if is_below_join and any(
        estimator.table_rows(scan) >= tuning.JOIN_FILTER_ROWS_MIN for scan in scans
    ):
        return False
    width = sum(
        _TEXT_BYTES if isinstance(plain(field.type), String) else _NUMBER_BYTES
        for scan in scans
        for field in scan.schema
    )
    return _SHARE_OF_KEPT * estimator.rows(join) * width <= tuning.SHARED_BYTES_MAX


def _is_inner(node: nodes.Node) -> bool:
    """Return whether a plan is inner joins of stored tables alone, each with the columns of both sides."""
    match node:
        case nodes.Scan(columns=columns):
            return len({column for _, column in columns}) == len(columns)
        case nodes.Join(kind="INNER" | "CROSS", strictness="ALL", left=left, right=right):
            both = (*left.schema, *right.schema)
            return node.fields == both and _is_inner(left) and _is_inner(right)
        case _:
            return False


def _shape(join: nodes.Join) -> Hashable | None:
    """Return a value that is equal for inner joins of the same tables under the same conditions, whichever columns they
    return and in whichever order conditions are written. None where the joins may give other rows when they run
    again."""
    places = {
        unique: f"{number}.{column}"
        for number, scan in enumerate(_scans(join))
        for unique, column in _names_of(scan)
    }
    used: list[str] = []  # a fingerprint has no names, so they are compared beside it

    def placed(expression: Expression) -> Expression:
        """Return an expression whose columns are named by their place in the join: number of the table and name in
        it."""

        def change(e: Expression) -> Expression | None:
            """Return a column under its place, None for any other expression."""
            return (
                ColumnRef(e.type, places.get(e.name, e.name)) if isinstance(e, ColumnRef) else None
            )

        return transform(expression, change)

    def filtered(node: nodes.Node, condition: Expression | None) -> nodes.Node:
        """Return a node under all conditions, each a Filter, in an order that does not depend on how they are
        written; note the columns that they read."""
        for e in sorted((_constant_last(placed(e)) for e in conjuncts(condition)), key=repr):
            node = nodes.Filter(node, e)
            used.extend(_columns_in(node))
        return node

    def without_columns(node: nodes.Node) -> nodes.Node:
        """Return inner joins that return no column, and note the columns that they read."""
        if isinstance(node, nodes.Scan):
            bare = replace(
                node, columns=(), types=(), predicate_columns=(), predicate=None, prewhere=None
            )
            return filtered(filtered(bare, node.prewhere), node.predicate)
        assert isinstance(node, nodes.Join)
        joined = replace(
            node,
            left_keys=tuple(map(placed, node.left_keys)),
            right_keys=tuple(map(placed, node.right_keys)),
            residual=None,
            fields=(),
        )
        used.extend(_columns_in(joined))
        left, right = without_columns(node.left), without_columns(node.right)
        return filtered(replace(joined, left=left, right=right), node.residual)

    key = fingerprint(without_columns(join))
    return None if key is None else (key, tuple(used))


def _columns_in(node: nodes.Node) -> Iterator[str]:
    """Yield the names of columns in a node's own expressions, in their order."""
    for expression in expressions_of(node):
        yield from (e.name for e in walk(expression) if isinstance(e, ColumnRef))


def _constant_last(condition: Expression) -> Expression:
    """Return a comparison for equality with its constant on the right; any other condition as it is."""
    match condition:
        case Call(name="equals" | "notEquals", arguments=(Constant() as left, right)):
            return with_children(condition, (right, left))
        case _:
            return condition


def _names_of(scan: nodes.Scan) -> Iterator[tuple[str, str]]:
    """Yield the unique names of the columns that a scan reads, and their names in the table."""
    yield from scan.columns
    yield from ((unique, column) for unique, column, _ in scan.predicate_columns)


@dataclass
class _Alignment:
    """The joins of a plan that read more columns now, by the `id` of what they were."""

    root: nodes.Node
    aligned: dict[int, nodes.Node] = field(default_factory=dict)
    _inside: set[int] = field(default_factory=set)
    _rebuilt: dict[int, nodes.Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = {name for scan in all_scans(self.root) for name, _ in _names_of(scan)}
        self._taken |= {field.name for node in all_nodes(self.root) for field in node.schema}

    def add(self, group: Sequence[nodes.Join]) -> None:
        """Let the joins of a group, which differ in their columns alone, read the columns of all of them, so that they
        are equal. Leave out joins that are inside of aligned ones; do nothing if all are equal already."""
        group = [join for join in group if id(join) not in self._inside]
        scans = [_scans(join) for join in group]
        if len({fingerprint(join) for join in group}) < 2:
            return  # the same in all places
        columns = [_union(same) for same in zip(*scans, strict=True)]
        wide = self._widened(group[0], iter(columns))
        names = [{column: unique for unique, column in scan.columns} for scan in _scans(wide)]
        for join, place in zip(group, scans, strict=True):
            own = {
                unique: names[number][column]
                for number, scan in enumerate(place)
                for unique, column in scan.columns
            }
            read = tuple((f.name, ColumnRef(f.type, own[f.name])) for f in join.schema)
            # A copy, since an object that stands in several places counts as one.
            self.aligned[id(join)] = nodes.Project(replace(wide), read)
            self._inside |= {id(node) for node in all_nodes(join)}

    def _widened(self, node: nodes.Node, columns: Iterator[_Columns]) -> nodes.Join | nodes.Scan:
        """Return inner joins whose tables, in their order, return these columns."""
        if isinstance(node, nodes.Join):
            left, right = self._widened(node.left, columns), self._widened(node.right, columns)
            return replace(node, left=left, right=right, fields=(*left.schema, *right.schema))
        assert isinstance(node, nodes.Scan)
        wanted = next(columns)
        known = {column: unique for unique, column in _names_of(node)}
        pairs = tuple((known.get(column) or self._new_name(column), column) for column in wanted)
        others = sorted(
            (c for c in node.predicate_columns if c[1] not in wanted), key=lambda c: c[1]
        )
        return replace(
            node, columns=pairs, types=tuple(wanted.values()), predicate_columns=tuple(others)
        )

    def _new_name(self, column: str) -> str:
        """Return a name for a column that no other column of the plan has."""
        names = (f"{column}_{number}" for number in count(2))
        name = next(name for name in names if name not in self._taken)
        self._taken.add(name)
        return name

    def rebuilt(self, node: nodes.Node) -> nodes.Node:
        """Return a node over aligned joins, the same object for the same node."""
        if id(node) not in self._rebuilt:
            inner = self.aligned.get(id(node))
            if inner is None:
                inputs = tuple(map(self.rebuilt, node.children()))
                inner = with_inputs(map_subqueries(node, self.rebuilt), inputs)
            self._rebuilt[id(node)] = inner
        return self._rebuilt[id(node)]


def _union(scans: Sequence[nodes.Scan]) -> _Columns:
    """Return all columns that scans of one table return, in the order of their names."""
    types = {
        column: data_type
        for scan in scans
        for (_, column), data_type in zip(scan.columns, scan.types, strict=True)
    }
    return dict(sorted(types.items()))
