"""OPTIMIZE, DESCRIBE, EXISTS, USE, SET, KILL, CHECK and transactions."""

from __future__ import annotations

from typing import Literal

from olapdb.errors import Position, UnknownTable
from olapdb.sql import nodes
from olapdb.sql.parser import clauses, expressions, operands, queries, relations, storage
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import call_follows, query_follows
from olapdb.sql.parser.objects import parse_object_kind

_NO_SAVEPOINTS = (
    "Each statement is one atomic commit, so there is nothing to go back to. INSERT into a table of"
    " its own first, and INSERT … SELECT from it when all is well."
)


def parse_optimize(cursor: TokenCursor) -> nodes.Optimize:
    """Parse `OPTIMIZE TABLE t [PARTITION p] [FINAL | FORCE] [CLEANUP] [DEDUPLICATE [BY …]]`, and with `DRY
    RUN PARTS 'p', …` in place of PARTITION and FINAL."""
    position = cursor.position(cursor.advance())
    cursor.expect("TABLE")
    table = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    rehearsed: tuple[str, ...] = ()
    if cursor.take("DRY", "RUN"):
        cursor.expect("PARTS")
        rehearsed = cursor.comma_separated(lambda names: names.string("the name of a part"))
    partition = storage.parse_partition(cursor) if cursor.key == "PARTITION" else None
    final = not rehearsed and bool(cursor.take_one_of("FINAL", "FORCE"))
    cleanup = cursor.take("CLEANUP")
    deduplicate = cursor.take("DEDUPLICATE")
    final = cursor.take("FINAL") or final
    deduplicate_by: tuple[nodes.Expression, ...] = ()
    if deduplicate and cursor.take("BY"):
        deduplicate_by = cursor.comma_separated(operands.parse_aliased)
    return nodes.Optimize(
        table,
        partition,
        final,
        cursor.take("CLEANUP") or cleanup,
        deduplicate,
        deduplicate_by,
        clauses.parse_settings_clause(cursor),
        rehearsed,
        position=position,
    )


def parse_describe(cursor: TokenCursor) -> nodes.Describe:
    """Parse `DESCRIBE [TABLE] table | query | f(…)`; a table function becomes SELECT * FROM it."""
    position = cursor.position(cursor.advance())
    cursor.take("TABLE")
    table: nodes.TableName | None = None
    query: nodes.Query | None = None
    if cursor.key in ("SELECT", "WITH") or query_follows(cursor):
        query = queries.parse_query(cursor)
    elif call_follows(cursor):
        source = relations.parse_relation(cursor)
        kinds = nodes.TableFunction | nodes.SubqueryRelation | nodes.TableReference
        if not isinstance(source, kinds):
            raise cursor.expected("one table, table function or query")
        query = nodes.Select((nodes.Star(),), source=source, position=position)
    else:
        table = cursor.table_name()
    settings = clauses.parse_settings_clause(cursor)
    return nodes.Describe(table, query, settings, position=position)


def parse_exists(cursor: TokenCursor) -> nodes.ExistsObject:
    """Parse `EXISTS [TEMPORARY] [TABLE | VIEW | DICTIONARY | DATABASE] name`."""
    position = cursor.position(cursor.advance())
    temporary = cursor.take("TEMPORARY")
    kind = parse_object_kind(cursor) or "TABLE"
    return nodes.ExistsObject(kind, cursor.table_name(), temporary, position=position)


def parse_use(cursor: TokenCursor) -> nodes.Use:
    """Parse `USE [DATABASE] name`."""
    position = cursor.position(cursor.advance())
    if cursor.key == "DATABASE" and cursor.is_name(1):
        cursor.advance()
    return nodes.Use(cursor.identifier("a database"), position=position)


def parse_set(cursor: TokenCursor) -> nodes.SetSettings:
    """Parse `SET a = 1, …`, or `SET TIME ZONE 'zone'`."""
    position = cursor.position(cursor.advance())
    if cursor.take("TIME", "ZONE"):
        zone = nodes.Setting("session_timezone", cursor.string("a time zone"), position=position)
        return nodes.SetSettings((zone,), position=position)
    if cursor.key == "ROLE" and cursor.key_after(1) in ("NONE", "DEFAULT", "ALL"):
        cursor.advance()
        cursor.advance()
        return nodes.SetSettings((), position=position)  # the user has no roles
    if cursor.key == "TRANSACTION":
        raise cursor.refused("SET TRANSACTION", "Every statement is one transaction of its own.")
    return nodes.SetSettings(clauses.parse_settings(cursor), position=position)


