"""The literal rows behind VALUES, without a tokenizer and without a loop over rows.

numpy scans the bytes: which are inside quotes (the parity of the quotes before them), where rows
and fields begin.  Plain values (numbers, quoted strings, NULL, true and false) become CSV by
dropping the parentheses, and pyarrow's reader makes columns of it.  If any row holds anything else
(a call, operator, array, tuple, parameter, DEFAULT, comment), the grammar reads all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import CannotParseInput, Position, SyntaxError, UnknownIdentifier
from olapdb.records import dataclass
from olapdb.sql.nodes import Alias, Expression, Identifier
from olapdb.sql.parser import operands
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.tokens import SourceText
from olapdb.sql.values.scan import scan_plain_rows
from olapdb.sql.values.typed_values import read_columns
from olapdb.types import DataType

ExpressionRow = tuple[Expression | None, ...]


@dataclass(frozen=True)
class LiteralRows:
    """The rows of VALUES: either `columns` with their `types`, or `rows`; the other is None.

    `columns[i]` has one value for each row, and NULL where NULL was written, even for a target that
    is not Nullable.  `types[i]` is its type: String where the values were quoted, or where a Decimal
    needs their text; else Int64, UInt64, Float32, Float64 or Bool; Nullable where there are NULLs.
    The caller casts it to the column's type.

    `rows[i]` has one expression for each column, None for DEFAULT; neither bound nor folded.
    """

    columns: tuple[pa.Array, ...] | None = None
    types: tuple[DataType, ...] = ()
    rows: tuple[ExpressionRow, ...] | None = None


def read_values(
    text: str, names: Sequence[str], types: Sequence[DataType], position: Position | None = None
) -> LiteralRows:
    """Read the rows of `text`, which follows VALUES, for target columns of these names and types.

    A semicolon may end the text, a comma may trail, commas between rows may be left out, as in
    ClickHouse.  `position` is where the text begins.  Plain literals give `columns` (fast path),
    any other text gives `rows` of expressions.  Raises SyntaxError where a row has another
    number of values, and UnknownIdentifier, with column, row and value, where a value is a bare
    word.
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
    """Parse the rows as expressions, None for DEFAULT; `position` is where `text` begins."""
    cursor = TokenCursor.over(_ShiftedText(text, position))
    rows: list[ExpressionRow] = []
    while not cursor.ended and cursor.key != ";":
        rows.append(_parse_row(cursor))
        cursor.take(",")
    cursor.take(";")
    if not cursor.ended:
        raise cursor.expected("the end of the rows")
    if not rows:
        raise cursor.expected("a row in parentheses")
    return tuple(rows)


def _parse_row(cursor: TokenCursor) -> ExpressionRow:
    """Parse `(a, b, DEFAULT)`; a comma may trail. Raises CannotParseInput."""
    if not cursor.take("("):
        error = cursor.expected("a row in parentheses")
        raise CannotParseInput(error.message, position=error.position)
    row: list[Expression | None] = []
    while True:
        if cursor.key == "DEFAULT" and cursor.key_after(1) in (",", ")"):
            cursor.advance()
            row.append(None)
        else:
            row.append(operands.parse_aliased(cursor))
        if cursor.take(")"):
            return tuple(row)
        if not cursor.take(","):
            raise cursor.expected(", or )")
        if cursor.take(")"):
            return tuple(row)


def _check_row(row: ExpressionRow, number: int, names: Sequence[str]) -> None:
    """Raise if row `number`, from 1, has too few or many values, or a bare word as a value.

    Raises SyntaxError and UnknownIdentifier."""
    if len(row) != len(names):
        first = next((value for value in row if value is not None), None)
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


class _ShiftedText(SourceText):
    """A text whose positions are those in a longer text, where it begins at `start`."""

    def __init__(self, text: str, start: Position | None) -> None:
        super().__init__(text)
        self._start = start or Position(1, 1, 0)

    def position(self, offset: int) -> Position:
        """Return the position of `offset` of this text in the longer one."""
        inner = super().position(offset)
        column = inner.column + (self._start.column - 1 if inner.line == 1 else 0)
        return Position(inner.line + self._start.line - 1, column, offset + self._start.offset)
