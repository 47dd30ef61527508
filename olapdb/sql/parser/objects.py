"""DROP, DETACH, ATTACH, UNDROP, TRUNCATE, RENAME and EXCHANGE."""

from __future__ import annotations

from typing import Literal, get_args

from olapdb.sql import nodes
from olapdb.sql.parser import alter, clauses, functions, named_collections
from olapdb.sql.parser.cursor import TokenCursor

ObjectKind = Literal["TABLE", "VIEW", "DATABASE", "DICTIONARY"]
_OBJECT_KINDS: tuple[ObjectKind, ...] = get_args(ObjectKind)


def parse_object_kind(cursor: TokenCursor) -> ObjectKind | None:
    """Parse TABLE, [MATERIALIZED] VIEW, DATABASE or DICTIONARY; None if none of them is next."""
    if cursor.take("MATERIALIZED", "VIEW"):
        return "VIEW"
    return cursor.take_one_of(*_OBJECT_KINDS) or None


def _expect_object_kind(cursor: TokenCursor) -> ObjectKind:
    """Parse TABLE, [MATERIALIZED] VIEW, DATABASE or DICTIONARY. Raises SyntaxError for anything
    else."""
    kind = parse_object_kind(cursor)
    if kind is None:
        raise cursor.expected("TABLE, VIEW, DICTIONARY or DATABASE")
    return kind


def parse_drop(cursor: TokenCursor) -> nodes.Statement:
    """Parse DROP of tables, views, a database, a dictionary, a function or an index."""
    position = cursor.position(cursor.advance())
    if cursor.take("FUNCTION") or cursor.take("AGGREGATE", "FUNCTION"):
        return functions.parse_drop_function(cursor, position)
    if cursor.take("NAMED", "COLLECTION"):
        return named_collections.parse_drop_collection(cursor, position)
    temporary = cursor.take("TEMPORARY")
    if temporary and cursor.key not in ("TABLE", "VIEW"):
        raise cursor.expected("TABLE or VIEW")
    kind: Literal["TABLE", "VIEW", "DATABASE", "DICTIONARY", ""]
    kind = cursor.take_one_of("TABLE", "VIEW", "DATABASE", "DICTIONARY")
    if not kind:
        if cursor.take("INDEX"):
            return _parse_drop_index(cursor)
        if cursor.take("MATERIALIZED", "VIEW"):
            kind = "VIEW"
        elif cursor.take("SCHEMA"):
            kind = "DATABASE"
    if not kind:
        raise cursor.refused(
            f"DROP {cursor.token.text.upper()}",
            "TABLE, VIEW, DICTIONARY, DATABASE and FUNCTION can be dropped.",
        )
    if_exists = cursor.if_exists()
    if_empty = cursor.take("IF", "EMPTY")
    names = cursor.comma_separated(TokenCursor.table_name)
    clauses.refuse_on_cluster(cursor)
    if cursor.take("PERMANENTLY"):
        raise cursor.refused("DROP … PERMANENTLY", "Leave PERMANENTLY out: a drop is for good.")
    cascade = sync = False
    while True:
        if cursor.take("CASCADE"):
            cascade = True
        elif cursor.take("SYNC") or cursor.take("NO", "DELAY"):
            sync = True
        elif not cursor.take("RESTRICT"):
            break
    return nodes.Drop(kind, names, if_exists, if_empty, cascade, sync, temporary, position=position)


def _parse_drop_index(cursor: TokenCursor) -> nodes.Alter:
    """Parse `i ON t` as ALTER TABLE t DROP INDEX i."""
    position = cursor.position()
    action = alter.parse_drop_index(cursor, position)
    cursor.expect("ON")
    return nodes.Alter(cursor.table_name(), (action,), position=position)


def parse_detach(cursor: TokenCursor) -> nodes.Detach:
    """Parse `DETACH TABLE | [MATERIALIZED] VIEW | DATABASE [IF EXISTS] name [PERMANENTLY] [SYNC]`.

    SYNC is ignored. Raises NotSupportedError for ON CLUSTER, an error for other kinds of objects.
    """
    position = cursor.position(cursor.advance())
    if cursor.key == "TEMPORARY":
        raise cursor.refused("DETACH of a temporary table", "DROP it: it is gone with its session.")
    kind = _expect_object_kind(cursor)
    if_exists = cursor.if_exists()
    name = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    permanently = cursor.take("PERMANENTLY")
    cursor.take("SYNC")
    return nodes.Detach(kind, name, if_exists, permanently, position=position)


