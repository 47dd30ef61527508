"""A place in the tokens, and the small steps that every rule of the grammar is made of."""

from __future__ import annotations

from olapdb.errors import NotSupportedError, Position, SyntaxError
from olapdb.sql.nodes import Literal, Setting, TableName
from olapdb.sql.tokens import SourceText, Token

DEPTH_MAX = 100
"""How deep expressions may nest; a query counts twice.  One level takes up to eight of Python's
1,000 frames, of which the caller has some too (ClickHouse: max_parser_depth)."""


class TokenCursor:
    """Steps over `tokens`, the last of which is of kind "end"."""

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.keys = [token.key for token in tokens]
        self.at = 0
        self.depth = 0
        self.question_marks = 0

    # --- looking

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def sees(self, *keys: str) -> bool:
        """Whether the next tokens are these keywords or operators."""
        at = self.at
        return self.keys[at] == keys[0] and self.keys[at : at + len(keys)] == list(keys)

    def key_after(self, count: int) -> str:
        """The key of the token `count` after the current one; "" past the end."""
        at = self.at + count
        return self.keys[at] if at < len(self.keys) else ""

    def kind_after(self, count: int) -> str:
        at = self.at + count
        return self.tokens[at].kind if at < len(self.tokens) else "end"

    @property
    def ended(self) -> bool:
        return self.tokens[self.at].kind == "end"

    def position(self, token: Token | None = None) -> Position:
        return self.source.position((token or self.tokens[self.at]).start)

    def text_since(self, start: int) -> str:
        """The text from token number `start` up to the one before the current one."""
        if self.at == start:
            return ""
        return self.source.text[self.tokens[start].start : self.tokens[self.at - 1].end]

    def commas_ahead(self) -> int:
        """How many commas stand before the parenthesis that closes the one that is open."""
        depth = commas = 0
        for key in self.keys[self.at :]:
            if key in ("(", "[", "{"):
                depth += 1
            elif key in (")", "]", "}"):
                depth -= 1
                if depth < 0:
                    break
            elif key == "," and depth == 0:
                commas += 1
        return commas

    # --- stepping

    def advance(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def take(self, *keys: str) -> bool:
        """Steps over these keywords or operators, where they are next."""
        at = self.at
        if self.keys[at] != keys[0]:
            return False
        if len(keys) > 1 and self.keys[at : at + len(keys)] != list(keys):
            return False
        self.at = at + len(keys)
        return True

    def take_one_of(self, *keys: str) -> str:
        """The one of these that is next, stepped over; "" where none is."""
        key = self.keys[self.at]
        if key and key in keys:
            self.at += 1
            return key
        return ""

    def expect(self, *keys: str) -> None:
        if not self.take(*keys):
            raise self.expected(" ".join(keys))

    def expected(self, what: str) -> SyntaxError:
        """The error for what stands here instead of `what`; to be raised."""
        token = self.token
        if token.kind == "end":
            found = "the end of the statement"
        else:
            written = self.source.text[token.start : token.end]
            found = written if len(written) <= 40 else f"{written[:40]}…"
        return SyntaxError(f"Expected {what}, found {found}.", position=self.position())

    def refused(self, what: str, hint: str = "", token: Token | None = None) -> NotSupportedError:
        """The error for a real feature that olapdb does not have; to be raised."""
        return NotSupportedError(
            f"{what} is not supported.", hint=hint, position=self.position(token)
        )

    def refuse_on_cluster(self) -> None:
        if self.sees("ON", "CLUSTER"):
            raise self.refused(
                "ON CLUSTER",
                "A warehouse is shared by the processes that open it: leave the clause out.",
            )

    def enter(self, levels: int = 1) -> None:
        """One level deeper; a bound on recursion that gives an error, not a crash."""
        self.depth += levels
        if self.depth > DEPTH_MAX:
            raise SyntaxError(
                f"The statement nests deeper than {DEPTH_MAX} levels.", position=self.position()
            )

    def leave(self, levels: int = 1) -> None:
        self.depth -= levels

    # --- small things

    def identifier(self, what: str = "a name") -> str:
        """A word or a quoted name."""
        token = self.token
        if token.kind != "word" and token.kind != "name":
            raise self.expected(what)
        if not token.text:
            raise SyntaxError(f"A name cannot be empty: {what} is.", position=self.position(token))
        self.at += 1
        return token.text

    def dotted_name(self, what: str = "a name") -> str:
        """`a` or `a.b.c` as one string: columns of a Nested, settings of a group."""
        name = self.identifier(what)
        while self.take("."):
            name += "." + self.identifier(what)
        return name

    def identifiers(self, what: str = "a name") -> tuple[str, ...]:
        """`a, b, c` without parentheses."""
        names = [self.dotted_name(what)]
        while self.take(","):
            names.append(self.dotted_name(what))
        return tuple(names)

    def table_name(self) -> TableName:
        token = self.token
        if token.key == "{":
            raise self.refused(
                "A parameter of type Identifier", "Write the name into the text of the statement."
            )
        name = self.identifier("a table name")
        if self.take("."):
            return TableName(self.identifier("a table name"), name, position=self.position(token))
        return TableName(name, position=self.position(token))

    def string(self, what: str = "a quoted string") -> str:
        if self.token.kind != "string":
            raise self.expected(what)
        return self.advance().text

    def integer(self, what: str = "a whole number") -> int:
        token = self.token
        if token.kind != "number" or not token.text.isdigit():
            raise self.expected(what)
        self.at += 1
        return int(token.text)

    def if_exists(self) -> bool:
        return self.take("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        return self.take("IF", "NOT", "EXISTS")

    # --- numbers and settings

    def number_literal(self, negative: bool = False) -> Literal:
        """The number that is next; out of the range of UInt64 or Int64 it is a float, as in
        ClickHouse, with its text kept for Decimal."""
        token = self.advance()
        text = f"-{token.text}" if negative else token.text
        value: int | float
        if text.lstrip("-").isdigit():
            value = int(text)
            if not -(2**63) <= value < 2**64:
                value = float(text)
        else:
            value = self._float(text, token)
        return Literal(value, text, position=self.position(token))

    def _float(self, text: str, token: Token) -> float:
        try:
            return float(text)
        except ValueError:
            raise SyntaxError(f"{text} is not a number.", position=self.position(token)) from None

    def settings(self) -> tuple[Setting, ...]:
        """`a = 1, b = 'x'`, after the word SETTINGS or SET."""
        found = [self._setting()]
        while self.sees(",") and self.kind_after(1) in ("word", "name"):
            if not self._setting_follows():
                break
            self.advance()
            found.append(self._setting())
        return tuple(found)

    def _setting_follows(self) -> bool:
        """After a comma: another setting, and not the next action of an ALTER."""
        step = 2
        while self.key_after(step) == ".":
            step += 2
        return self.key_after(step) == "="

    def _setting(self) -> Setting:
        token = self.token
        name = self.dotted_name("the name of a setting")
        self.expect("=")
        return Setting(name, self._setting_value(), position=self.position(token))

    def _setting_value(self) -> bool | int | float | str | None:
        """A literal; DEFAULT is None."""
        token = self.token
        if token.kind == "string":
            return self.advance().text
        if token.kind == "number" or (self.keys[self.at] == "-" and self.kind_after(1) == "number"):
            negative = self.take("-")
            return self.number_literal(negative).value
        words: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "DEFAULT": None}
        if token.key in words:
            self.advance()
            return words[token.key]
        raise self.expected("a number, a quoted string, true, false or DEFAULT")

    def settings_clause(self) -> tuple[Setting, ...]:
        """`SETTINGS …` where it is next, else nothing."""
        return self.settings() if self.take("SETTINGS") else ()

    def comment_clause(self) -> str:
        return self.string("the comment, quoted") if self.take("COMMENT") else ""
