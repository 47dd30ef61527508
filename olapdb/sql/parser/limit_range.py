"""LIMIT [n] AFTER condition [ALL] UNTIL condition: the rows from where one condition holds up to where
another does.

It is written out as queries over the SELECT, which number its rows and find where ranges begin and
end:

    SELECT a FROM t ORDER BY a LIMIT 2 AFTER a > 5
    SELECT * EXCEPT (…) FROM (SELECT *, minIf(row, after) OVER () AS start FROM (
        SELECT *, row_number() OVER () AS row FROM (SELECT a, a > 5 AS after FROM t ORDER BY a)))
    WHERE start > 0 AND row >= start AND row < start + 2 ORDER BY row
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import expressions
from olapdb.sql.parser.cursor import TokenCursor

_AFTER, _UNTIL, _ROW, _START, _STOP = (
    f"__limit_{name}" for name in ("after", "until", "row", "start", "stop")
)
_HELPERS = (_AFTER, _UNTIL, _ROW, _START, _STOP)
_SO_FAR = nodes.WindowSpec(
    order_by=(nodes.OrderItem(nodes.Identifier((_ROW,))),),
    frame_unit="ROWS",
    frame_start=nodes.FrameBound("PRECEDING"),
    frame_end=nodes.FrameBound("CURRENT"),
)


@dataclass(frozen=True)
class LimitRange:
    """The conditions of LIMIT [n] AFTER … UNTIL …: `after` None is the first row, `until` None the end. `every`: AFTER …
    ALL, a range from each row for which `after` holds."""

    after: nodes.Expression | None
    until: nodes.Expression | None
    every: bool


def range_follows(cursor: TokenCursor) -> bool:
    """Return whether AFTER or UNTIL of a LIMIT is next."""
    if cursor.key not in ("AFTER", "UNTIL"):
        return False
    return cursor.kind_after(1) != "operator" or cursor.key_after(1) in ("(", "[", "-")


def parse_range(cursor: TokenCursor) -> LimitRange:
    """Parse `[AFTER condition [ALL]] [UNTIL condition]`, of which one is next. Refuse OFFSET behind it,
    as ClickHouse does."""
    after = until = None
    every = False
    if cursor.take("AFTER"):
        after = expressions.parse_expression(cursor)
        every = cursor.take("ALL")
    if cursor.take("UNTIL"):
        until = expressions.parse_expression(cursor)
    return LimitRange(after, until, every)


def with_range(
    select: nodes.Select, limits: LimitRange, count: nodes.Expression | None
) -> nodes.Select:
    """Return the query of the SELECT's rows in the range, at most `count` of each."""
    conditions = [(_AFTER, limits.after), (_UNTIL, limits.until)]
    flags = tuple(
        nodes.Alias(_call("if", condition, _number(1), _number(0)), name)
        for name, condition in conditions
        if condition is not None
    )
    bare = replace(select, settings=(), format=None)
    if select.distinct or select.distinct_on:
        flagged = _over(bare, *flags)
    else:
        flagged = replace(bare, columns=(*bare.columns, *flags))
    numbered = _over(flagged, _window("row_number", (), nodes.WindowSpec(), _ROW))
    ranged = _every(numbered, limits) if limits.every else _first(numbered, limits)
    begun = [_call("greater", _name(_START), _name(_STOP))] if limits.every else []
    if not limits.every:
        begun = [_call("greater", _name(_START), _number(0))]
        begun.append(_call("greaterOrEquals", _name(_ROW), _name(_START)))
        ended = _call("less", _name(_ROW), _name(_STOP))
        begun.append(_call("or", _call("equals", _name(_STOP), _number(0)), ended))
    if count is not None:
        begun.append(_call("less", _name(_ROW), _call("plus", _name(_START), count)))
    present = [name for name in _HELPERS if name not in _absent(limits)]
    return nodes.Select(
        (nodes.Star(excluded=tuple(present)),),
        source=nodes.SubqueryRelation(ranged, position=select.position),
        where=nodes.Function("and", tuple(begun)) if len(begun) > 1 else begun[0],
        order_by=(nodes.OrderItem(_name(_ROW)),),
        settings=select.settings,
        format=select.format,
        position=select.position,
    )


def _absent(limits: LimitRange) -> tuple[str, ...]:
    """Return the names of the conditions that the range does not have."""
    after = () if limits.after is not None else (_AFTER,)
    return after if limits.until is not None else (*after, _UNTIL)


def _every(numbered: nodes.Select, limits: LimitRange) -> nodes.Select:
    """Add two columns to the numbered rows, for LIMIT … AFTER of every match: the number of the last row,
    up to each row, that begins a range, and that of the last one that ends a range."""
    stop: nodes.Expression = nodes.Alias(_number(0), _STOP)
    if limits.until is not None:
        stop = _window("max", (_row_if(_UNTIL),), _SO_FAR, _STOP)
    return _over(numbered, _window("max", (_row_if(_AFTER),), _SO_FAR, _START), stop)


def _first(numbered: nodes.Select, limits: LimitRange) -> nodes.Select:
    """Return the rows with the row at which the range begins, and that at which it ends; 0: none."""
    start: nodes.Expression = nodes.Alias(_number(1), _START)
    if limits.after is not None:
        start = _window("minIf", (_name(_ROW), _name(_AFTER)), nodes.WindowSpec(), _START)
    begun = _over(numbered, start)
    if limits.until is None:
        return _over(begun, nodes.Alias(_number(0), _STOP))
    ends = _call("and", _name(_UNTIL), _call("greaterOrEquals", _name(_ROW), _name(_START)))
    return _over(begun, _window("minIf", (_name(_ROW), ends), nodes.WindowSpec(), _STOP))


def _over(query: nodes.Query, *columns: nodes.Expression) -> nodes.Select:
    """Return SELECT *, columns FROM (query)."""
    source = nodes.SubqueryRelation(query, position=query.position)
    return nodes.Select((nodes.Star(), *columns), source=source, position=query.position)


def _row_if(flag: str) -> nodes.Expression:
    """Return the expression `if(flag, row number, 0)`."""
    return _call("if", _name(flag), _name(_ROW), _number(0))


def _window(
    name: str, arguments: tuple[nodes.Expression, ...], over: nodes.WindowSpec, alias: str
) -> nodes.Expression:
    """Return `name(arguments) OVER (…) AS alias`."""
    return nodes.Alias(nodes.Function(name, arguments, over=over), alias)


def _call(name: str, *arguments: nodes.Expression) -> nodes.Function:
    """Return the node of a function's call."""
    return nodes.Function(name, arguments)


def _name(name: str) -> nodes.Identifier:
    """Return the identifier of a column."""
    return nodes.Identifier((name,))


def _number(value: int) -> nodes.Literal:
    """Return the literal of a number."""
    return nodes.Literal(value)
