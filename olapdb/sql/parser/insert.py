"""INSERT, but for the data behind VALUES and FORMAT, which `text` cuts off before."""

from __future__ import annotations

from dataclasses import replace

from olapdb.sql.nodes import Insert, Query, Select, SetOperation, Setting
from olapdb.sql.parser.definitions import DefinitionParser


class InsertParser(DefinitionParser):
    """The head of an INSERT, and its query."""

    def insert(self) -> Insert:
        position = self.position()
        self.expect("INSERT")
        self.expect("INTO")
        self.take("TABLE")
        if self.sees("FUNCTION") and self.kind_after(1) in ("word", "name"):
            raise self.refused("INSERT INTO FUNCTION", "Fetch the result and write it from Python.")
        table = self.table_name()
        columns, excluded = self._insert_columns()
        if self.sees("PARTITION", "BY"):
            raise self.refused("INSERT … PARTITION BY", "A table's PARTITION BY says it.")
        settings = self.settings_clause()
        if self.sees("FROM", "INFILE"):
            raise self.refused(
                "FROM INFILE", "Read the file with pyarrow and insert the Arrow table."
            )
        insert = Insert(table, columns, excluded, settings=settings, position=position)
        if self.keys[self.at] in ("SELECT", "WITH", "FROM") or self.query_follows():
            query, lifted = _without_settings(self.query())
            return replace(insert, query=query, settings=settings + lifted)
        if self.take("FORMAT"):
            return replace(insert, format=self.identifier("a format"))
        if self.ended or self.sees(";"):
            return insert
        raise self.expected("VALUES, SELECT, FORMAT or SETTINGS")

    def _insert_columns(self) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """`(a, b)`, `(*)`, `(* EXCEPT (a))`: the names, and the names left out."""
        if not self.sees("(") or self.query_follows():
            return None, ()
        self.advance()
        if self.take("*"):
            excluded: tuple[str, ...] = ()
            if self.take("EXCEPT"):
                grouped = self.take("(")
                excluded = self.identifiers("a column")
                if grouped:
                    self.expect(")")
            self.expect(")")
            return None, excluded
        if self.sees("COLUMNS", "("):
            raise self.refused("COLUMNS in the list of INSERT", "Name the columns.")
        columns = self.identifiers("a column")
        self.expect(")")
        return columns, ()


def _without_settings(query: Query) -> tuple[Query, tuple[Setting, ...]]:
    """SETTINGS of the query of an INSERT are of the whole statement, as in ClickHouse."""
    if isinstance(query, Select | SetOperation) and query.settings:
        return replace(query, settings=()), query.settings
    return query, ()
