"""CREATE: databases, tables, views, materialized views, indexes."""

from __future__ import annotations

from dataclasses import replace

from olapdb.errors import AccessDenied, IncorrectQuery, Position, SyntaxError, UnknownUser
from olapdb.sql import nodes
from olapdb.sql.parser import (
    clauses,
    columns,
    dictionaries,
    expressions,
    functions,
    named_collections,
    queries,
    refresh,
    relations,
    storage,
)
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import call_follows, query_follows, query_is_next

_REFUSED = {
    "HYPOTHETICAL": "ADD INDEX makes a true one; EXPLAIN indexes = 1 shows what it excludes.",
    "LIVE": "Use CREATE MATERIALIZED VIEW.",
    "WINDOW": "Use CREATE MATERIALIZED VIEW with a time bucket in its GROUP BY.",
    "WORKLOAD": "Use the setting max_threads.",
    "RESOURCE": "Use the setting max_threads.",
}
_STORAGE = ("ENGINE", "ORDER", "PARTITION", "PRIMARY", "TTL")


def parse_create(cursor: TokenCursor) -> nodes.Statement:
    """Parse a statement that begins with CREATE."""
    position = cursor.position()
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    temporary = bool(cursor.take_one_of("TEMPORARY", "TEMP"))
    if cursor.take("TABLE"):
        return _parse_table(cursor, or_replace, temporary, position)
    if temporary and cursor.take("VIEW"):
        return replace(_parse_view(cursor, or_replace, position), temporary=True)
    if temporary:
        raise cursor.refused(
            "A temporary object that is no table or plain view", "Use CREATE TEMPORARY TABLE."
        )
    if cursor.take_one_of("DATABASE", "SCHEMA"):
        if or_replace:
            raise SyntaxError(
                "CREATE OR REPLACE DATABASE is no statement.",
                hint="Drop it first.",
                position=cursor.position(),
            )
        return _parse_database(cursor, position)
    if cursor.take("VIEW"):
        return _parse_view(cursor, or_replace, position)
    if cursor.take("MATERIALIZED", "VIEW"):
        return _parse_materialized_view(cursor, or_replace, position)
    if cursor.take("DICTIONARY"):
        return dictionaries.parse_create_dictionary(cursor, or_replace, position)
    if cursor.take("INDEX"):
        return _parse_index(cursor, position)
    aggregate = cursor.sees("AGGREGATE", "FUNCTION")
    if cursor.take("FUNCTION") or cursor.take("AGGREGATE", "FUNCTION"):
        return functions.parse_create_function(cursor, or_replace, aggregate, position)
    if cursor.take("NAMED", "COLLECTION"):
        return named_collections.parse_create_collection(cursor, position)
    if cursor.key == "UNIQUE":
        raise cursor.refused("A unique index", "Use ReplacingMergeTree to keep one row for a key.")
    if cursor.key in ("LIVE", "WINDOW"):  # ClickHouse has them no more
        raise SyntaxError(
            f"CREATE {cursor.key} is not supported.",
            hint=_REFUSED[cursor.key],
            position=cursor.position(),
        )
    if cursor.key in _REFUSED:
        raise cursor.refused(f"CREATE {cursor.key}", _REFUSED[cursor.key])
    raise cursor.expected("TABLE, VIEW, MATERIALIZED VIEW, DATABASE, FUNCTION or INDEX")


def parse_replace(cursor: TokenCursor) -> nodes.Statement:
    """Parse REPLACE TABLE or DICTIONARY, which is CREATE OR REPLACE of one that must exist."""
    position = cursor.position()
    cursor.expect("REPLACE")
    if cursor.take("DICTIONARY"):
        created = dictionaries.parse_create_dictionary(cursor, True, position)
        return replace(created, must_exist=True)
    temporary = bool(cursor.take_one_of("TEMPORARY", "TEMP"))
    if not cursor.take("TABLE"):
        raise cursor.refused(f"REPLACE {cursor.token.text.upper()}", "Use CREATE OR REPLACE.")
    return replace(_parse_table(cursor, True, temporary, position), must_exist=True)


