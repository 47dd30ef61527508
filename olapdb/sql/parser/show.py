"""SHOW."""

from __future__ import annotations

from olapdb.errors import Position
from olapdb.sql.nodes import Show, TableName
from olapdb.sql.parser import clauses, expressions
from olapdb.sql.parser.cursor import TokenCursor

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
    "TEMPORARY TABLES",
    "DATABASES",
    "COLUMNS",
    "SETTINGS",
    "FUNCTIONS",
    "VIEWS",
    "DICTIONARIES",
    "MERGES",
    "CLUSTERS",
)
"""The lists that take LIKE and LIMIT."""

_CONDITIONAL = ("TABLES", "COLUMNS", "INDEXES")
"""The lists that take WHERE."""

_COLUMNS = ("COLUMNS", "FIELDS")
_INDEXES = ("INDEX", "INDEXES", "INDICES", "KEYS")


def parse_show(cursor: TokenCursor) -> Show:
    """Parse a statement that begins with SHOW."""
    position = cursor.position()
    cursor.expect("SHOW")
    if cursor.key == "CREATE":
        cursor.advance()
        return _parse_show_create(cursor, position)
    if cursor.key in ("TABLE", "VIEW", "DICTIONARY", "DATABASE") and cursor.is_name(1):
        return _parse_show_create(cursor, position)
    for roles in ("CURRENT ROLES", "ENABLED ROLES"):
        if cursor.take(*roles.split()):
            return Show(roles, position=position)
    if cursor.take("FILESYSTEM", "CACHES"):
        return Show("FILESYSTEM CACHES", position=position)
    extended, full = cursor.take("EXTENDED"), cursor.take("FULL")
    changed, temporary = cursor.take("CHANGED"), cursor.take("TEMPORARY")
    if cursor.take("SETTING"):
        return Show("SETTING", TableName(cursor.identifier("a setting")), position=position)
    if cursor.take("CLUSTER"):
        return Show("CLUSTER", named=_parse_name(cursor, "a cluster"), position=position)
    if cursor.take("GRANTS"):
        return _parse_grants(cursor, position)
    if cursor.take_one_of(*_COLUMNS):
        return _parse_of_table(cursor, "COLUMNS", full)
    if not full and cursor.take_one_of(*_INDEXES):
        return _parse_of_table(cursor, "INDEXES", full)
    if full and not extended and cursor.key not in ("TABLES", "TEMPORARY"):
        raise cursor.expected("TABLES or COLUMNS")
    if extended or (changed and cursor.key != "SETTINGS"):
        raise cursor.expected("SETTINGS" if changed else "COLUMNS or INDEX")
    if temporary and cursor.key != "TABLES":
        raise cursor.expected("TABLES")
    kind: str = cursor.take_one_of(*_LISTS)
    if not kind:
        raise cursor.refused(
            f"SHOW {cursor.token.text.upper()}",
            "There are SHOW TABLES, DATABASES, COLUMNS, INDEXES, CREATE TABLE, SETTINGS,"
            " FUNCTIONS, ENGINES, MERGES, GRANTS and PROCESSLIST; the tables of the database system say more.",
        )
    database = None
    if kind in ("TABLES", "VIEWS", "DICTIONARIES") and cursor.take_one_of("FROM", "IN"):
        database = cursor.identifier("a database")
    if kind == "SCHEMAS":
        kind = "DATABASES"
    elif temporary:
        kind = "TEMPORARY TABLES"
    return _parse_filters(cursor, kind, database=database, full=full, changed=changed)


def _parse_show_create(cursor: TokenCursor, position: Position) -> Show:
    """Parse `[[TEMPORARY] TABLE | VIEW | DICTIONARY | DATABASE] name` behind SHOW [CREATE].

    A table is the default.

    Raises an error for a FUNCTION."""
    if cursor.take("DATABASE"):
        name = cursor.identifier("a database")
        return Show("CREATE DATABASE", None, name, position=position)
    if cursor.key == "FUNCTION":
        raise cursor.refused("SHOW CREATE FUNCTION", "system.functions has its create_query.")
    cursor.take("MATERIALIZED")
    if cursor.take("TEMPORARY", "TABLE") or cursor.take("TEMPORARY", "VIEW"):
        return Show("CREATE TEMPORARY TABLE", cursor.table_name(), position=position)
    if cursor.key == "TEMPORARY" and cursor.is_name(1):
        cursor.advance()
        return Show("CREATE TEMPORARY TABLE", cursor.table_name(), position=position)
    kind = "TABLE"
    if cursor.key in ("TABLE", "VIEW", "DICTIONARY") and cursor.is_name(1):
        kind = cursor.advance().key
    return Show(f"CREATE {kind}", cursor.table_name(), position=position)


def _parse_grants(cursor: TokenCursor, position: Position) -> Show:
    """Parse `[FOR user | CURRENT_USER | ALL] [WITH IMPLICIT] [FINAL]`.

    The last two change nothing: there is one user, whose rights need no roles.
    """
    user = _parse_name(cursor, "a user") if cursor.take("FOR") else None
    if cursor.take("WITH"):
        cursor.expect("IMPLICIT")
    cursor.take("FINAL")
    return Show("GRANTS", named=user, position=position)


def _parse_name(cursor: TokenCursor, what: str) -> str:
    """Parse a name with or without quotes; `what` is for the error."""
    return cursor.string(what) if cursor.token.kind == "string" else cursor.identifier(what)


def _parse_of_table(cursor: TokenCursor, kind: str, full: bool) -> Show:
    """Parse `FROM table [FROM database]` and the filters."""
    if not cursor.take_one_of("FROM", "IN"):
        raise cursor.expected("FROM and a table")
    table = cursor.table_name()
    if cursor.take_one_of("FROM", "IN"):
        table = TableName(table.name, cursor.identifier("a database"), position=table.position)
    return _parse_filters(cursor, kind, table=table, full=full)


def _parse_filters(
    cursor: TokenCursor,
    kind: str,
    *,
    table: TableName | None = None,
    database: str | None = None,
    full: bool = False,
    changed: bool = False,
) -> Show:
    """Parse `[[NOT] LIKE | ILIKE 'x' | WHERE condition] [LIMIT n]`, as far as `kind` takes them."""
    position = cursor.position()
    filtered = kind in _FILTERED
    like = clauses.parse_like_clause(cursor) if filtered else clauses.LikeClause()
    where = None
    if like.pattern is None and kind in _CONDITIONAL and cursor.take("WHERE"):
        where = expressions.parse_expression(cursor)
    limit = cursor.integer() if filtered and cursor.take("LIMIT") else None
    return Show(
        kind,
        table,
        database,
        like.pattern,
        like.negated,
        like.case_insensitive,
        limit,
        where,
        full,
        changed,
        position=position,
    )
