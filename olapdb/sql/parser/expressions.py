"""Expressions: a Pratt parser with ClickHouse's precedences.

From loose to tight: `->`, `? :`, OR, AND, NOT, IS, BETWEEN, comparisons with LIKE and IN, `||`,
`+ -`, `* / % DIV MOD`, unary minus, and `. [] ::`.  Operators become functions with ClickHouse's
names (see `nodes.Function`), so what comes after the parser knows functions only.
"""

from __future__ import annotations

from olapdb.sql import nodes
from olapdb.sql.parser.operands import OperandParser
from olapdb.sql.parser.precedence import (
    ADD,
    AND,
    BETWEEN,
    COMPARE,
    CONCAT,
    IS,
    LAMBDA,
    MULTIPLY,
    OR,
    POSTFIX,
    TERNARY,
)
from olapdb.sql.tokens import Token

_BINARY = {
    "=": (COMPARE, "equals"),
    "==": (COMPARE, "equals"),
    "!=": (COMPARE, "notEquals"),
    "<>": (COMPARE, "notEquals"),
    "<": (COMPARE, "less"),
    "<=": (COMPARE, "lessOrEquals"),
    ">": (COMPARE, "greater"),
    ">=": (COMPARE, "greaterOrEquals"),
    "LIKE": (COMPARE, "like"),
    "ILIKE": (COMPARE, "ilike"),
    "REGEXP": (COMPARE, "match"),
    "<=>": (IS, "isNotDistinctFrom"),
    "+": (ADD, "plus"),
    "-": (ADD, "minus"),
    "*": (MULTIPLY, "multiply"),
    "/": (MULTIPLY, "divide"),
    "%": (MULTIPLY, "modulo"),
    "MOD": (MULTIPLY, "modulo"),
    "DIV": (MULTIPLY, "intDiv"),
}
_CHAINED = {"AND": (AND, "and"), "OR": (OR, "or"), "||": (CONCAT, "concat")}
"""A chain of one of these is one call: `a AND b AND c` is `and(a, b, c)`."""

_SPECIAL = {
    "->": LAMBDA,
    "?": TERNARY,
    "IS": IS,
    "BETWEEN": BETWEEN,
    "IN": COMPARE,
    "NOT": COMPARE,
    "GLOBAL": COMPARE,
    ".": POSTFIX,
    "[": POSTFIX,
    "::": POSTFIX,
}
_QUANTIFIED = {("equals", "ANY"): False, ("notEquals", "ALL"): True}


