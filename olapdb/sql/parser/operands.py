"""What stands between operators: columns, literals, parameters, parentheses, and aliases."""

from __future__ import annotations

from olapdb.sql import nodes
from olapdb.sql.parser.keywords import LITERAL_WORDS, NOT_AN_ALIAS, RESERVED_OPERANDS, words
from olapdb.sql.parser.precedence import NEGATE
from olapdb.sql.parser.type_names import TypeParser
from olapdb.sql.tokens import Token

_LITERALS: dict[str, bool | float | None] = {
    "NULL": None,
    "TRUE": True,
    "FALSE": False,
    "INF": float("inf"),
    "INFINITY": float("inf"),
    "NAN": float("nan"),
}
_AFTER_QUERY = words(") UNION EXCEPT INTERSECT ORDER LIMIT OFFSET FETCH SETTINGS FORMAT")
"""What stands behind a query in parentheses inside other parentheses."""

_NEGATIVE = {"INF": float("-inf"), "INFINITY": float("-inf"), "NAN": float("nan")}


class OperandParser(TypeParser):
    """Operands; operators are in `expressions`, calls in `calls`, queries in `queries`."""

    def expression(self, power: int = 0) -> nodes.Expression:
        raise NotImplementedError

    def query(self) -> nodes.Query:
        raise NotImplementedError

    def word_operand(self, token: Token) -> nodes.Expression | None:
        """What a word begins that is neither a column nor a plain call; None where it is."""
        raise NotImplementedError

    def call(self, name: str, token: Token) -> nodes.Expression:
        raise NotImplementedError

    # --- with an alias

    def aliased(self, implicit: bool = False) -> nodes.Expression:
        """`expression [AS name]`; `implicit` allows leaving AS out, as in the list of SELECT."""
        return self.with_alias(self.expression(), implicit)

    def with_alias(self, expression: nodes.Expression, implicit: bool = False) -> nodes.Expression:
        if self.take("AS"):
            name = self.identifier("an alias")
        elif implicit and self.alias_follows():
            name = self.identifier()
        else:
            return expression
        return nodes.Alias(expression, name, position=expression.position)

    def alias_follows(self) -> bool:
        token = self.token
        if token.kind == "name":
            return True
        if token.kind != "word" or token.key in NOT_AN_ALIAS:
            return False
        return not (token.key == "COMMENT" and self.kind_after(1) == "string")

    def aliased_list(self, closing: str) -> tuple[nodes.Expression, ...]:
        """`a, b AS c` up to `closing`, which is stepped over; may be empty."""
        found: list[nodes.Expression] = []
        while not self.take(closing):
            if found:
                self.expect(",")
                if self.take(closing):  # a comma may trail
                    break
            found.append(self.aliased())
        return tuple(found)

    def expressions(self) -> tuple[nodes.Expression, ...]:
        """`a, b, c`, at least one."""
        found = [self.aliased()]
        while self.take(","):
            found.append(self.aliased())
        return tuple(found)

    # --- operands

    def operand(self) -> nodes.Expression:
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
                return nodes.Literal(token.text, position=self.position(token))
            case "parameter":
                self.at += 1
                return self._dollar_parameter(token)
            case "operator":
                return self._operator_operand(token)
            case _:
                raise self.expected("an expression")

    def _word(self, token: Token) -> nodes.Expression:
        special = self.word_operand(token)
        if special is not None:
            return special
        if token.key in LITERAL_WORDS and self.key_after(1) not in ("(", "."):
            self.at += 1
            return nodes.Literal(_LITERALS[token.key], position=self.position(token))
        if token.key in RESERVED_OPERANDS and (
            self.key_after(1) != "(" or token.key in ("SELECT", "FROM", "WHERE")
        ):
            raise self.expected("an expression")
        self.at += 1
        return self._named(token)

    def _named(self, token: Token) -> nodes.Expression:
        """A column `a`, `t.a`, all columns `t.*`, or a call."""
        if self.keys[self.at] == "(":
            return self.call(token.text, token)
        position = self.position(token)
        parts = [token.text]
        while self.keys[self.at] == ".":
            kind = self.kind_after(1)
            if self.key_after(1) == "*":
                self.at += 2
                return self.star_modifiers(nodes.Star(tuple(parts), position=position))
            if self.key_after(1) == "COLUMNS" and self.key_after(2) == "(":
                self.at += 1
                return self.columns_pattern(tuple(parts))
            if kind != "word" and kind != "name":
                break
            self.at += 1
            parts.append(self.advance().text)
        return nodes.Identifier(tuple(parts), position=position)

    def columns_pattern(self, qualifier: tuple[str, ...] = ()) -> nodes.Expression:
        raise NotImplementedError

    def star_modifiers(self, star: nodes.Star) -> nodes.Expression:
        raise NotImplementedError

    def _operator_operand(self, token: Token) -> nodes.Expression:
        position = self.position(token)
        match token.key:
            case "(":
                return self._parentheses()
            case "[":
                self.at += 1
                return nodes.ArrayLiteral(self.aliased_list("]"), position=position)
            case "-":
                self.at += 1
                if self.token.kind == "number":
                    return self.number_literal(negative=True)
                if self.keys[self.at] in _NEGATIVE and self.key_after(1) not in ("(", "."):
                    return nodes.Literal(_NEGATIVE[self.advance().key], position=position)
                return nodes.Function("negate", (self.expression(NEGATE),), position=position)
            case "+":
                self.at += 1
                return self.expression(NEGATE)
            case "*":
                self.at += 1
                return self.star_modifiers(nodes.Star(position=position))
            case "?":
                self.at += 1
                self.question_marks += 1
                return nodes.Parameter(None, self.question_marks - 1, position=position)
            case ":" if self.kind_after(1) == "word":
                self.at += 1
                return nodes.Parameter(self.advance().text, None, position=position)
            case "%" if self.key_after(1) == "(" and self.key_after(3) == ")":
                self.at += 2
                name = self.identifier("the name of a parameter")
                self.expect(")")
                self.expect("S")
                return nodes.Parameter(name, None, position=position)
            case "{" if self.kind_after(1) in ("word", "name") and self.key_after(2) == ":":
                return self._typed_parameter()
            case "{":
                return self._map_literal()
            case _:
                raise self.expected("an expression")

    def _dollar_parameter(self, token: Token) -> nodes.Expression:
        position = self.position(token)
        if not token.text.isdigit():
            return nodes.Parameter(token.text, None, position=position)
        if int(token.text) == 0:
            self.at -= 1
            raise self.expected("a parameter from $1 on")
        return nodes.Parameter(None, int(token.text) - 1, position=position)

    def _typed_parameter(self) -> nodes.Expression:
        position = self.position(self.advance())
        name = self.identifier("the name of a parameter")
        self.expect(":")
        if self.sees("IDENTIFIER"):
            raise self.refused(
                "A parameter of type Identifier", "Write the name into the text of the statement."
            )
        data_type = self.data_type()
        self.expect("}")
        return nodes.Parameter(name, None, data_type, position=position)

    def _map_literal(self) -> nodes.Expression:
        """`{'a': 1, 'b': 2}`, which is map('a', 1, 'b', 2); `{}` is the empty map."""
        position = self.position(self.advance())
        arguments: list[nodes.Expression] = []
        while not self.take("}"):
            if arguments:
                self.expect(",")
            arguments.append(self.expression())
            self.expect(":")
            arguments.append(self.expression())
        return nodes.Function("map", tuple(arguments), position=position)

    def _parentheses(self) -> nodes.Expression:
        """A query, a tuple, or one expression in parentheses (which leave no trace)."""
        if self.query_follows():
            position = self.position(self.advance())
            query = self.query()
            self.expect(")")
            return nodes.Subquery(query, position=position)
        position = self.position(self.advance())
        if self.take(")"):
            return nodes.TupleLiteral((), position=position)
        first = self.aliased()
        if self.take(")"):
            return first
        self.expect(",")
        rest = self.aliased_list(")")
        return nodes.TupleLiteral((first, *rest), position=position)

    def query_follows(self, ahead: int = 0) -> bool:
        """Whether the parenthesis that is `ahead` tokens on begins a query: `(SELECT`, and
        `((SELECT 1) UNION …)`, but not the tuple `((SELECT 1), 2)`."""
        first = self.at + ahead
        at = first
        while self.keys[at] == "(":
            at += 1
        if at == first or not self._query_begins(at):
            return False
        return all(
            self.keys[self._closing(inner) + 1] in _AFTER_QUERY for inner in range(first + 1, at)
        )

    def _query_begins(self, at: int) -> bool:
        key = self.keys[at]
        if key == "SELECT":
            return True
        follows = self.tokens[min(at + 1, len(self.tokens) - 1)]
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
        return at - 1  # nothing closes it: the parser will say so