def _parse_database(cursor: TokenCursor, position: Position) -> nodes.CreateDatabase:
    """Parse what follows CREATE DATABASE."""
    if_not_exists = cursor.if_not_exists()
    name = cursor.identifier("the name of a database")
    clauses.refuse_on_cluster(cursor, creates=True)
    engine = storage.parse_engine(cursor) if cursor.take("ENGINE") else None
    settings = clauses.parse_settings_clause(cursor)
    comment = clauses.parse_comment_clause(cursor)
    return nodes.CreateDatabase(name, if_not_exists, engine, comment, settings, position=position)


def _parse_new_name(cursor: TokenCursor) -> nodes.TableName:
    """Parse the name of the table or view to create; refuse a UUID and ON CLUSTER behind it."""
    name = cursor.table_name()
    if cursor.key == "UUID" and cursor.kind_after(1) == "string":
        raise cursor.refused("A UUID of one's own", "Leave it out: it is made.")
    clauses.refuse_on_cluster(cursor, creates=True)
    return name


# --- tables


def _parse_table(
    cursor: TokenCursor, or_replace: bool, temporary: bool, position: Position
) -> nodes.CreateTable:
    """Parse what follows CREATE [OR REPLACE] [TEMPORARY] TABLE."""
    if_not_exists = cursor.if_not_exists()
    table = _parse_new_name(cursor)
    elements = columns.TableElements()
    if cursor.key == "(" and (cursor.key_after(1) == "FROM" or not query_follows(cursor)):
        elements = columns.parse_table_elements(cursor, needs_types=True)
    table_storage, comment = storage.parse_storage(
        cursor, elements.primary_key, elements.primary_form
    )
    like: nodes.TableName | None = None
    query: nodes.Query | None = None
    function: nodes.TableFunction | None = None
    empty = clone = False
    if cursor.take("CLONE", "AS"):
        clone, like = True, cursor.table_name()
    elif cursor.take("EMPTY", "AS"):
        empty = True
        if not query_is_next(cursor):
            raise cursor.expected("a query")
        query = queries.parse_query(cursor)
    elif cursor.take("AS"):
        if query_is_next(cursor):
            query = queries.parse_query(cursor)
        elif call_follows(cursor) and table_storage == nodes.StorageClause():
            function = relations.parse_function(cursor)
        else:
            like = cursor.table_name()
            if table_storage == nodes.StorageClause():
                table_storage, later_comment = storage.parse_storage(
                    cursor, elements.primary_key, elements.primary_form
                )
                comment = comment or later_comment
    return nodes.CreateTable(
        table,
        tuple(elements.columns),
        tuple(elements.indexes),
        tuple(elements.constraints),
        tuple(elements.projections),
        table_storage,
        if_not_exists,
        or_replace,
        temporary,
        query,
        empty,
        like,
        clone,
        comment or clauses.parse_comment_clause(cursor),
        function=function,
        position=position,
    )


# --- views


def _parse_view(cursor: TokenCursor, or_replace: bool, position: Position) -> nodes.CreateView:
    """Parse what follows CREATE [OR REPLACE] VIEW."""
    if_not_exists = cursor.if_not_exists()
    name = _parse_new_name(cursor)
    view_columns = _parse_view_columns(cursor)
    skip_definer(cursor)
    comment = clauses.parse_comment_clause(cursor)
    cursor.expect("AS")
    query = queries.parse_query(cursor)
    return nodes.CreateView(
        name,
        query,
        view_columns,
        if_not_exists,
        or_replace,
        comment or clauses.parse_comment_clause(cursor),
        position=position,
    )


def _parse_view_columns(cursor: TokenCursor) -> tuple[nodes.ColumnDefinition, ...]:
    """Parse the list of columns of a view if it is next; () if it is not."""
    if cursor.key != "(" or query_follows(cursor):
        return ()
    elements = columns.parse_table_elements(cursor)
    if elements.indexes or elements.constraints or elements.projections:
        raise cursor.expected("columns only in the list of a view")
    return tuple(elements.columns)


