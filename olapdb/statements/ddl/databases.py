"""CREATE DATABASE, and ALTER DATABASE … MODIFY COMMENT."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.errors import (
    BadArguments,
    DatabaseAlreadyExists,
    NotSupportedError,
    UnknownDatabaseEngine,
    UnknownSetting,
)
from olapdb.model.changes import AddDatabase, Change, DropDatabase
from olapdb.model.schema import DatabaseEntry
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict

_ENGINES = ("Atomic", "Memory")
"""Engines of databases that are one here: a database of the warehouse."""

_OTHER_ENGINES = (
    "Replicated",
    "MySQL",
    "PostgreSQL",
    "SQLite",
    "DataLakeCatalog",
    "Backup",
    "Filesystem",
    "S3",
    "HDFS",
)
"""Engines of databases that ClickHouse has, and olapdb does not."""

_SETTINGS = ("lazy_load_tables",)
"""Settings of databases: no table is loaded before it is used, so they say nothing."""


def create_database(statement: nodes.CreateDatabase, context: StatementContext) -> Result:
    """Run CREATE DATABASE. Raise DatabaseAlreadyExists, UnknownDatabaseEngine, NotSupportedError for
    other engines of ClickHouse, BadArguments for arguments, UnknownSetting."""
    return retry_on_conflict(context, partial(_create_database, statement, context))


def _check_engine(statement: nodes.CreateDatabase) -> None:
    """Raise the errors of an ENGINE clause: see `create_database`."""
    engine = statement.engine
    if engine is None:
        return
    if engine.name == "Ordinary":
        raise UnknownDatabaseEngine(
            "Ordinary database engine is deprecated.",
            hint="Leave ENGINE out, or say Atomic.",
            position=statement.position,
        )
    if engine.name in _OTHER_ENGINES:
        raise NotSupportedError(
            f"Database engine {engine.name} is not supported.",
            hint="Leave ENGINE out, or say Atomic.",
            position=statement.position,
        )
    if engine.name not in _ENGINES:
        raise UnknownDatabaseEngine(
            f"Unknown database engine: {engine.name}.",
            hint="Leave ENGINE out, or say Atomic.",
            position=statement.position,
        )
    if engine.arguments:
        raise BadArguments(
            f"Database engine {engine.name} cannot have arguments.", position=statement.position
        )


def _create_database(
    statement: nodes.CreateDatabase, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `create_database` at the snapshot. Raises DatabaseAlreadyExists."""
    if statement.name in snapshot.databases or statement.name in SYSTEM_DATABASES:
        if statement.if_not_exists:
            return Result()
        raise DatabaseAlreadyExists(
            f"Database {statement.name} exists.",
            hint="Say IF NOT EXISTS.",
            position=statement.position,
        )
    _check_engine(statement)
    for setting in statement.settings:
        if statement.engine is None or setting.name not in _SETTINGS:
            raise UnknownSetting(
                f"Unknown setting {setting.name!r} of a database.",
                hint=f"Behind ENGINE = Atomic there is {', '.join(_SETTINGS)}.",
                position=setting.position,
            )
    entry = DatabaseEntry(str(uuid.uuid4()), statement.name, statement.comment)
    commit_schema_change(context, "CREATE DATABASE", (), [AddDatabase(entry)])
    return Result()


def alter_database(statement: nodes.AlterDatabase, context: StatementContext) -> Result:
    """Run ALTER DATABASE d MODIFY COMMENT 'c', or raise BadArguments for MODIFY SETTING: no setting
    of a database can be changed. Raises UnknownDatabase."""
    return retry_on_conflict(context, partial(_alter_database, statement, context))


def _alter_database(
    statement: nodes.AlterDatabase, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `alter_database` at the snapshot."""
    require_own_database(statement.name, snapshot, statement.position)
    if statement.settings:
        raise BadArguments(
            f"A database does not support altering the setting {statement.settings[0].name}.",
            hint="MODIFY COMMENT is what can be changed.",
            position=statement.position,
        )
    entry = replace(snapshot.databases[statement.name], comment=statement.comment)
    changes: list[Change] = [DropDatabase(entry.name), AddDatabase(entry)]
    commit_schema_change(context, "ALTER DATABASE", (), changes)
    return Result()
