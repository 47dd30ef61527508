"""RENAME COLUMN in the text of views: the text changes so that the view means the same.

The first attempt renames the column's plain occurrences in the text, binds the result and compares
its plan with the old one. The plans may differ (an alias of the same name, USING, …). The second
attempt replaces the table that is read by a subquery that gives the column its old name. For a
column that is written, it puts a subquery around the whole query:

    SELECT k, sum(c) AS c FROM s GROUP BY k      c of s becomes d
    SELECT k, sum(c) AS c FROM (SELECT k, d AS c FROM s) AS s GROUP BY k
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from olapdb.bind import BindScope, bind_query
from olapdb.bind.analysis import referenced_tables
from olapdb.bind.syntax import rewrite, rewrite_children, walk
from olapdb.errors import AlterOfColumnIsForbidden, Error
from olapdb.functions.base import Environment
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan import nodes as plan_nodes
from olapdb.plan.nodes import Plan
from olapdb.plan.tree import all_scans
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.views.definition.canonical_plan import canonical_plan
from olapdb.views.definition.judgement import bind_view

Name = tuple[str, str]
"""(database, table)"""


def views_after_column_rename(
    snapshot: Snapshot, table: Table, old: str, new: str
) -> tuple[MaterializedView | View, ...]:
    """Return the views whose text changes when column `old` becomes `new`, with their new text. The
    commit of the ALTER stores them. `table` is the table after the ALTER.

    A definition keeps its version, since it means the same; INSERTs that fired the old text are
    detected by the table's own schema version. A view that was broken before is left unchanged.
    Raises AlterOfColumnIsForbidden for a view whose text cannot be rewritten.
    """
    after: Snapshot = OverlaySnapshot.of(snapshot, table)
    changed: dict[str, MaterializedView | View] = {}
    # A plain view may read a materialized view, whose columns are its target's: rewrite it last.
    views = [view for view in snapshot.objects() if isinstance(view, MaterializedView | View)]
    for view in sorted(views, key=lambda item: isinstance(item, View)):
        rewritten = _rewritten_view(view, snapshot, after, table, old, new)
        if rewritten is not None:
            changed[view.id] = rewritten
            after = OverlaySnapshot.of(snapshot, table, *changed.values())
    return tuple(changed.values())


def _rewritten_view(
    item: MaterializedView | View,
    before: Snapshot,
    after: Snapshot,
    table: Table,
    old: str,
    new: str,
) -> MaterializedView | View | None:
    """Return the view with its new text, or None if it is broken or nothing changes."""
    names = _names_of(before, table)
    if isinstance(item, View) and item.engine_name == "Merge" and not item.called_function:
        return None  # it declares its columns, and takes those that a table has
    if isinstance(item, View) and item.has_parameters:
        _refuse_mention(item, names, table, old, new)
        return None
    try:
        old_plan = _bind(item, before, item.query)
    except Error:
        return None
    reads_column = any(
        (read.scan.table.id, read.column) == (table.id, old) for read in _columns_read(old_plan)
    )
    writes_column = isinstance(item, MaterializedView) and item.target_id == table.id
    rewritten = item
    if reads_column:
        text = _with_input_renamed(item, old_plan, after, names, table, old, new)
        rewritten = replace(rewritten, query=text)
    if isinstance(rewritten, MaterializedView) and writes_column and old in old_plan.names:
        rewritten = _with_output_renamed(rewritten, old_plan, after, table, old, new)
    return None if rewritten == item else rewritten


def _refuse_mention(item: View, names: frozenset[Name], table: Table, old: str, new: str) -> None:
    """Raise AlterOfColumnIsForbidden for a view with parameters that names the column: without
    values no plan shows whether a new text means the same."""
    query = parse_query(item.query)
    read = {(name.database or item.database, name.name) for name in referenced_tables(query)}
    if not read & names:
        return
    if any(isinstance(n, nodes.Identifier) and n.parts[-1] == old for n in walk(query)):
        raise _rename_refusal(item, table, old, new)


def _names_of(snapshot: Snapshot, table: Table) -> frozenset[Name]:
    """Return the table's names, before and after, and those of materialized views that write it."""
    names = {(table.database, table.name)}
    names |= {(view.database, view.name) for view in snapshot.views_into(table.id)}
    old_table = snapshot.by_id(table.id)
    return frozenset(
        names | ({(old_table.database, old_table.name)} if old_table is not None else set())
    )


