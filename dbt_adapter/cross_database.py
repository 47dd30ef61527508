"""SQL of dbt's cross-database macros that need more than a template."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt_common.exceptions import CompilationError

import olapdb
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query

_DATE_LITERAL = re.compile(r"\s*'(\d{4})-\d\d?-\d\d?'\s*")
_TIME_LITERAL = re.compile(r"\s*'\d{4}-\d\d?-\d\d?[ T][\d:.]+Z?'\s*")
_DISTINCT = re.compile(r"\s*distinct\s+", re.IGNORECASE)


def dated(expression: str) -> str:
    """Return the expression, or a date or time if it is a string literal of one.

    Databases with implicit casts take '2024-01-31' for a date; functions of dates do not here. A
    literal without time is a Date, Date32 beyond the years of Date; one with time keeps
    microseconds."""
    text = str(expression)
    if (date := _DATE_LITERAL.fullmatch(text)) is not None:
        in_range = 1970 < int(date.group(1)) < 2149
        return f"{'toDate' if in_range else 'toDate32'}({text.strip()})"
    if _TIME_LITERAL.fullmatch(text) is not None:
        return f"toDateTime64({text.strip()}, 6)"
    return text


def listagg(measure: str, delimiter: str, order_by: str | None, limit: int | None) -> str:
    """Return SQL that joins the values of a group, sorted by an ORDER BY clause where given.

    NULLs are left out. NULL keys come last in ascending order and first in descending order,
    unless NULLS FIRST or LAST says otherwise. Raises CompilationError for a clause that is no
    ORDER BY."""
    distinct = _DISTINCT.match(measure)
    value = measure[distinct.end() :] if distinct else measure
    word = "DISTINCT " if distinct else ""
    if not order_by:
        size = f"({int(limit)})" if limit else ""
        return f"arrayStringConcat(groupArray{size}({word}{value}), {delimiter})"
    items = _order_items(order_by)
    keys = ", ".join(to_sql(item.expression) for item in items)
    rows = f"groupArrayIf({word}({value}, {keys}), isNotNull({value}))"
    for position in range(len(items), 0, -1):
        # arraySort is stable, so sorting by the last key first sorts by all of them.
        rows = _sorted_by(rows, items[position - 1], f"row.{position + 1}")
    if limit:
        rows = f"arraySlice({rows}, 1, {int(limit)})"
    return f"arrayStringConcat(arrayMap(row -> assumeNotNull(row.1), {rows}), {delimiter})"


def _sorted_by(rows: str, item: nodes.OrderItem, key: str) -> str:
    """Return SQL for the array `rows`, sorted stably by `key`, an expression over its element
    `row`. `item` says the direction and the place of NULLs."""
    if item.descending:
        # Reversed before and after: the rows of equal keys stay in their order.
        ordered = f"arrayReverse(arraySort(row -> {key}, arrayReverse({rows})))"
    else:
        ordered = f"arraySort(row -> {key}, {rows})"
    if item.nulls_first is None or item.nulls_first == item.descending:
        return ordered
    place = "isNotNull" if item.nulls_first else "isNull"
    return f"arraySort(row -> {place}({key}), {ordered})"


def _order_items(order_by: str) -> Sequence[nodes.OrderItem]:
    """Parse an ORDER BY clause. Raises CompilationError."""
    try:
        query = parse_query(f"SELECT 1 {order_by}")
    except olapdb.Error as error:
        raise CompilationError(f"listagg: {order_by!r} is no ORDER BY clause: {error}") from error
    items = query.order_by if isinstance(query, nodes.Select) else ()
    if not items or isinstance(items, nodes.OrderByAll):
        raise CompilationError(f"listagg: {order_by!r} is no ORDER BY clause.")
    if any(item.collate for item in items):
        raise CompilationError("listagg: COLLATE is not there; sort by lower(…) or the like.")
    return items
