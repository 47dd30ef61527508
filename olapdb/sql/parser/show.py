"""SHOW."""

from __future__ import annotations

from olapdb.errors import Position
from olapdb.sql.nodes import Show, TableName
from olapdb.sql.parser.definitions import DefinitionParser

_LISTS = (
    "TABLES",
    "DATABASES",
    "SCHEMAS",
    "SETTINGS",
    "FUNCTIONS",
    "VIEWS",
    "DICTIONARIES",
    "PROCESSLIST",
    "ENGINES",
    "MERGES",
    "CLUSTERS",
)
_FILTERED = (
    "TABLES",
    "DATABASES",
    "SETTINGS",
    "FUNCTIONS",
    "VIEWS",
    "DICTIONARIES",
    "MERGES",
    "CLUSTERS",
)
"""Those that take LIKE and LIMIT; of these TABLES takes WHERE instead, too."""
_COLUMNS = ("COLUMNS", "FIELDS")
_INDEXES = ("INDEX", "INDEXES", "INDICES", "KEYS")


class ShowParser(DefinitionParser):
    """Everything that begins with SHOW."""

    def show(self) -> Show:
        position = self.position()
        self.expect("SHOW")
        if self.sees("CREATE"):
            return self._show_create()
        extended, full = self.take("EXTENDED"), self.take("FULL")
        changed, temporary = self.take("CHANGED"), self.take("TEMPORARY")
        self.take("SETTINGS", "PROFILES")
        if self.take("SETTING"):
            return Show("SETTING", TableName(self.identifier("a setting")), position=position)
        if self.take("CLUSTER"):
            return Show("CLUSTER", named=self._user("a cluster"), position=position)
        if self.take("GRANTS"):
            return self._grants(position)
        if self.take_one_of(*_COLUMNS):
            return self._of_table("COLUMNS", full)
        if not full and self.take_one_of(*_INDEXES):
            return self._of_table("INDEXES", full)
        if full and not extended and self.keys[self.at] not in ("TABLES", "TEMPORARY"):
            raise self.expected("TABLES or COLUMNS")
        if extended or (changed and not self.sees("SETTINGS")):
            raise self.expected("SETTINGS" if changed else "COLUMNS or INDEX")
        if temporary and not self.sees("TABLES"):
            raise self.expected("TABLES")
        kind = self.take_one_of(*_LISTS)
        if not kind:
            raise self.refused(
                f"SHOW {self.token.text.upper()}",
                "There are SHOW TABLES, DATABASES, COLUMNS, INDEXES, CREATE TABLE, SETTINGS,"
                " FUNCTIONS, ENGINES, MERGES, GRANTS and PROCESSLIST; the tables of the database system say more.",
            )
        database = None
        if kind in ("TABLES", "VIEWS", "DICTIONARIES") and self.take_one_of("FROM", "IN"):
            database = self.identifier("a database")
        shown = {"SCHEMAS": "DATABASES"}.get(kind, kind)
        if temporary:
            shown = "TEMPORARY TABLES"
        return self._filtered(shown, None, database, full, changed)

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

    def _grants(self, position: Position) -> Show:
        """`[FOR user | CURRENT_USER | ALL] [WITH IMPLICIT] [FINAL]`: there is one user, whose rights
        need no roles, so the last two change nothing."""
        named = self._user("a user") if self.take("FOR") else None
        if self.take("WITH"):
            self.expect("IMPLICIT")
        self.take("FINAL")
        return Show("GRANTS", named=named, position=position)

    def _user(self, what: str) -> str:
        if self.token.kind == "string":
            return self.string(what)
        return self.identifier(what)

    def _of_table(self, kind: str, full: bool) -> Show:
        if not self.take_one_of("FROM", "IN"):
            raise self.expected("FROM and a table")
        table = self.table_name()
        if self.take_one_of("FROM", "IN"):
            table = TableName(table.name, self.identifier("a database"), position=table.position)
        return self._filtered(kind, table, None, full)

    def _filtered(
        self,
        kind: str,
        table: TableName | None,
        database: str | None,
        full: bool = False,
        changed: bool = False,
    ) -> Show:
        """`[[NOT] LIKE | ILIKE 'pattern' | WHERE condition] [LIMIT n]`, as far as `kind` takes it."""
        position = self.position()
        of_names = kind in _FILTERED or kind in ("COLUMNS", "TEMPORARY TABLES")
        negated = of_names and self.take("NOT")
        operator = self.take_one_of("LIKE", "ILIKE") if of_names else ""
        if negated and not operator:
            raise self.expected("LIKE or ILIKE")
        pattern = self.string("a pattern, quoted") if operator else None
        where = None
        if not operator and kind in ("TABLES", "COLUMNS", "INDEXES") and self.take("WHERE"):
            where = self.expression()
        limit = self.integer() if of_names and self.take("LIMIT") else None
        return Show(
            kind,
            table,
            database,
            pattern,
            negated,
            operator == "ILIKE",
            limit,
            where,
            full,
            changed,
            position=position,
        )
