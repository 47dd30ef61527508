"""Which rows of a view's result a change of its dimensions reaches: the plan, asked twice.

A view's result is computed from each row of its source apart, up to the one GROUP BY.  A row of
the source may give something else after the change only where it meets, in a join or an IN, a row
that the change brought or took.  So, for each such place in the plan:

    what changed     the joined side is run on the dimension as it was and as it will be; the rows
                     that differ are the changed ones, unused columns do not count
    who meets it     the source's side is kept to the rows that join a changed one, by key and by
                     the rest of the ON condition (an effective-dated policy: just those days)
    what differs     the view runs over those, with the dimension as it was and as it will be; the
                     rows of the target that differ are what is stale

    view      SELECT day, kind, sum(weight) AS w FROM events JOIN kinds USING kind GROUP BY day, kind
    change    UPDATE kinds SET weight = 2 WHERE kind = 'a'
    changed   (a, 1) and (a, 2)
    met by    rows of events with kind = 'a'; other parts and row groups are pruned by their bounds
    stale     (2024-01-01, a), (2024-02-03, a)

Where the plan has another form (see `places`) nothing is claimed: None, and all of it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.execute import ExecutionContext, run
from olapdb.execute.codes import factorise
from olapdb.execute.combine import combine
from olapdb.execute.layout import TableLayout
from olapdb.execute.selection import Selector, live_parts
from olapdb.execute.survivors import visible
from olapdb.ingest.arrays import one_array
from olapdb.ingest.trigger import BoundView, Surroundings
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.optimize import optimize
from olapdb.optimize.conditions import all_of, conjuncts
from olapdb.plan.expressions import (
    Call,
    ColumnRef,
    Expression,
    InSubquery,
    InValues,
    ScalarSubquery,
    columns_of,
    walk,
)
from olapdb.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Node,
    Plan,
    Project,
    Scan,
    Sort,
    Union,
    Values,
)
from olapdb.plan.tree import expressions_of, subqueries_of, walk_nodes, with_inputs
from olapdb.types import UINT8, Float, plain

KEY_VALUES_MAX = 10_000
"""Parts and row groups are pruned by so many key values at most; the join looks at all of them."""

Path = tuple[int, ...]
"""The way from a plan's root to a node: which child, level by level."""


@dataclass(frozen=True)
class Place:
    """Where rows of the source meet a dimension: a join, or a node with `column IN (SELECT …)`."""

    path: Path
    subquery: InSubquery | None = None


@dataclass(frozen=True)
class Before:
    """The dimensions that change, whole, as they were and as they will be; by table id."""

    old: Mapping[str, pa.Table]
    new: Mapping[str, pa.Table]


def places(root: Node, source_id: str, changed: frozenset[str]) -> tuple[Place, ...] | None:
    """Where the rows of the source meet one of the changed tables.

    None where rows of the result do not depend on rows of the source one by one: LIMIT, HAVING, a
    second GROUP BY, a join above a GROUP BY, a scalar subquery over a changed table, joins that
    pick a partner (ANY) or add rows of their right side.
    """
    if any(_is_volatile(e) for node in walk_nodes(root) for e in expressions_of(node)):
        return None
    found: list[Place] = []
    for branch in _branches(root, source_id, changed, ()):
        if branch is None:
            return None
        found.append(branch)
    return tuple(found)


def differing(
    bound: BoundView,
    place: Place,
    change: Before,
    parts: Sequence[Part],
    around: Surroundings,
    rows_max: int,
) -> pa.Table | None:
    """The rows of the target's block that the change adds, takes or alters through one place.

    `parts` are the source's that the view has seen.  None where more than `rows_max` rows of the
    source would have to be read.  Raises what the view raises.
    """
    node = _at(bound.plan.root, place.path)
    met = _changed_rows(node, place, change, around)
    if met is None:
        return _block(bound, [], around)
    plan = optimize(replace(bound.plan, root=_kept_to(bound.plan.root, place, met)))
    source_id = bound.view.source_id
    context = _context(around, change.old, {source_id: parts})
    if _rows_read(plan, source_id, context) > rows_max:
        return None
    before = _block(bound, _run(plan, context), around)
    after = _block(bound, _run(plan, _context(around, change.new, {source_id: parts})), around)
    return difference(before, after)


def difference(before: pa.Table, after: pa.Table, *, distinct: bool = False) -> pa.Table:
    """The distinct rows that are in one of the tables more often than in the other (`distinct`:
    in just one of them). The tables have one schema."""
    both = pa.concat_tables([before, after])
    found = factorise([one_array(c) for c in both.columns], both.num_rows)
    old = np.bincount(found.codes[: before.num_rows], minlength=found.count)
    new = np.bincount(found.codes[before.num_rows :], minlength=found.count)
    differs = (old > 0) != (new > 0) if distinct else old != new
    return both.take(pa.array(found.first[differs]))


