"""Calls of functions, and the few that have a syntax of their own: CASE, CAST, EXTRACT, …"""

from __future__ import annotations

from olapdb.errors import SyntaxError
from olapdb.sql import nodes
from olapdb.sql.nodes import Literal as LiteralNode
from olapdb.sql.parser.keywords import INTERVAL_UNITS, NOT_AN_ALIAS, words
from olapdb.sql.parser.precedence import COMPARE, LAMBDA, NOT
from olapdb.sql.parser.windows import WindowParser
from olapdb.sql.tokens import Token

_EXTRACTED = {
    "Second": "toSecond",
    "Minute": "toMinute",
    "Hour": "toHour",
    "Day": "toDayOfMonth",
    "Week": "toISOWeek",
    "Month": "toMonth",
    "Quarter": "toQuarter",
    "Year": "toYear",
    "Millisecond": "toMillisecond",
    "Microsecond": "toMicrosecond",
    "Nanosecond": "toNanosecond",
}
_DATE_ARITHMETIC = {
    "DATE_ADD": "plus",
    "DATEADD": "plus",
    "TIMESTAMP_ADD": "plus",
    "TIMESTAMPADD": "plus",
    "DATE_SUB": "minus",
    "DATESUB": "minus",
    "TIMESTAMP_SUB": "minus",
    "TIMESTAMPSUB": "minus",
}
_DATE_DIFFERENCE = words("DATE_DIFF DATEDIFF TIMESTAMP_DIFF TIMESTAMPDIFF")
_TRIMMED = {"BOTH": "trimBoth", "LEADING": "trimLeft", "TRAILING": "trimRight"}
_SHORT_TRIM = {"TRIM": "trimBoth", "LTRIM": "trimLeft", "RTRIM": "trimRight"}
_BEGINS_OPERAND = ("(", "-", "+", "?", ":", "{", "%")


