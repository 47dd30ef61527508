"""The SQLAlchemy dialect: executes text and statements of Core and the ORM, reflects tables.

    engine = create_engine("olapdb:///path/to/warehouse?database=analytics&join_use_nulls=1")

The path is relative with three slashes, absolute with four; the query string holds `database`,
`read_only`, `durability` and settings. Schemas are olapdb's databases.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from sqlalchemy import exc, pool
from sqlalchemy import types as sqltypes
from sqlalchemy.engine import URL, Connection, Row
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import ConnectArgsType
from sqlalchemy.sql.compiler import IdentifierPreparer

from olapdb import __version__, dbapi
from olapdb.alchemy.compiler import OlapCompiler, OlapIdentifierPreparer
from olapdb.alchemy.ddl import CONSTRUCT_ARGUMENTS, OlapDDLCompiler
from olapdb.alchemy.execution import OlapExecutionContext
from olapdb.alchemy.type_compiler import (
    OlapBytes,
    OlapInterval,
    OlapJSONIndex,
    OlapJSONPath,
    OlapTime,
    OlapTypeCompiler,
)
from olapdb.alchemy.types import sqlalchemy_type
from olapdb.config import SESSION_SETTINGS
from olapdb.database import MEMORY
from olapdb.sql.literals import quote_name

_KEY_ITEM = re.compile(r"\s*(`(?:[^`\\]|\\.)*`|[^,]+?)(?:\s+(?:ASC|DESC))?\s*(?:,|$)")
"""A quoted name, or what stands between two commas, without its direction."""


def _key_items(key: str) -> list[str]:
    """Return the items of a key such as `a, b DESC`, `(a)` or `tuple(a, b)`, as written."""
    inner = re.fullmatch(r"\s*(?:tuple)?\((.*)\)\s*", key, re.DOTALL)
    return _KEY_ITEM.findall(inner[1] if inner else key)


def _flag(name: str, value: str | tuple[str, ...]) -> bool:
    """Return a yes or no of a URL's query; raise ArgumentError for another text."""
    text = str(value).lower()
    if text not in ("1", "0", "true", "false"):
        raise exc.ArgumentError(f"{name} is 1 or 0, not {value!r}.")
    return text in ("1", "true")


def _size(name: str, value: str | tuple[str, ...]) -> int:
    """Return the bytes that a URL's query gives; raise ArgumentError for another text."""
    if not str(value).isdigit():
        raise exc.ArgumentError(f"{name} is a number of bytes, not {value!r}.")
    return int(str(value))


def _text(name: str, value: str | tuple[str, ...]) -> str:
    """Return a text of a URL's query; raise ArgumentError for several."""
    if not isinstance(value, str):
        raise exc.ArgumentError(f"The URL gives {name} more than once.")
    return value


_ARGUMENTS: Mapping[str, Callable[[str, str | tuple[str, ...]], object]] = {
    "database": _text,
    "durability": _text,
    "read_only": _flag,
    "uncompressed_cache_size": _size,
}
"""The arguments of olapdb.connect that a URL's query may give, with what converts them."""