def dimension_rows(table: Table, rows: pa.Table, root: Node) -> pa.Table | None:
    """The table's rows as the plan is to read them in its stead: with FINAL, combined. None where
    it reads them both ways, or asks for what rows alone do not tell (`_part`)."""
    scans = [one for one in _all_scans(root) if one.table.id == table.id]
    names = {column.name for column in table.stored_columns}
    for scan in scans:
        read = {name for _, name in scan.columns} | {name for _, name, _ in scan.predicate_columns}
        if not read <= names:
            return None
    finals = {scan.final and table.engine.combines for scan in scans}
    if finals <= {False}:
        return rows
    if len(finals) > 1:
        return None
    layout = TableLayout(table)
    return visible(table, combine(table, layout.sort(rows), layout))


# --- the form of a plan ---------------------------------------------------------------------------


def _branches(
    node: Node, source_id: str, changed: frozenset[str], path: Path, *, grouped: bool = False
) -> Iterator[Place | None]:
    """The places below the node; None among them where it cannot be told."""
    if not _reads(node, changed):
        if not _is_row_wise(node, grouped):
            yield None
        return
    if not _reads(node, frozenset({source_id})):
        yield None  # a branch that a change of the dimension alters by itself
        return
    yield from _subquery_places(node, changed, path)
    match node:
        case Join(left=left, right=right):
            in_keys = any(_reads(one, changed) for one in subqueries_of(node))
            if in_keys or _aggregates(left) or not _is_plain_join(node):
                yield None
                return
            if _reads(right, changed):
                yield None if _reads(right, frozenset({source_id})) else Place(path)
            yield from _branches(left, source_id, changed, (*path, 0), grouped=grouped)
        case Aggregate(child=child):
            if grouped:
                yield None
                return
            yield from _branches(child, source_id, changed, (*path, 0), grouped=True)
        case Filter(child=child):
            if _aggregates(child):
                yield None
                return
            yield from _branches(child, source_id, changed, (*path, 0), grouped=grouped)
        case Project() | Sort(limit=None) | Distinct(keys=()):
            yield from _branches(
                node.children()[0], source_id, changed, (*path, 0), grouped=grouped
            )
        case Union(inputs=inputs):
            for at, one in enumerate(inputs):
                yield from _branches(one, source_id, changed, (*path, at), grouped=grouped)
        case Scan():
            return
        case _:
            yield None


def _subquery_places(node: Node, changed: frozenset[str], path: Path) -> Iterator[Place | None]:
    for expression in expressions_of(node):
        for one in walk(expression):
            match one:
                case ScalarSubquery(plan=plan) if _reads(plan, changed):
                    yield None
                case InSubquery(plan=plan) if _reads(plan, changed):
                    allowed = isinstance(node, Filter | Project | Aggregate | Scan)
                    nested = any(_has_subquery(a, changed) for a in one.arguments)
                    yield Place(path, one) if allowed and not nested else None


def _has_subquery(expression: Expression, changed: frozenset[str]) -> bool:
    return any(
        isinstance(one, ScalarSubquery | InSubquery) and _reads(one.plan, changed)
        for one in walk(expression)
    )


def _is_row_wise(node: Node, grouped: bool) -> bool:
    """Whether a part of the plan that reads no changed table gives rows for rows of the source."""
    kinds = (Filter, Project, Scan, Join, Union)
    return not grouped or all(
        isinstance(one, kinds) or (isinstance(one, Sort) and one.limit is None)
        for one in walk_nodes(node)
    )


def _is_plain_join(node: Join) -> bool:
    return node.kind in ("INNER", "LEFT", "CROSS") and node.strictness in ("ALL", "SEMI", "ANTI")


def _aggregates(node: Node) -> bool:
    return any(not isinstance(one, _ROW_WISE) for one in _source_path(node))


_ROW_WISE = (Filter, Project, Scan, Join, Union, Sort)


def _source_path(node: Node) -> Iterator[Node]:
    """The nodes from here down to the left-most tables."""
    yield node
    match node:
        case Join(left=left):
            yield from _source_path(left)
        case _:
            for child in node.children():
                yield from _source_path(child)


def _is_volatile(expression: Expression) -> bool:
    return any(
        isinstance(one, Call) and one.function.volatility != "pure" and one.name != "throwIf"
        for one in walk(expression)
    )


def _reads(node: Node, table_ids: frozenset[str]) -> bool:
    return any(one.table.id in table_ids for one in _all_scans(node))


def _all_scans(root: Node) -> Iterator[Scan]:
    for node in walk_nodes(root):
        if isinstance(node, Scan):
            yield node
        for subquery in subqueries_of(node):
            yield from _all_scans(subquery)


# --- what changed, and who meets it ---------------------------------------------------------------


