"""Statements that write rows: INSERT, DELETE, UPDATE.

The data behind VALUES and FORMAT never come here: `text` cuts them off before.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.sql import nodes
from olapdb.sql.parser import clauses, expressions, queries, relations, storage
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import call_follows, query_follows, query_is_next


def parse_insert(cursor: TokenCursor) -> nodes.Insert:
    """Parse an INSERT without its data: its head, and its query or the name of its FORMAT if any.

    If VALUES or data of a FORMAT follow, the cursor must end before them; the caller reads them.
    Raises NotSupportedError for INSERT … PARTITION BY."""
    position = cursor.position()
    cursor.expect("INSERT")
    cursor.expect("INTO")
    cursor.take("TABLE")
    function: nodes.TableFunction | None = None
    if cursor.key == "FUNCTION" and call_follows(cursor, 1):
        cursor.advance()
        function = relations.parse_function(cursor)
        table = nodes.TableName(function.name, position=function.position)
        local = relations.local_relation(function)
        if isinstance(local, nodes.TableReference):  # remote('localhost', …) is the table itself
            table, function = local.table, None
    else:
        table = cursor.table_name()
    columns, excluded = _parse_insert_columns(cursor)
    partition_by = None
    if cursor.sees("PARTITION", "BY"):
        if function is None:
            raise cursor.refused("INSERT … PARTITION BY", "A table's PARTITION BY says it.")
        cursor.advance()
        cursor.advance()
        partition_by = expressions.parse_expression(cursor)
    settings = clauses.parse_settings_clause(cursor)
    replacing = parse_replacing(cursor) if cursor.key == "REPLACE" else None
    insert = nodes.Insert(
        table,
        columns,
        excluded,
        settings=settings,
        replacing=replacing,
        function=function,
        partition_by=partition_by,
        position=position,
    )
    if cursor.sees("FROM", "INFILE"):
        return _parse_infile(cursor, insert)
    if query_is_next(cursor):
        query, query_settings = _without_settings(queries.parse_query(cursor))
        return replace(insert, query=query, settings=settings + query_settings)
    if cursor.take("FORMAT"):
        return replace(insert, format=cursor.identifier("a format"))
    if cursor.ended or cursor.key in (";", "VALUES"):
        return insert
    raise cursor.expected("VALUES, SELECT, FORMAT or SETTINGS")


def parse_insert_without_data(cursor: TokenCursor) -> nodes.Insert:
    """Parse an INSERT that no data follow. Raises SyntaxError if it says nowhere what to insert."""
    insert = parse_insert(cursor)
    if insert.query is None and insert.infile is None and not insert.format:
        raise cursor.expected("VALUES, SELECT, FORMAT or SETTINGS")
    return insert


def parse_explained_insert(cursor: TokenCursor) -> nodes.Insert:
    """Parse an INSERT whose data say nothing about its tree; step over them. Raises SyntaxError if it says nowhere what to
    insert."""
    insert = parse_insert(cursor)
    if (
        cursor.key != "VALUES"
        and insert.query is None
        and insert.infile is None
        and not insert.format
    ):
        raise cursor.expected("VALUES, SELECT, FORMAT or SETTINGS")
    if cursor.key == "VALUES" or insert.format:
        while not cursor.ended:
            cursor.advance()
    return insert


def _parse_infile(cursor: TokenCursor, insert: nodes.Insert) -> nodes.Insert:
    """Parse `FROM INFILE 'path' [COMPRESSION 'name'] [SETTINGS …] [FORMAT name]`."""
    position = cursor.position()
    cursor.expect("FROM")
    cursor.expect("INFILE")
    path = cursor.string("a path in quotes")
    compression = cursor.string("a compression") if cursor.take("COMPRESSION") else ""
    settings, chosen = queries.parse_output(cursor)
    return replace(
        insert,
        infile=nodes.InFile(path, compression, position=position),
        format=chosen,
        settings=insert.settings + settings,
    )


def parse_replacing(cursor: TokenCursor) -> nodes.Replacing:
    """Parse `REPLACE USING (k, …)`, `REPLACE WHERE …` or `REPLACE USING (k, …) WHERE …`."""
    position = cursor.position()
    cursor.expect("REPLACE")
    keys: tuple[nodes.Expression, ...] = ()
    if cursor.take("USING"):
        cursor.expect("(")
        keys = cursor.comma_separated(expressions.parse_expression)
        cursor.expect(")")
    elif cursor.key != "WHERE":
        raise cursor.expected("USING or WHERE")
    where = expressions.parse_expression(cursor) if cursor.take("WHERE") else None
    return nodes.Replacing(keys, where, position=position)


def _parse_insert_columns(cursor: TokenCursor) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Parse `(a, b)`, `(*)` or `(* EXCEPT (a))`; return the names, and the names left out.

    The names are None where all columns are meant.
    """
    if cursor.key != "(" or query_follows(cursor):
        return None, ()
    cursor.advance()
    columns: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    if cursor.take("*"):
        if cursor.take("EXCEPT"):
            grouped = cursor.take("(")
            excluded = (
                cursor.dotted_names("a column") if grouped else _parse_names_and_comma(cursor)
            )
            if grouped:
                cursor.expect(")")
        cursor.take(",")
    elif cursor.sees("COLUMNS", "("):
        raise cursor.refused("COLUMNS in the list of INSERT", "Name the columns.")
    else:
        columns = _parse_names_and_comma(cursor)
    cursor.expect(")")
    return columns, excluded


