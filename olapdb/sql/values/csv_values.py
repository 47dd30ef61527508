"""The literal rows behind VALUES, without a tokenizer and without a loop over rows.

The bytes are scanned with numpy: which are inside quotes (the parity of the quotes before them),
where rows and fields begin.  What is plain, that is numbers, quoted strings, NULL, true and false,
becomes CSV by dropping the parentheses, and pyarrow's reader makes columns of it.  Everything
else (calls, operators, arrays, tuples, parameters, DEFAULT, comments) goes through the grammar,
for all rows of the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from olapdb.errors import CannotParseInput, Position, SyntaxError, UnknownIdentifier
from olapdb.sql.nodes import Alias, Expression, Identifier
from olapdb.sql.parser import operands
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.tokens import SourceText
from olapdb.sql.values.scan import PlainRows, scan_plain_rows
from olapdb.sql.values.typed_values import read_columns
from olapdb.types import DataType

ExpressionRow = tuple[Expression | None, ...]


@dataclass(frozen=True)
class LiteralRows:
    """Either `columns` with their `types`, or `rows`; the other is None.

    `columns[i]` has one value for each row and holds NULLs where NULL was written, whatever the
    target says.  `types[i]` is what it holds: String where the values were quoted, or where their
    text is needed for exactness (Decimal); else Int64, UInt64, Float32, Float64 or Bool, as
    Nullable where there are NULLs.  The caller casts it to the column's type.

    `rows[i]` has one expression for each column, None for DEFAULT; neither bound nor folded.
    """

    columns: tuple[pa.Array, ...] | None = None
    types: tuple[DataType, ...] = ()
    rows: tuple[ExpressionRow, ...] | None = None


def read_values(
    text: str, names: Sequence[str], types: Sequence[DataType], position: Position | None = None
) -> LiteralRows:
    """The rows of `text`, which is what follows VALUES, for target columns of these types.

    A semicolon may end the text, a comma may trail, commas between rows may be left out, as in
    ClickHouse.  `position` is where the text begins.  Raises SyntaxError where a row has another
    number of values, and CannotParse, with column, row and value, where a value is a bare word.
    """
    plain = scan_plain_rows(text, len(types))
    if plain is not None:
        columns = read_columns(plain, types)
        if columns is not None:
            return LiteralRows(tuple(c.array for c in columns), tuple(c.type for c in columns))
    rows = parse_value_rows(text, position)
    for number, row in enumerate(rows, 1):
        _check_row(row, number, names)
    return LiteralRows(rows=rows)


def parse_value_rows(text: str, position: Position | None = None) -> tuple[ExpressionRow, ...]:
    """The rows as expressions, through the grammar; None stands for DEFAULT."""
    source = _Shifted(text, position)
    parser = TokenCursor.over(source)
    rows: list[ExpressionRow] = []
    while not parser.ended and not parser.sees(";"):
        rows.append(_row(parser))
        parser.take(",")
    parser.take(";")
    if not parser.ended:
        raise parser.expected("the end of the rows")
    if not rows:
        raise parser.expected("a row in parentheses")
    return tuple(rows)


def _row(parser: TokenCursor) -> ExpressionRow:
    if not parser.take("("):
        found = parser.expected("a row in parentheses")
        raise CannotParseInput(found.message, position=found.position)
    row: list[Expression | None] = []
    while True:
        if parser.sees("DEFAULT") and parser.key_after(1) in (",", ")"):
            parser.advance()
            row.append(None)
        else:
            row.append(operands.parse_aliased(parser))
        if parser.take(")"):
            return tuple(row)
        if not parser.take(","):
            raise parser.expected(", or )")
        if parser.take(")"):  # a comma may trail
            return tuple(row)


def _check_row(row: ExpressionRow, number: int, names: Sequence[str]) -> None:
    if len(row) != len(names):
        first = next((e for e in row if e is not None), None)
        raise SyntaxError(
            f"Row {number} of VALUES has {len(row)} values for {len(names)} columns.",
            hint=f"The columns are {', '.join(names)}.",
            position=None if first is None else first.position,
        )
    for name, expression in zip(names, row, strict=True):
        bare = expression.expression if isinstance(expression, Alias) else expression
        if isinstance(bare, Identifier):
            written = ".".join(bare.parts)
            raise UnknownIdentifier(
                f"Column {name}, row {number}: {written} is no value.",
                hint=f"Strings stand in single quotes: '{written}'.",
                position=bare.position,
            )


class _Shifted(SourceText):
    """A text that begins at a position of a longer one."""

    def __init__(self, text: str, start: Position | None) -> None:
        super().__init__(text)
        self._start = start or Position(1, 1, 0)

    def position(self, offset: int) -> Position:
        found = super().position(offset)
        column = found.column + (self._start.column - 1 if found.line == 1 else 0)
        return Position(found.line + self._start.line - 1, column, offset + self._start.offset)


__all__ = ["ExpressionRow", "LiteralRows", "PlainRows", "parse_value_rows", "read_values"]
