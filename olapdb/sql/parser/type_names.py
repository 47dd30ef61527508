"""Data types inside statements: their tokens as text, read by `olapdb.functions.parse_type`."""

from __future__ import annotations

from olapdb.errors import Error
from olapdb.functions import parse_type
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.types import DataType

_SECOND_WORDS = {
    "DOUBLE": ("PRECISION",),
    "CHARACTER": ("VARYING",),
    "CHAR": ("VARYING",),
    **dict.fromkeys(("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT"), ("UNSIGNED", "SIGNED")),
}


class TypeParser(TokenCursor):
    """Reads the name of a type, with its arguments."""

    def data_type(self) -> DataType:
        start = self.at
        first = self.token
        self.identifier("a data type")
        follows = _SECOND_WORDS.get(first.key, ())
        if follows and self.keys[self.at] in follows:
            self.advance()
        if self.sees("("):
            self.skip_parentheses()
            if follows and self.keys[self.at] in follows:
                self.advance()
        return self.type_of(self.text_since(start), start)

    def type_of(self, text: str, start: int) -> DataType:
        """The type that `text` names; errors point at token number `start`."""
        try:
            return parse_type(text)
        except Error as error:
            raise error.at(self.position(self.tokens[start])) from None

    def skip_parentheses(self) -> None:
        """From an opening parenthesis, steps behind the one that closes it."""
        depth = 0
        while True:
            if self.ended:
                raise self.expected(")")
            key = self.advance().key
            if key in ("(", "[", "{"):
                depth += 1
            elif key in (")", "]", "}"):
                depth -= 1
                if depth == 0:
                    return
