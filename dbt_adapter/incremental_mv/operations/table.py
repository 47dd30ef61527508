"""The tables that operations print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CELL_WIDTH_MAX = 120


@dataclass
class Report:
    """The result of an operation: rows of a table, lines below it, and what failed.

    `problems` are sentences; an operation with any ends with an error."""

    rows: list[Mapping[str, object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Append rows, notes and problems of the other report."""
        self.rows += other.rows
        self.notes += other.notes
        self.problems += other.problems

    def lines(self) -> list[str]:
        """Return the table and the notes as lines of text."""
        return [*table_lines(self.rows), *self.notes]


def table_lines(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the rows as lines of a table with a head and a rule; numbers stand to the right.

    The columns are those of the row with the most columns, then further ones of the other rows. A
    column that is empty in every row is left out. Texts beyond CELL_WIDTH_MAX are cut with `…`;
    below the table a line repeats each in full, after the first cell of its row."""
    if not rows:
        return []
    listed = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)
    names = [n for n in listed if any(row.get(n) not in ("", None) for row in rows)]
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(c) for c in column) for column in zip(names, *cells, strict=True)]
    numeric = [all(isinstance(row.get(n, 0), int) for row in rows) for n in names]

    def line(texts: Sequence[str]) -> str:
        """Return one line of the table."""
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    rule = ["-" * width for width in widths]
    whole = [
        f"{_cell(row.get(names[0]))}: {_text(row.get(name))}"
        for row in rows
        for name in names
        if len(_text(row.get(name))) > CELL_WIDTH_MAX
    ]
    return [line(names), line(rule), *map(line, cells), *whole]


def _cell(value: object) -> str:
    """Return a value as the text of one cell, cut if it is long."""
    text = _text(value)
    return text if len(text) <= CELL_WIDTH_MAX else text[: CELL_WIDTH_MAX - 1] + "…"


def _text(value: object) -> str:
    """Return a value as text, without line breaks."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())
