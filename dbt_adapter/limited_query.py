"""A query with a LIMIT, as `dbt show` asks for it."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.events.logging import AdapterLogger

import olapdb
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query

from .query_settings import settings_clause

logger = AdapterLogger("olapdb")


def with_limit(sql: str, limit: int) -> str:
    """Return the query with `limit` after it, or before its SETTINGS clause, which ends a statement.

    A UNION becomes a subquery: a LIMIT would belong to its last SELECT. A SELECT with a LIMIT of its
    own gets a second one, which is a syntax error, as dbt's tests ask for, and a warning says what to
    do. The text is otherwise unchanged."""
    text = sql.strip().rstrip(";")
    plain = f"{text}\nlimit {limit}"
    try:
        query = parse_query(text)
    except olapdb.Error:
        return plain
    if isinstance(query, nodes.SetOperation):
        return f"select * from (\n{text}\n) as model_limit_subq\nlimit {limit}"
    if not isinstance(query, nodes.Select):
        return plain
    if query.limit is not None or query.offset is not None:
        logger.warning(
            "The query has a LIMIT of its own, and dbt adds another one. Leave yours out and give "
            "`--limit n`, or `--limit -1` for no other than yours; of a data test, leave its config "
            "limit out."
        )
        return plain
    if not query.settings:
        return plain
    clause = settings_clause(query.settings)
    return f"{to_sql(replace(query, settings=()))}\nlimit {limit}\n{clause}"