class OlapDialect(DefaultDialect):
    """The SQLAlchemy dialect named `olapdb`."""

    name = "olapdb"
    driver = "olapdb"
    statement_compiler = OlapCompiler
    ddl_compiler = OlapDDLCompiler
    type_compiler_cls = OlapTypeCompiler
    execution_ctx_cls = OlapExecutionContext
    construct_arguments = CONSTRUCT_ARGUMENTS
    colspecs = {
        sqltypes.Time: OlapTime,
        sqltypes.Interval: OlapInterval,
        sqltypes.JSON.JSONIndexType: OlapJSONIndex,
        sqltypes.JSON.JSONPathType: OlapJSONPath,
        sqltypes.LargeBinary: OlapBytes,
        sqltypes.BINARY: OlapBytes,
        sqltypes.VARBINARY: OlapBytes,
    }
    preexecute_autoincrement_sequences = True
    preparer: type[IdentifierPreparer] = OlapIdentifierPreparer
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    div_is_floordiv = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_default_values = False
    supports_empty_insert = False
    supports_multivalues_insert = True
    supports_sequences = False
    supports_comments = True
    inline_comments = True
    supports_alter = False
    postfetch_lastrowid = False
    insert_returning = False
    max_identifier_length = 255
    default_schema_name: str | None = "default"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if "alembic" in sys.modules:
            import_module("olapdb.alchemy.migrations")

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Return a queue pool; for a warehouse in memory a pool of one connection, which owns the
        data and which threads share."""
        in_memory = url.database in (None, "", MEMORY)
        return pool.StaticPool if in_memory else pool.QueuePool

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """Return the arguments of `olapdb.connect` for olapdb:///folder?database=…&read_only=1;
        other options become settings. Raise ArgumentError if the URL has a host, user or
        password."""
        if url.host:
            raise exc.ArgumentError(
                f"olapdb runs in process; use olapdb:///{url.host}/… (three slashes) for a folder."
            )
        if url.username or url.password:
            raise exc.ArgumentError(
                "olapdb has no users and no passwords: each user who may read the folder may read the "
                "warehouse. Leave them out of the URL."
            )
        options = dict(url.query)
        arguments: dict[str, Any] = {}
        for name, convert in _ARGUMENTS.items():
            if name in options:
                arguments[name] = convert(name, options.pop(name))
        for name in options:
            close = difflib.get_close_matches(name, _ARGUMENTS, n=1, cutoff=0.8)
            if close and name not in SESSION_SETTINGS:
                raise exc.ArgumentError(
                    f"The URL's {name} means nothing. Maybe you meant {close[0]}."
                )
        arguments["settings"] = options
        return ([url.database] if url.database else []), arguments

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[Any]:
        """Return AUTOCOMMIT alone: each statement is a commit."""
        return ["AUTOCOMMIT"]

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """Return AUTOCOMMIT, which holds without being set."""
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Do nothing: the only level is the one that each connection has."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Run SELECT 1; return True unless it raises."""
        dbapi_connection.execute("SELECT 1").close()
        return True

    def initialize(self, connection: Connection) -> None:
        """Initialize the dialect, and take the current database of the first connection as the
        default schema."""
        super().initialize(connection)
        self.default_schema_name = self._get_default_schema_name(connection)

    def _get_default_schema_name(self, connection: Connection) -> str:
        """Return the connection's current database."""
        return str(connection.exec_driver_sql("SELECT currentDatabase()").scalar())

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        """Return olapdb's version as numbers."""
        return tuple(int(n) for n in __version__.split("."))

    # --- reflection

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """Return the names of all databases, sorted."""
        return self._column(connection, "SELECT name FROM system.databases ORDER BY name")

    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the sorted names of the schema's tables, without views and dictionaries. None
        means the current database."""
        return self._objects(
            connection, schema, "NOT IN ('View', 'MaterializedView', 'Dictionary')"
        )

    def get_temp_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the names of the connection's temporary tables, by name."""
        sql = "SELECT name FROM system.tables WHERE is_temporary ORDER BY name"
        return self._column(connection, sql)

    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the sorted names of the schema's plain views, without materialized ones."""
        return self._objects(connection, schema, "IN ('View')")

    def get_materialized_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the sorted names of the schema's materialized views."""
        return self._objects(connection, schema, "IN ('MaterializedView')")

    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """Return the SELECT of a plain or materialized view. Raise NoSuchTableError if it does not
        exist."""
        return str(self._table_fact(connection, "as_select", view_name, schema))

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Return whether a table or view of this name exists."""
        sql = "SELECT count() FROM system.tables WHERE database = ? AND name = ?"
        database = self._database_of(connection, table_name, schema)
        return bool(connection.exec_driver_sql(sql, (database, table_name)).scalar())

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the columns of a table or view by position. Raise NoSuchTableError if it does not
        exist."""
        self._require(connection, table_name, schema)
        sql = (
            "SELECT name, type, default_kind, default_expression, comment FROM system.columns "
            "WHERE database = ? AND table = ? ORDER BY position"
        )
        database = self._database_of(connection, table_name, schema)
        rows = connection.exec_driver_sql(sql, (database, table_name))
        return [_reflected(*(str(v) for v in row)) for row in rows]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return the columns of the primary key, which are those of ORDER BY unless the table says
        otherwise. It is not unique: the ORM takes rows of one key for one object.

        Return no column if the table has no key, or one with an expression that is no column. Raise
        NoSuchTableError if the table does not exist."""
        key = str(self._table_fact(connection, "primary_key", table_name, schema))
        database = self._database_of(connection, table_name, schema)
        sql = "SELECT name FROM system.columns WHERE database = ? AND table = ?"
        columns = {quote_name(n): n for n in self._column(connection, sql, database, table_name)}
        items = _key_items(key)
        names = [columns[item] for item in items if item in columns]
        return {"constrained_columns": names if len(names) == len(items) else [], "name": None}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return [], as there are no foreign keys. Raise NoSuchTableError if the table does not
        exist."""
        self._require(connection, table_name, schema)
        return []

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the skip indexes. Raise NoSuchTableError if the table does not exist."""
        self._require(connection, table_name, schema)
        sql = (
            "SELECT name, expr, type_full, granularity FROM system.data_skipping_indices "
            "WHERE database = ? AND table = ? ORDER BY name"
        )
        database = self._database_of(connection, table_name, schema)
        columns = {c["name"] for c in self.get_columns(connection, table_name, schema)}
        rows = connection.exec_driver_sql(sql, (database, table_name))
        return [_reflected_index(columns, row) for row in rows]

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return [], as nothing is unique. Raise NoSuchTableError if the table does not exist."""
        self._require(connection, table_name, schema)
        return []

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return []: constraints are not reflected. Raise NoSuchTableError if the table does not
        exist."""
        self._require(connection, table_name, schema)
        return []

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return {"text": comment}, None for an empty one. Raise NoSuchTableError if the table does
        not exist."""
        return {"text": self._table_fact(connection, "comment", table_name, schema) or None}

    # --- helpers

    def _schema(self, schema: str | None) -> str:
        """Return the database to use: the given one, else the connection's, else "default"."""
        return schema or self.default_schema_name or "default"

    def _database_of(self, connection: Connection, table_name: str, schema: str | None) -> str:
        """Return the database of a table in system.tables: "" for a temporary one, which a name
        without a schema means first."""
        if schema is None and table_name in self.get_temp_table_names(connection):
            return ""
        return self._schema(schema)

    def _column(self, connection: Connection, sql: str, *parameters: object) -> list[str]:
        """Run the query and return its first column as texts."""
        return [str(row[0]) for row in connection.exec_driver_sql(sql, tuple(parameters))]

    def _objects(self, connection: Connection, schema: str | None, engines: str) -> list[str]:
        """Return the names of tables whose engine meets the condition `engines`, such as "IN
        ('View')", by name."""
        sql = (
            f"SELECT name FROM system.tables WHERE database = ? AND engine {engines} ORDER BY name"
        )
        return self._column(connection, sql, self._schema(schema))

    def _table_fact(
        self, connection: Connection, column: str, table_name: str, schema: str | None
    ) -> object:
        """Return a column of system.tables for one table or view. Raise NoSuchTableError if it does
        not exist."""
        sql = f"SELECT {column} FROM system.tables WHERE database = ? AND name = ?"
        database = self._database_of(connection, table_name, schema)
        row = connection.exec_driver_sql(sql, (database, table_name)).first()
        if row is None:
            raise exc.NoSuchTableError(table_name)
        return row[0]

    def _require(self, connection: Connection, table_name: str, schema: str | None) -> None:
        """Raise NoSuchTableError if the table or view does not exist."""
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)

    # --- no transactions

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: every statement is its own commit."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Do nothing: every statement is its own commit."""


def _reflected_index(columns: set[str], row: Row[Any]) -> dict[str, Any]:
    """Return a skip index as SQLAlchemy's inspector describes it."""
    name, expression, index_type, granularity = tuple(row)
    is_column = expression in columns
    return {
        "name": name,
        "unique": False,
        "column_names": [expression if is_column else None],
        **({} if is_column else {"expressions": [expression]}),
        "dialect_options": {"olapdb_type": index_type, "olapdb_granularity": granularity},
    }


def _reflected(
    name: str, type_name: str, default_kind: str, default: str, comment: str
) -> dict[str, Any]:
    """Return a column as SQLAlchemy's inspector describes it. Only a DEFAULT counts as default, not
    MATERIALIZED or ALIAS."""
    reflected = sqlalchemy_type(type_name)
    return {
        "name": name,
        "type": reflected.type,
        "nullable": reflected.nullable,
        "default": default if default_kind == "DEFAULT" else None,
        "comment": comment or None,
        "autoincrement": False,
    }
