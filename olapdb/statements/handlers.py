"""The handlers of statements, by the class of the statement.

A module of handlers is imported at the first statement that needs it. USE and SET are not here: they
change the session, which runs them itself (`olapdb/session.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olapdb import errors
from olapdb.lazy import LazyModule, lazy_modules
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.query import output

if TYPE_CHECKING:
    from olapdb.statements.admin import check, kill, system_view
    from olapdb.statements.ddl import (
        alter,
        create,
        databases,
        dictionaries,
        drop,
        functions,
        named_collections,
        plain_views,
        rename,
        undrop,
        views,
    )
    from olapdb.statements.dml import (
        insert,
        insert_function,
        mutations,
        optimize_truncate,
        replace_rows,
    )
    from olapdb.statements.introspect import show
    from olapdb.statements.query import explain, explained
else:
    check, kill, system_view = lazy_modules(
        "olapdb.statements.admin", "check", "kill", "system_view"
    )
    (
        alter,
        create,
        databases,
        dictionaries,
        drop,
        functions,
        named_collections,
        plain_views,
        rename,
        undrop,
        views,
    ) = lazy_modules(
        "olapdb.statements.ddl",
        "alter",
        "create",
        "databases",
        "dictionaries",
        "drop",
        "functions",
        "named_collections",
        "plain_views",
        "rename",
        "undrop",
        "views",
    )
    insert, insert_function, mutations, optimize_truncate, replace_rows = lazy_modules(
        "olapdb.statements.dml",
        "insert",
        "insert_function",
        "mutations",
        "optimize_truncate",
        "replace_rows",
    )
    show = LazyModule("olapdb.statements.introspect.show")
    explain, explained = lazy_modules("olapdb.statements.query", "explain", "explained")


def run_statement(statement: nodes.Statement, context: StatementContext) -> Result:
    """Call the handler of the statement's class; return its result."""
    match statement:
        case nodes.Query():
            if "EXPLAIN" in context.text.upper():
                statement = explained.with_explanations(statement, context)
            return output.run_select(statement, context)
        case nodes.OutFile():
            return output.write_file(statement, context)
        case nodes.Insert(function=nodes.TableFunction()):
            return insert_function.run_insert_function(statement, context)
        case nodes.Insert(replacing=None):
            return insert.run_insert(statement, context)
        case nodes.Insert():
            return replace_rows.run_replace(statement, context)
        case nodes.Delete():
            return optimize_truncate.delete(statement, context)
        case nodes.Truncate():
            return optimize_truncate.truncate(statement, context)
        case nodes.TruncateAll():
            return optimize_truncate.truncate_all(statement, context)
        case nodes.Optimize():
            return optimize_truncate.optimize(statement, context)
        case nodes.CreateDatabase():
            return databases.create_database(statement, context)
        case nodes.AlterDatabase():
            return databases.alter_database(statement, context)
        case nodes.CreateTable():
            return create.create_table(statement, context)
        case nodes.CreateView():
            return plain_views.create_view(statement, context)
        case nodes.CreateDictionary():
            return dictionaries.create_dictionary(statement, context)
        case nodes.CreateMaterializedView():
            return views.create_materialized_view(statement, context)
        case nodes.SystemView():
            return system_view.system_view(statement, context)
        case nodes.Detach() | nodes.Attach():
            return views.attach_or_detach(statement, context)
        case nodes.Drop():
            return drop.drop(statement, context)
        case nodes.CreateFunction():
            return functions.create_function(statement, context)
        case nodes.DropFunction():
            return functions.drop_function(statement, context)
        case nodes.CreateNamedCollection():
            return named_collections.create_collection(statement, context)
        case nodes.AlterNamedCollection():
            return named_collections.alter_collection(statement, context)
        case nodes.DropNamedCollection():
            return named_collections.drop_collection(statement, context)
        case nodes.Rename():
            return rename.rename(statement, context)
        case nodes.Exchange():
            return rename.exchange(statement, context)
        case nodes.Alter():
            return alter.alter(statement, context)
        case nodes.System():
            return optimize_truncate.system(statement, context)
        case nodes.Explain():
            return explain.explain(statement, context)
        case nodes.Show():
            return show.show(statement, context)
        case nodes.Describe():
            return show.describe(statement, context)
        case nodes.ExistsObject():
            return show.exists(statement, context)
        case nodes.TransactionStatement():
            return _transaction(statement)
        case nodes.CheckTable():
            return check.check_tables(statement, context)
        case nodes.Kill():
            return kill.kill(statement, context)
        case nodes.Undrop():
            return undrop.undrop(statement, context)
        case nodes.Update():
            return mutations.update(statement, context)
        case _:
            raise errors.InternalError(f"No handler for the statement {type(statement).__name__}.")


def _transaction(statement: nodes.TransactionStatement) -> Result:
    """Accept BEGIN and COMMIT, which do nothing. Raise NotSupportedError for ROLLBACK."""
    if statement.action == "ROLLBACK":
        raise errors.NotSupportedError(
            "There is nothing to roll back: each statement is one atomic commit.",
            position=statement.position,
        )
    return Result()