def skip_definer(cursor: TokenCursor) -> None:
    """Skip DEFINER and SQL SECURITY, which all mean the one user; raise AccessDenied for SQL
    SECURITY NONE, as ClickHouse does, and UnknownUser for another user."""
    while True:
        if cursor.take("DEFINER"):
            cursor.take("=")
            user = cursor.identifier("a user")
            if user.upper() not in ("CURRENT_USER", "DEFAULT"):
                raise UnknownUser(
                    f"There is no user {user}.",
                    hint="There is one, default.",
                    position=cursor.position(),
                )
        elif cursor.take("SQL", "SECURITY"):
            if cursor.key == "NONE":
                raise AccessDenied(
                    "A view without rights is not allowed.",
                    hint="Write SQL SECURITY INVOKER or DEFINER.",
                    position=cursor.position(),
                )
            if not cursor.take_one_of("DEFINER", "INVOKER"):
                raise cursor.expected("DEFINER or INVOKER")
        else:
            return


def _parse_materialized_view(
    cursor: TokenCursor, or_replace: bool, position: Position
) -> nodes.CreateMaterializedView:
    """Parse what follows CREATE [OR REPLACE] MATERIALIZED VIEW.

    `target` is None for a view that keeps its rows in an inner table of its own. Raises an error
    for TO INNER UUID, for EMPTY without REFRESH, and for POPULATE, a new target or READ VIEW with
    it."""
    if_not_exists = cursor.if_not_exists()
    name = _parse_new_name(cursor)
    clause = refresh.parse_refresh(cursor) if cursor.key == "REFRESH" else None
    listed = columns.TableElements(columns=list(_parse_view_columns(cursor)))
    target: nodes.TableName | None = None
    populate = cursor.take("POPULATE")
    if cursor.take("TO"):
        if cursor.take("INNER"):
            raise cursor.refused("TO INNER UUID", "Leave it out: the inner table is made.")
        target = cursor.table_name()
        if not listed.columns:
            listed = _parse_target_elements(cursor)
    populate = cursor.take("POPULATE") or populate
    skip_definer(cursor)
    described: nodes.StorageClause | None = None
    if target is None:
        described, settings, comment = _parse_inner_storage(cursor)
    elif listed.columns and cursor.key in _STORAGE:
        described, comment = storage.parse_storage(cursor, listed.primary_key, listed.primary_form)
        settings = ()
    else:
        settings, comment = _parse_target_clauses(cursor, listed)
    read_view, read_query = _parse_read_view(cursor)
    populate = cursor.take("POPULATE") or populate
    empty = cursor.sees("EMPTY", "AS") and cursor.take("EMPTY")
    if empty and clause is None:
        raise cursor.refused("EMPTY without REFRESH", "A view is empty unless POPULATE is said.")
    if clause is not None:
        new_target = target is not None and described is not None
        _refuse_beside_refresh(populate, read_view is not None or new_target, position)
    skip_definer(cursor)
    cursor.expect("AS")
    query = queries.parse_query(cursor)
    return nodes.CreateMaterializedView(
        name,
        query,
        target,
        tuple(listed.columns),
        described,
        populate,
        if_not_exists,
        or_replace,
        clause,
        empty,
        settings,
        comment or clauses.parse_comment_clause(cursor),
        tuple(listed.constraints),
        read_view,
        read_query,
        position=position,
    )


def _refuse_beside_refresh(populate: bool, defines_more: bool, position: Position) -> None:
    """Raise SyntaxError for POPULATE beside REFRESH, and where the statement `defines_more`: a READ VIEW, or a
    new target behind TO."""
    if populate:
        raise SyntaxError(
            "A view with REFRESH takes no POPULATE: its first refresh fills it.",
            hint="Leave POPULATE out; EMPTY skips the first refresh.",
            position=position,
        )
    if defines_more:
        raise SyntaxError(
            "A view with REFRESH takes neither READ VIEW nor the ENGINE of a target behind TO.",
            hint="CREATE the target and the plain view by statements of their own.",
            position=position,
        )


