"""Refuses models that a trigger cannot keep correct, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.bind.analysis import nondeterministic_functions
from olapdb.bind.syntax import is_not_query, walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

from .aggregates import is_call
from .errors import refuse

_ON_TOP = "Put it into a view on top of this model."


def refuse_clauses(select: nodes.Select) -> None:
    """Raise CompilationError if the model has a clause that a trigger cannot maintain.

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
            raise refuse(
                clause,
                "would be answered for each inserted block by itself, not for the whole.",
                _ON_TOP,
            )
    if select.order_by:
        raise refuse(
            "ORDER BY",
            "has no meaning for a model that is read as a table.",
            "Remove it, or put it where the model is read; config order_by sorts the target.",
        )
    _refuse_windows(select)
    _refuse_volatile(select)
    if select.source is None:
        raise refuse("the model has no FROM,", "so nothing would fire it.", "Select from a table.")
    _refuse_sources(select)


def _refuse_windows(select: nodes.Select) -> None:
    """Raise an error if any column of the SELECT has a window function."""
    for node in (n for c in select.columns for n in walk(c, is_not_query)):
        if isinstance(node, nodes.Function) and node.over is not None:
            raise refuse(
                f"the window function {node.name}",
                "would see the rows of one inserted block only.",
                _ON_TOP,
            )


def _refuse_volatile(select: nodes.Select) -> None:
    """Raise CompilationError if the model calls a function whose value changes at each call."""
    names = nondeterministic_functions(select)
    if names:
        called = ", ".join(f"{name}()" for name in names)
        raise refuse(
            called,
            "gives another value when the rows are recomputed.",
            "Store the value in a column of the source (DEFAULT now()) and read that.",
        )


def _refuse_sources(select: nodes.Select) -> None:
    """Raise CompilationError for joins and subqueries that cannot be maintained.

    These lie between the model and its source table. Such a subquery would compare or aggregate
    the rows of one inserted block only; such a join adds rows without an INSERT."""
    common = {i.name: i.query for i in select.with_items if i.query is not None}
    for query in firing_queries(select, common):
        if isinstance(query, nodes.SetOperation):
            if query.operator != "UNION" or query.mode != "ALL":
                raise refuse(
                    f"{query.operator} {query.mode}".strip(),
                    "in the way to the source compares rows of one inserted block only.",
                    "Use UNION ALL, or a view on top.",
                )
        elif isinstance(query, nodes.Select):
            _refuse_inner(query)
    assert select.source is not None
    _refuse_joins(select.source)


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


def _refuse_inner(select: nodes.Select) -> None:
    """Raise CompilationError for a subquery that aggregates, limits or compares rows of one block."""
    if select.source is not None:
        _refuse_joins(select.source)
    aggregates = [n for c in select.columns for n in walk(c, is_not_query) if is_call(n)]
    if select.group_by is not None or aggregates:
        raise refuse(
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
            raise refuse(
                f"{clause} in a subquery over the source",
                "would be answered for each inserted block by itself.",
                _ON_TOP,
            )
    _refuse_windows(select)


def _refuse_joins(relation: nodes.Relation) -> None:
    """Raise CompilationError for joins that add rows without an INSERT into the leftmost table."""
    while isinstance(relation, nodes.Join | nodes.ArrayJoin):
        if isinstance(relation, nodes.ArrayJoin):
            relation = relation.source
            continue
        if relation.kind not in ("INNER", "LEFT", "CROSS"):
            raise refuse(
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
