"""CREATE TABLE, CREATE INDEX and comments of Core as ClickHouse's statements.

A table has an engine and a sorting key, which Core does not know; these are arguments of `Table`:

    Table("sales", metadata, Column("day", Date, primary_key=True), olapdb_engine="SummingMergeTree")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import exc, util
from sqlalchemy import types as sqltypes
from sqlalchemy.schema import (
    CheckConstraint,
    Column,
    Computed,
    Identity,
    Index,
    SchemaItem,
    Table,
    UniqueConstraint,
)
from sqlalchemy.sql.compiler import DDLCompiler
from sqlalchemy.sql.expression import ClauseElement

_CLAUSES = {
    "partition_by": "PARTITION BY",
    "primary_key": "PRIMARY KEY",
    "order_by": "ORDER BY",
    "sample_by": "SAMPLE BY",
    "ttl": "TTL",
}
CONSTRUCT_ARGUMENTS: list[tuple[type[SchemaItem | ClauseElement], Mapping[str, Any]]] = [
    (Table, {"engine": None, "settings": None, **dict.fromkeys(_CLAUSES)}),
    (Column, {"codec": None, "ttl": None}),
    (Index, {"type": "minmax", "granularity": 1}),
]
"""The arguments of constructs, with `olapdb_` in front, and their defaults."""

_NEVER_NULLABLE = (
    "Nullable(",
    "Array(",
    "Map(",
    "Tuple(",
    "Nested(",
    "Variant(",
    "Dynamic",
    "AggregateFunction(",
)


class OlapDDLCompiler(DDLCompiler):
    """A DDL compiler that gives a table an engine, MergeTree by default, and a sorting key, by
    default its primary key.

    Keys are not unique and nothing checks foreign keys, so that neither is written."""

    def post_create_table(self, table: Any) -> str:
        """Return the engine, its clauses, settings and the comment of a table."""
        options = table.dialect_options["olapdb"]
        engine = options["engine"] or "MergeTree"
        text = f"\nENGINE = {engine}"
        is_tree = engine.split("(")[0].strip().endswith("MergeTree")
        for name, keyword in _CLAUSES.items():
            value = options[name]
            if name == "order_by" and value is None and is_tree and options["primary_key"] is None:
                value = list(table.primary_key.columns)
            if value is not None:
                text += f"\n{keyword} {self._key(value)}"
        if options["settings"]:
            pairs = (f"{name} = {self._literal(v)}" for name, v in options["settings"].items())
            text += f"\nSETTINGS {', '.join(pairs)}"
        if table.comment is not None:
            text += f"\nCOMMENT {self._literal(table.comment)}"
        return text

    def _key(self, value: Any) -> str:
        """Return an expression: a text as it is, columns in parentheses."""
        if isinstance(value, str):
            return value
        parts = value if isinstance(value, list | tuple) else [value]
        names = (
            self.sql_compiler.process(part, include_table=False, literal_binds=True)
            if hasattr(part, "__visit_name__")
            else self.preparer.quote(str(part))
            for part in parts
        )
        return f"({', '.join(names)})" if parts else "tuple()"

    def _literal(self, value: object) -> str:
        """Return a number as it is, anything else as a text in quotes."""
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, int | float):
            return str(value)
        return self.sql_compiler.render_literal_value(str(value), sqltypes.String())

    def get_column_specification(self, column: Any, **kwargs: Any) -> str:
        """Return the name, type, default, comment, codec and TTL of a column."""
        text = f"{self.preparer.format_column(column)} {self._type(column)}"
        default = self.get_column_default_string(column)
        if isinstance(column.computed, Computed):
            text += " " + self.process(column.computed)
        elif isinstance(column.server_default, Identity):
            raise exc.CompileError(f"olapdb has no identity columns: give {column.name} a default.")
        elif default is not None:
            text += f" DEFAULT {default}"
        options = column.dialect_options["olapdb"]
        if column.comment is not None:
            text += f" COMMENT {self._literal(column.comment)}"
        if options["codec"]:
            text += f" CODEC({options['codec']})"
        if options["ttl"]:
            text += f" TTL {options['ttl']}"
        return text

    def _type(self, column: Any) -> str:
        """Return the type of a column, Nullable where it may be NULL and the type can be."""
        name: str = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        if column.primary_key or not column.nullable or name.startswith(_NEVER_NULLABLE):
            return name
        if name.startswith("LowCardinality("):
            inner = name.removeprefix("LowCardinality(")
            return name if inner.startswith("Nullable(") else f"LowCardinality(Nullable({inner})"
        return f"Nullable({name})"

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        """Return MATERIALIZED, or ALIAS for a value that is not stored."""
        kind = "ALIAS" if generated.persisted is False else "MATERIALIZED"
        text = self.sql_compiler.process(generated.sqltext, include_table=False, literal_binds=True)
        return f"{kind} {text}"

    def create_table_constraints(
        self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any
    ) -> str:
        """Return the CHECK constraints and the indexes of a table. Warn of a unique constraint."""
        parts = list(self._checks(table))
        for constraint in table.constraints:
            if isinstance(constraint, UniqueConstraint) and list(constraint.columns):
                names = ", ".join(column.name for column in constraint.columns)
                util.warn(f"olapdb does not keep {table.name} unique by {names}.")
        return ",\n\t".join(parts)

    def _checks(self, table: Any) -> Iterator[str]:
        """Yield the CHECK constraints; one without a name is numbered."""
        checks = [
            constraint
            for constraint in table._sorted_constraints
            if isinstance(constraint, CheckConstraint)
        ]
        for number, check in enumerate(checks, 1):
            if check._should_create_for_compiler(self):
                name = self.preparer.format_constraint(check) if check.name else None
                condition = self.sql_compiler.process(
                    check.sqltext, include_table=False, literal_binds=True
                )
                yield f"CONSTRAINT {name or f'check_{number}'} CHECK {condition}"

    def visit_create_index(self, create: Any, *arguments: Any, **kw: Any) -> str:
        """Return the ALTER TABLE that adds a skip index. Raise CompileError for a unique one."""
        index = create.element
        self._verify_index_table(index)
        if index.unique:
            raise exc.CompileError("olapdb has no unique indexes: nothing would keep it unique.")
        options = index.dialect_options["olapdb"]
        guard = "IF NOT EXISTS " if create.if_not_exists else ""
        return (
            f"ALTER TABLE {self.preparer.format_table(index.table)} ADD INDEX {guard}"
            f"{self._prepared_index_name(index)} {self._index_key(index)} "
            f"TYPE {options['type']} GRANULARITY {options['granularity']}"
        )

    def _index_key(self, index: Any) -> str:
        """Return the expression of an index. Raise CompileError for several."""
        if len(index.expressions) != 1:
            raise exc.CompileError(
                f"An index of olapdb is over one expression: make several of {index.name}."
            )
        text: str = self.sql_compiler.process(
            index.expressions[0], include_table=False, literal_binds=True
        )
        return text

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """Return the ALTER TABLE that drops a skip index."""
        index = drop.element
        guard = "IF EXISTS " if drop.if_exists else ""
        table, name = self.preparer.format_table(index.table), self._prepared_index_name(index)
        return f"ALTER TABLE {table} DROP INDEX {guard}{name}"

    def visit_create_schema(self, create: Any, **kw: Any) -> str:
        guard = "IF NOT EXISTS " if create.if_not_exists else ""
        return f"CREATE DATABASE {guard}{self.preparer.quote(create.element)}"

    def visit_drop_schema(self, drop: Any, **kw: Any) -> str:
        guard = "IF EXISTS " if drop.if_exists else ""
        return f"DROP DATABASE {guard}{self.preparer.quote(drop.element)}"

    def visit_set_table_comment(self, create: Any, **kw: Any) -> str:
        return self._comment(create.element, create.element.comment)

    def visit_drop_table_comment(self, drop: Any, **kw: Any) -> str:
        return self._comment(drop.element, "")

    def _comment(self, table: Any, comment: str) -> str:
        """Return the ALTER TABLE that sets a table's comment; "" removes it."""
        name = self.preparer.format_table(table)
        return f"ALTER TABLE {name} MODIFY COMMENT {self._literal(comment)}"

    def visit_set_column_comment(self, create: Any, **kw: Any) -> str:
        return self._column_comment(create.element, create.element.comment)

    def visit_drop_column_comment(self, drop: Any, **kw: Any) -> str:
        return self._column_comment(drop.element, "")

    def _column_comment(self, column: Any, comment: str) -> str:
        """Return the ALTER TABLE that sets a column's comment; "" removes it."""
        table, name = self.preparer.format_table(column.table), self.preparer.format_column(column)
        return f"ALTER TABLE {table} COMMENT COLUMN {name} {self._literal(comment)}"