def _bind(item: MaterializedView | View, snapshot: Snapshot, query: str) -> Plan:
    """Bind a text as the query of the view."""
    if isinstance(item, MaterializedView):
        return bind_view(item, snapshot, query)
    scope = BindScope(
        snapshot=snapshot, database=item.database, environment=Environment(database=item.database)
    )
    return bind_query(parse_query(query), scope)


# --- a column that is read -----------------------------------------------------------------------


def _with_input_renamed(
    item: MaterializedView | View,
    had: Plan,
    after: Snapshot,
    names: frozenset[Name],
    table: Table,
    old: str,
    new: str,
) -> str:
    """Return the text of the view that reads the column under its new name: the old text, the
    renamed text or the text with subqueries, the first that binds to an equal plan."""
    query = parse_query(item.query)
    expected = canonical_plan(had, table.id, {old: new})
    for candidate_text in (item.query, to_sql(_with_column_renamed(query, names, old, new))):
        plan = _bind_or_none(item, after, candidate_text)
        if plan is not None and canonical_plan(plan, table.id, {}) == expected:
            return candidate_text
    wrapped_text = to_sql(_with_input_subquery(query, names, table, old, new))
    plan = _bind_or_none(item, after, wrapped_text)
    if plan is not None and (plan.names, plan.types) == (had.names, had.types):
        return wrapped_text
    raise _rename_refusal(item, table, old, new)


def _bind_or_none(item: MaterializedView | View, after: Snapshot, query: str) -> Plan | None:
    """Bind a text as the query of the view; return None if it does not bind."""
    try:
        return _bind(item, after, query)
    except Error:
        return None


def _rename_refusal(
    item: MaterializedView | View, table: Table, old: str, new: str
) -> AlterOfColumnIsForbidden:
    """Return the error for a view whose text cannot be rewritten."""
    name = f"{item.database}.{item.name}"
    fix = (
        f"ALTER TABLE {name} MODIFY QUERY to a SELECT without {old}, rename, then back"
        if isinstance(item, MaterializedView)
        else f"DROP VIEW {name}, rename, and create it anew"
    )
    return AlterOfColumnIsForbidden(
        f"Cannot RENAME COLUMN {old} of {table.database}.{table.name} to {new}: the query of"
        f" {name} cannot follow.",
        hint=f"{fix}.",
    )


def _with_column_renamed(
    query: nodes.Query, names: frozenset[Name], old: str, new: str
) -> nodes.Query:
    """Rename every `old`, `t.old`, `db.t.old` in SELECTs that read the table in their own FROM."""

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return a SELECT that reads the table with the column renamed; None for other nodes."""
        if not isinstance(node, nodes.Select):
            return None
        qualifiers = set(_qualifiers(node.source, names))
        if not qualifiers:
            return None
        return _select_renamed(node, qualifiers, old, new, change)

    return rewrite(query, change)


def _select_renamed(
    select: nodes.Select,
    qualifiers: set[tuple[str, ...]],
    old: str,
    new: str,
    deeper: Callable[[nodes.Node], nodes.Node | None],
) -> nodes.Select:
    """Rename the column within one SELECT. Output columns keep the old name as alias; subqueries
    are rewritten by `deeper`."""

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return the renamed node for a nested query or a name of the column, else None."""
        match node:
            case nodes.Query():
                return rewrite(node, deeper)
            case nodes.Identifier(parts=(*qualifier, name)) if name == old and (
                not qualifier or tuple(qualifier) in qualifiers
            ):
                return replace(node, parts=(*qualifier, new))
            case _:
                return None

    columns = tuple(
        nodes.Alias(rewrite(column, change), old)
        if isinstance(column, nodes.Identifier) and change(column) is not None
        else rewrite(column, change)
        for column in select.columns
    )
    renamed = rewrite_children(replace(select, columns=()), change)
    return replace(renamed, columns=columns)


def _qualifiers(source: nodes.Relation | None, names: frozenset[Name]) -> Iterator[tuple[str, ...]]:
    """Yield each qualifier that may precede a column of the table in this FROM."""
    match source:
        case nodes.TableReference(table=table) if (table.database, table.name) in names:
            yield (table.name,)
            yield (str(table.database), table.name)
            if source.alias is not None:
                yield (source.alias,)
        case nodes.Join(left=left, right=right):
            yield from _qualifiers(left, names)
            yield from _qualifiers(right, names)
        case nodes.ArrayJoin(source=inner):
            yield from _qualifiers(inner, names)