def _changed_rows(
    node: Node, place: Place, change: Before, around: Surroundings
) -> pa.Table | None:
    """The rows of the joined side, or of the IN's query, that differ; None where none does."""
    if place.subquery is not None:
        side = place.subquery.plan
    else:
        assert isinstance(node, Join)
        side = node.right
    plan = Plan(side, tuple((f.name, f.name) for f in side.schema))
    before, after = (
        pa.Table.from_batches(
            _run(plan, _context(around, blocks, {})),
            pa.schema([(f.name, f.type.arrow) for f in side.schema]),
        )
        for blocks in (change.old, change.new)
    )
    distinct = place.subquery is not None or (
        isinstance(node, Join) and node.strictness in ("SEMI", "ANTI")
    )
    found = difference(before, after, distinct=distinct)
    return found if found.num_rows else None


def _kept_to(root: Node, place: Place, met: pa.Table) -> Node:
    """The plan with the rows that reach the place kept to those that meet a changed row."""

    def change(node: Node) -> Node:
        if place.subquery is not None:
            return _with_members(node, place.subquery, met)
        assert isinstance(node, Join)
        return replace(node, left=_with_partners(node, met))

    return _replaced(root, place.path, change)


def _with_partners(join: Join, met: pa.Table) -> Node:
    left = join.left
    for own, other in zip(join.left_keys, join.right_keys, strict=True):
        if isinstance(other, ColumnRef) and columns_of(own):
            condition = _one_of(own, one_array(met.column(other.name)))
            left = left if condition is None else Filter(left, condition)
    partners = Values(join.right.schema, met)
    return Join(
        left, partners, "LEFT", "SEMI", join.left_keys, join.right_keys, join.residual,
        join.left.schema,
    )  # fmt: skip


def _with_members(node: Node, subquery: InSubquery, met: pa.Table) -> Node:
    """The node over rows whose columns are among the values that came or left."""
    conditions = [
        InSubquery(UINT8, subquery.arguments, Values(subquery.plan.schema, met), False),
    ]  # fmt: skip
    pruning = [
        one
        for argument, column in zip(subquery.arguments, met.columns, strict=True)
        if columns_of(argument) and (one := _one_of(argument, one_array(column))) is not None
    ]
    wanted: list[Expression] = [*pruning, *conditions]
    if isinstance(node, Scan):
        own = conjuncts(node.predicate) if node.predicate is not None else []
        return replace(node, predicate=all_of([*wanted, *own]))
    kept = Filter(node.children()[0], all_of(wanted))
    return with_inputs(node, (kept,))


def _one_of(argument: Expression, values: pa.Array) -> Expression | None:
    """A condition by which parts and row groups are pruned; None where it would not help. The
    exact one stays beside it."""
    if isinstance(plain(argument.type), Float) or argument.type.arrow != values.type:
        return None
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        return None
    distinct = pc.unique(values.drop_null())
    if len(distinct) > KEY_VALUES_MAX:
        return None
    return InValues(UINT8, argument, distinct, tuple(distinct.to_pylist()), False)


def _at(root: Node, path: Path) -> Node:
    for step in path:
        root = root.children()[step]
    return root


def _replaced(root: Node, path: Path, change: object) -> Node:
    if not path:
        return change(root)  # type: ignore[operator, no-any-return]
    children = list(root.children())
    children[path[0]] = _replaced(children[path[0]], path[1:], change)
    return with_inputs(root, tuple(children))


# --- running --------------------------------------------------------------------------------------


def _context(
    around: Surroundings, blocks: Mapping[str, pa.Table], parts: Mapping[str, Sequence[Part]]
) -> ExecutionContext:
    return ExecutionContext(
        snapshot=around.snapshot, store=around.store, settings=around.settings,
        environment=around.environment, blocks=blocks, parts=parts, cancelled=around.cancelled,
    )  # fmt: skip


def _run(plan: Plan, context: ExecutionContext) -> list[pa.RecordBatch]:
    return list(run(plan, context).batches())


def _rows_read(plan: Plan, source_id: str, context: ExecutionContext) -> int:
    """Rows of the source in the parts that pruning leaves."""
    rows = 0
    for scan in _all_scans(plan.root):
        if scan.table.id == source_id:
            layout = TableLayout(scan.table, context.environment)
            kept = Selector(scan, scan.predicate, layout, context).keep_parts(
                live_parts(scan, context)
            )
            rows += sum(part.rows for part in kept)
    return rows


def _block(
    bound: BoundView, batches: Iterable[pa.RecordBatch], around: Surroundings
) -> pa.Table:
    plan = bound.plan
    schema = pa.schema([(n, t.arrow) for n, t in zip(plan.names, plan.types, strict=True)])
    rows = pa.Table.from_batches(list(batches), schema)
    arrays = [one_array(column) for column in rows.columns]
    return bound.maker.make(arrays, rows.num_rows, around.environment)
