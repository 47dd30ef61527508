"""Hooks of an `incremental_mv`: what they write into `{{ this }}` goes to the model's target."""

from __future__ import annotations

from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.parser import parse

from ..relation import quote
from .names import ModelNames

_ROW_ACTIONS = (nodes.DeleteWhere, nodes.UpdateWhere, nodes.PartitionAction)


def writes_to_target(sql: str, names: ModelNames) -> str:
    """Return the statements with the target in place of the read view where they write to it.

    INSERT, DELETE, UPDATE, TRUNCATE, OPTIMIZE, and ALTER of rows and partitions write. What reads
    the read view goes on to read it. Text that does not parse is returned as it is, for the engine's
    error."""
    read_view = f"{quote(names.database)}.{quote(names.model)}"
    target = f"{quote(names.database)}.{quote(names.target)}"
    left = _writes(sql, names)
    at = sql.find(read_view)
    while left and at >= 0:
        changed = f"{sql[:at]}{target}{sql[at + len(read_view) :]}"
        fewer = _writes(changed, names)
        if fewer == left - 1:  # the occurrence was the table that the statement writes
            sql, left = changed, fewer
            at += len(target)
        else:
            at += len(read_view)
        at = sql.find(read_view, at)
    return sql


def _writes(sql: str, names: ModelNames) -> int:
    """Return the number of statements that write to the read view; 0 if the text does not parse."""
    try:
        statements = parse(sql)
    except Error:
        return 0
    written = nodes.TableName(names.model, names.database)
    return sum(_written(statement) == written for statement in statements)


def _written(statement: nodes.Statement) -> nodes.TableName | None:
    """Return the table whose rows the statement writes, None if it writes none."""
    match statement:
        case nodes.Insert(function=None) | nodes.Delete() | nodes.Update():
            return statement.table
        case nodes.Truncate() | nodes.Optimize():
            return statement.table
        case nodes.Alter() if all(isinstance(action, _ROW_ACTIONS) for action in statement.actions):
            return statement.table
    return None
