"""The SETTINGS clause of a query, and whether a query depends on what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import olapdb
from olapdb.functions.windows import may_find_no_row
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.sql.trees import walk

OUTER = ("LEFT", "RIGHT", "FULL")


def settings_clause(settings: tuple[nodes.Setting, ...]) -> str:
    """Return `SETTINGS a = 1, …`."""
    text = to_sql(replace(nodes.Select(columns=(nodes.Literal(1, "1"),)), settings=settings))
    return text[text.index("SETTINGS") :]


def with_settings(sql: str, settings: Mapping[str, int]) -> str:
    """Return the query under these settings, unless its own SETTINGS clause has others.

    A UNION becomes a subquery: the clause would belong to its last SELECT. SQL that does not parse is
    returned as it is. The text is otherwise unchanged, but for the layout of one with a clause."""
    text = sql.strip().rstrip(";")
    try:
        query = parse_query(text)
    except olapdb.Error:
        return sql
    own = query.settings if isinstance(query, nodes.Select) else ()
    names = {setting.name for setting in own}
    added = tuple(nodes.Setting(k, v) for k, v in settings.items() if k not in names)
    if not added:
        return sql
    clause = settings_clause((*own, *added))
    if isinstance(query, nodes.Select):
        return f"{to_sql(replace(query, settings=())) if own else text}\n{clause}"
    return f"select * from (\n{text}\n)\n{clause}"


def has_outer_join(sql: str) -> bool:
    """Return whether the query itself has a join that keeps rows without a partner.

    Views that it reads do not count; SQL that does not parse has none."""
    try:
        return any(map(_keeps_rows, walk(parse_query(sql.strip().rstrip(";")))))
    except olapdb.Error:
        return False


def reads_missing_rows(sql: str) -> bool:
    """Return whether the query itself reads rows that may not be there: by an outer join, lag, lead.

    SQL that does not parse reads none."""
    try:
        syntax = list(walk(parse_query(sql.strip().rstrip(";"))))
    except olapdb.Error:
        return False
    windows = (
        node for node in syntax if isinstance(node, nodes.Function) and node.over is not None
    )
    return any(map(_keeps_rows, syntax)) or any(
        may_find_no_row(node.name, len(node.arguments)) for node in windows
    )


def _keeps_rows(node: nodes.Node) -> bool:
    """Return whether the node is a join that keeps rows without a partner."""
    return (
        isinstance(node, nodes.Join)
        and node.kind in OUTER
        and node.strictness not in ("SEMI", "ANTI")
    )