def _parse_names_and_comma(cursor: TokenCursor) -> tuple[str, ...]:
    """Parse `a, b.c`; a comma may follow the last name, before the closing parenthesis."""
    names = [cursor.dotted_name("a column")]
    while cursor.take(",") and cursor.key != ")":
        names.append(cursor.dotted_name("a column"))
    return tuple(names)


def _without_settings(query: nodes.Query) -> tuple[nodes.Query, tuple[nodes.Setting, ...]]:
    """Split off SETTINGS, which belong to the whole INSERT, as in ClickHouse."""
    if isinstance(query, nodes.Select | nodes.SetOperation) and query.settings:
        return replace(query, settings=()), query.settings
    return query, ()


def parse_delete(cursor: TokenCursor) -> nodes.Delete:
    """Parse `DELETE FROM t [IN PARTITION p] [WHERE …] [SETTINGS …]`."""
    position = cursor.position(cursor.advance())
    cursor.expect("FROM")
    table = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    partition = storage.parse_in_partition(cursor)
    where = expressions.parse_expression(cursor) if cursor.take("WHERE") else None
    settings = clauses.parse_settings_clause(cursor)
    return nodes.Delete(table, where, partition, settings, position=position)


def parse_update(cursor: TokenCursor) -> nodes.Update:
    """Parse `UPDATE t SET a = x [WHERE …] [SETTINGS …]`."""
    position = cursor.position(cursor.advance())
    table = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    cursor.expect("SET")
    assignments = parse_assignments(cursor)
    if cursor.sees("IN", "PARTITION"):
        raise cursor.refused("UPDATE … IN PARTITION", "Use ALTER TABLE … UPDATE … IN PARTITION.")
    where = expressions.parse_expression(cursor) if cursor.take("WHERE") else None
    settings = clauses.parse_settings_clause(cursor)
    return nodes.Update(table, assignments, where, settings, position=position)


def parse_assignments(cursor: TokenCursor) -> tuple[tuple[str, nodes.Expression], ...]:
    """Parse `a = x, b = y`; a value ends before IN PARTITION."""
    return cursor.comma_separated(_parse_assignment)


def _parse_assignment(cursor: TokenCursor) -> tuple[str, nodes.Expression]:
    """Parse `column = expression`."""
    name = cursor.dotted_name("a column")
    cursor.expect("=")
    return name, expressions.parse_expression(cursor)
