"""A query with a LIMIT, as `dbt show` asks for it."""

from __future__ import annotations

from dataclasses import replace

import olapdb
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query


def with_limit(sql: str, limit: int) -> str:
    """Return the query with `limit` after it, or before its SETTINGS clause, which ends a statement.

    A query that has a LIMIT of its own becomes a subquery, so that the smaller of both holds, and so
    does a UNION, where a LIMIT would belong to the last SELECT. The text is otherwise unchanged."""
    text = sql.strip().rstrip(";")
    plain = f"{text}\nlimit {limit}"
    try:
        query = parse_query(text)
    except olapdb.Error:
        return plain
    is_union = isinstance(query, nodes.SetOperation)
    if is_union or (isinstance(query, nodes.Select) and query.limit is not None):
        return f"select * from (\n{text}\n) as model_limit_subq\nlimit {limit}"
    if not isinstance(query, nodes.Select) or not query.settings:
        return plain
    settings = to_sql(
        replace(nodes.Select(columns=(nodes.Literal(1, "1"),)), settings=query.settings)
    )
    clause = settings[settings.index("SETTINGS") :]
    return f"{to_sql(replace(query, settings=()))}\nlimit {limit}\n{clause}"
