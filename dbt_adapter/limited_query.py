"""A query with a LIMIT, as `dbt show` asks for it."""

from __future__ import annotations

from dataclasses import replace

import olapdb
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query


def with_limit(sql: str, limit: int) -> str:
    """Return the query with `limit` after it, or before its SETTINGS clause, which ends a statement.

    The text is otherwise unchanged, so a query that has a LIMIT is the engine's syntax error."""
    plain = f"{sql}\nlimit {limit}"
    try:
        query = parse_query(sql.strip().rstrip(";"))
    except olapdb.Error:
        return plain
    if not isinstance(query, nodes.Select | nodes.SetOperation) or not query.settings:
        return plain
    settings = to_sql(
        replace(nodes.Select(columns=(nodes.Literal(1, "1"),)), settings=query.settings)
    )
    clause = settings[settings.index("SETTINGS") :]
    return f"{to_sql(replace(query, settings=()))}\nlimit {limit}\n{clause}"