def parse_attach(cursor: TokenCursor) -> nodes.Attach:
    """Parse `ATTACH TABLE [IF NOT EXISTS] t`; refuse it with a definition."""
    position = cursor.position(cursor.advance())
    kind = _expect_object_kind(cursor)
    if_not_exists = cursor.if_not_exists()
    name = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    if cursor.key in ("(", "FROM", "ENGINE", "AS", "TO", "UUID"):
        raise cursor.refused(
            "ATTACH with a definition", "ATTACH TABLE name brings a detached one back."
        )
    return nodes.Attach(kind, name, if_not_exists, position=position)


def parse_undrop(cursor: TokenCursor) -> nodes.Undrop:
    """Parse `UNDROP TABLE t [UUID '…']`."""
    position = cursor.position(cursor.advance())
    cursor.expect("TABLE")
    name = cursor.table_name()
    uuid = cursor.string("the table's UUID") if cursor.take("UUID") else None
    clauses.refuse_on_cluster(cursor)
    return nodes.Undrop(name, uuid, position=position)


def parse_truncate(cursor: TokenCursor) -> nodes.Truncate | nodes.TruncateAll:
    """Parse TRUNCATE of one table, of a database, or of the tables whose names match."""
    position = cursor.position(cursor.advance())
    if cursor.take("DATABASE"):
        if_exists = cursor.if_exists()
        database = cursor.identifier("a database")
        clauses.refuse_on_cluster(cursor)
        return nodes.TruncateAll(database, True, if_exists, position=position)
    if cursor.take("ALL", "TABLES", "FROM") or cursor.take("TABLES", "FROM"):
        if_exists = cursor.if_exists()
        database = cursor.identifier("a database")
        like = clauses.parse_like_clause(cursor)
        clauses.refuse_on_cluster(cursor)
        return nodes.TruncateAll(database, False, if_exists, *like, position=position)
    temporary = cursor.take("TEMPORARY")
    cursor.take("TABLE")
    if_exists = cursor.if_exists()
    table = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    cursor.take("SYNC")
    return nodes.Truncate(table, if_exists, temporary, position=position)


def parse_rename(cursor: TokenCursor) -> nodes.Rename:
    """Parse `RENAME [TABLE | VIEW | DICTIONARY | DATABASE] [IF EXISTS] a TO b, …`."""
    position = cursor.position(cursor.advance())
    kind: Literal["TABLE", "DATABASE"] = "TABLE"
    if cursor.key in _OBJECT_KINDS and cursor.key_after(1) != "TO":
        kind = "DATABASE" if cursor.advance().key == "DATABASE" else "TABLE"
    if_exists, pairs = zip(*cursor.comma_separated(_parse_renamed), strict=True)
    clauses.refuse_on_cluster(cursor)
    return nodes.Rename(kind, pairs, if_exists, position=position)


def _parse_renamed(cursor: TokenCursor) -> tuple[bool, tuple[nodes.TableName, nodes.TableName]]:
    """Parse `[IF EXISTS] a TO b`; return whether IF EXISTS, and both names."""
    if_exists = cursor.if_exists()
    old = cursor.table_name()
    cursor.expect("TO")
    return if_exists, (old, cursor.table_name())


def parse_exchange(cursor: TokenCursor) -> nodes.Exchange:
    """Parse `EXCHANGE TABLES | DICTIONARIES a AND b, …`."""
    position = cursor.position(cursor.advance())
    if not cursor.take("DICTIONARIES"):
        cursor.expect("TABLES")
    pairs = cursor.comma_separated(_parse_exchanged)
    clauses.refuse_on_cluster(cursor)
    return nodes.Exchange(pairs, position=position)


def _parse_exchanged(cursor: TokenCursor) -> tuple[nodes.TableName, nodes.TableName]:
    """Parse `a AND b`."""
    left = cursor.table_name()
    cursor.expect("AND")
    return left, cursor.table_name()
