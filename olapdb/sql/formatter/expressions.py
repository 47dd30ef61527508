"""Expressions as SQL, on one line, in ClickHouse's own form.

An operand that is an operator itself stands in parentheses, so precedence is never needed to read
what was written, and the parser builds the same tree from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.errors import InternalError
from olapdb.sql.literals import backquote, literal_text, quote_name, quote_string
from olapdb.sql.nodes import (
    Alias,
    ArrayLiteral,
    Cast,
    Exists,
    Expression,
    FrameBound,
    Function,
    Identifier,
    In,
    IntervalLiteral,
    Lambda,
    Literal,
    OrderItem,
    Parameter,
    Query,
    Star,
    Subquery,
    TupleLiteral,
    WindowSpec,
)

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


class ExpressionFormatter:
    """Writes values; queries inside them are written by `QueryFormatter`."""

    def query(self, query: Query) -> str:
        raise NotImplementedError

    def expression(self, node: Expression) -> str:
        match node:
            case Identifier():
                return self._identifier(node)
            case Literal():
                return self._literal(node)
            case Parameter():
                return self._parameter(node)
            case Star():
                return self._star(node)
            case ArrayLiteral():
                return self._array(node)
            case TupleLiteral():
                return self._tuple(node)
            case Cast():
                return self._cast(node)
            case IntervalLiteral():
                return self._interval(node)
            case Lambda():
                return self._lambda(node)
            case Subquery():
                return self._subquery(node)
            case Exists():
                return self._exists(node)
            case Alias():
                return self._alias(node)
            case In():
                return self._in(node)
            case Function():
                return self._function(node)
            case _:
                raise InternalError(f"No SQL is known for {type(node).__name__}.")

    def expressions(self, nodes: Iterable[Expression]) -> str:
        return ", ".join(self.expression(node) for node in nodes)

    def operand(self, node: Expression) -> str:
        """In parentheses where it would bind otherwise."""
        text = self.expression(node)
        if isinstance(node, In | Alias | IntervalLiteral) or (
            isinstance(node, Function) and self._is_operator(node)
        ):
            return f"({text})"
        return text

    def unaliased(self, node: Expression) -> str:
        """In parentheses where it is an alias, for places that take none."""
        return self.operand(node) if isinstance(node, Alias) else self.expression(node)

    def names(self, names: Iterable[str]) -> str:
        return ", ".join(quote_name(name) for name in names)

    # --- leaves

    def _identifier(self, node: Identifier) -> str:
        return ".".join(quote_name(part) for part in node.parts)

    def _literal(self, node: Literal) -> str:
        if node.text and isinstance(node.value, int | float):
            return node.text
        return literal_text(node.value)

    def _parameter(self, node: Parameter) -> str:
        if node.type is not None:
            return f"{{{quote_name(node.name or '')}:{node.type}}}"
        if node.name is not None:
            return f":{node.name}"
        return "?" if node.index is None else f"${node.index + 1}"

    def _star(self, node: Star) -> str:
        text = "*" if node.pattern is None else f"COLUMNS({quote_string(node.pattern)})"
        text = ".".join((*map(quote_name, node.qualifier), text))
        if node.excluded:
            text += f" EXCEPT ({self.names(node.excluded)})"
        if node.replaced:
            text += f" REPLACE ({self.expressions(node.replaced)})"
        return text

    # --- around others

    def _array(self, node: ArrayLiteral) -> str:
        return f"[{self.expressions(node.elements)}]"

    def _tuple(self, node: TupleLiteral) -> str:
        comma = "," if len(node.elements) == 1 else ""
        return f"({self.expressions(node.elements)}{comma})"

    def _cast(self, node: Cast) -> str:
        return f"CAST({self.unaliased(node.expression)}, {quote_string(str(node.type))})"

    def _interval(self, node: IntervalLiteral) -> str:
        inner = node.expression
        text = self.operand(inner)
        bare = isinstance(inner, Identifier | Function) or (
            isinstance(inner, Literal) and isinstance(inner.value, int | float)
        )
        if not bare:  # INTERVAL [1] DAY would be an element of a column called interval
            text = f"({self.expression(inner)})"
        return f"INTERVAL {text} {node.unit.upper()}"

    def _lambda(self, node: Lambda) -> str:
        names = self.names(node.arguments)
        arguments = names if len(node.arguments) == 1 else f"({names})"
        return f"({arguments} -> {self.operand(node.body)})"

    def _subquery(self, node: Subquery) -> str:
        return f"({self.query(node.query)})"

    def _exists(self, node: Exists) -> str:
        return f"EXISTS({self.query(node.query)})"

    def _alias(self, node: Alias) -> str:
        return f"{self.unaliased(node.expression)} AS {quote_name(node.name)}"

    def _in(self, node: In) -> str:
        operator = "NOT IN" if node.negated else "IN"
        right = node.right
        if isinstance(right, TupleLiteral):
            # parentheses behind IN are a tuple without a comma too, but for a query's
            single = len(right.elements) == 1 and isinstance(right.elements[0], Subquery)
            text = f"({self.expressions(right.elements)}{',' if single else ''})"
        else:
            text = self.operand(right)
        return f"{self.operand(node.left)} {operator} {text}"

    # --- functions

    def _is_operator(self, node: Function) -> bool:
        if node.parameters or node.distinct or node.filter or node.over or node.nulls:
            return False
        count = len(node.arguments)
        if node.name in _BINARY:
            return count == 2
        if node.name in _CHAINED:
            return count >= 2
        if node.name in _AS_OPERATOR:
            return count == 2 and self._is_element(node)
        return count == 1 and (node.name in _POSTFIX or node.name in _PREFIX)

    def _is_element(self, node: Function) -> bool:
        """Whether `a[i]` or `t.1` reads back as this."""
        base, index = node.arguments
        if isinstance(base, Star | Literal | Parameter | Alias | Exists):
            return False
        if node.name == "arrayElement":
            return True
        return (
            isinstance(index, Literal)
            and isinstance(index.value, int)
            and not isinstance(index.value, bool)
            and index.value > 0
        )

    def _function(self, node: Function) -> str:
        if self._is_operator(node):
            return self._operator(node)
        text = self.function_name(node.name)
        if node.parameters:
            text += f"({self.expressions(node.parameters)})"
        distinct = "DISTINCT " if node.distinct else ""
        text += f"({distinct}{self.expressions(node.arguments)})"
        if node.nulls is not None:
            text += f" {node.nulls} NULLS"
        if node.filter is not None:
            text += f" FILTER (WHERE {self.expression(node.filter)})"
        if isinstance(node.over, WindowSpec):
            text += f" OVER ({self.window(node.over)})"
        elif node.over is not None:
            text += f" OVER {quote_name(node.over)}"
        return text

    def function_name(self, name: str) -> str:
        """Words do well as names here, `left(x, 1)` and `any(x)`, but for a few."""
        plain = name.isidentifier() and name.isascii() and name.upper() not in _NO_CALLS
        return name if plain else backquote(name)

    def _operator(self, node: Function) -> str:
        name, arguments = node.name, node.arguments
        if name in _BINARY:
            left, right = (self.operand(a) for a in arguments)
            return f"{left} {_BINARY[name]} {right}"
        if name in _CHAINED:
            return f" {_CHAINED[name]} ".join(self.operand(a) for a in arguments)
        if name in _POSTFIX:
            return f"{self.operand(arguments[0])} {_POSTFIX[name]}"
        if name == "arrayElement":
            return f"{self.operand(arguments[0])}[{self.expression(arguments[1])}]"
        if name == "tupleElement":
            return f"{self.operand(arguments[0])}.{self.expression(arguments[1])}"
        inner = self.operand(arguments[0])
        if name == "negate" and isinstance(arguments[0], Literal):
            inner = f"({inner})"  # -(1) is negate(1), -1 is a number
        return f"{_PREFIX[name]}{inner}"

    # --- windows and sorting

    def window(self, window: WindowSpec) -> str:
        """The inside of the parentheses."""
        parts = [quote_name(window.base)] if window.base else []
        if window.partition_by:
            parts.append(f"PARTITION BY {self.expressions(window.partition_by)}")
        if window.order_by:
            parts.append(f"ORDER BY {self.order_items(window.order_by)}")
        if window.frame_unit and window.frame_start:
            start = self._bound(window.frame_start)
            frame = start
            if window.frame_end:
                frame = f"BETWEEN {start} AND {self._bound(window.frame_end)}"
            parts.append(f"{window.frame_unit} {frame}")
        return " ".join(parts)

    def _bound(self, bound: FrameBound) -> str:
        if bound.direction == "CURRENT":
            return "CURRENT ROW"
        offset = "UNBOUNDED" if bound.offset is None else self.operand(bound.offset)
        return f"{offset} {bound.direction}"

    def order_items(self, items: Iterable[OrderItem]) -> str:
        return ", ".join(self._order_item(item) for item in items)

    def _order_item(self, item: OrderItem) -> str:
        text = f"{self.expression(item.expression)} {'DESC' if item.descending else 'ASC'}"
        if item.nulls_first is not None:
            text += f" NULLS {'FIRST' if item.nulls_first else 'LAST'}"
        if item.collate is not None:
            text += f" COLLATE {quote_string(item.collate)}"
        return text