def parse_kill(cursor: TokenCursor) -> nodes.Kill:
    """Parse `KILL QUERY | MUTATION | PART_MOVE_TO_SHARD WHERE condition [SYNC | ASYNC | TEST]`."""
    position = cursor.position(cursor.advance())
    kind: Literal["QUERY", "MUTATION", "PART_MOVE_TO_SHARD", ""]
    kind = cursor.take_one_of("QUERY", "MUTATION", "PART_MOVE_TO_SHARD")
    if cursor.key == "TRANSACTION":
        raise UnknownTable(
            "There is no table system.transactions: each statement is one atomic commit.",
            hint="KILL QUERY ends a statement.",
            position=position,
        )
    if not kind:
        raise cursor.expected("QUERY or MUTATION")
    clauses.refuse_on_cluster(cursor)
    cursor.expect("WHERE")
    where = expressions.parse_expression(cursor)
    mode: Literal["SYNC", "ASYNC", "TEST", ""] = cursor.take_one_of("SYNC", "ASYNC", "TEST")
    return nodes.Kill(kind, where, mode or "ASYNC", position=position)


_AFTER_TABLE = ("PARTITION", "PART", "SETTINGS", "FORMAT")


def _parse_check_grant(cursor: TokenCursor, position: Position) -> nodes.Show:
    """Parse `SELECT(a, b), INSERT, … ON d.t` behind CHECK GRANT. Raises SyntaxError for a privilege that
    ClickHouse does not have."""
    privileges = cursor.comma_separated(_parse_privilege)
    cursor.expect("ON")
    for step in range(2):
        if not cursor.take("*"):
            cursor.identifier("a database or a table")
        if step or not cursor.take("."):
            break
    return nodes.Show("CHECK GRANT", named=", ".join(privileges), position=position)


def _parse_privilege(cursor: TokenCursor) -> str:
    """Parse the words of a privilege and its columns, if it has any; return the words."""
    if cursor.key not in _PRIVILEGES:
        raise cursor.expected("a privilege, such as SELECT")
    words = []
    while cursor.token.kind == "word" and cursor.key != "ON":
        words.append(cursor.advance().key)
    if cursor.take("("):
        cursor.comma_separated(lambda columns: columns.identifier("a column"))
        cursor.expect(")")
    return " ".join(words)


_PRIVILEGES = (
    *(
        "ALL",
        "ALTER",
        "BACKUP",
        "CHECK",
        "CREATE",
        "CLUSTER",
        "DROP",
        "INSERT",
        "INTROSPECTION",
        "KILL",
    ),
    *(
        "MOVE",
        "OPTIMIZE",
        "ROLE",
        "SELECT",
        "SET",
        "SHOW",
        "SOURCES",
        "SYSTEM",
        "TRUNCATE",
        "UNDROP",
    ),
    *("ACCESS", "DICTGET", "FILE", "NONE", "USAGE"),
)
"""The first words of privileges."""


def parse_check(cursor: TokenCursor) -> nodes.CheckTable | nodes.Show:
    """Parse `CHECK [TABLE] t [PARTITION p | PART 'name']`, `CHECK ALL TABLES` and `CHECK DATABASE d`; and
    `CHECK GRANT privilege, … ON d.t`."""
    position = cursor.position(cursor.advance())
    if cursor.key == "GRANT" and cursor.is_name(1) and cursor.key_after(1) not in _AFTER_TABLE:
        cursor.advance()
        return _parse_check_grant(cursor, position)
    table: nodes.TableName | None = None
    partition: nodes.PartitionReference | None = None
    if cursor.key == "DATABASE" and cursor.is_name(1):
        cursor.advance()
        database = cursor.identifier("a database")
        settings = clauses.parse_settings_clause(cursor)
        return nodes.CheckTable(None, None, settings, database=database, position=position)
    if not cursor.take("ALL", "TABLES"):
        cursor.take("TABLE")
        table = cursor.table_name()
        if cursor.key in ("PARTITION", "PART"):
            partition = storage.parse_partition(cursor)
    settings = clauses.parse_settings_clause(cursor)
    return nodes.CheckTable(table, partition, settings, position=position)


def parse_transaction(cursor: TokenCursor) -> nodes.TransactionStatement:
    """Parse `BEGIN | COMMIT | ROLLBACK [TRANSACTION | WORK]` and `START TRANSACTION`.

    Raises NotSupportedError for SAVEPOINT, RELEASE and ROLLBACK TO."""
    position = cursor.position()
    if cursor.key in ("SAVEPOINT", "RELEASE"):
        raise cursor.refused(f"The statement {cursor.key}", _NO_SAVEPOINTS)
    if cursor.take("START"):
        cursor.expect("TRANSACTION")
        return nodes.TransactionStatement("BEGIN", position=position)
    action: Literal["COMMIT", "ROLLBACK", "BEGIN", ""]
    action = cursor.take_one_of("COMMIT", "ROLLBACK", "BEGIN")
    cursor.take_one_of("TRANSACTION", "WORK")
    if action == "ROLLBACK" and cursor.key == "TO":
        raise cursor.refused("ROLLBACK TO", _NO_SAVEPOINTS)
    return nodes.TransactionStatement(action or "BEGIN", position=position)
