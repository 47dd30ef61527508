"""Expressions: a Pratt parser with ClickHouse's precedences.

From loose to tight: `->`, `? :`, OR, AND, NOT, IS, BETWEEN, comparisons with LIKE and IN, `||`,
`+ -`, `* / % DIV MOD`, unary minus, and `. [] ::`.  Operators become functions with ClickHouse's
names (see `nodes.Function`), so what comes after the parser knows functions only.
"""

from __future__ import annotations

from olapdb.sql.nodes import (
    Alias,
    ArrayLiteral,
    Cast,
    Expression,
    Function,
    Identifier,
    In,
    Lambda,
    Literal,
    Parameter,
    Query,
    Star,
    Subquery,
    TupleLiteral,
)
from olapdb.sql.parser.type_names import TypeParser
from olapdb.sql.parser.words import LITERAL_WORDS, NOT_AN_ALIAS, RESERVED_OPERANDS, words
from olapdb.sql.tokens import Token

LAMBDA, TERNARY, OR, AND, NOT, IS, BETWEEN, COMPARE, CONCAT, ADD, MULTIPLY, NEGATE, POSTFIX = range(
    1, 14
)

_BINARY = {
    "=": (COMPARE, "equals"), "==": (COMPARE, "equals"), "!=": (COMPARE, "notEquals"),
    "<>": (COMPARE, "notEquals"), "<": (COMPARE, "less"), "<=": (COMPARE, "lessOrEquals"),
    ">": (COMPARE, "greater"), ">=": (COMPARE, "greaterOrEquals"), "LIKE": (COMPARE, "like"),
    "ILIKE": (COMPARE, "ilike"), "REGEXP": (COMPARE, "match"), "<=>": (IS, "isNotDistinctFrom"),
    "+": (ADD, "plus"), "-": (ADD, "minus"), "*": (MULTIPLY, "multiply"),
    "/": (MULTIPLY, "divide"), "%": (MULTIPLY, "modulo"), "MOD": (MULTIPLY, "modulo"),
    "DIV": (MULTIPLY, "intDiv"),
}  # fmt: skip
_CHAINED = {"AND": (AND, "and"), "OR": (OR, "or"), "||": (CONCAT, "concat")}
"""A chain of one of these is one call: `a AND b AND c` is `and(a, b, c)`."""

_SPECIAL = {
    "->": LAMBDA, "?": TERNARY, "IS": IS, "BETWEEN": BETWEEN, "IN": COMPARE, "NOT": COMPARE,
    "GLOBAL": COMPARE, ".": POSTFIX, "[": POSTFIX, "::": POSTFIX,
}  # fmt: skip
_QUANTIFIED = {("equals", "ANY"): False, ("notEquals", "ALL"): True}
_LITERALS: dict[str, bool | float | None] = {
    "NULL": None, "TRUE": True, "FALSE": False, "INF": float("inf"), "INFINITY": float("inf"),
    "NAN": float("nan"),
}  # fmt: skip
_AFTER_QUERY = words(") UNION EXCEPT INTERSECT ORDER LIMIT OFFSET FETCH SETTINGS FORMAT")
"""What stands behind a query in parentheses inside other parentheses."""

_NEGATIVE = {"INF": float("-inf"), "INFINITY": float("-inf"), "NAN": float("nan")}