def _parse_target_elements(cursor: TokenCursor) -> columns.TableElements:
    """Parse the list behind TO and a name if it is next: columns, and constraints of a target that
    the statement creates."""
    if cursor.key != "(" or query_follows(cursor):
        return columns.TableElements()
    elements = columns.parse_table_elements(cursor)
    if elements.indexes or elements.projections:
        raise cursor.refused(
            "An INDEX or a PROJECTION in the list of a view", "Add it by ALTER TABLE to the target."
        )
    return elements


def _parse_target_clauses(
    cursor: TokenCursor, listed: columns.TableElements
) -> tuple[tuple[nodes.Setting, ...], str]:
    """Parse SETTINGS and COMMENT, in any order, of a view with TO a table that exists. Raises SyntaxError
    for what only a new table has: constraints, a PRIMARY KEY, ENGINE and its clauses."""
    if listed.constraints or listed.primary_key:
        raise cursor.expected("ENGINE and ORDER BY of the target, whose columns are listed")
    comment = clauses.parse_comment_clause(cursor)
    settings = clauses.parse_settings_clause(cursor)
    if cursor.key in _STORAGE:
        raise SyntaxError(
            "A view has TO or a storage of its own, not both.",
            hint="The target's engine and ORDER BY are said in its CREATE TABLE; or list its columns"
            " behind TO and its name, and ENGINE and ORDER BY behind them: then this statement"
            " creates it.",
            position=cursor.position(),
        )
    return settings, comment or clauses.parse_comment_clause(cursor)


def _parse_read_view(cursor: TokenCursor) -> tuple[nodes.TableName | None, nodes.Query | None]:
    """Parse `READ VIEW name AS (SELECT …)` if it is next: a plain view that the commit creates,
    too."""
    if not cursor.take("READ", "VIEW"):
        return None, None
    name = _parse_new_name(cursor)
    cursor.expect("AS")
    cursor.expect("(")
    query = queries.parse_query(cursor)
    cursor.expect(")")
    return name, query


def _parse_inner_storage(
    cursor: TokenCursor,
) -> tuple[nodes.StorageClause | None, tuple[nodes.Setting, ...], str]:
    """Parse the storage of a view's inner table, its settings, and a comment.

    SETTINGS with no other clause belong to the view; the storage is then None.
    """
    inner_storage, comment = storage.parse_storage(cursor)
    if inner_storage == nodes.StorageClause(settings=inner_storage.settings):
        return None, inner_storage.settings, comment
    return inner_storage, (), comment


# --- index


def _parse_index(cursor: TokenCursor, position: Position) -> nodes.Alter:
    """Parse `CREATE INDEX i ON t (a) TYPE minmax` as ALTER TABLE t ADD INDEX.

    Raises IncorrectQuery without TYPE."""
    if_not_exists = cursor.if_not_exists()
    name = cursor.identifier("the name of an index")
    cursor.expect("ON")
    table = cursor.table_name()
    if cursor.take("("):
        elements = cursor.comma_separated(_parse_index_element)
        cursor.expect(")")
        expression = elements[0] if len(elements) == 1 else nodes.TupleLiteral(elements)
    else:
        expression = expressions.parse_expression(cursor)
    if cursor.ended or cursor.key in (";", "GRANULARITY"):
        raise IncorrectQuery(
            "CREATE INDEX needs a TYPE.",
            hint="Write TYPE minmax, set(n), bloom_filter or text(…) behind it.",
            position=cursor.position(),
        )
    index = columns.parse_index_type(cursor, name, expression, position)
    action = nodes.IndexAction("ADD", name, index, if_not_exists, position=position)
    return nodes.Alter(table, (action,), position=position)


def _parse_index_element(cursor: TokenCursor) -> nodes.Expression:
    """Parse an expression of CREATE INDEX. ASC and DESC behind it say nothing: a skip index has no order."""
    expression = expressions.parse_expression(cursor)
    cursor.take_one_of("ASC", "DESC")
    return expression
