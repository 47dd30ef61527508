"""SHOW."""

from __future__ import annotations

from olapdb.sql.nodes import Show, TableName
from olapdb.sql.parser.definitions import DefinitionParser

_LISTS = (
    "TABLES", "DATABASES", "SCHEMAS", "SETTINGS", "FUNCTIONS", "VIEWS", "DICTIONARIES",
    "PROCESSLIST", "ENGINES",
)  # fmt: skip
_OF_TABLE = ("COLUMNS", "FIELDS", "INDEX", "INDEXES", "INDICES", "KEYS")


class ShowParser(DefinitionParser):
    """Everything that begins with SHOW."""

    def show(self) -> Show:
        position = self.position()
        self.expect("SHOW")
        if self.sees("CREATE"):
            return self._show_create()
        self.take("TEMPORARY")
        if self.keys[self.at] in ("FULL", "EXTENDED", "CHANGED"):
            raise self.refused(
                f"SHOW {self.token.text.upper()}", "The tables of the database system say more."
            )
        self.take("SETTINGS", "PROFILES")
        if self.take("SETTING"):
            return Show("SETTING", TableName(self.identifier("a setting")), position=position)
        of_table = self.take_one_of(*_OF_TABLE)
        if of_table:
            return self._of_table("COLUMNS" if of_table in ("COLUMNS", "FIELDS") else "INDEXES")
        kind = self.take_one_of(*_LISTS)
        if not kind:
            raise self.refused(
                f"SHOW {self.token.text.upper()}",
                "There are SHOW TABLES, DATABASES, COLUMNS, CREATE TABLE, SETTINGS, FUNCTIONS.",
            )
        database = None
        if kind in ("TABLES", "VIEWS", "DICTIONARIES") and self.take_one_of("FROM", "IN"):
            database = self.identifier("a database")
        shown = "DATABASES" if kind == "SCHEMAS" else kind
        return self._filtered(shown, None, database)

    def _show_create(self) -> Show:
        position = self.position(self.advance())
        if self.take("DATABASE"):
            name = self.identifier("a database")
            return Show("CREATE DATABASE", None, name, position=position)
        if self.keys[self.at] in ("USER", "ROLE", "QUOTA", "DICTIONARY", "ROW", "FUNCTION"):
            raise self.refused(f"SHOW CREATE {self.token.text.upper()}", "There is no such object.")
        self.take("MATERIALIZED")
        kind = "TABLE"
        if self.keys[self.at] in ("TABLE", "VIEW") and self.kind_after(1) in ("word", "name"):
            kind = self.advance().key
        return Show(f"CREATE {kind}", self.table_name(), position=position)

    def _of_table(self, kind: str) -> Show:
        if not self.take_one_of("FROM", "IN"):
            raise self.expected("FROM and a table")
        table = self.table_name()
        if self.take_one_of("FROM", "IN"):
            table = TableName(table.name, self.identifier("a database"), position=table.position)
        return self._filtered(kind, table, None)

    def _filtered(self, kind: str, table: TableName | None, database: str | None) -> Show:
        """`[[NOT] LIKE | ILIKE 'pattern'] [LIMIT n]`."""
        position = self.position()
        negated = self.take("NOT")
        operator = self.take_one_of("LIKE", "ILIKE")
        if negated and not operator:
            raise self.expected("LIKE or ILIKE")
        pattern = self.string("a pattern, quoted") if operator else None
        if self.sees("WHERE"):
            raise self.refused("SHOW … WHERE", "Select from the tables of the database system.")
        limit = self.integer() if self.take("LIMIT") else None
        return Show(
            kind, table, database, pattern, negated, operator == "ILIKE", limit, position=position
        )