class ExpressionParser(OperandParser):
    """Operands joined by operators."""

    # --- operators

    def expression(self, power: int = 0) -> nodes.Expression:
        """What binds tighter than `power`."""
        self.enter()
        left = self.operand()
        while True:
            key = self.keys[self.at]
            if not key:
                break
            binary = _BINARY.get(key)
            if binary is not None:
                if binary[0] <= power:
                    break
                left = self._binary(left, binary[0], binary[1])
                continue
            chained = _CHAINED.get(key)
            if chained is not None:
                if chained[0] <= power:
                    break
                left = self._chain(left, key, chained[0], chained[1])
                continue
            special = _SPECIAL.get(key)
            if special is None or special <= power:
                break
            after = self._special(left, key)
            if after is None:
                break
            left = after
        self.leave()
        return left

    def _binary(self, left: nodes.Expression, power: int, name: str) -> nodes.Expression:
        operator = self.advance()
        if self.keys[self.at] in ("ANY", "ALL", "SOME") and self.query_follows(1):
            return self._quantified(left, name, operator)
        right = self.expression(power)
        return nodes.Function(name, (left, right), position=self.position(operator))

    def _quantified(self, left: nodes.Expression, name: str, operator: Token) -> nodes.Expression:
        quantifier = self.advance().key
        negated = _QUANTIFIED.get((name, "ANY" if quantifier == "SOME" else quantifier))
        if negated is None:
            written = self.source.text[operator.start : operator.end]
            raise self.refused(
                f"The comparison {written} {quantifier} (query)",
                "Compare with (SELECT min(…) …) or (SELECT max(…) …).",
                operator,
            )
        self.expect("(")
        query = self.query()
        self.expect(")")
        position = self.position(operator)
        return nodes.In(left, nodes.Subquery(query, position=position), negated, position=position)

    def _chain(self, left: nodes.Expression, key: str, power: int, name: str) -> nodes.Expression:
        position = self.position()
        operands = [left]
        while self.take(key):
            operands.append(self.expression(power))
        return nodes.Function(name, tuple(operands), position=position)

    def _special(self, left: nodes.Expression, key: str) -> nodes.Expression | None:
        """The operator `key` applied to `left`; None where the word is no operator here."""
        token = self.token
        match key:
            case ".":
                return self._element(left)
            case "[":
                self.advance()
                index = self.aliased()
                self.expect("]")
                return nodes.Function("arrayElement", (left, index), position=self.position(token))
            case "::":
                self.advance()
                return nodes.Cast(_as_text(left), self.data_type(), position=self.position(token))
            case "IS":
                return self._is(left)
            case "BETWEEN":
                self.advance()
                return self._between(left, False, token)
            case "IN":
                if self.key_after(1) == "PARTITION":
                    return None  # UPDATE a = b IN PARTITION p
                self.advance()
                return self._in(left, False, token)
            case "NOT":
                return self._not_infix(left)
            case "GLOBAL":
                return self._global_in(left)
            case "?":
                self.advance()
                then = self.expression(TERNARY)
                self.expect(":")
                otherwise = self.expression(LAMBDA)
                return nodes.Function("if", (left, then, otherwise), position=self.position(token))
            case _:
                return self._lambda(left)

    def _element(self, left: nodes.Expression) -> nodes.Expression:
        token = self.advance()
        element: nodes.Expression
        if self.token.kind == "number":
            element = nodes.Literal(self.integer(), position=self.position(token))
        elif self.sees("-") and self.kind_after(1) == "number":
            self.advance()
            element = self.number_literal(negative=True)
        else:
            name = self.identifier("a tuple element")
            element = nodes.Literal(name, position=self.position(token))
        return nodes.Function("tupleElement", (left, element), position=self.position(token))

    def _is(self, left: nodes.Expression) -> nodes.Expression:
        token = self.advance()
        position = self.position(token)
        negated = self.take("NOT")
        if self.take("NULL"):
            return nodes.Function("isNotNull" if negated else "isNull", (left,), position=position)
        if self.take("DISTINCT", "FROM"):
            name = "isNotDistinctFrom" if negated else "isDistinctFrom"
            return nodes.Function(name, (left, self.expression(IS)), position=position)
        raise self.expected("NULL or DISTINCT FROM")

    def _between(self, left: nodes.Expression, negated: bool, token: Token) -> nodes.Expression:
        low = self.expression(BETWEEN)
        self.expect("AND")
        high = self.expression(BETWEEN)
        position = self.position(token)
        first, second, both = (
            ("less", "greater", "or") if negated else ("greaterOrEquals", "lessOrEquals", "and")
        )
        return nodes.Function(
            both,
            (
                nodes.Function(first, (left, low), position=position),
                nodes.Function(second, (left, high), position=position),
            ),
            position=position,
        )

    def _not_infix(self, left: nodes.Expression) -> nodes.Expression | None:
        token = self.token
        follows = self.key_after(1)
        if follows not in ("IN", "LIKE", "ILIKE", "BETWEEN"):
            return None
        self.at += 2
        if follows == "IN":
            return self._in(left, True, token)
        if follows == "BETWEEN":
            return self._between(left, True, token)
        name = "notLike" if follows == "LIKE" else "notILike"
        return nodes.Function(name, (left, self.expression(COMPARE)), position=self.position(token))

    def _global_in(self, left: nodes.Expression) -> nodes.Expression | None:
        """GLOBAL means something on several servers only."""
        token = self.token
        if self.take("GLOBAL", "IN"):
            return self._in(left, False, token)
        if self.take("GLOBAL", "NOT", "IN"):
            return self._in(left, True, token)
        return None

    def _in(self, left: nodes.Expression, negated: bool, token: Token) -> nodes.Expression:
        """The right side: what is in parentheses is always a tuple (or a query)."""
        position = self.position(token)
        right: nodes.Expression
        if self.sees("(") and not self.query_follows():
            self.advance()
            elements = self.aliased_list(")")
            right = nodes.TupleLiteral(elements, position=position)
        else:
            right = self.expression(COMPARE)
        return nodes.In(left, right, negated, position=position)

    def _lambda(self, left: nodes.Expression) -> nodes.Expression:
        token = self.token
        names = _argument_names(left)
        if names is None:
            raise self.expected("the arguments of a lambda, as in x -> … or (x, y) -> …, before ->")
        self.advance()
        return nodes.Lambda(names, self.expression(), position=self.position(token))


def _as_text(expression: nodes.Expression) -> nodes.Expression:
    """`1.5::Decimal(9, 2)` reads the text of the number, as in ClickHouse: nothing is lost."""
    if isinstance(expression, nodes.Literal) and expression.text:
        return nodes.Literal(expression.text, position=expression.position)
    return expression


def _argument_names(left: nodes.Expression) -> tuple[str, ...] | None:
    """The names before `->`; None where they are something else."""
    elements = left.elements if isinstance(left, nodes.TupleLiteral) else (left,)
    names: list[str] = []
    for element in elements:
        if not isinstance(element, nodes.Identifier) or len(element.parts) != 1:
            return None
        names.append(element.parts[0])
    return tuple(names)
