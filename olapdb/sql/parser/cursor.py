"""The parser's place in the tokens, and the steps that every rule of the grammar is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

from olapdb.errors import NotSupportedError, Position, SyntaxError
from olapdb.sql.nodes import TableName
from olapdb.sql.tokens import SourceText, Token, tokenize

DEPTH_MAX = 100
"""How deep expressions may nest; a query counts twice.  One level takes up to eight of Python's
1,000 frames, of which the caller has some too (ClickHouse: max_parser_depth)."""

_WHOLE_DIGITS_MAX = 20
"""The digits of the largest UInt64."""

_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")

Item = TypeVar("Item")
Key = TypeVar("Key", bound=str)


class TokenCursor:
    """A place in `tokens`, the last of which is of kind "end".

    `at` is the number of the current token, `token` the token, `key` its key: the word in capitals
    or the operator, "" for everything else.  Only the methods that step change the three.
    `question_marks` has the numbers of the tokens that the parser took for `?` parameters.
    """

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.keys = [token.key for token in tokens]
        self.at = 0
        self.token = tokens[0]
        self.key = self.keys[0]
        self.depth = 0
        self.question_marks: list[int] = []

    @classmethod
    def over(cls, source: SourceText, start: int = 0, end: int | None = None) -> TokenCursor:
        """Tokenize `source.text[start:end]` and return a cursor at its first token."""
        return cls(source, tokenize(source, start, end))

    # --- looking

    @property
    def ended(self) -> bool:
        """Return whether the current token is the end."""
        return self.token.kind == "end"

    def sees(self, *keys: str) -> bool:
        """Return whether the next tokens are these keywords or operators."""
        at = self.at
        return self.key == keys[0] and self.keys[at : at + len(keys)] == list(keys)

    def key_after(self, count: int) -> str:
        """Return the key of the token `count` after the current one; "" past the end."""
        at = self.at + count
        return self.keys[at] if at < len(self.keys) else ""

    def kind_after(self, count: int) -> str:
        """Return the kind of the token `count` after the current one; "end" past the end."""
        at = self.at + count
        return self.tokens[at].kind if at < len(self.tokens) else "end"

    def is_name(self, ahead: int = 0) -> bool:
        """Return whether the token `ahead` tokens on is a word or a quoted name."""
        return self.kind_after(ahead) in ("word", "name")

    def position(self, token: Token | None = None) -> Position:
        """Return where `token` begins in the text; of the current token by default."""
        return self.source.position((token or self.token).start)

    def text_since(self, start: int) -> str:
        """Return the text from token number `start` up to the one before the current one."""
        if self.at == start:
            return ""
        return self.source.text[self.tokens[start].start : self.tokens[self.at - 1].end]

    def nesting(self, start: int) -> Iterator[tuple[int, str, int]]:
        """Yield (number, key, depth) of each token from number `start` on, the end included.

        `depth` counts the brackets opened since `start`: an opening bracket is inside itself, a
        closing one is outside, so one that closes a bracket from before `start` has depth -1.
        """
        depth = 0
        for at in range(start, len(self.keys)):
            key = self.keys[at]
            if key in _OPENING:
                depth += 1
            elif key in _CLOSING:
                depth -= 1
            yield at, key, depth

    def closing(self, opening: int) -> int | None:
        """Return the number of the token that closes the bracket at number `opening`.

        None if the text ends before."""
        for at, key, depth in self.nesting(opening):
            if depth == 0 and key in _CLOSING:
                return at
        return None

    # --- stepping

    def move_to(self, at: int) -> None:
        """Make token number `at` the current one; forget the `?` parameters from there on."""
        while self.question_marks and self.question_marks[-1] >= at:
            self.question_marks.pop()
        self.at = at
        self.token = self.tokens[at]
        self.key = self.keys[at]

    def advance(self) -> Token:
        """Step over the current token and return it; the end is never stepped over."""
        token = self.token
        if token.kind != "end":
            self.at = at = self.at + 1
            self.token = self.tokens[at]
            self.key = self.keys[at]
        return token

    def skip(self, count: int) -> None:
        """Step over `count` tokens, which the caller has looked at."""
        self.move_to(self.at + count)

    def skip_parentheses(self) -> None:
        """Step from an opening parenthesis to behind the one that closes it."""
        closing = self.closing(self.at)
        self.move_to(len(self.tokens) - 1 if closing is None else closing + 1)
        if closing is None:
            raise self.expected(")")

    def take(self, *keys: str) -> bool:
        """Step over these keywords or operators if they are next; return whether they were."""
        if self.key != keys[0]:
            return False
        at = self.at
        if len(keys) > 1 and self.keys[at : at + len(keys)] != list(keys):
            return False
        self.at = at = at + len(keys)
        self.token = self.tokens[at]
        self.key = self.keys[at]
        return True

    def take_one_of(self, *keys: Key) -> Key | Literal[""]:
        """Step over the next token if it is one of `keys`, and return its key; else return ""."""
        if self.key not in keys:
            return ""
        token = self.advance()
        return next(key for key in keys if key == token.key)

    def expect(self, *keys: str) -> None:
        """Step over these keywords or operators; raise SyntaxError if they are not next."""
        if not self.take(*keys):
            raise self.expected(" ".join(keys))

    def comma_separated(self, parse: Callable[[TokenCursor], Item]) -> tuple[Item, ...]:
        """Parse `a, b, c` with `parse` for each, at least one."""
        items = [parse(self)]
        while self.take(","):
            items.append(parse(self))
        return tuple(items)

    def enter(self, levels: int = 1) -> None:
        """Go `levels` deeper; raise SyntaxError beyond DEPTH_MAX, before Python's stack ends."""
        self.depth += levels
        if self.depth > DEPTH_MAX:
            raise SyntaxError(
                f"The statement nests deeper than {DEPTH_MAX} levels.", position=self.position()
            )

    def leave(self, levels: int = 1) -> None:
        """Undo `enter`."""
        self.depth -= levels

    # --- errors, returned for the caller to raise

    def expected(self, what: str, hint: str = "") -> SyntaxError:
        """Return the error that `what` should be next; it names the token that is."""
        token = self.token
        if token.kind == "end":
            actual = "the end of the statement"
        else:
            written = self.source.text[token.start : token.end]
            actual = written if len(written) <= 40 else f"{written[:40]}…"
        if not hint and self.source.text.startswith("%s", token.start):
            hint = "A parameter is ?, or :name with a mapping."
        return SyntaxError(f"Expected {what}, found {actual}.", hint=hint, position=self.position())

    def refused(self, what: str, hint: str = "", token: Token | None = None) -> NotSupportedError:
        """Return the error for a feature of ClickHouse that olapdb does not have."""
        return NotSupportedError(
            f"{what} is not supported.", hint=hint, position=self.position(token)
        )

    # --- names and plain values

    def identifier(self, what: str = "a name") -> str:
        """Step over a word or a quoted name and return it; `what` is for the error. Raises SyntaxError for any
        other token and for an empty name."""
        token = self.token
        if token.kind != "word" and token.kind != "name":
            raise self.expected(what)
        if not token.text:
            raise SyntaxError(f"A name cannot be empty: {what} is.", position=self.position(token))
        self.advance()
        return token.text

    def dotted_name(self, what: str = "a name") -> str:
        """Return `a` or `a.b.c` as one string: a column of a Nested, a setting of a group."""
        name = self.identifier(what)
        while self.take("."):
            name += "." + self.identifier(what)
        return name

    def dotted_names(self, what: str = "a name") -> tuple[str, ...]:
        """Return the names of `a, b.c, d`, which has no parentheses."""
        return self.comma_separated(lambda cursor: cursor.dotted_name(what))

    def table_name(self) -> TableName:
        """Return `table` or `database.table`."""
        position = self.position()
        if self.key == "{":
            raise self.refused(
                "A parameter of type Identifier here",
                "Write the name into the text of the statement.",
            )
        name = self.identifier("a table name")
        database = None
        if self.take("."):
            database, name = name, self.identifier("a table name")
        return TableName(name, database, position=position)

    def string(self, what: str = "a quoted string") -> str:
        """Step over a quoted string and return its value; `what` is for the error."""
        if self.token.kind != "string":
            raise self.expected(what)
        return self.advance().text

    def integer(self, what: str = "a whole number") -> int:
        """Step over a number without sign and fraction and return it; `what` is for the error."""
        value = whole_number(self.token.text) if self.token.kind == "number" else None
        if value is None:
            raise self.expected(what)
        self.advance()
        return value

    def if_exists(self) -> bool:
        """Step over IF EXISTS if it is next; return whether it was."""
        return self.take("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        """Step over IF NOT EXISTS if it is next; return whether it was."""
        return self.take("IF", "NOT", "EXISTS")


def whole_number(text: str) -> int | None:
    """Return the value of decimal digits; None for other text, and for more digits than UInt64 has."""
    return int(text) if text.isdecimal() and len(text) <= _WHOLE_DIGITS_MAX else None
