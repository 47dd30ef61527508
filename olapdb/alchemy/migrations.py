"""Alembic's operations as ClickHouse's statements. `OlapDialect` loads this where Alembic is loaded."""

from __future__ import annotations

from typing import Any

from alembic.ddl.impl import DefaultImpl
from alembic.util import CommandError
from sqlalchemy import Column, MetaData, String, Table, text
from sqlalchemy.schema import CreateTable


class OlapImpl(DefaultImpl):
    """The operations of a migration. Each is a commit of its own: a migration that fails in the
    middle has done what stands before."""

    __dialect__ = "olapdb"
    transactional_ddl = False

    def version_table_impl(
        self, *, version_table: str, version_table_schema: str | None, **kw: Any
    ) -> Table:
        """Return Alembic's table of the version. It has no sorting key: Alembic updates its only column,
        and columns of a sorting key cannot be updated."""
        return Table(
            version_table,
            MetaData(),
            Column("version_num", String(32), nullable=False),
            schema=version_table_schema,
            olapdb_order_by="tuple()",
        )

    def rename_table(self, old_table_name: str, new_table_name: Any, schema: Any = None) -> None:
        """Run RENAME TABLE."""
        old, new = self._table(old_table_name, schema), self._table(new_table_name, schema)
        self._run(f"RENAME TABLE {old} TO {new}")

    def alter_column(
        self,
        table_name: str,
        column_name: str,
        *,
        nullable: bool | None = None,
        server_default: Any = False,
        name: str | None = None,
        type_: Any = None,
        schema: str | None = None,
        comment: Any = False,
        **kw: Any,
    ) -> None:
        """Run MODIFY COLUMN for the type and the default, COMMENT COLUMN and RENAME COLUMN.

        The type and whether it is Nullable, where only the other is given, are the table's."""
        alter = f"ALTER TABLE {self._table(table_name, schema)}"
        column = self._quoted(column_name)
        default = "" if server_default in (False, None) else self._default(server_default)
        if type_ is not None or nullable is not None:
            kind = self._type(table_name, column_name, schema, type_, nullable)
            self._run(f"{alter} MODIFY COLUMN {column} {kind}{default}")
        elif default:
            self._run(f"{alter} MODIFY COLUMN {column}{default}")
        if server_default is None:
            self._run(f"{alter} MODIFY COLUMN {column} REMOVE DEFAULT")
        if comment is not False:
            shown = self._literal(comment or "")
            self._run(f"{alter} COMMENT COLUMN {column} {shown}")
        if name is not None:
            self._run(f"{alter} RENAME COLUMN {column} TO {self._quoted(name)}")

    def correct_for_autogen_constraints(
        self,
        conn_unique_constraints: Any,
        conn_indexes: Any,
        metadata_unique_constraints: Any,
        metadata_indexes: Any,
    ) -> None:
        """Leave out unique constraints, which no table has."""
        metadata_unique_constraints.clear()

    def correct_for_autogen_foreignkeys(self, conn_fks: Any, metadata_fks: Any) -> None:
        """Leave out foreign keys, which no table has."""
        metadata_fks.clear()

    # --- texts

    def _run(self, sql: str) -> None:
        """Execute a statement, or print it in offline mode."""
        self._exec(text(sql.replace(":", "\\:")))

    def _quoted(self, name: str) -> str:
        """Return a name in backquotes where it needs them."""
        return str(self.dialect.identifier_preparer.quote(name))

    def _table(self, name: str, schema: str | None) -> str:
        """Return the quoted name of a table, with its database if one is given."""
        return ".".join(self._quoted(part) for part in (schema, name) if part)

    def _literal(self, value: str) -> str:
        """Return a text as a string literal."""
        compiler = self.dialect.statement_compiler(self.dialect, None)
        return str(compiler.render_literal_value(value, String()))

    def _default(self, server_default: Any) -> str:
        """Return ` DEFAULT expression`, with the space before it."""
        column = Column("x", String, server_default=server_default)
        statement = CreateTable(Table("x", MetaData(), column))
        compiler = self.dialect.ddl_compiler(self.dialect, statement)
        return f" DEFAULT {compiler.get_column_default_string(column)}"

    def _type(
        self, table: str, column: str, schema: str | None, type_: Any, nullable: bool | None
    ) -> str:
        """Return the new type of a column. Where `type_` or `nullable` is None, the column's
        present one counts. Raises CommandError if that is needed and there is no connection."""
        current = (
            ""
            if type_ is not None and nullable is not None
            else self._current(table, column, schema)
        )
        if type_ is not None:
            kind = str(self.dialect.type_compiler_instance.process(type_))
        else:
            kind = current.removeprefix("Nullable(").removesuffix(
                ")" * current.startswith("Nullable(")
            )
        is_nullable = current.startswith("Nullable(") if nullable is None else nullable
        return f"Nullable({kind})" if is_nullable else kind

    def _current(self, table: str, column: str, schema: str | None) -> str:
        """Return the present type of the column. Raises CommandError without a connection."""
        if self.as_sql or self.connection is None:
            raise CommandError(
                f"Without a connection give type_ and nullable of {table}.{column}: both are one type."
            )
        sql = (
            "SELECT type FROM system.columns WHERE table = ? AND name = ?"
            " AND database = if(? = '', currentDatabase(), ?)"
        )
        parameters = (table, column, schema or "", schema or "")
        type_name = self.connection.exec_driver_sql(sql, parameters).scalar()
        if type_name is None:
            raise CommandError(f"There is no column {column} in {table}.")
        return str(type_name)
