"""CREATE: databases, tables, views, materialized views, indexes."""

from __future__ import annotations

from olapdb.errors import Position, SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser.definitions import DefinitionParser, TableElements
from olapdb.sql.parser.keywords import words

_REFUSED = {
    "DICTIONARY": "Read the rows from a table and join it.",
    "FUNCTION": "Write the expression out, or name it with WITH x -> … AS f.",
    "USER": "Access is by the file system.",
    "ROLE": "Access is by the file system.",
    "ROW": "Make a view with the condition.",
    "QUOTA": "Use the settings max_rows_to_read and max_execution_time.",
    "SETTINGS": "Pass settings to connect(), or with SET.",
    "PROFILE": "Pass settings to connect(), or with SET.",
    "NAMED": "Write the arguments out.",
    "LIVE": "Use CREATE MATERIALIZED VIEW.",
    "WINDOW": "Use CREATE MATERIALIZED VIEW with a time bucket in its GROUP BY.",
    "WORKLOAD": "Use the setting max_threads.",
    "RESOURCE": "Use the setting max_threads.",
}
_REFRESH_ENDS = words("TO AS ENGINE ORDER PARTITION PRIMARY POPULATE DEFINER SQL COMMENT (")


class CreateParser(DefinitionParser):
    """Everything that begins with CREATE."""

    def create(self) -> nodes.Statement:
        position = self.position()
        self.expect("CREATE")
        or_replace = self.take("OR", "REPLACE")
        temporary = bool(self.take_one_of("TEMPORARY", "TEMP"))
        key = self.keys[self.at]
        if key == "TABLE":
            self.advance()
            return self._table(or_replace, temporary, position)
        if temporary:
            raise self.refused("A temporary object that is no table", "Use CREATE TEMPORARY TABLE.")
        if key == "DATABASE" or key == "SCHEMA":
            self.advance()
            if or_replace:
                raise self.refused("CREATE OR REPLACE DATABASE", "Drop it first.")
            return self._database(position)
        if key == "VIEW":
            self.advance()
            return self._view(or_replace, position)
        if self.take("MATERIALIZED", "VIEW"):
            return self._materialized_view(or_replace, position)
        if key == "INDEX":
            self.advance()
            return self._index(position)
        if key == "UNIQUE":
            raise self.refused(
                "A unique index", "Use ReplacingMergeTree to keep one row for a key."
            )
        if key in _REFUSED:
            raise self.refused(f"CREATE {key}", _REFUSED[key])
        raise self.expected("TABLE, VIEW, MATERIALIZED VIEW, DATABASE or INDEX")

    def _database(self, position: Position) -> nodes.CreateDatabase:
        if_not_exists = self.if_not_exists()
        name = self.identifier("the name of a database")
        self.refuse_on_cluster()
        engine = self.engine_clause() if self.take("ENGINE") else None
        return nodes.CreateDatabase(
            name, if_not_exists, engine, self.comment_clause(), position=position
        )

    # --- tables

    def _table(self, or_replace: bool, temporary: bool, position: Position) -> nodes.CreateTable:
        if_not_exists = self.if_not_exists()
        table = self.table_name()
        self._refuse_uuid()
        self.refuse_on_cluster()
        elements = TableElements()
        if self.sees("(") and not self.query_follows():
            elements = self.table_elements()
        storage, comment = self.storage_clause(elements.primary_key)
        like = None
        query: nodes.Query | None = None
        empty = clone = False
        if self.take("CLONE", "AS"):
            clone, like = True, self.table_name()
        elif self.sees("EMPTY", "AS") or self.sees("AS"):
            empty = self.take("EMPTY")
            self.advance()
            query, like = self._as(empty)
            if like is not None and storage == nodes.StorageClause():
                storage, later = self.storage_clause(elements.primary_key)
                comment = comment or later
        comment = comment or self.comment_clause()
        return nodes.CreateTable(
            table,
            tuple(elements.columns),
            tuple(elements.indexes),
            tuple(elements.constraints),
            tuple(elements.projections),
            storage,
            if_not_exists,
            or_replace,
            temporary,
            query,
            empty,
            like,
            clone,
            comment,
            position=position,
        )

    def _as(self, empty: bool) -> tuple[nodes.Query | None, nodes.TableName | None]:
        """After AS: a query, or the name of a table."""
        if self.keys[self.at] in ("SELECT", "WITH", "FROM") or self.query_follows():
            return self.query(), None
        if empty:
            raise self.expected("a query")
        if self._is_call():
            raise self.refused("CREATE TABLE AS a table function", "Use AS SELECT * FROM …")
        return None, self.table_name()

    def _refuse_uuid(self) -> None:
        if self.sees("UUID") and self.kind_after(1) == "string":
            raise self.refused("A UUID of one's own", "Leave it out: it is made.")

    # --- views

    def _view(self, or_replace: bool, position: Position) -> nodes.CreateView:
        if_not_exists = self.if_not_exists()
        name = self.table_name()
        self._refuse_uuid()
        self.refuse_on_cluster()
        columns = self._view_columns()
        self._refuse_definer()
        comment = self.comment_clause()
        self.expect("AS")
        query = self.query()
        return nodes.CreateView(
            name,
            query,
            columns,
            if_not_exists,
            or_replace,
            comment or self.comment_clause(),
            position=position,
        )

    def _view_columns(self) -> tuple[nodes.ColumnDefinition, ...]:
        if not self.sees("(") or self.query_follows():
            return ()
        elements = self.table_elements()
        if elements.indexes or elements.constraints or elements.projections:
            raise self.expected("columns only in the list of a view")
        return tuple(elements.columns)

    def _refuse_definer(self) -> None:
        if self.sees("DEFINER") or self.sees("SQL", "SECURITY"):
            raise self.refused("SQL SECURITY", "Leave it out: a view reads as its caller does.")

    def _materialized_view(
        self, or_replace: bool, position: Position
    ) -> nodes.CreateMaterializedView:
        if_not_exists = self.if_not_exists()
        name = self.table_name()
        self._refuse_uuid()
        self.refuse_on_cluster()
        refresh = self._refresh() if self.sees("REFRESH") else None
        columns = self._view_columns()
        target: nodes.TableName | None = None
        populate = self.take("POPULATE")
        if self.take("TO"):
            if self.take("INNER"):
                raise self.refused("TO INNER UUID", "Leave it out: the inner table is made.")
            target = self.table_name()
            columns = columns or self._view_columns()
        populate = self.take("POPULATE") or populate
        storage, settings, comment = self._view_storage(target)
        populate = self.take("POPULATE") or populate
        if self.sees("EMPTY", "AS"):
            raise self.refused("EMPTY without REFRESH", "A view is empty unless POPULATE is said.")
        self._refuse_definer()
        self.expect("AS")
        query = self.query()
        return nodes.CreateMaterializedView(
            name,
            query,
            target,
            columns,
            storage,
            populate,
            if_not_exists,
            or_replace,
            refresh,
            settings,
            comment or self.comment_clause(),
            position=position,
        )

    def _view_storage(
        self, target: nodes.TableName | None
    ) -> tuple[nodes.StorageClause | None, tuple[nodes.Setting, ...], str]:
        """The inner table's storage, or the SETTINGS of a view with TO."""
        self._refuse_definer()
        if target is not None:
            comment = self.comment_clause()
            settings = self.settings_clause()
            if self.keys[self.at] in ("ENGINE", "ORDER", "PARTITION", "PRIMARY", "TTL"):
                raise SyntaxError(
                    "A view has TO or a storage of its own, not both.",
                    hint="The target's engine and ORDER BY are said in its CREATE TABLE.",
                    position=self.position(),
                )
            return None, settings, comment or self.comment_clause()
        storage, comment = self.storage_clause()
        if storage == nodes.StorageClause():
            return None, (), comment
        if storage.engine is None and storage == nodes.StorageClause(settings=storage.settings):
            return None, storage.settings, comment
        return storage, (), comment

    def _refresh(self) -> str:
        """The text of REFRESH …, up to what follows it."""
        start = self.at
        self.advance()
        while not self.ended and self.keys[self.at] not in _REFRESH_ENDS:
            if self.sees("EMPTY", "AS"):
                self.advance()
                break
            self.advance()
        return self.text_since(start)

    # --- index

    def _index(self, position: Position) -> nodes.Alter:
        """`CREATE INDEX i ON t (a) TYPE minmax`: an ALTER TABLE t ADD INDEX."""
        if_not_exists = self.if_not_exists()
        name = self.identifier("the name of an index")
        self.expect("ON")
        table = self.table_name()
        self.expect("(")
        elements = self.aliased_list(")")
        expression = elements[0] if len(elements) == 1 else nodes.TupleLiteral(elements)
        index = self.index_body(name, expression, position)
        action = nodes.IndexAction("ADD", name, index, if_not_exists, position=position)
        return nodes.Alter(table, (action,), position=position)
