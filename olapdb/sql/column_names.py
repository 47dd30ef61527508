"""ClickHouse's names of result columns without alias: `plus(x, 1)`, `count()`, `[1, 2]`."""

from __future__ import annotations

from olapdb.errors import InternalError
from olapdb.sql import nodes
from olapdb.sql.dictionary_functions import DICTIONARY_FUNCTIONS
from olapdb.sql.formatter.expressions import format_expression
from olapdb.sql.literals import literal_text, quote_string

_JOINS_TEXTS = ("groupconcat", "group_concat", "string_agg")
"""Aggregates whose second argument ClickHouse shows as a parameter."""


def column_name(expression: nodes.Expression) -> str:
    """Return the name that ClickHouse gives to the result column of `expression`.

    An alias is its name, a column its name as written.  Operators appear as functions, tuples and
    arrays as literals, DISTINCT and FILTER as combinators.  A subquery is `_subquery_1`:
    ClickHouse numbers them in the order of its analysis, which has no meaning here.
    """
    match expression:
        case nodes.Alias():
            return expression.name
        case nodes.Identifier():
            return ".".join(expression.parts)
        case nodes.Literal():
            return literal_text(expression.value)
        case nodes.Function():
            return _function(expression)
        case nodes.ArrayLiteral():
            return f"[{_elements(expression.elements)}]"
        case nodes.TupleLiteral():
            return f"({_literals(expression.elements)})"
        case nodes.Cast():
            return _cast(expression)
        case nodes.IntervalLiteral():
            return f"toInterval{expression.unit}({column_name(expression.expression)})"
        case nodes.Lambda():
            arguments = ", ".join(expression.arguments)
            return f"lambda(tuple({arguments}), {column_name(expression.body)})"
        case nodes.In():
            name = expression.function
            return f"{name}({column_name(expression.left)}, {_right_side(expression.right)})"
        case nodes.Subquery():
            return "_subquery_1"
        case nodes.Exists():
            return "exists(_subquery_1)"
        case nodes.Parameter() | nodes.Star():
            return format_expression(expression)
        case _:
            raise InternalError(f"No column name is known for {type(expression).__name__}.")


def _list(expressions: tuple[nodes.Expression, ...]) -> str:
    """Return the names that the expressions would have as columns, joined by ", "."""
    return ", ".join(column_name(e) for e in expressions)


def _cast(node: nodes.Cast) -> str:
    """Return the name of a cast's column, with the type as it was written."""
    value = quote_string(node.literal) if node.literal else column_name(node.expression)
    return f"CAST({value}, {quote_string(node.written or str(node.type))})"


def _elements(elements: tuple[nodes.Expression, ...]) -> str:
    """Return the column names of an array's elements; numbers are of one type, so integers beside a
    float are floats."""
    numbers = [e.value for e in elements if isinstance(e, nodes.Literal) and e.value is not None]
    constant = all(isinstance(e, nodes.Literal) for e in elements)
    if not constant or not any(isinstance(n, float) for n in numbers):
        return _literals(elements)
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        return _literals(elements)
    values = (e.value for e in elements if isinstance(e, nodes.Literal))
    return ", ".join(literal_text(float(v) if isinstance(v, int) else v) for v in values)


def _literals(elements: tuple[nodes.Expression, ...]) -> str:
    """Return the names of a tuple's or array's elements; among literals alone `true` is 1."""
    if not all(isinstance(e, nodes.Literal) for e in elements):
        return _list(elements)
    values = (e.value for e in elements if isinstance(e, nodes.Literal))
    return ", ".join(literal_text(int(v) if isinstance(v, bool) else v) for v in values)


def _right_side(right: nodes.Expression) -> str:
    """Return the right side of IN; one element in parentheses loses them, as in ClickHouse."""
    if isinstance(right, nodes.TupleLiteral) and len(right.elements) == 1:
        return column_name(right.elements[0])
    return column_name(right)


def _function(node: nodes.Function) -> str:
    """Return the name of a call's column; DISTINCT and FILTER show as `sumDistinctIf(a, f)`."""
    arguments = node.arguments
    name = node.name if node.database is None else f"{node.database}.{node.name}"
    if name.lower() == "grouping":
        name = "grouping"  # not the name of a function: another spelling is the same word
    plain = not (node.parameters or node.distinct or node.filter or node.over)
    parameters = node.parameters
    if not (node.distinct or node.filter) and len(arguments) == 2 and name.lower() in _JOINS_TEXTS:
        parameters, arguments = (arguments[1], *parameters[1:]), arguments[:1]
    if plain and name == "tuple":
        return f"({_list(arguments)})"
    if plain and name == "array":
        return f"[{_list(arguments)}]"
    if node.distinct:
        name += "Distinct"
    if node.filter is not None:
        name, arguments = f"{name}If", (*arguments, node.filter)
    written = f"({_list(parameters)})" if parameters else ""
    if (
        node.name in DICTIONARY_FUNCTIONS
        and arguments
        and isinstance(arguments[0], nodes.Identifier)
    ):
        arguments = (nodes.Literal(".".join(arguments[0].parts)), *arguments[1:])  # its name
    text = f"{name}{written}({_list(arguments)})"
    if isinstance(node.over, nodes.WindowSpec):
        return f"{text} OVER ({_window(node.over)})"
    return text if node.over is None else f"{text} OVER {node.over}"


def _window(window: nodes.WindowSpec) -> str:
    """Return the text of a window's specification, without the parentheses."""
    parts = [window.base] if window.base else []
    if window.partition_by:
        parts.append(f"PARTITION BY {_list(window.partition_by)}")
    if window.order_by:
        parts.append(f"ORDER BY {', '.join(_order_item(item) for item in window.order_by)}")
    if window.frame_unit and window.frame_start:
        # a frame with one bound ends at the current row
        end = window.frame_end or nodes.FrameBound("CURRENT")
        bounds = f"BETWEEN {_bound(window.frame_start)} AND {_bound(end)}"
        parts.append(f"{window.frame_unit} {bounds}")
    return " ".join(parts)


def _order_item(item: nodes.OrderItem) -> str:
    """Return the text of an ORDER BY item; ASC is written out."""
    text = f"{column_name(item.expression)} {'DESC' if item.descending else 'ASC'}"
    if item.nulls_first is not None:
        text += f" NULLS {'FIRST' if item.nulls_first else 'LAST'}"
    return text


def _bound(bound: nodes.FrameBound) -> str:
    """Return the text of an end of a frame, such as `1 PRECEDING`."""
    if bound.direction == "CURRENT":
        return "CURRENT ROW"
    offset = "UNBOUNDED" if bound.offset is None else column_name(bound.offset)
    return f"{offset} {bound.direction}"
