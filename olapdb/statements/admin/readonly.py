"""The setting `readonly`: a session, or one statement, that must not change anything."""

from __future__ import annotations

from olapdb.errors import QueryIsProhibited, ReadOnly
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext


def _reads(statement: nodes.Statement | None) -> bool:
    """Return whether the statement changes nothing. Queries first: they need no other node."""
    if isinstance(statement, nodes.Query):
        return True
    return isinstance(
        statement,
        nodes.Show
        | nodes.Describe
        | nodes.ExistsObject
        | nodes.Explain
        | nodes.CheckTable
        | nodes.Use
        | nodes.SetSettings
        | nodes.TransactionStatement
        | nodes.Kill
        | nodes.OutFile,
    )


def refuse_if_readonly(statement: nodes.Statement | None, context: StatementContext) -> None:
    """Raise ReadOnly if the statement changes the warehouse, and the session or the statement's own
    SETTINGS have `readonly`, and QueryIsProhibited if it defines an object without `allow_ddl`.
    `statement` None is an INSERT of Python data.

    With readonly = 2 or more a session may have temporary tables, which are no change of the
    warehouse."""
    if _reads(statement):
        return
    if not context.settings.boolean("allow_ddl"):
        _refuse_definition(statement)
    changes = {
        setting.name: setting.value
        for setting in getattr(statement, "settings", ())
        if setting.name == "readonly"
    }
    level = context.settings.with_changes(changes).integer("readonly")
    if level > 1 and (context.on_temporary or _is_drop_of_temporary(statement)):
        return
    if level:
        raise ReadOnly(
            "Cannot execute query in readonly mode.",
            hint=f"The setting readonly is {level}; another connection need not have it.",
        )


def _refuse_definition(statement: nodes.Statement | None) -> None:
    """Raise QueryIsProhibited for a statement that defines or changes an object of the warehouse."""
    if isinstance(
        statement,
        nodes.CreateDatabase
        | nodes.CreateTable
        | nodes.CreateView
        | nodes.CreateMaterializedView
        | nodes.CreateDictionary
        | nodes.CreateFunction
        | nodes.CreateNamedCollection
        | nodes.AlterNamedCollection
        | nodes.DropNamedCollection
        | nodes.Alter
        | nodes.AlterDatabase
        | nodes.Rename
        | nodes.Drop
        | nodes.DropFunction
        | nodes.Detach
        | nodes.Attach
        | nodes.Undrop
        | nodes.Truncate
        | nodes.TruncateAll
        | nodes.Delete
        | nodes.Update,
    ):
        raise QueryIsProhibited(
            "Cannot execute query. DDL queries are prohibited.",
            hint="The session has allow_ddl = 0; another connection need not.",
        )


def _is_drop_of_temporary(statement: nodes.Statement | None) -> bool:
    """Return whether the statement says DROP TEMPORARY TABLE."""
    return isinstance(statement, nodes.Drop) and statement.temporary
