"""All other statements, and the dispatch by first word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from olapdb.errors import NotSupportedError, Position
from olapdb.sql import nodes
from olapdb.sql.parser.alter import AlterParser
from olapdb.sql.parser.create import CreateParser
from olapdb.sql.parser.insert import InsertParser
from olapdb.sql.parser.queries import add_with
from olapdb.sql.parser.show import ShowParser
from olapdb.sql.parser.system import SystemParser

ObjectKind = Literal["TABLE", "VIEW", "DATABASE"]
ExplainKind = Literal[
    "PLAN", "SYNTAX", "AST", "PIPELINE", "ESTIMATE", "DEPENDENCIES", "PROVENANCE", "VIEW"
]
_OBJECTS: dict[str, ObjectKind] = {"TABLE": "TABLE", "VIEW": "VIEW", "DATABASE": "DATABASE"}
_EXPLAINED: dict[str, ExplainKind] = {
    "PLAN": "PLAN",
    "SYNTAX": "SYNTAX",
    "AST": "AST",
    "PIPELINE": "PIPELINE",
    "ESTIMATE": "ESTIMATE",
    "DEPENDENCIES": "DEPENDENCIES",
    "PROVENANCE": "PROVENANCE",
    "VIEW": "VIEW",
}
_REFUSED = {
    "GRANT": "Access is by the file system.",
    "REVOKE": "Access is by the file system.",
    "BACKUP": "SYSTEM BACKUP TO 'folder' copies an open warehouse.",
    "RESTORE": "SYSTEM RESTORE FROM 'folder' fills a new warehouse from a backup.",
    "WATCH": "Query the view again.",
    "MOVE": "Use RENAME.",
    "REPLACE": "Use CREATE OR REPLACE TABLE.",
    "PARALLEL": "Send one statement after the other.",
    "MERGE": "Use INSERT into a ReplacingMergeTree.",
    "CALL": "There are no procedures.",
}


class StatementParser(CreateParser, AlterParser, InsertParser, SystemParser, ShowParser):
    """One statement of any kind; `statement` is the entry."""

    def statement(self) -> nodes.Statement:
        """Up to the end of the tokens or a semicolon, which is left."""
        token = self.token
        if token.key in ("SELECT", "WITH", "FROM", "("):
            return self._query_or_insert()
        handler = _STATEMENTS.get(token.key)
        if handler is not None:
            return handler(self)
        if token.key in _REFUSED:
            raise NotSupportedError(
                f"The statement {token.key} is not supported.",
                hint=_REFUSED[token.key],
                position=self.position(),
            )
        raise self.expected("a statement")

    def _query_or_insert(self) -> nodes.Statement:
        """A query; `WITH … INSERT INTO t SELECT …` is an INSERT whose query has that WITH."""
        if self.sees("WITH"):
            start = self.at
            self.advance()
            recursive = self.take("RECURSIVE")
            items = self.with_items()
            if self.sees("INSERT"):
                insert = self.insert()
                if insert.query is None:
                    raise self.expected("a query behind WITH … INSERT")
                return replace(insert, query=add_with(insert.query, items, recursive))
            self.at = start
        return self.query()

    # --- DROP and its like

    def _drop(self) -> nodes.Statement:
        position = self.position()
        self.advance()
        self.take("TEMPORARY")
        kind = self.take_one_of("TABLE", "VIEW", "DATABASE", "DICTIONARY", "SCHEMA")
        if not kind and self.take("MATERIALIZED", "VIEW"):
            kind = "VIEW"
        if not kind:
            if self.take("INDEX"):
                return self._drop_index()
            raise self.refused(
                f"DROP {self.token.text.upper()}", "TABLE, VIEW and DATABASE can be dropped."
            )
        if_exists = self.if_exists()
        if_empty = self.take("IF", "EMPTY")
        names = [self.table_name()]
        while self.take(","):
            names.append(self.table_name())
        self.refuse_on_cluster()
        if self.take("PERMANENTLY"):
            raise self.refused("DROP … PERMANENTLY", "Leave PERMANENTLY out: a drop is for good.")
        cascade = sync = False
        while True:
            if self.take("CASCADE"):
                cascade = True
            elif self.take("SYNC") or self.take("NO", "DELAY"):
                sync = True
            elif not self.take("RESTRICT"):
                break
        return nodes.Drop(
            "DATABASE"
            if kind in ("DATABASE", "SCHEMA")
            else "VIEW"
            if kind == "VIEW"
            else "DICTIONARY"
            if kind == "DICTIONARY"
            else "TABLE",
            tuple(names),
            if_exists,
            if_empty,
            cascade,
            sync,
            position=position,
        )

    def _drop_index(self) -> nodes.Alter:
        position = self.position()
        if_exists = self.if_exists()
        name = self.identifier("the name of an index")
        self.expect("ON")
        table = self.table_name()
        action = nodes.IndexAction("DROP", name, None, if_exists, position=position)
        return nodes.Alter(table, (action,), position=position)

    def _object_kind(self, default: bool = False) -> ObjectKind:
        if self.take("MATERIALIZED", "VIEW"):
            return "VIEW"
        if self.sees("DICTIONARY"):
            raise self.refused("A dictionary", "Read the rows from a table and join it.")
        key = self.take_one_of(*_OBJECTS)
        if not key and not default:
            raise self.expected("TABLE, VIEW or DATABASE")
        return _OBJECTS.get(key, "TABLE")

    def _detach(self) -> nodes.Detach:
        position = self.position(self.advance())
        kind = self._object_kind()
        if_exists = self.if_exists()
        name = self.table_name()
        self.refuse_on_cluster()
        permanently = self.take("PERMANENTLY")
        self.take("SYNC")
        return nodes.Detach(kind, name, if_exists, permanently, position=position)

    def _attach(self) -> nodes.Attach:
        position = self.position(self.advance())
        kind = self._object_kind()
        if_not_exists = self.if_not_exists()
        name = self.table_name()
        self.refuse_on_cluster()
        if self.sees("(") or self.keys[self.at] in ("FROM", "ENGINE", "AS", "TO", "UUID"):
            raise self.refused(
                "ATTACH with a definition", "ATTACH TABLE name brings a detached one back."
            )
        return nodes.Attach(kind, name, if_not_exists, position=position)

    def _undrop(self) -> nodes.Undrop:
        position = self.position(self.advance())
        self.expect("TABLE")
        name = self.table_name()
        uuid = self.string("the table's UUID") if self.take("UUID") else None
        self.refuse_on_cluster()
        return nodes.Undrop(name, uuid, position=position)

    def _truncate(self) -> nodes.Truncate | nodes.TruncateAll:
        position = self.position(self.advance())
        if self.take("DATABASE"):
            if_exists = self.if_exists()
            database = self.identifier("a database")
            self.refuse_on_cluster()
            return nodes.TruncateAll(database, True, if_exists, position=position)
        if self.take("ALL", "TABLES", "FROM"):
            return self._truncate_all(position)
        self.take("TEMPORARY")
        self.take("TABLE")
        if_exists = self.if_exists()
        table = self.table_name()
        self.refuse_on_cluster()
        self.take("SYNC")
        return nodes.Truncate(table, if_exists, position=position)

    def _truncate_all(self, position: Position) -> nodes.TruncateAll:
        if_exists = self.if_exists()
        database = self.identifier("a database")
        negated = self.take("NOT")
        operator = self.take_one_of("LIKE", "ILIKE")
        if negated and not operator:
            raise self.expected("LIKE or ILIKE")
        pattern = self.string("a pattern, quoted") if operator else None
        self.refuse_on_cluster()
        return nodes.TruncateAll(
            database, False, if_exists, pattern, negated, operator == "ILIKE", position=position
        )

    def _rename(self) -> nodes.Rename:
        position = self.position(self.advance())
        if self.sees("DICTIONARY"):
            raise self.refused("RENAME DICTIONARY", "Read the rows from a table and join it.")
        kind: Literal["TABLE", "DATABASE"] = "TABLE"
        if self.keys[self.at] in ("TABLE", "DATABASE", "VIEW") and self.key_after(1) != "TO":
            kind = "DATABASE" if self.advance().key == "DATABASE" else "TABLE"
        pairs: list[tuple[nodes.TableName, nodes.TableName]] = []
        if_exists: list[bool] = []
        while True:
            if_exists.append(self.if_exists())
            old = self.table_name()
            self.expect("TO")
            pairs.append((old, self.table_name()))
            if not self.take(","):
                break
        self.refuse_on_cluster()
        return nodes.Rename(kind, tuple(pairs), tuple(if_exists), position=position)

    def _exchange(self) -> nodes.Exchange:
        position = self.position(self.advance())
        if self.sees("DICTIONARIES"):
            raise self.refused("EXCHANGE DICTIONARIES", "Read the rows from a table and join it.")
        self.expect("TABLES")
        left = self.table_name()
        self.expect("AND")
        right = self.table_name()
        self.refuse_on_cluster()
        return nodes.Exchange(left, right, position=position)

    # --- rows

    def _delete_from(self) -> nodes.Delete:
        position = self.position(self.advance())
        self.expect("FROM")
        table = self.table_name()
        self.refuse_on_cluster()
        partition = self._in_partition()
        where = self.expression() if self.take("WHERE") else None
        return nodes.Delete(table, where, partition, self.settings_clause(), position=position)

    def _update_table(self) -> nodes.Update:
        position = self.position(self.advance())
        table = self.table_name()
        self.refuse_on_cluster()
        self.expect("SET")
        assignments = self.assignments()
        if self.sees("IN", "PARTITION"):
            raise self.refused("UPDATE … IN PARTITION", "Use ALTER TABLE … UPDATE … IN PARTITION.")
        where = self.expression() if self.take("WHERE") else None
        return nodes.Update(table, assignments, where, self.settings_clause(), position=position)

    def _optimize(self) -> nodes.Optimize:
        position = self.position(self.advance())
        self.expect("TABLE")
        table = self.table_name()
        self.refuse_on_cluster()
        partition: nodes.PartitionReference | None = None
        if self.sees("PARTITION"):
            partition = self.partition_reference()
        final = self.take("FINAL")
        cleanup = self.take("CLEANUP")
        deduplicate = self.take("DEDUPLICATE")
        final = self.take("FINAL") or final
        by = self.expressions() if deduplicate and self.take("BY") else ()
        return nodes.Optimize(
            table,
            partition,
            final,
            self.take("CLEANUP") or cleanup,
            deduplicate,
            by,
            self.settings_clause(),
            position=position,
        )

    # --- looking

    def _explain(self) -> nodes.Explain:
        position = self.position(self.advance())
        if self.sees("QUERY", "TREE") or self.sees("TABLE", "OVERRIDE") or self.sees("CURRENT"):
            raise self.refused(
                f"EXPLAIN {self.token.text.upper()}", "Use EXPLAIN PLAN or EXPLAIN SYNTAX."
            )
        kind: ExplainKind = "PLAN"
        if self.keys[self.at] in _EXPLAINED:
            kind = _EXPLAINED[self.advance().key]
        settings: tuple[nodes.Setting, ...] = ()
        if self.token.kind == "word" and self.key_after(1) == "=":
            settings = self.settings()
        named = kind == "VIEW" and self.keys[self.at] != "CREATE"
        if kind == "DEPENDENCIES" or named:
            return nodes.Explain(kind, self.table_name(), settings, position=position)
        self.enter()  # EXPLAIN of EXPLAIN of …
        explained = self.statement()
        self.leave()
        return nodes.Explain(kind, explained, settings, position=position)

    def _describe(self) -> nodes.Describe:
        position = self.position(self.advance())
        self.take("TABLE")
        if self.keys[self.at] in ("SELECT", "WITH") or self.query_follows():
            query = self.query()
            return nodes.Describe(None, query, self.settings_clause(), position=position)
        if self._is_call():
            source = self.relation()
            if not isinstance(source, nodes.TableFunction):
                raise self.expected("one table, table function or query")
            query = nodes.Select((nodes.Star(),), source=source, position=position)
            return nodes.Describe(None, query, self.settings_clause(), position=position)
        table = self.table_name()
        return nodes.Describe(table, None, self.settings_clause(), position=position)

    def _exists_object(self) -> nodes.ExistsObject:
        position = self.position(self.advance())
        self.take("TEMPORARY")
        kind = self._object_kind(default=True)
        return nodes.ExistsObject(kind, self.table_name(), position=position)

    # --- session

    def _use(self) -> nodes.Use:
        position = self.position(self.advance())
        if self.keys[self.at] == "DATABASE" and self.kind_after(1) in ("word", "name"):
            self.advance()
        return nodes.Use(self.identifier("a database"), position=position)

    def _set(self) -> nodes.SetSettings:
        position = self.position(self.advance())
        if self.keys[self.at] in ("ROLE", "DEFAULT") and self.key_after(1) != "=":
            raise self.refused("SET ROLE", "Access is by the file system.")
        if self.sees("TRANSACTION"):
            raise self.refused("SET TRANSACTION", "Every statement is one transaction of its own.")
        return nodes.SetSettings(self.settings(), position=position)

    def _kill(self) -> nodes.Kill:
        position = self.position(self.advance())
        kind = self.take_one_of("QUERY", "MUTATION")
        if not kind:
            raise self.expected("QUERY or MUTATION")
        self.refuse_on_cluster()
        self.expect("WHERE")
        where = self.expression()
        if self.sees("TEST"):
            raise self.refused("KILL … TEST", "Select from system.processes or system.mutations.")
        self.take_one_of("SYNC", "ASYNC")
        return nodes.Kill("QUERY" if kind == "QUERY" else "MUTATION", where, position=position)

    def _check(self) -> nodes.CheckTable:
        position = self.position(self.advance())
        if self.take("ALL", "TABLES"):
            return nodes.CheckTable(None, settings=self.settings_clause(), position=position)
        self.take("TABLE")
        table = self.table_name()
        partition = None
        if self.keys[self.at] in ("PARTITION", "PART"):
            partition = self.partition_reference()
        return nodes.CheckTable(table, partition, self.settings_clause(), position=position)

    def _transaction(self) -> nodes.TransactionStatement:
        position = self.position()
        word = self.advance().key
        if word == "START":
            self.expect("TRANSACTION")
        else:
            self.take_one_of("TRANSACTION", "WORK")
        if word == "ROLLBACK":
            return nodes.TransactionStatement("ROLLBACK", position=position)
        return nodes.TransactionStatement(
            "COMMIT" if word == "COMMIT" else "BEGIN", position=position
        )


_STATEMENTS: dict[str, Callable[[StatementParser], nodes.Statement]] = {
    "INSERT": StatementParser.insert,
    "CREATE": StatementParser.create,
    "ALTER": StatementParser.alter,
    "DROP": StatementParser._drop,
    "DETACH": StatementParser._detach,
    "ATTACH": StatementParser._attach,
    "UNDROP": StatementParser._undrop,
    "TRUNCATE": StatementParser._truncate,
    "RENAME": StatementParser._rename,
    "EXCHANGE": StatementParser._exchange,
    "DELETE": StatementParser._delete_from,
    "UPDATE": StatementParser._update_table,
    "OPTIMIZE": StatementParser._optimize,
    "SYSTEM": StatementParser.system,
    "SHOW": StatementParser.show,
    "DESCRIBE": StatementParser._describe,
    "DESC": StatementParser._describe,
    "EXPLAIN": StatementParser._explain,
    "EXISTS": StatementParser._exists_object,
    "USE": StatementParser._use,
    "SET": StatementParser._set,
    "KILL": StatementParser._kill,
    "CHECK": StatementParser._check,
    "BEGIN": StatementParser._transaction,
    "START": StatementParser._transaction,
    "COMMIT": StatementParser._transaction,
    "ROLLBACK": StatementParser._transaction,
}
