"""SELECT, its clauses, set operations and WITH."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from olapdb.errors import InternalError, Position, SyntaxError
from olapdb.lazy import LazyModule
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import clauses, expressions, operands, relations, sorting, windows
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.keywords import words
from olapdb.sql.parser.limit_range import with_range
from olapdb.sql.parser.lookahead import query_follows

if TYPE_CHECKING:
    from olapdb.sql.parser import pipes
else:
    pipes = LazyModule("olapdb.sql.parser.pipes")

_Mode = Literal["ALL", "DISTINCT", ""]
_AFTER_GROUP_BY = words(
    ") ; WITH HAVING WINDOW QUALIFY ORDER LIMIT OFFSET FETCH SETTINGS FORMAT UNION EXCEPT "
    "INTERSECT INTO"
) | {""}
"""What may follow `GROUP BY ()`. Before anything else, `()` begins an expression."""


@dataclass
class _Grouping:
    """GROUP BY; `keys` is None where it was left out."""

    keys: tuple[nodes.Expression, ...] | Literal["ALL"] | None = None
    kind: Literal["", "ROLLUP", "CUBE", "SETS"] = ""
    with_totals: bool = False


@dataclass
class _Head:
    """The part of a SELECT before FROM; `top` is the limit of TOP, None without it."""

    distinct: bool = False
    distinct_on: tuple[nodes.Expression, ...] = ()
    top: nodes.Expression | None = None
    with_ties: bool = False
    columns: tuple[nodes.Expression, ...] = ()


def parse_query(cursor: TokenCursor) -> nodes.Query:
    """Parse a SELECT or set operation, with WITH before it and SETTINGS and FORMAT behind it."""
    items, recursive = parse_with(cursor) if cursor.key == "WITH" else ((), False)
    return parse_behind_with(cursor, items, recursive)


def parse_behind_with(
    cursor: TokenCursor, items: tuple[nodes.WithItem, ...], recursive: bool
) -> nodes.Query:
    """Parse the query behind these items of WITH; return it with them."""
    cursor.enter(2)
    query, closed = _parse_unions(cursor)
    if isinstance(query, nodes.SetOperation) and not closed:
        query = _lift_output(query)
    if cursor.key == "|>":
        query = pipes.parse_pipes(cursor, query)
    query = _parse_trailing_output(cursor, query)
    if items:
        query = add_with(query, items, recursive)
    cursor.leave(2)
    return query


def parse_without_select(cursor: TokenCursor) -> nodes.Query:
    """Parse a query that begins with its columns, with SETTINGS and FORMAT behind it."""
    cursor.enter(2)
    query = _parse_trailing_output(cursor, _parse_select(cursor, implicit=True))
    cursor.leave(2)
    return query


def parse_in_parentheses(cursor: TokenCursor) -> nodes.Query:
    """Parse `(query)`."""
    cursor.expect("(")
    query = parse_query(cursor)
    cursor.expect(")")
    return query


# --- WITH


def parse_with(cursor: TokenCursor) -> tuple[tuple[nodes.WithItem, ...], bool]:
    """Parse `WITH [RECURSIVE] item, …`; return the items and whether RECURSIVE was there."""
    cursor.expect("WITH")
    cursor.enter(2)
    recursive = cursor.take("RECURSIVE")
    items = [_parse_with_item(cursor)]
    while cursor.take(","):
        if cursor.key == "SELECT":
            break  # the last item may have a comma behind it
        items.append(_parse_with_item(cursor))
    cursor.leave(2)
    return tuple(items), recursive


def _parse_with_item(cursor: TokenCursor) -> nodes.WithItem:
    """Parse `name AS (query)` or `expression AS name`."""
    position = cursor.position()
    named_query = _parse_named_query(cursor)
    if named_query is not None:
        return named_query
    expression = expressions.parse_expression(cursor)
    if isinstance(expression, nodes.Alias) and cursor.key != "AS":
        return nodes.WithItem(expression.name, None, expression.expression, position=position)
    cursor.expect("AS")
    return nodes.WithItem(cursor.identifier("an alias"), None, expression, position=position)


def _parse_named_query(cursor: TokenCursor) -> nodes.WithItem | None:
    """Parse `name [(columns)] AS (query)`.

    If an expression is next instead, return None and leave the cursor where it is."""
    if not cursor.is_name():
        return None
    start = cursor.at
    position = cursor.position()
    name = cursor.identifier()
    columns: tuple[str, ...] = ()
    if _column_names_follow(cursor):
        cursor.advance()
        columns = cursor.dotted_names("a column")
        cursor.expect(")")
    if cursor.take("AS"):
        materialized = cursor.key_after(1) == "(" and cursor.take("MATERIALIZED")
        if query_follows(cursor):
            query = parse_in_parentheses(cursor)
            return nodes.WithItem(name, query, None, columns, materialized, position=position)
    cursor.move_to(start)
    return None


def _column_names_follow(cursor: TokenCursor) -> bool:
    """Return whether `(a, b) AS` is next."""
    if cursor.key != "(":
        return False
    step = 1
    while cursor.is_name(step) and cursor.key_after(step + 1) == ",":
        step += 2
    ends = (cursor.key_after(step + 1), cursor.key_after(step + 2))
    return cursor.is_name(step) and ends == (")", "AS")


def add_with(query: nodes.Query, items: tuple[nodes.WithItem, ...], recursive: bool) -> nodes.Query:
    """Return `query` with these WITH items before its own; one in parentheses may have some."""
    if isinstance(query, nodes.Select | nodes.SetOperation):
        return replace(
            query, with_items=items + query.with_items, recursive=recursive or query.recursive
        )
    raise InternalError(f"A query of an unknown kind: {type(query).__name__}.")


# --- set operations


def _parse_unions(cursor: TokenCursor) -> tuple[nodes.Query, bool]:
    """Parse UNION and EXCEPT; return the query and whether its last branch was in parentheses."""
    left, closed = _parse_intersections(cursor)
    while True:
        position = cursor.position()
        operator: Literal["UNION", "EXCEPT", ""] = cursor.take_one_of("UNION", "EXCEPT")
        if not operator:
            return left, closed
        mode: _Mode = cursor.take_one_of("ALL", "DISTINCT")
        right, closed = _parse_intersections(cursor, is_first=False)
        left = nodes.SetOperation(left, right, operator, mode, position=position)


def _parse_intersections(cursor: TokenCursor, *, is_first: bool = True) -> tuple[nodes.Query, bool]:
    """Parse queries joined by INTERSECT, which binds tighter than UNION and EXCEPT.

    `is_first` is false behind UNION and EXCEPT. Returns the query, and whether its last branch was in
    parentheses."""
    left, closed = _parse_branch(cursor, is_first=is_first)
    while True:
        position = cursor.position()
        if not cursor.take("INTERSECT"):
            return left, closed
        mode: _Mode = cursor.take_one_of("ALL", "DISTINCT")
        right, closed = _parse_branch(cursor, is_first=False)
        left = nodes.SetOperation(left, right, "INTERSECT", mode, position=position)


def _parse_branch(cursor: TokenCursor, *, is_first: bool) -> tuple[nodes.Query, bool]:
    """Parse one SELECT or query in parentheses; return it and whether it was in parentheses.

    ORDER BY and LIMIT may stand behind the parentheses of the first branch. Raises SyntaxError where
    they stand behind those of a later one, as ClickHouse does: they could mean that branch or all rows."""
    position = cursor.position()
    if cursor.key == "WITH":
        items, recursive = parse_with(cursor)
        return add_with(_parse_select(cursor), items, recursive), False
    if cursor.key != "(":
        return _parse_select(cursor), False
    inner = parse_in_parentheses(cursor)
    if not cursor.sees("ORDER", "BY") and cursor.key not in ("LIMIT", "OFFSET", "FETCH"):
        return inner, True
    if not is_first:
        raise SyntaxError(
            f"{cursor.key} stands behind the parentheses of the last query of a UNION, EXCEPT or INTERSECT.",
            hint="To sort or limit all rows write SELECT * FROM (… UNION ALL …) ORDER BY …; "
            "to sort or limit those of the last query, write the clause within its parentheses.",
            position=cursor.position(),
        )
    return _parse_sorted(cursor, inner, position), True


def _parse_sorted(cursor: TokenCursor, inner: nodes.Query, position: Position) -> nodes.Query:
    """Parse the ORDER BY and LIMIT behind a query in parentheses; return the SELECT of all its rows with
    them, as in standard SQL."""
    order_by = sorting.parse_order_by(cursor)
    interpolate = sorting.parse_interpolate(cursor)
    limits = sorting.parse_limits(cursor)
    sorting.refuse_unordered_fetch(limits, order_by, position)
    select = nodes.Select(
        (nodes.Star(position=position),),
        source=nodes.SubqueryRelation(inner, position=position),
        order_by=order_by,
        interpolate=interpolate,
        limit_by=limits.limit_by,
        limit=limits.limit if limits.range is None else None,
        offset=limits.offset,
        with_ties=limits.with_ties,
        position=position,
    )
    return select if limits.range is None else with_range(select, limits.range, limits.limit)


# --- SELECT


def _parse_select(cursor: TokenCursor, *, implicit: bool = False) -> nodes.Select:
    """Parse one SELECT without its WITH; FROM may come before SELECT, and means SELECT * alone.

    With `implicit` the word SELECT is left out."""
    position = cursor.position()
    source: nodes.Relation | None = None
    if cursor.take("FROM"):
        source = relations.parse_relation(cursor)
    if source is not None and cursor.key != "SELECT":
        head = _Head(columns=(nodes.Star(position=position),))
    else:
        if not implicit:
            cursor.expect("SELECT")
        head = _parse_head(cursor)
    if source is None and cursor.take("FROM"):
        source = relations.parse_relation(cursor)
    prewhere = operands.parse_aliased(cursor) if cursor.take("PREWHERE") else None
    where = operands.parse_aliased(cursor) if cursor.take("WHERE") else None
    grouping = _parse_grouping(cursor)
    having = operands.parse_aliased(cursor) if cursor.take("HAVING") else None
    named_windows: tuple[tuple[str, nodes.WindowSpec], ...] = ()
    if cursor.take("WINDOW"):
        named_windows = cursor.comma_separated(_parse_named_window)
    qualify = operands.parse_aliased(cursor) if cursor.take("QUALIFY") else None
    order_by = sorting.parse_order_by(cursor)
    interpolate = sorting.parse_interpolate(cursor)
    limits = sorting.parse_limits(cursor, head.top, head.with_ties)
    sorting.refuse_unordered_fetch(limits, order_by, position)
    settings, output = parse_output(cursor)
    select = nodes.Select(
        head.columns,
        distinct=head.distinct,
        distinct_on=head.distinct_on,
        source=source,
        prewhere=prewhere,
        where=where,
        group_by=grouping.keys,
        grouping=grouping.kind,
        with_totals=grouping.with_totals,
        having=having,
        qualify=qualify,
        windows=named_windows,
        order_by=order_by,
        interpolate=interpolate,
        limit_by=limits.limit_by,
        limit=limits.limit if limits.range is None else None,
        offset=limits.offset,
        with_ties=limits.with_ties,
        settings=settings,
        format=output,
        position=position,
    )
    return select if limits.range is None else with_range(select, limits.range, limits.limit)


def _parse_head(cursor: TokenCursor) -> _Head:
    """Parse `[DISTINCT [ON (…)] | ALL] [TOP n [WITH TIES]] column, …`, behind SELECT."""
    head = _Head()
    if cursor.take("DISTINCT", "ON"):
        cursor.expect("(")
        head.distinct_on = operands.parse_list_until(cursor, ")")
    elif cursor.key == "DISTINCT" and cursor.key_after(1) not in (",", ".", "AS"):
        head.distinct = cursor.take("DISTINCT")
    elif cursor.key == "ALL" and cursor.key_after(1) not in (",", ".", "AS", "FROM", "("):
        cursor.advance()
    if cursor.key == "TOP" and cursor.kind_after(1) in ("number", "parameter"):
        cursor.advance()
        head.top = operands.parse_operand(cursor)
        head.with_ties = cursor.take("WITH", "TIES")
    columns = [operands.parse_column(cursor)]
    while cursor.take(","):
        if cursor.ended or cursor.key == ";":
            break
        if (
            cursor.key == "FROM"
            and (cursor.kind_after(1) != "operator" or query_follows(cursor, 1))
            and cursor.key_after(1) != "FROM"
        ):
            break  # the last column may have a comma behind it
        columns.append(operands.parse_column(cursor))
    head.columns = tuple(columns)
    return head


def _parse_named_window(cursor: TokenCursor) -> tuple[str, nodes.WindowSpec]:
    """Parse `name AS (specification)` of the WINDOW clause."""
    name = cursor.identifier("the name of a window")
    cursor.expect("AS")
    return name, windows.parse_window(cursor)


# --- GROUP BY


def _parse_grouping(cursor: TokenCursor) -> _Grouping:
    """Parse GROUP BY in all its forms, and WITH TOTALS, with or without GROUP BY."""
    grouping = _Grouping()
    if not cursor.take("GROUP", "BY"):
        grouping.with_totals = cursor.take("WITH", "TOTALS")
        return grouping
    if cursor.key == "ALL" and (
        cursor.kind_after(1) != "operator" or cursor.key_after(1) in (")", ";")
    ):
        cursor.advance()
        grouping.keys = "ALL"
    elif cursor.key in ("ROLLUP", "CUBE") and cursor.key_after(1) == "(":
        grouping.kind = cursor.take_one_of("ROLLUP", "CUBE")
        cursor.advance()
        grouping.keys = operands.parse_list_until(cursor, ")")
    elif cursor.take("GROUPING", "SETS"):
        grouping.kind = "SETS"
        cursor.expect("(")
        grouping.keys = cursor.comma_separated(_parse_grouping_set)
        cursor.expect(")")
    elif cursor.sees("(", ")") and cursor.key_after(2) in _AFTER_GROUP_BY:
        cursor.skip(2)
        grouping.keys = ()
    else:
        grouping.keys = cursor.comma_separated(operands.parse_aliased)
    while True:
        if cursor.take("WITH", "TOTALS"):
            grouping.with_totals = True
        elif cursor.take("WITH", "ROLLUP"):
            _set_kind(cursor, grouping, "ROLLUP")
        elif cursor.take("WITH", "CUBE"):
            _set_kind(cursor, grouping, "CUBE")
        else:
            return grouping


def _set_kind(cursor: TokenCursor, grouping: _Grouping, kind: Literal["ROLLUP", "CUBE"]) -> None:
    """Set the kind behind WITH. Raises NotSupportedError, as in ClickHouse, beside another one."""
    if grouping.kind not in ("", kind):
        raise cursor.refused(
            f"WITH {kind} beside another of ROLLUP, CUBE and GROUPING SETS",
            "Write the sets out: GROUPING SETS ((a, b), (a), ()).",
        )
    grouping.kind = kind


def _parse_grouping_set(cursor: TokenCursor) -> nodes.TupleLiteral:
    """Parse `(a, b)`, `()` or `a`."""
    position = cursor.position()
    if cursor.take("("):
        elements = operands.parse_list_until(cursor, ")")
    else:
        elements = (operands.parse_aliased(cursor),)
    return nodes.TupleLiteral(elements, position=position)


# --- SETTINGS and FORMAT


def parse_output(cursor: TokenCursor) -> tuple[tuple[nodes.Setting, ...], str | None]:
    """Parse SETTINGS before and behind FORMAT; return these and the format's name or None."""
    settings = clauses.parse_settings_clause(cursor)
    output = parse_format(cursor)
    if output is not None:
        settings += clauses.parse_settings_clause(cursor)
    return settings, output