class ExpressionParser(TypeParser):
    """Values; calls are in `calls.CallParser`, queries in `queries.QueryParser`."""

    def query(self) -> Query:
        raise NotImplementedError

    def word_operand(self, token: Token) -> Expression | None:
        """What a word begins that is neither a column nor a plain call; None where it is."""
        raise NotImplementedError

    def call(self, name: str, token: Token) -> Expression:
        raise NotImplementedError

    # --- with an alias

    def aliased(self, implicit: bool = False) -> Expression:
        """`expression [AS name]`; `implicit` allows leaving AS out, as in the list of SELECT."""
        return self.with_alias(self.expression(), implicit)

    def with_alias(self, expression: Expression, implicit: bool = False) -> Expression:
        if self.take("AS"):
            name = self.identifier("an alias")
        elif implicit and self.alias_follows():
            name = self.identifier()
        else:
            return expression
        return Alias(expression, name, position=expression.position)

    def alias_follows(self) -> bool:
        token = self.token
        if token.kind == "name":
            return True
        if token.kind != "word" or token.key in NOT_AN_ALIAS:
            return False
        return not (token.key == "COMMENT" and self.kind_after(1) == "string")

    def aliased_list(self, closing: str) -> tuple[Expression, ...]:
        """`a, b AS c` up to `closing`, which is stepped over; may be empty."""
        found: list[Expression] = []
        while not self.take(closing):
            if found:
                self.expect(",")
                if self.take(closing):  # a comma may trail
                    break
            found.append(self.aliased())
        return tuple(found)

    def expressions(self) -> tuple[Expression, ...]:
        """`a, b, c`, at least one."""
        found = [self.aliased()]
        while self.take(","):
            found.append(self.aliased())
        return tuple(found)

    # --- operators

    def expression(self, power: int = 0) -> Expression:
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

    def _binary(self, left: Expression, power: int, name: str) -> Expression:
        operator = self.advance()
        if self.keys[self.at] in ("ANY", "ALL", "SOME") and self.query_follows(1):
            return self._quantified(left, name, operator)
        right = self.expression(power)
        return Function(name, (left, right), position=self.position(operator))

    def _quantified(self, left: Expression, name: str, operator: Token) -> Expression:
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
        return In(left, Subquery(query, position=position), negated, position=position)

    def _chain(self, left: Expression, key: str, power: int, name: str) -> Expression:
        position = self.position()
        operands = [left]
        while self.take(key):
            operands.append(self.expression(power))
        return Function(name, tuple(operands), position=position)

    def _special(self, left: Expression, key: str) -> Expression | None:
        """The operator `key` applied to `left`; None where the word is no operator here."""
        token = self.token
        match key:
            case ".":
                return self._element(left)
            case "[":
                self.advance()
                index = self.aliased()
                self.expect("]")
                return Function("arrayElement", (left, index), position=self.position(token))
            case "::":
                self.advance()
                return Cast(_as_text(left), self.data_type(), position=self.position(token))
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
                return Function("if", (left, then, otherwise), position=self.position(token))
            case _:
                return self._lambda(left)

    def _element(self, left: Expression) -> Expression:
        token = self.advance()
        element: Expression
        if self.token.kind == "number":
            element = Literal(self.integer(), position=self.position(token))
        elif self.sees("-") and self.kind_after(1) == "number":
            self.advance()
            element = self.number_literal(negative=True)
        else:
            name = self.identifier("a tuple element")
            element = Literal(name, position=self.position(token))
        return Function("tupleElement", (left, element), position=self.position(token))

    def _is(self, left: Expression) -> Expression:
        token = self.advance()
        position = self.position(token)
        negated = self.take("NOT")
        if self.take("NULL"):
            return Function("isNotNull" if negated else "isNull", (left,), position=position)
        if self.take("DISTINCT", "FROM"):
            name = "isNotDistinctFrom" if negated else "isDistinctFrom"
            return Function(name, (left, self.expression(IS)), position=position)
        raise self.expected("NULL or DISTINCT FROM")

    def _between(self, left: Expression, negated: bool, token: Token) -> Expression:
        low = self.expression(BETWEEN)
        self.expect("AND")
        high = self.expression(BETWEEN)
        position = self.position(token)
        first, second, both = (
            ("less", "greater", "or") if negated else ("greaterOrEquals", "lessOrEquals", "and")
        )
        return Function(
            both,
            (
                Function(first, (left, low), position=position),
                Function(second, (left, high), position=position),
            ),
            position=position,
        )

    def _not_infix(self, left: Expression) -> Expression | None:
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
        return Function(name, (left, self.expression(COMPARE)), position=self.position(token))

    def _global_in(self, left: Expression) -> Expression | None:
        """GLOBAL means something on several servers only."""
        token = self.token
        if self.take("GLOBAL", "IN"):
            return self._in(left, False, token)
        if self.take("GLOBAL", "NOT", "IN"):
            return self._in(left, True, token)
        return None

    def _in(self, left: Expression, negated: bool, token: Token) -> Expression:
        """The right side: what is in parentheses is always a tuple (or a query)."""
        position = self.position(token)
        right: Expression
        if self.sees("(") and not self.query_follows():
            self.advance()
            elements = self.aliased_list(")")
            right = TupleLiteral(elements, position=position)
        else:
            right = self.expression(COMPARE)
        return In(left, right, negated, position=position)

    def _lambda(self, left: Expression) -> Expression:
        token = self.token
        names = _argument_names(left)
        if names is None:
            raise self.expected("the arguments of a lambda, as in x -> … or (x, y) -> …, before ->")
        self.advance()
        return Lambda(names, self.expression(), position=self.position(token))

    # --- operands

    def operand(self) -> Expression:
        token = self.token
        match token.kind:
            case "word":
                return self._word(token)
            case "name":
                self.at += 1
                return self._named(token)
            case "number":
                return self.number_literal()
            case "string":
                self.at += 1
                return Literal(token.text, position=self.position(token))
            case "parameter":
                self.at += 1
                return self._dollar_parameter(token)
            case "operator":
                return self._operator_operand(token)
            case _:
                raise self.expected("an expression")

    def _word(self, token: Token) -> Expression:
        special = self.word_operand(token)
        if special is not None:
            return special
        if token.key in LITERAL_WORDS and self.key_after(1) not in ("(", "."):
            self.at += 1
            return Literal(_LITERALS[token.key], position=self.position(token))
        if token.key in RESERVED_OPERANDS and (
            self.key_after(1) != "(" or token.key in ("SELECT", "FROM", "WHERE")
        ):
            raise self.expected("an expression")
        self.at += 1
        return self._named(token)

    def _named(self, token: Token) -> Expression:
        """A column `a`, `t.a`, all columns `t.*`, or a call."""
        if self.keys[self.at] == "(":
            return self.call(token.text, token)
        position = self.position(token)
        parts = [token.text]
        while self.keys[self.at] == ".":
            kind = self.kind_after(1)
            if self.key_after(1) == "*":
                self.at += 2
                return self.star_modifiers(Star(tuple(parts), position=position))
            if self.key_after(1) == "COLUMNS" and self.key_after(2) == "(":
                self.at += 1
                return self.columns_pattern(tuple(parts))
            if kind != "word" and kind != "name":
                break
            self.at += 1
            parts.append(self.advance().text)
        return Identifier(tuple(parts), position=position)

    def columns_pattern(self, qualifier: tuple[str, ...] = ()) -> Expression:
        raise NotImplementedError

    def star_modifiers(self, star: Star) -> Expression:
        raise NotImplementedError

    def _operator_operand(self, token: Token) -> Expression:
        position = self.position(token)
        match token.key:
            case "(":
                return self._parentheses()
            case "[":
                self.at += 1
                return ArrayLiteral(self.aliased_list("]"), position=position)
            case "-":
                self.at += 1
                if self.token.kind == "number":
                    return self.number_literal(negative=True)
                if self.keys[self.at] in _NEGATIVE and self.key_after(1) not in ("(", "."):
                    return Literal(_NEGATIVE[self.advance().key], position=position)
                return Function("negate", (self.expression(NEGATE),), position=position)
            case "+":
                self.at += 1
                return self.expression(NEGATE)
            case "*":
                self.at += 1
                return self.star_modifiers(Star(position=position))
            case "?":
                self.at += 1
                self.question_marks += 1
                return Parameter(None, self.question_marks - 1, position=position)
            case ":" if self.kind_after(1) == "word":
                self.at += 1
                return Parameter(self.advance().text, None, position=position)
            case "%" if self.key_after(1) == "(" and self.key_after(3) == ")":
                self.at += 2
                name = self.identifier("the name of a parameter")
                self.expect(")")
                self.expect("S")
                return Parameter(name, None, position=position)
            case "{":
                return self._typed_parameter()
            case _:
                raise self.expected("an expression")

    def _dollar_parameter(self, token: Token) -> Expression:
        position = self.position(token)
        if not token.text.isdigit():
            return Parameter(token.text, None, position=position)
        if int(token.text) == 0:
            self.at -= 1
            raise self.expected("a parameter from $1 on")
        return Parameter(None, int(token.text) - 1, position=position)

    def _typed_parameter(self) -> Expression:
        position = self.position(self.advance())
        name = self.identifier("the name of a parameter")
        self.expect(":")
        if self.sees("IDENTIFIER"):
            raise self.refused(
                "A parameter of type Identifier", "Write the name into the text of the statement."
            )
        data_type = self.data_type()
        self.expect("}")
        return Parameter(name, None, data_type, position=position)

    def _parentheses(self) -> Expression:
        """A query, a tuple, or one expression in parentheses (which leave no trace)."""
        if self.query_follows():
            position = self.position(self.advance())
            query = self.query()
            self.expect(")")
            return Subquery(query, position=position)
        position = self.position(self.advance())
        if self.take(")"):
            return TupleLiteral((), position=position)
        first = self.aliased()
        if self.take(")"):
            return first
        self.expect(",")
        rest = self.aliased_list(")")
        return TupleLiteral((first, *rest), position=position)

    def query_follows(self, ahead: int = 0) -> bool:
        """Whether the parenthesis that is `ahead` tokens on begins a query: `(SELECT`, and
        `((SELECT 1) UNION …)`, but not the tuple `((SELECT 1), 2)`."""
        at = self.at + ahead
        if self.keys[at] != "(":
            return False
        key = self.keys[at + 1]
        if key == "(":
            if not self.query_follows(ahead + 1):
                return False
            return self.keys[self._closing(at + 1) + 1] in _AFTER_QUERY
        if key == "SELECT":
            return True
        follows = self.tokens[min(at + 2, len(self.tokens) - 1)]
        if key == "FROM":
            return follows.kind in ("word", "name") or follows.key == "("
        return key == "WITH" and follows.kind != "end" and follows.key not in (",", ")", ".")

    def _closing(self, at: int) -> int:
        """The number of the token that closes the parenthesis at token number `at`."""
        depth = 0
        while self.tokens[at].kind != "end":
            key = self.keys[at]
            if key in ("(", "[", "{"):
                depth += 1
            elif key in (")", "]", "}"):
                depth -= 1
                if depth == 0:
                    return at
            at += 1
        return at - 1


def _as_text(expression: Expression) -> Expression:
    """`1.5::Decimal(9, 2)` reads the text of the number, as in ClickHouse: nothing is lost."""
    if isinstance(expression, Literal) and expression.text:
        return Literal(expression.text, position=expression.position)
    return expression


def _argument_names(left: Expression) -> tuple[str, ...] | None:
    """The names before `->`; None where they are something else."""
    elements = left.elements if isinstance(left, TupleLiteral) else (left,)
    names: list[str] = []
    for element in elements:
        if not isinstance(element, Identifier) or len(element.parts) != 1:
            return None
        names.append(element.parts[0])
    return tuple(names)