def _with_input_subquery(
    query: nodes.Query, names: frozenset[Name], table: Table, old: str, new: str
) -> nodes.Query:
    """Replace each reference to the table by a subquery that gives the column its old name."""
    mentioned_columns = {
        column_name
        for node in walk(query)
        for column_name in (
            node.parts[-1:]
            if isinstance(node, nodes.Identifier)
            else node.using
            if isinstance(node, nodes.Join)
            else ()
        )
    }
    other_columns: list[nodes.Expression] = [
        nodes.Identifier((column.name,))
        for column in table.columns
        if column.name in mentioned_columns - {old}
        and column.name != new
        and column.default_kind != "EPHEMERAL"
    ]
    columns = (*other_columns, nodes.Alias(nodes.Identifier((new,)), old))

    def change(node: nodes.Node) -> nodes.Node | None:
        """Replace the table by a subquery over it, and "database.table.column" by "table.column".

        Returns None for other nodes.
        """
        match node:
            case nodes.TableReference(table=named) if (named.database, named.name) in names:
                inner = nodes.Select(columns=columns, source=replace(node, alias=None))
                return nodes.SubqueryRelation(inner, node.alias or named.name)
            case nodes.Identifier(parts=(database, name, *rest)) if rest and (
                (database, name) in names
            ):
                return replace(node, parts=(name, *rest))
            case _:
                return None

    return rewrite(query, change)


# --- a column that is written --------------------------------------------------------------------


def _with_output_renamed(
    view: MaterializedView, had: Plan, after: Snapshot, table: Table, old: str, new: str
) -> MaterializedView:
    """Return the view with its output column renamed as its target's column."""
    query = parse_query(view.query)
    columns = tuple(
        replace(column, name=new) if column.name == old else column for column in view.columns
    )
    outputs = tuple(new if name == old else name for name in had.names)
    expected = canonical_plan(replace(had, output=_outputs(had, outputs)), table.id, {})
    current = _bind_or_none(view, after, view.query)
    if current is not None:  # this ALTER may have renamed its input already
        expected = canonical_plan(replace(current, output=_outputs(current, outputs)), table.id, {})
    renamed_text = to_sql(_output_renamed_plainly(query, old, new))
    plan = _bind_or_none(view, after, renamed_text)
    if plan is not None and canonical_plan(plan, table.id, {}) == expected:
        return replace(view, query=renamed_text, columns=columns)
    wrapped_text = to_sql(_with_output_subquery(query, had, old, new))
    plan = _bind_or_none(view, after, wrapped_text)
    if plan is not None and plan.names == outputs and plan.types == had.types:
        return replace(view, query=wrapped_text, columns=columns)
    raise _rename_refusal(view, table, old, new)


def _outputs(plan: Plan, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the plan's output under these names."""
    return tuple((unique, name) for (unique, _), name in zip(plan.output, names, strict=True))


def _output_renamed_plainly(query: nodes.Query, old: str, new: str) -> nodes.Query:
    """Return the query with its output column `old` named `new`, in each branch of a set operation. If `old` is an
    alias, its other uses in the query follow; subqueries stay as they are."""
    if isinstance(query, nodes.SetOperation):
        return replace(
            query,
            left=_output_renamed_plainly(query.left, old, new),
            right=_output_renamed_plainly(query.right, old, new),
        )
    assert isinstance(query, nodes.Select)
    aliased = any(isinstance(item, nodes.Alias) and item.name == old for item in query.columns)

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return the renamed node for a use of the alias, a subquery unchanged, else None."""
        match node:
            case nodes.Query():
                return node
            case nodes.Identifier(parts=(name,)) if aliased and name == old:
                return replace(node, parts=(new,))
            case _:
                return None

    columns = tuple(
        replace(column, name=new)
        if isinstance(column, nodes.Alias) and column.name == old
        else nodes.Alias(column, new)
        if isinstance(column, nodes.Identifier) and column.parts[-1] == old
        else rewrite(column, change)
        for column in query.columns
    )
    renamed = rewrite_children(replace(query, columns=()), change)
    return replace(renamed, columns=columns)


def _with_output_subquery(query: nodes.Query, had: Plan, old: str, new: str) -> nodes.Query:
    """Put a SELECT around the query that renames its output column."""
    columns: tuple[nodes.Expression, ...] = tuple(
        nodes.Alias(nodes.Identifier((name,)), new) if name == old else nodes.Identifier((name,))
        for name in had.names
    )
    return nodes.Select(columns=columns, source=nodes.SubqueryRelation(query))


# --- columns that plans read ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """A column of a table that a scan reads."""

    scan: plan_nodes.Scan
    column: str


def _columns_read(plan: Plan) -> Iterator[_Read]:
    """Yield each column that a scan of the plan reads."""
    for scan in all_scans(plan.root):
        for _, name in scan.columns:
            yield _Read(scan, name)
