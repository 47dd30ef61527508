"""Settings of the query among those of a table: the SETTINGS of CREATE TABLE may hold both."""

from __future__ import annotations

from dataclasses import replace

from olapdb.config import MEMORY_SETTINGS, SESSION_SETTINGS, TABLE_SETTINGS
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext


def with_query_settings(
    statement: nodes.CreateTable, context: StatementContext
) -> tuple[nodes.CreateTable, StatementContext]:
    """Return the statement with only those SETTINGS that a table can have, and the context with the
    others, which are settings of its query. Those of the engines Join and Set stay: they are named
    as settings of queries are."""
    storage = statement.storage
    if storage.engine is not None and storage.engine.name in ("Join", "Set"):
        return statement, context  # their settings have names of queries' settings
    of_query = [setting for setting in storage.settings if _is_of_query(setting.name)]
    if not of_query:
        return statement, context
    of_table = tuple(setting for setting in storage.settings if setting not in of_query)
    changed = replace(statement, storage=replace(storage, settings=of_table))
    return changed, context.with_settings(of_query)


def _is_of_query(name: str) -> bool:
    """Return whether the setting is one of queries that no table has."""
    return name in SESSION_SETTINGS and name not in TABLE_SETTINGS and name not in MEMORY_SETTINGS
