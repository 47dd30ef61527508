"""Expressions as SQL, on one line, in ClickHouse's own form.

An operand that is itself an operator gets parentheses, so the text does not depend on precedence
and the parser builds the same tree from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.errors import InternalError
from olapdb.sql import nodes
from olapdb.sql.formatter import queries
from olapdb.sql.literals import backquote, literal_text, quote_name, quote_string

_BINARY = {
    "plus": "+",
    "minus": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "equals": "=",
    "notEquals": "!=",
    "less": "<",
    "lessOrEquals": "<=",
    "greater": ">",
    "greaterOrEquals": ">=",
    "like": "LIKE",
    "notLike": "NOT LIKE",
    "ilike": "ILIKE",
    "notILike": "NOT ILIKE",
    "isNotDistinctFrom": "<=>",
}
_CHAINED = {"and": "AND", "or": "OR"}
_POSTFIX = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL"}
_PREFIX = {"not": "NOT ", "negate": "-"}
_NO_CALLS = {"NOT", "CASE", "INTERVAL", "COLUMNS", "SELECT", "FROM", "WHERE"}
_AS_OPERATOR = {"arrayElement", "tupleElement"}


def format_expression(node: nodes.Expression) -> str:
    """Return the SQL of an expression, which the parser reads back as an equal node."""
    match node:
        case nodes.Identifier():
            return ".".join(map(quote_name, node.parts))
        case nodes.Literal():
            return _format_literal(node)
        case nodes.Parameter():
            return _format_parameter(node)
        case nodes.Star():
            return _format_star(node)
        case nodes.ArrayLiteral():
            return f"[{format_expressions(node.elements)}]"
        case nodes.TupleLiteral():
            return _format_tuple(node)
        case nodes.Cast():
            value = format_unaliased(node.expression)
            return f"CAST({value}, {quote_string(str(node.type))})"
        case nodes.IntervalLiteral():
            return _format_interval(node)
        case nodes.Lambda():
            return _format_lambda(node)
        case nodes.Subquery():
            return f"({queries.format_query(node.query)})"
        case nodes.Exists():
            return f"EXISTS({queries.format_query(node.query)})"
        case nodes.Alias():
            return f"{format_unaliased(node.expression)} AS {quote_name(node.name)}"
        case nodes.In():
            return _format_in(node)
        case nodes.Function():
            return _format_function(node)
        case _:
            raise InternalError(f"No SQL is known for {type(node).__name__}.")


def format_expressions(expressions: Iterable[nodes.Expression]) -> str:
    """Return the SQL of expressions, separated by commas."""
    return ", ".join(format_expression(node) for node in expressions)


def format_operand(node: nodes.Expression) -> str:
    """Return the SQL of an operand of an operator, in parentheses where it would bind otherwise."""
    text = format_expression(node)
    if isinstance(node, nodes.In | nodes.Alias | nodes.IntervalLiteral) or (
        isinstance(node, nodes.Function) and node.database is None and _is_operator(node)
    ):
        return f"({text})"
    return text


def format_unaliased(node: nodes.Expression) -> str:
    """Return the SQL of an expression for a place without alias: an alias is in parentheses."""
    return format_operand(node) if isinstance(node, nodes.Alias) else format_expression(node)


def format_names(names: Iterable[str]) -> str:
    """Return names, quoted where they need it and separated by commas."""
    return ", ".join(quote_name(name) for name in names)


# --- leaves


def _format_literal(node: nodes.Literal) -> str:
    """Return a literal; a number keeps the text in which it was written."""
    if node.text and isinstance(node.value, int | float):
        return node.text
    return literal_text(node.value)


def _format_parameter(node: nodes.Parameter) -> str:
    """Return `{name:Type}`, `:name`, `?` or `$n`, as the parameter was written."""
    if node.type is not None:
        return f"{{{quote_name(node.name or '')}:{node.type}}}"
    if node.name is not None:
        return f":{node.name}"
    return "?" if node.index is None else f"${node.index + 1}"


def _format_star(node: nodes.Star) -> str:
    """Return `*` or COLUMNS(…) with its qualifier, EXCEPT, REPLACE and APPLY."""
    text = "*"
    if node.pattern is not None:
        text = f"COLUMNS({quote_string(node.pattern)})"
    elif node.names:
        text = f"COLUMNS({format_names(node.names)})"
    text = ".".join((*map(quote_name, node.qualifier), text))
    strict = " STRICT" if node.strict else ""
    if node.excluded:
        text += f" EXCEPT{strict} ({format_names(node.excluded)})"
    for pattern in node.excluded_patterns:
        text += f" EXCEPT ({quote_string(pattern)})"
    if node.replaced:
        text += f" REPLACE{strict} ({format_expressions(node.replaced)})"
    for function in node.applied:
        text += f" APPLY({format_expression(function)})"
    return text


# --- with operands


def _format_tuple(node: nodes.TupleLiteral) -> str:
    """Return a tuple in parentheses; one element gets a comma behind it."""
    comma = "," if len(node.elements) == 1 else ""
    return f"({format_expressions(node.elements)}{comma})"


def _format_interval(node: nodes.IntervalLiteral) -> str:
    """Return `INTERVAL n UNIT`; an amount that could be misread gets parentheses."""
    inner = node.expression
    text = format_operand(inner)
    bare = isinstance(inner, nodes.Identifier | nodes.Function) or (
        isinstance(inner, nodes.Literal) and isinstance(inner.value, int | float)
    )
    if not bare:  # INTERVAL [1] DAY would be an element of a column called interval
        text = f"({format_expression(inner)})"
    return f"INTERVAL {text} {node.unit.upper()}"


def _format_lambda(node: nodes.Lambda) -> str:
    """Return a lambda in parentheses: `(x -> body)`."""
    names = format_names(node.arguments)
    arguments = names if len(node.arguments) == 1 else f"({names})"
    return f"({arguments} -> {format_operand(node.body)})"


def _format_in(node: nodes.In) -> str:
    """Return `left [GLOBAL] [NOT] IN right`."""
    operator = f"{'GLOBAL ' * node.is_global}{'NOT ' * node.negated}IN"
    right = node.right
    if isinstance(right, nodes.TupleLiteral):
        # parentheses behind IN are a tuple without a comma too, unless they hold a query
        single = len(right.elements) == 1 and isinstance(right.elements[0], nodes.Subquery)
        text = f"({format_expressions(right.elements)}{',' if single else ''})"
    else:
        text = format_operand(right)
    return f"{format_operand(node.left)} {operator} {text}"


# --- functions


def _is_operator(node: nodes.Function) -> bool:
    """Return whether the call is written as an operator."""
    if node.parameters or node.distinct or node.filter or node.over or node.nulls:
        return False
    count = len(node.arguments)
    if node.name in _BINARY:
        return count == 2
    if node.name in _CHAINED:
        return count >= 2
    if node.name in _AS_OPERATOR:
        return count == 2 and _is_element(node)
    return count == 1 and (node.name in _POSTFIX or node.name in _PREFIX)


def _is_element(node: nodes.Function) -> bool:
    """Return whether `a[i]` or `t.1` reads back as this call."""
    base, index = node.arguments
    if isinstance(base, nodes.Star | nodes.Literal | nodes.Parameter | nodes.Alias | nodes.Exists):
        return False
    if node.name == "arrayElement":
        return True
    return (
        isinstance(index, nodes.Literal)
        and isinstance(index.value, int)
        and not isinstance(index.value, bool)
        and index.value > 0
    )


def _format_function(node: nodes.Function) -> str:
    """Return a call, as an operator where it has one, with FILTER, OVER and NULLS."""
    if node.database is None and _is_operator(node):
        return _format_operator(node)
    text = format_function_name(node.name)
    if node.database is not None:
        text = f"{quote_name(node.database)}.{text}"
    if node.parameters:
        text += f"({format_expressions(node.parameters)})"
    distinct = "DISTINCT " if node.distinct else ""
    text += f"({distinct}{format_expressions(node.arguments)})"
    if node.nulls is not None:
        text += f" {node.nulls} NULLS"
    if node.filter is not None:
        text += f" FILTER (WHERE {format_expression(node.filter)})"
    if isinstance(node.over, nodes.WindowSpec):
        text += f" OVER ({format_window(node.over)})"
    elif node.over is not None:
        text += f" OVER {quote_name(node.over)}"
    return text


def format_function_name(name: str) -> str:
    """Return the name of a function; unlike a column, it may be a keyword: `left(x, 1)`, `any(x)`."""
    plain = name.isidentifier() and name.isascii() and name.upper() not in _NO_CALLS
    return name if plain else backquote(name)


def _format_operator(node: nodes.Function) -> str:
    """Return a call as the operator of its name: `plus(a, b)` as `a + b`."""
    name, arguments = node.name, node.arguments
    if name in _BINARY:
        left, right = (format_operand(a) for a in arguments)
        return f"{left} {_BINARY[name]} {right}"
    if name in _CHAINED:
        return f" {_CHAINED[name]} ".join(format_operand(a) for a in arguments)
    if name in _POSTFIX:
        return f"{format_operand(arguments[0])} {_POSTFIX[name]}"
    if name == "arrayElement":
        return f"{format_operand(arguments[0])}[{format_expression(arguments[1])}]"
    if name == "tupleElement":
        return f"{format_operand(arguments[0])}.{format_expression(arguments[1])}"
    inner = format_operand(arguments[0])
    if name == "negate" and isinstance(arguments[0], nodes.Literal):
        inner = f"({inner})"  # -(1) is negate(1), -1 is a number
    return f"{_PREFIX[name]}{inner}"


# --- windows and sorting


def format_window(window: nodes.WindowSpec) -> str:
    """Return the inside of the parentheses of OVER or WINDOW."""
    parts = [quote_name(window.base)] if window.base else []
    if window.partition_by:
        parts.append(f"PARTITION BY {format_expressions(window.partition_by)}")
    if window.order_by:
        parts.append(f"ORDER BY {format_order_items(window.order_by)}")
    if window.frame_unit and window.frame_start:
        frame = _format_bound(window.frame_start)
        if window.frame_end:
            frame = f"BETWEEN {frame} AND {_format_bound(window.frame_end)}"
        parts.append(f"{window.frame_unit} {frame}")
    return " ".join(parts)


def _format_bound(bound: nodes.FrameBound) -> str:
    """Return an end of a frame, such as `1 PRECEDING`."""
    if bound.direction == "CURRENT":
        return "CURRENT ROW"
    offset = "UNBOUNDED" if bound.offset is None else format_operand(bound.offset)
    return f"{offset} {bound.direction}"


def format_order_items(items: Iterable[nodes.OrderItem]) -> str:
    """Return the items of ORDER BY: `a ASC, b DESC NULLS FIRST`."""
    return ", ".join(_format_order_item(item) for item in items)


def _format_order_item(item: nodes.OrderItem) -> str:
    """Return an item of ORDER BY; ASC is written out."""
    text = f"{format_expression(item.expression)} {'DESC' if item.descending else 'ASC'}"
    if item.nulls_first is not None:
        text += f" NULLS {'FIRST' if item.nulls_first else 'LAST'}"
    if item.collate is not None:
        text += f" COLLATE {quote_string(item.collate)}"
    return text if item.fill is None else f"{text} {_format_fill(item.fill)}"


def _format_fill(fill: nodes.Fill) -> str:
    """Return WITH FILL and its clauses."""
    clauses = {"FROM": fill.start, "TO": fill.stop, "STEP": fill.step, "STALENESS": fill.staleness}
    written = (f"{word} {format_expression(e)}" for word, e in clauses.items() if e is not None)
    return " ".join(("WITH FILL", *written))
