"""Pipe operators: `FROM t |> WHERE x > 1 |> AGGREGATE count() AS n GROUP BY y |> LIMIT 3`.

Each operator is a SELECT over the query before it, as in ClickHouse."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from olapdb.sql import nodes
from olapdb.sql.parser import expressions, operands, queries, relations, sorting
from olapdb.sql.parser.cursor import TokenCursor

_SET_OPERATIONS: tuple[Literal["UNION", "EXCEPT", "INTERSECT"], ...] = (
    "UNION",
    "EXCEPT",
    "INTERSECT",
)


def parse_pipes(cursor: TokenCursor, query: nodes.Query) -> nodes.Query:
    """Parse the pipe operators behind `query`; return the query that they make of it."""
    alias: str | None = None
    while cursor.take("|>"):
        if cursor.take("AS"):
            if alias is not None:
                query = _over(query, alias)
            alias = cursor.identifier("an alias")
            continue
        query = _parse_operator(cursor, query, alias)
        alias = None
    return query if alias is None else _over(query, alias)


def _over(query: nodes.Query, alias: str | None) -> nodes.Select:
    """Return SELECT * FROM (query) AS alias."""
    position = query.position
    source = nodes.SubqueryRelation(query, alias, position=position)
    return nodes.Select((nodes.Star(position=position),), source=source, position=position)


def _parse_operator(cursor: TokenCursor, query: nodes.Query, alias: str | None) -> nodes.Query:
    """Parse one operator behind `|>`, whose input is `query` under `alias`."""
    select = _over(query, alias)
    if cursor.take("WHERE"):
        return replace(select, where=operands.parse_aliased(cursor))
    if cursor.take("SELECT"):
        distinct = cursor.take("DISTINCT")
        return replace(select, distinct=distinct, columns=_parse_columns(cursor))
    if cursor.take("EXTEND"):
        return replace(select, columns=(*select.columns, *_parse_columns(cursor)))
    if cursor.take("SET"):
        replaced = cursor.comma_separated(_parse_assignment)
        return replace(select, columns=(nodes.Star(replaced=replaced, position=query.position),))
    if cursor.take("DROP"):
        excluded = cursor.dotted_names("a column")
        return replace(select, columns=(nodes.Star(excluded=excluded, position=query.position),))
    if cursor.take("AGGREGATE"):
        return _parse_aggregate(cursor, select)
    if cursor.take("DISTINCT"):
        return replace(select, distinct=True)
    if cursor.sees("ORDER", "BY"):
        order_by = sorting.parse_order_by(cursor)
        return replace(select, order_by=order_by, interpolate=sorting.parse_interpolate(cursor))
    if cursor.key in ("LIMIT", "OFFSET"):
        return _parse_limit(cursor, select)
    if operator := cursor.take_one_of(*_SET_OPERATIONS):
        return _parse_set_operation(cursor, query if alias is None else select, operator)
    assert select.source is not None
    joined = relations.parse_joined(cursor, select.source)
    if joined is None:
        raise cursor.expected(
            "WHERE, SELECT, EXTEND, SET, DROP, AS, AGGREGATE, DISTINCT, ORDER BY, LIMIT, OFFSET, a"
            " set operation or a join"
        )
    return replace(select, source=joined)


def _parse_columns(cursor: TokenCursor) -> tuple[nodes.Expression, ...]:
    """Parse the columns of SELECT, EXTEND or AGGREGATE."""
    return cursor.comma_separated(operands.parse_column)


def _parse_assignment(cursor: TokenCursor) -> nodes.Alias:
    """Parse `column = expression`; return it as the Alias `expression AS column`, as in REPLACE."""
    position = cursor.position()
    name = cursor.identifier("a column")
    cursor.expect("=")
    return nodes.Alias(expressions.parse_expression(cursor), name, position=position)


def _parse_aggregate(cursor: TokenCursor, select: nodes.Select) -> nodes.Select:
    """Parse `aggregates [GROUP BY keys]`; the keys come first in the result."""
    aggregates = _parse_columns(cursor)
    if not cursor.take("GROUP", "BY"):
        return replace(select, columns=aggregates)
    keys = cursor.comma_separated(operands.parse_aliased)
    bare = tuple(key.expression if isinstance(key, nodes.Alias) else key for key in keys)
    return replace(select, columns=(*keys, *aggregates), group_by=bare)


def _parse_limit(cursor: TokenCursor, select: nodes.Select) -> nodes.Select:
    """Parse `LIMIT n [OFFSET m]` or `OFFSET m`."""
    limit = offset = None
    if cursor.take("LIMIT"):
        limit = expressions.parse_expression(cursor)
    if cursor.take("OFFSET"):
        offset = expressions.parse_expression(cursor)
    return replace(select, limit=limit, offset=offset)


def _parse_set_operation(
    cursor: TokenCursor, left: nodes.Query, operator: Literal["UNION", "EXCEPT", "INTERSECT"]
) -> nodes.Query:
    """Parse `[ALL | DISTINCT] (query), …` behind UNION, EXCEPT or INTERSECT."""
    mode: Literal["ALL", "DISTINCT", ""] = cursor.take_one_of("ALL", "DISTINCT")
    for right in cursor.comma_separated(queries.parse_in_parentheses):
        left = nodes.SetOperation(left, right, operator, mode, position=right.position)
    return left
