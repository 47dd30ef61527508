"""Expressions as ClickHouse shows them to people: queries in them on lines of their own.

Differs from the canonical text of `expressions.py`, which is stored and hashed and therefore never
changes: an interval is a call, a number is written anew, DISTINCT and FILTER are in the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal

from olapdb.sql import nodes
from olapdb.sql.formatter import expressions
from olapdb.sql.literals import quote_name, quote_string, show_names
from olapdb.sql.trees import rewrite, rewrite_children

INDENT = "    "

FormatQuery = Callable[[nodes.Query], str]
"""Returns a query's lines; a module above gives it, which formats expressions by this one."""


def indented(text: str) -> str:
    """Return the text with each line moved to the right by `INDENT`."""
    return INDENT + text.replace("\n", "\n" + INDENT)


def bracketed(text: str) -> str:
    """Return lines in parentheses that stand on lines of their own."""
    return f"(\n{indented(text)}\n)"


def show_expression(node: nodes.Expression, query: FormatQuery) -> str:
    """Return an expression; `query` formats the queries in it."""
    return _Shown(query).show(node)


def show_expressions(items: Iterable[nodes.Expression], query: FormatQuery) -> str:
    """Return expressions on one line, separated by commas."""
    return ", ".join(show_expression(item, query) for item in items)


def show_operand(node: nodes.Expression, query: FormatQuery) -> str:
    """Return an operand, such as that of LIMIT."""
    return _Shown(query).show(node, operand=True)


def show_window(window: nodes.WindowSpec, query: FormatQuery) -> str:
    """Return the inside of the parentheses of WINDOW."""
    shown = _Shown(query)
    return shown.filled(expressions.format_window(rewrite(window, shown.change)))


def show_order_item(item: nodes.OrderItem, query: FormatQuery) -> str:
    """Return an item of ORDER BY."""
    shown = _Shown(query)
    return shown.filled(expressions.format_order_items((rewrite(item, shown.change),)))


def show_ratio(node: nodes.Expression, query: FormatQuery) -> str:
    """Return the share of SAMPLE: a decimal number as a fraction, `5 / 10`."""
    if isinstance(node, nodes.Literal) and isinstance(node.value, float):
        digits, exponent = Decimal(repr(node.value)).as_tuple()[1:]
        if isinstance(exponent, int) and exponent < 0:
            return f"{int(''.join(map(str, digits)))} / {10**-exponent}"
    return show_expression(node, query)


class _Shown:
    """The formatting of one expression: parts with a text of their own stand as marked names."""

    def __init__(self, query: FormatQuery) -> None:
        self._query = query
        self._texts: list[str] = []

    def show(self, node: nodes.Expression, *, operand: bool = False) -> str:
        """Return the text of an expression, of an operand in the parentheses that it needs."""
        changed = rewrite(node, self.change)
        text = expressions.format_operand if operand else expressions.format_expression
        return self.filled(text(changed))

    def filled(self, text: str) -> str:
        """Return the text without needless backquotes, and with the marked names replaced by their
        texts; the last first, since the text of one may hold those before it."""
        text = show_names(text)
        for number in range(len(self._texts) - 1, -1, -1):
            text = text.replace(_marked(number), self._texts[number])
        return text

    def _marker(self, text: str) -> nodes.Identifier:
        """Keep a text, and return the name that stands for it."""
        self._texts.append(text)
        return nodes.Identifier((_name(len(self._texts) - 1),))

    def change(self, node: nodes.Node) -> nodes.Node | None:
        """Return the node to show in place of a node, None to show it itself with its children changed."""
        match node:
            case nodes.Literal():
                return replace(node, text="")
            case nodes.Subquery():
                return self._marker(bracketed(self._query(node.query)))
            case nodes.Exists():
                query = self._marker(bracketed(self._query(node.query)))
                return self._marker(f"exists({_marked_text(query)})")
            case nodes.IntervalLiteral():
                return self._interval(node)
            case nodes.Cast() if node.literal:
                return replace(node, expression=nodes.Literal(node.literal), literal="")
            case nodes.TupleLiteral(elements=(element,)):
                return nodes.Function("tuple", (rewrite(element, self.change),))
            case nodes.In(right=nodes.TupleLiteral()):
                left = rewrite(node.left, self.change)
                return replace(node, left=left, right=rewrite_children(node.right, self.change))
            case nodes.Function():
                return self._function(node)
            case nodes.Star():
                return self._star(node)
            case _:
                return None

    def _interval(self, node: nodes.IntervalLiteral) -> nodes.Expression:
        """Return `toIntervalDay(1)`; an operator in it keeps its parentheses."""
        amount = self._marker(self.show(node.expression, operand=True))
        return nodes.Function(f"toInterval{node.unit.capitalize()}", (amount,))

    def _function(self, node: nodes.Function) -> nodes.Expression:
        """Return a call with DISTINCT and FILTER in its name, and lambdas without parentheses."""
        name, arguments = node.name, node.arguments
        if node.distinct:
            name += "Distinct"
        if node.filter is not None:
            name, arguments = f"{name}If", (*arguments, node.filter)
        node = replace(node, name=name, arguments=arguments, distinct=False, filter=None)
        bare = tuple(self._lambda(a) if isinstance(a, nodes.Lambda) else a for a in node.arguments)
        return rewrite_children(replace(node, arguments=bare), self.change)

    def _lambda(self, node: nodes.Lambda) -> nodes.Expression:
        """Return a lambda that is an argument: `(x, y) -> (x + y)`."""
        return self._marker(self.show(node)[1:-1])

    def _star(self, node: nodes.Star) -> nodes.Expression:
        """Return `*` or COLUMNS(…) with its modifiers, each as short as ClickHouse writes it."""
        bare = nodes.Star(node.qualifier, node.pattern, names=node.names)
        text = expressions.format_expression(bare)
        if node.excluded:
            names = expressions.format_names(node.excluded)
            text += f" EXCEPT{_strict(node)} " + (
                names if len(node.excluded) == 1 else f"({names})"
            )
        for pattern in node.excluded_patterns:
            text += f" EXCEPT({quote_string(pattern)})"
        if node.replaced:
            items = ", ".join(self.show(item) for item in node.replaced)
            text += f" REPLACE{_strict(node)} ({items})"
        return self._marker(text + "".join(f" APPLY {self._applied(f)}" for f in node.applied))

    def _applied(self, function: nodes.Lambda) -> str:
        """Return the text behind APPLY: the name of the function with its parameters, or a lambda as it was written."""
        match function.body:
            case nodes.Function(arguments=(nodes.Identifier(parts=parts),)) as call if (
                parts == function.arguments
            ):
                return expressions.format_expression(replace(call, arguments=()))[:-2]
            case _:
                return self.show(function)


def _strict(node: nodes.Star) -> str:
    """Return STRICT with a space before it where the modifiers have it."""
    return " STRICT" if node.strict else ""


def _name(number: int) -> str:
    """Return the name that stands for a text; its characters are private ones of Unicode."""
    return f"\ue000{number}\ue001"


def _marked(number: int) -> str:
    """Return that name as it is written: in backquotes, since it is no plain name."""
    return quote_name(_name(number))


def _marked_text(marker: nodes.Identifier) -> str:
    """Return the text of a marker."""
    return quote_name(marker.parts[0])