class CallParser(WindowParser):
    """`f(x)`, `f(p)(x)`, `f(DISTINCT x) FILTER (…) OVER (…)`, and special forms."""

    def word_operand(self, token: Token) -> nodes.Expression | None:
        """What a word begins that is neither a column nor a plain call; None where it is."""
        key = token.key
        handler = _OPERANDS.get(key)
        if handler is not None:
            return handler(self, token)
        if self.key_after(1) != "(":
            return None
        handler = _CALLS.get(key)
        return None if handler is None else handler(self, token)

    # --- operands that are no calls

    def _not(self, token: Token) -> nodes.Expression | None:
        if self.kind_after(1) == "end" or self.key_after(1) in (",", ")", "."):
            return None  # a column of that name
        self.at += 1
        return nodes.Function("not", (self.expression(NOT),), position=self.position(token))

    def _case(self, token: Token) -> nodes.Expression | None:
        if self.kind_after(1) == "end" or self.key_after(1) in (",", ")", ".", "FROM"):
            return None
        self.at += 1
        arguments: list[nodes.Expression] = []
        searched = self.sees("WHEN")
        if not searched:
            arguments.append(self.expression())
        if not self.sees("WHEN"):
            raise self.expected("WHEN")
        while self.take("WHEN"):
            arguments.append(self.expression())
            self.expect("THEN")
            arguments.append(self.aliased())
        arguments.append(self.aliased() if self.take("ELSE") else nodes.Literal(None))
        self.expect("END")
        name = "multiIf" if searched else "caseWithExpression"
        return nodes.Function(name, tuple(arguments), position=self.position(token))

    def _interval(self, token: Token) -> nodes.Expression | None:
        """`INTERVAL 1 DAY`, `INTERVAL '1 day'`, `INTERVAL '1' DAY`."""
        start = self.at
        self.at += 1
        follows = self.token
        position = self.position(token)
        if follows.kind == "string" and self.key_after(1) not in INTERVAL_UNITS:
            return self._interval_text(token)
        if not self._operand_follows():
            self.at = start
            return None
        question_marks = self.question_marks
        amount = self.expression(LAMBDA)
        unit = INTERVAL_UNITS.get(self.keys[self.at])
        if unit is None:  # a column of that name, as in `interval - 1`
            self.at, self.question_marks = start, question_marks
            return None
        self.at += 1
        if (
            follows.kind == "string"
            and follows.text.isdigit()
            and isinstance(amount, nodes.Literal)
        ):
            amount = nodes.Literal(int(follows.text), follows.text, position=amount.position)
        return nodes.IntervalLiteral(amount, unit, position=position)

    def _operand_follows(self) -> bool:
        token = self.token
        if token.kind == "operator":
            return token.key in _BEGINS_OPERAND
        return token.kind != "end" and (token.key not in NOT_AN_ALIAS or self.key_after(1) == "(")

    def _interval_text(self, token: Token) -> nodes.Expression:
        words = self.token.text.split()
        digits = words[0].lstrip("+-") if words else ""
        unit = INTERVAL_UNITS.get(words[1].upper()) if len(words) == 2 else None
        if unit is None or not digits.isdigit():
            if len(words) > 2:
                raise self.refused(
                    "An INTERVAL of several units", "Add one INTERVAL for each unit."
                )
            raise self.expected("an interval such as '1 day'")
        self.at += 1
        position = self.position(token)
        amount = nodes.Literal(int(words[0]), str(int(words[0])), position=position)
        return nodes.IntervalLiteral(amount, unit, position=position)

    def _typed_string(self, token: Token) -> nodes.Expression | None:
        """`DATE '2024-01-01'`, `TIMESTAMP '…'`."""
        if self.kind_after(1) != "string":
            return None
        self.at += 1
        name = "toDate" if token.key == "DATE" else "toDateTime"
        value = nodes.Literal(self.string(), position=self.position(token))
        return nodes.Function(name, (value,), position=self.position(token))

    def _exists(self, token: Token) -> nodes.Expression | None:
        if not self.query_follows(1):
            return None
        self.at += 1
        self.expect("(")
        query = self.query()
        self.expect(")")
        return nodes.Exists(query, position=self.position(token))

    # --- calls with a syntax of their own

    def _cast(self, token: Token) -> nodes.Expression:
        """`CAST(x AS T)` and `CAST(x, 'T')`; with a computed type it stays a function."""
        self.at += 2
        position = self.position(token)
        value = self.expression()
        if self.take("AS"):
            if self.key_after(1) == "AS" or self.key_after(1) == ",":
                value = nodes.Alias(value, self.identifier("an alias"), position=value.position)
                if not self.take("AS"):
                    return self._cast_to_text(value, token)
            data_type = self.data_type()
            self.expect(")")
            return nodes.Cast(value, data_type, position=position)
        return self._cast_to_text(value, token)

    def _cast_to_text(self, value: nodes.Expression, token: Token) -> nodes.Expression:
        position = self.position(token)
        self.expect(",")
        if self.token.kind == "string" and self.key_after(1) == ")":
            start = self.at
            data_type = self.type_of(self.string(), start)
            self.expect(")")
            return nodes.Cast(value, data_type, position=position)
        target = self.expression()
        self.expect(")")
        return nodes.Function(token.text, (value, target), position=position)

    def _extract(self, token: Token) -> nodes.Expression | None:
        if self.key_after(3) != "FROM":
            return None
        self.at += 2
        position = self.position(token)
        part = self.token
        self.advance()
        self.expect("FROM")
        value = self.expression()
        self.expect(")")
        unit = INTERVAL_UNITS.get(part.key, "")
        if unit in _EXTRACTED:
            return nodes.Function(_EXTRACTED[unit], (value,), position=position)
        match part.key:
            case "DOY":
                return nodes.Function("toDayOfYear", (value,), position=position)
            case "DOW":
                sunday_first = nodes.Literal(2, "2", position=position)
                return nodes.Function("toDayOfWeek", (value, sunday_first), position=position)
            case "ISODOW":
                return nodes.Function("toDayOfWeek", (value,), position=position)
            case "EPOCH":
                return nodes.Function("toUnixTimestamp", (value,), position=position)
            case _:
                raise SyntaxError(
                    f"EXTRACT has no part {part.text}.",
                    hint="Take YEAR, QUARTER, MONTH, WEEK, DAY, DOW, DOY, HOUR, MINUTE, SECOND.",
                    position=self.position(part),
                )

    def _substring(self, token: Token) -> nodes.Expression:
        """`substring(x, a, b)` or `SUBSTRING(x FROM a FOR b)`."""
        self.at += 2
        arguments = [self.aliased()]
        if self.take("FROM"):
            arguments.append(self.expression())
            if self.take("FOR"):
                arguments.append(self.expression())
        while self.take(","):
            arguments.append(self.aliased())
        self.expect(")")
        name = "substring" if token.key == "SUBSTRING" else token.text
        return nodes.Function(name, tuple(arguments), position=self.position(token))

    def _trim(self, token: Token) -> nodes.Expression:
        """`TRIM(BOTH 'x' FROM y)`, `trim(y)`, `trim(y, 'x')`."""
        self.at += 2
        position = self.position(token)
        name = _SHORT_TRIM[token.key]
        side = (
            self.take_one_of(*_TRIMMED) if token.key == "TRIM" and self.key_after(1) != ")" else ""
        )
        if side:
            name = _TRIMMED[side]
            characters = None if self.sees("FROM") else self.expression()
            self.expect("FROM")
            value = self.expression()
            self.expect(")")
            arguments = (value,) if characters is None else (value, characters)
            return nodes.Function(name, arguments, position=position)
        return nodes.Function(name, self.aliased_list(")"), position=position)

    def _position(self, token: Token) -> nodes.Expression:
        """`POSITION(needle IN haystack)` or `position(haystack, needle)`."""
        self.at += 2
        first = self.expression(COMPARE)
        if self.take("IN"):
            haystack = self.expression()
            self.expect(")")
            return nodes.Function("position", (haystack, first), position=self.position(token))
        self.expect(",")
        rest = self.aliased_list(")")
        return nodes.Function(token.text, (first, *rest), position=self.position(token))

    def _date_arithmetic(self, token: Token) -> nodes.Expression:
        """`DATE_ADD(DAY, 1, d)` and `DATE_ADD(d, INTERVAL 1 DAY)`: `d + INTERVAL 1 DAY`."""
        self.at += 2
        position = self.position(token)
        name = _DATE_ARITHMETIC[token.key]
        unit = INTERVAL_UNITS.get(self.keys[self.at])
        # `d` may be a unit or a column: the form with a unit has three arguments
        if unit is not None and self.key_after(1) == "," and self.commas_ahead() == 2:
            self.at += 2
            amount = self.expression()
            self.expect(",")
            value = self.expression()
            self.expect(")")
            interval: nodes.Expression = nodes.IntervalLiteral(amount, unit, position=position)
            return nodes.Function(name, (value, interval), position=position)
        value = self.expression()
        self.expect(",")
        interval = self.expression()
        self.expect(")")
        return nodes.Function(name, (value, interval), position=position)

    def _date_difference(self, token: Token) -> nodes.Expression:
        """`DATEDIFF(DAY, a, b)` and `dateDiff('day', a, b[, zone])`."""
        self.at += 2
        position = self.position(token)
        unit = INTERVAL_UNITS.get(self.keys[self.at])
        if unit is not None and self.key_after(1) == ",":
            first: nodes.Expression = LiteralNode(
                unit.lower(), position=self.position(self.advance())
            )
        else:
            first = self.expression()
        self.expect(",")
        rest = self.aliased_list(")")
        return nodes.Function("dateDiff", (first, *rest), position=position)

    def _columns(self, token: Token) -> nodes.Expression:
        return self.columns_pattern()

    # --- plain calls

    def call(self, name: str, token: Token) -> nodes.Expression:
        """From the opening parenthesis on."""
        position = self.position(token)
        distinct, arguments, nulls = self._arguments()
        parameters: tuple[nodes.Expression, ...] = ()
        if self.keys[self.at] == "(":
            parameters = arguments
            distinct, arguments, nulls = self._arguments()
        if name.lower() == "count" and not distinct and arguments == (nodes.Star(),):
            arguments = ()
        if self.keys[self.at] in ("RESPECT", "IGNORE") and self.key_after(1) == "NULLS":
            nulls = self.advance().key
            self.advance()
        condition = None
        if self.keys[self.at] == "FILTER" and self.key_after(1) == "(":
            self.at += 2
            self.expect("WHERE")
            condition = self.aliased()
            self.expect(")")
        over = self._over() if self.keys[self.at] == "OVER" else None
        return nodes.Function(
            name,
            arguments,
            parameters,
            distinct,
            condition,
            over,
            "RESPECT" if nulls == "RESPECT" else "IGNORE" if nulls == "IGNORE" else None,
            position=position,
        )

    def _arguments(self) -> tuple[bool, tuple[nodes.Expression, ...], str]:
        self.expect("(")
        distinct = False
        if self.keys[self.at] == "DISTINCT" and self.key_after(1) not in (",", ")", "."):
            self.advance()
            distinct = True
        found: list[nodes.Expression] = []
        nulls = ""
        while not self.take(")"):
            if found:
                self.expect(",")
            if self.keys[self.at] == "SELECT" or (
                self.keys[self.at] == "WITH" and self.kind_after(1) in ("word", "name")
            ):
                position = self.position()
                found.append(nodes.Subquery(self.query(), position=position))
            else:
                found.append(self.aliased())
            if self.keys[self.at] in ("RESPECT", "IGNORE") and self.key_after(1) == "NULLS":
                nulls = self.advance().key
                self.advance()
            if self.sees("ORDER", "BY"):
                raise self.refused(
                    "ORDER BY inside a call", "Sort with arraySort, or in a subquery."
                )
        return distinct, tuple(found), nulls


_OPERANDS = {
    "NOT": CallParser._not,
    "CASE": CallParser._case,
    "INTERVAL": CallParser._interval,
    "DATE": CallParser._typed_string,
    "TIMESTAMP": CallParser._typed_string,
    "EXISTS": CallParser._exists,
}
_CALLS = {
    "CAST": CallParser._cast,
    "EXTRACT": CallParser._extract,
    "SUBSTRING": CallParser._substring,
    "SUBSTR": CallParser._substring,
    "TRIM": CallParser._trim,
    "LTRIM": CallParser._trim,
    "RTRIM": CallParser._trim,
    "POSITION": CallParser._position,
    "COLUMNS": CallParser._columns,
    **dict.fromkeys(_DATE_ARITHMETIC, CallParser._date_arithmetic),
    **dict.fromkeys(_DATE_DIFFERENCE, CallParser._date_difference),
}