def parse_format(cursor: TokenCursor) -> str | None:
    """Parse `FORMAT name`; return the name, None if it is not next."""
    if cursor.key != "FORMAT" or not cursor.is_name(1):
        return None
    cursor.advance()
    return cursor.identifier("a format")


def _parse_trailing_output(cursor: TokenCursor, query: nodes.Query) -> nodes.Query:
    """Parse SETTINGS and FORMAT behind a closing parenthesis, which belong to the whole query."""
    has_output = isinstance(query, nodes.Select | nodes.SetOperation) and query.format is not None
    if has_output and cursor.key == "FORMAT":
        raise cursor.expected("the end of the query: its FORMAT is given")
    settings, output = parse_output(cursor)
    if not settings and output is None:
        return query
    if not isinstance(query, nodes.Select | nodes.SetOperation):
        raise cursor.expected("the end of the query")
    return replace(query, settings=query.settings + settings, format=output or query.format)


def _lift_output(operation: nodes.SetOperation) -> nodes.SetOperation:
    """Return the operation with its last branch's SETTINGS and FORMAT moved to the whole."""
    bare, settings, output = _without_output(operation)
    if not isinstance(bare, nodes.SetOperation) or (not settings and output is None):
        return operation
    return replace(bare, settings=settings, format=output)


def _without_output(
    query: nodes.Query,
) -> tuple[nodes.Query, tuple[nodes.Setting, ...], str | None]:
    """Return `query` without the SETTINGS and FORMAT of its last branch, and those two.

    The format is None if there is none, or if the last branch is no SELECT."""
    if isinstance(query, nodes.SetOperation):
        right, settings, output = _without_output(query.right)
        return replace(query, right=right), settings, output
    if isinstance(query, nodes.Select):
        return replace(query, settings=(), format=None), query.settings, query.format
    return query, (), None
