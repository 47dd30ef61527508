"""Refuses models that a trigger cannot keep correct, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from dbt_common.exceptions import CompilationError

from olapdb.bind.analysis import nondeterministic_functions
from olapdb.bind.syntax import is_not_query, walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

from .aggregates import is_call
from .errors import refuse, refuse_all

_ON_TOP = "Put it into a view on top of this model."


def refuse_clauses(select: nodes.Select) -> None:
    """Raise one CompilationError for all that a trigger cannot maintain; see `refusals`."""
    errors = list(refusals(select))
    if errors:
        raise refuse_all(errors)


def refusals(select: nodes.Select) -> Iterator[CompilationError]:
    """Yield an error for each thing in the model that a trigger cannot maintain.

    These are clauses whose answer for each inserted block is not the answer for all rows,
    nondeterministic functions, and joins and subqueries that cannot be maintained."""
    for clause, present in (
        ("HAVING", select.having is not None),
        ("LIMIT", select.limit is not None or select.offset is not None),
        ("LIMIT BY", select.limit_by is not None),
        ("DISTINCT", select.distinct or bool(select.distinct_on)),
        ("QUALIFY", select.qualify is not None),
        ("WITH TOTALS", select.with_totals),
        (f"GROUP BY {select.grouping}", bool(select.grouping)),
    ):
        if present:
            yield refuse(
                clause,
                "would be answered for each inserted block by itself, not for the whole.",
                _ON_TOP,
            )
    if select.order_by:
        yield refuse(
            "ORDER BY",
            "has no meaning for a model that is read as a table.",
            "Remove it, or put it where the model is read; config order_by sorts the target.",
        )
    yield from _refused_windows(select)
    yield from _refused_volatile(select)
    if select.source is None:
        yield refuse("the model has no FROM,", "so nothing would fire it.", "Select from a table.")
        return
    yield from _refused_sources(select)


def _refused_windows(select: nodes.Select) -> Iterator[CompilationError]:
    """Yield an error if any column of the SELECT has a window function."""
    for node in (n for c in select.columns for n in walk(c, is_not_query)):
        if isinstance(node, nodes.Function) and node.over is not None:
            yield refuse(
                f"the window function {node.name}",
                "would see the rows of one inserted block only.",
                _ON_TOP,
            )


def _refused_volatile(select: nodes.Select) -> Iterator[CompilationError]:
    """Yield an error if the model calls a function whose value changes at each call."""
    names = nondeterministic_functions(select)
    if names:
        called = ", ".join(f"{name}()" for name in names)
        yield refuse(
            called,
            "gives another value when the rows are recomputed.",
            "Store the value in a column of the source (DEFAULT now()) and read that.",
        )


def _refused_sources(select: nodes.Select) -> Iterator[CompilationError]:
    """Yield an error for joins and subqueries that cannot be maintained.

    These lie between the model and its source table. Such a subquery would compare or aggregate
    the rows of one inserted block only; such a join adds rows without an INSERT."""
    common = {i.name: i.query for i in select.with_items if i.query is not None}
    for query in firing_queries(select, common):
        if isinstance(query, nodes.SetOperation):
            yield refuse(
                f"{query.operator} {query.mode}".strip() + " in the way to the source",
                "looks at the rows of one inserted block only.",
                "Make one model of each branch, and a view of UNION ALL over the models.",
            )
        elif isinstance(query, nodes.Select):
            yield from _refused_inner(query)
    assert select.source is not None
    yield from _refused_joins(select.source)


def firing_queries(
    query: nodes.Select, common: dict[str, nodes.Query], depth: int = 0
) -> Iterator[nodes.Query]:
    """Yield the subqueries and CTEs between the SELECT and the table whose INSERTs fire it.

    `common` holds the CTEs in sight; `depth` bounds the recursion to 64 levels."""
    relation = leftmost(query.source) if query.source is not None else None
    inner: nodes.Query | None = None
    if isinstance(relation, nodes.SubqueryRelation):
        inner = relation.query
    elif isinstance(relation, nodes.TableReference) and relation.table.database is None:
        inner = common.get(relation.table.name)
    if inner is None or depth > 64:
        return
    yield inner
    visible = {**common, **{i.name: i.query for i in getattr(inner, "with_items", ()) if i.query}}
    branches = [inner] if isinstance(inner, nodes.Select) else list(_branches(inner))
    for branch in branches:
        yield from firing_queries(branch, visible, depth + 1)


def _branches(query: nodes.Query) -> Iterator[nodes.Select]:
    """Yield the SELECTs of a query with set operations, left to right."""
    if isinstance(query, nodes.SetOperation):
        yield from _branches(query.left)
        yield from _branches(query.right)
    elif isinstance(query, nodes.Select):
        yield query


def leftmost(relation: nodes.Relation) -> nodes.Relation:
    """Return the leftmost relation of joins: the one whose INSERTs fire a trigger."""
    while True:
        match relation:
            case nodes.Join(left=left):
                relation = left
            case nodes.ArrayJoin(source=source):
                relation = source
            case _:
                return relation


def _refused_inner(select: nodes.Select) -> Iterator[CompilationError]:
    """Yield an error for a subquery that aggregates, limits or compares rows of one block."""
    if select.source is not None:
        yield from _refused_joins(select.source)
    aggregates = [n for c in select.columns for n in walk(c, is_not_query) if is_call(n)]
    if select.group_by is not None or aggregates:
        yield refuse(
            "a subquery that aggregates lies between the model and its source;",
            "it would aggregate each inserted block by itself.",
            "Make it a model of its own (incremental_mv), and select from that.",
        )
    for clause, present in (
        ("DISTINCT", select.distinct or bool(select.distinct_on)),
        ("LIMIT", select.limit is not None or select.limit_by is not None),
        ("HAVING", select.having is not None),
    ):
        if present:
            yield refuse(
                f"{clause} in a subquery over the source",
                "would be answered for each inserted block by itself.",
                _ON_TOP,
            )
    yield from _refused_windows(select)


def _refused_joins(relation: nodes.Relation) -> Iterator[CompilationError]:
    """Yield an error for joins that add rows without an INSERT into the leftmost table."""
    while isinstance(relation, nodes.Join | nodes.ArrayJoin):
        if isinstance(relation, nodes.ArrayJoin):
            relation = relation.source
            continue
        if relation.kind not in ("INNER", "LEFT", "CROSS"):
            yield refuse(
                f"a {relation.kind} JOIN with {_relation_text(relation.right)}",
                "gives rows that no INSERT into the leftmost table fires.",
                "Use LEFT or INNER JOIN, with the table that gets the INSERTs on the left.",
            )
        relation = relation.left


def _relation_text(relation: nodes.Relation) -> str:
    """Return a source in FROM as text for messages."""
    if isinstance(relation, nodes.TableReference):
        return str(relation.table)
    if isinstance(relation, nodes.SubqueryRelation):
        return f"({to_sql(relation.query)})"
    return type(relation).__name__
