"""Pretty, PrettyCompact, PrettySpace and Vertical: results for people to read.

They show at most output_format_pretty_max_rows rows, so that a loop over these rows is fine.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import pyarrow as pa

from olapdb.config import Settings
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.pretty_values import cells, readings
from olapdb.formats.texts import is_right_aligned
from olapdb.records import dataclass

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that a terminal does not show; a tab counts as one."""
_ASCII = str.maketrans(
    dict.fromkeys("┏┳┓┡╇┩┢╈┪┗┻┛┌┬┐└┴┘├┼┤", "+")
    | dict.fromkeys("━─", "-")
    | dict.fromkeys("┃│", "|")
)
"""The lines of a table, as output_format_pretty_grid_charset = 'ASCII' has them."""


def width(text: str) -> int:
    """Return the number of terminal columns that the text occupies."""
    if not text.isprintable():
        text = _CONTROLS.sub("", text)
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) != 0 for letter in text)


def names_to_show(header: Header, room: Sequence[int] | None = None) -> list[str]:
    """Return the names to print; long names that are no plain identifiers are shortened by `⋯` in the middle. `room`
    is the width of each column's values, which a name may always use."""
    cut_to = header.settings.integer("output_format_pretty_max_column_name_width_cut_to")
    spare = header.settings.integer("output_format_pretty_max_column_name_width_min_chars_to_cut")
    if not cut_to:
        return list(header.names)
    names = []
    for name, taken in zip(header.names, room or [0] * len(header.names), strict=True):
        most = max(cut_to, taken)
        is_cut = width(name) > most + spare and not _IDENTIFIER.fullmatch(name)
        names.append(_cut(name, most) if is_cut else name)
    return names


def _cut(name: str, most: int) -> str:
    """Shorten a name to about `most` columns with `⋯` in place of its middle."""
    ends = [0, *accumulate(map(width, name))]
    head = bisect_right(ends, most // 2) - 1
    tail = bisect_right(ends, ends[-1] - (most - most // 2 - 1)) - 1
    return f"{name[:head]}⋯{name[tail:]}"


class _Kept:
    """The rows of a result that are printed: the first ones and the last ones."""

    def __init__(self, first_max: int, last_max: int) -> None:
        """Keep at most `first_max` first and `last_max` last rows."""
        self._first_max, self._last_max = first_max, last_max
        self._first: list[pa.RecordBatch] = []
        self._last: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch: keep those of its rows that are among the first or last ones; count all rows."""
        room = max(self._first_max - self._rows, 0)
        if room:
            self._first.append(batch.slice(0, room))
        self._rows += batch.num_rows
        if self._last_max and batch.num_rows > room:
            self._last.append(batch.slice(room))
            while sum(b.num_rows for b in self._last[1:]) >= self._last_max:
                self._last.pop(0)

    def shown(self) -> tuple[pa.RecordBatch | None, int]:
        """Return the kept rows as one batch (None without rows), and how many of them are first rows."""
        last = self._last
        surplus = sum(batch.num_rows for batch in last) - self._last_max
        if surplus > 0:
            last = [last[0].slice(surplus), *last[1:]]
        first_rows = sum(batch.num_rows for batch in self._first)
        batches = [*self._first, *last]
        if not batches:
            return None, 0
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0], first_rows


class VerticalWriter(Writer):
    """A writer of Vertical: a line for each value."""

    def __init__(self, header: Header) -> None:
        """Take the columns of the result."""
        super().__init__(header)
        self._rows_max = header.settings.integer("output_format_pretty_max_rows")
        self._kept = _Kept(self._rows_max, 0)

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Keep the batch's rows up to the limit; return nothing."""
        self._kept.add(batch)
        return b""

    def finish(self, ending: Ending) -> bytes:
        """Return the rows, the totals and the extremes."""
        rows, _ = self._kept.shown()
        text = "" if rows is None else vertical(self.header, rows, as_json=False)
        if ending.rows > self._rows_max:
            text += f"\nShowed first {self._rows_max}.\n"
        if ending.totals is not None:
            totals = _vertical_lines(self.header, ending.totals, as_json=False)
            text += "\n\nTotals:\n───────\n" + totals[0]
        if ending.extremes is not None:
            ends = _vertical_lines(self.header, ending.extremes, as_json=False)
            text += "\n" if ending.totals is None else ""
            text += f"\nMin:\n────\n{ends[0]}\nMax:\n────\n{ends[1]}"
        return text.encode("utf-8", "surrogateescape")


def vertical(header: Header, batch: pa.RecordBatch, *, as_json: bool) -> str:
    """Format rows as Vertical. `as_json` is the form of nested values, see `cells`."""
    # ClickHouse draws the line as long as the next row's title.
    return "\n".join(
        f"Row {row}:\n{'─' * len(f'Row {row + 1}:')}\n{lines}"
        for row, lines in enumerate(_vertical_lines(header, batch, as_json=as_json), 1)
    )


def _vertical_lines(header: Header, batch: pa.RecordBatch, *, as_json: bool) -> list[str]:
    """Return the lines of each row in Vertical: names with their values, one below the other."""
    shown_names = names_to_show(header)
    widest = max(map(width, shown_names)) + 2
    names = [f"{name}:".ljust(widest + len(name) - width(name)) for name in shown_names]
    texts = cells(batch, header, as_json, indented=True)
    notes = readings(batch, header)
    return [
        "".join(
            f"{name}{values[row]}{comments[row]}\n"
            for name, values, comments in zip(names, texts, notes, strict=True)
        )
        for row in range(batch.num_rows)
    ]


@dataclass(frozen=True)
class Grid:
    """The lines of a table's frame: above and below the names, between the rows, at the end."""

    compact: bool
    space: bool = False

    def draw(self, table: _Table) -> str:
        """Draw the table in this style."""
        if self.space:
            return _spaced(table)
        return _compact(table) if self.compact else _full(table)


@dataclass(frozen=True)
class _Table:
    """A table to draw: the lines of each cell, column by column, and the widths and names."""

    names: Sequence[str]
    lines: list[list[list[str]]]
    is_cut: list[list[bool]]
    right: list[bool]
    widths: list[int]
    number_width: int
    notes: list[str]
    first_rows: int
    left_out: int
    footer: bool

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.lines[0])

    def padded(self, text: str, column: int, fill: str = " ") -> str:
        """Pad the text to the column's width, on the left for right-aligned types, else on the right."""
        space = fill * max(self.widths[column] - width(text), 0)
        return space + text if self.right[column] else text + space

    def prefix(self, row: int | None) -> str:
        """Return the margin left of the table: the row's number, or blanks for None."""
        if not self.number_width:
            return ""
        skipped = self.left_out if row is not None and row >= self.first_rows else 0
        number = "" if row is None else f"{row + 1 + skipped}. "
        return number.rjust(self.number_width)


class PrettyWriter(Writer):
    """A writer of the formats that draw a table; `grid` says how."""

    def __init__(self, header: Header, grid: Grid) -> None:
        """Take the columns and the style of the tables."""
        super().__init__(header)
        self._grid = grid
        self._rows_max = header.settings.integer("output_format_pretty_max_rows")
        self._kept = _Kept((self._rows_max + 1) // 2, self._rows_max // 2)

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Keep the first and the last rows to print; return nothing."""
        self._kept.add(batch)
        return b""

    def finish(self, ending: Ending) -> bytes:
        """Return the table, and those of the totals and the extremes."""
        rows, first_rows = self._kept.shown()
        text = "" if rows is None else self._draw(rows, first_rows, ending.rows)
        if ending.totals is not None:
            text += "\nTotals:\n" + self._draw(ending.totals, 1, 1)
        if ending.extremes is not None:
            text += "\nExtremes:\n" + self._draw(ending.extremes, 2, 2)
        return text.encode("utf-8", "surrogateescape")

    def _draw(self, batch: pa.RecordBatch, first_rows: int, rows: int) -> str:
        """Draw the batch as a table, or as Vertical if the table would be too wide. `rows` is the total number of
        rows, including those omitted after the first `first_rows`."""
        header, settings = self.header, self.header.settings
        texts, is_cut = cut_cells(cells(batch, header, as_json=True), settings)
        several = settings.boolean("output_format_pretty_multiline_fields")
        lines = [[text.split("\n") if several else [text] for text in column] for column in texts]
        taken = [
            max((width(line) for text in column for line in text), default=0) for column in lines
        ]
        if self._is_vertical(lines, taken, rows):
            return vertical(header, batch, as_json=True)
        most = settings.integer("output_format_pretty_max_column_pad_width")
        taken = [min(size, most) for size in taken] if most else taken
        names = names_to_show(header, taken)
        table = _Table(
            names=names,
            lines=lines,
            is_cut=is_cut,
            right=[is_right_aligned(data_type) for data_type in header.types],
            widths=[max(width(name), size) for name, size in zip(names, taken, strict=True)],
            number_width=self._number_width(rows),
            notes=readings(batch, header)[-1] if texts else [],
            first_rows=first_rows,
            left_out=rows - batch.num_rows,
            footer=settings.boolean("output_format_pretty_display_footer_column_names")
            and batch.num_rows
            >= settings.integer("output_format_pretty_display_footer_column_names_min_rows"),
        )
        text = self._grid.draw(table)
        if settings.text("output_format_pretty_grid_charset") == "ASCII":
            text = "".join(map(_ascii_line, text.splitlines(keepends=True)))
        if rows > self._rows_max:
            text += f"Showed {self._rows_max} out of {rows} rows.\n"
        return text

    def _number_width(self, rows: int) -> int:
        """Return the width of the column of row numbers; 0 if row numbers are off."""
        numbered = self.header.settings.boolean("output_format_pretty_row_numbers")
        return len(str(rows)) + 2 if numbered else 0

    def _is_vertical(self, values: list[list[list[str]]], widths: Sequence[int], rows: int) -> bool:
        """Return whether to use Vertical: rows and columns are within the setting's limits, and the table is too wide
        or a value has several lines."""
        settings = self.header.settings
        prefix = "output_format_pretty_fallback_to_vertical"
        if not settings.boolean(prefix) or rows > settings.integer(f"{prefix}_max_rows_per_chunk"):
            return False
        lines = any(len(value) > 1 for column in values for value in column)
        wide = sum(widths) + 3 * len(widths) >= settings.integer(f"{prefix}_min_table_width")
        return len(values) >= settings.integer(f"{prefix}_min_columns") and (lines or wide)


def _ascii_line(line: str) -> str:
    """Replace the frame characters of a line by ASCII; the text between the bars stays."""
    if not line.lstrip(" 0123456789.").startswith("│"):
        return line.translate(_ASCII)
    return line.replace("│", "|")


def cut_cells(
    texts: list[list[str]], settings: Settings
) -> tuple[list[list[str]], list[list[bool]]]:
    """Cut cells that are wider than the settings allow; return the cells and a mask of those that were cut."""
    most = settings.integer("output_format_pretty_max_value_width")
    alone = len(texts) == 1 and len(texts[0]) == 1
    if not most or (
        alone
        and not settings.boolean("output_format_pretty_max_value_width_apply_for_single_value")
    ):
        return texts, [[False] * len(column) for column in texts]
    is_cut = [[width(text) > most for text in column] for column in texts]
    return [[_head(text, most) for text in column] for column in texts], is_cut


def _head(text: str, most: int) -> str:
    """Return the longest start of a text that is at most `most` columns wide."""
    ends = [0, *accumulate(map(width, text))]
    return text[: bisect_right(ends, most) - 1]


def _row_lines(table: _Table, row: int, bars: tuple[str, str, str]) -> str:
    """Return the lines of one row between the vertical bars (left, middle, right). An arrow in the margin marks a
    value that continues on the next line."""
    left, between, right = bars
    split = [column[row] for column in table.lines]
    text = ""
    for at in range(max(map(len, split))):
        shown_cells = []
        for column, lines in enumerate(split):
            line = lines[at] if at < len(lines) else ""
            goes_on = line or at < len(lines) - 1
            before = "↳" if 0 < at < len(lines) and goes_on else " "
            behind = "↴" if at < len(lines) - 1 else "⋯" if table.is_cut[column][row] else " "
            shown_cells.append(before + table.padded(line, column) + behind)
        prefix = table.prefix(row if at == 0 else None)
        text += prefix + left + between.join(shown_cells) + right + table.notes[row] + "\n"
    return text


def _body(table: _Table, bars: tuple[str, str, str], between: str = "") -> str:
    """Return all rows, with the line `between` between them, and a dashed line in place of omitted rows."""
    rows = [_row_lines(table, row, bars) for row in range(table.rows)]
    if not table.left_out or table.first_rows == table.rows:
        return between.join(rows)
    total = sum(size + 3 for size in table.widths) + 1
    if not bars[0]:
        total = sum(size + 3 for size in table.widths) - 2
    dashes = table.prefix(None) + ("─ " * total)[:total] + "\n"
    first, last = rows[: table.first_rows], rows[table.first_rows :]
    return between.join(first) + between + dashes + between + between.join(last)


def _edge(table: _Table, marks: str, line: str) -> str:
    """Return a horizontal frame line; `marks` are its left, middle and right crossing, `line` its fill."""
    spans = [line * (size + 2) for size in table.widths]
    return table.prefix(None) + marks[0] + marks[1].join(spans) + marks[2] + "\n"


def _named_edge(table: _Table, marks: str) -> str:
    """Return a frame line that contains the column names, for PrettyCompact."""
    spans = [f"─{table.padded(name, at, '─')}─" for at, name in enumerate(table.names)]
    return table.prefix(None) + marks[0] + marks[1].join(spans) + marks[2] + "\n"


def _name_row(table: _Table) -> str:
    """Return the row of names between heavy bars."""
    names = [f" {table.padded(name, at)} " for at, name in enumerate(table.names)]
    return table.prefix(None) + "┃" + "┃".join(names) + "┃\n"


def _full(table: _Table) -> str:
    """Return the table as Pretty draws it."""
    text = _edge(table, "┏┳┓", "━") + _name_row(table) + _edge(table, "┡╇┩", "━")
    text += _body(table, ("│", "│", "│"), _edge(table, "├┼┤", "─"))
    if table.footer:
        return text + _edge(table, "┢╈┪", "━") + _name_row(table) + _edge(table, "┗┻┛", "━")
    return text + _edge(table, "└┴┘", "─")


def _compact(table: _Table) -> str:
    """Return the table as PrettyCompact draws it."""
    text = _named_edge(table, "┌┬┐") + _body(table, ("│", "│", "│"))
    return text + (_named_edge(table, "└┴┘") if table.footer else _edge(table, "└┴┘", "─"))


def _spaced(table: _Table) -> str:
    """Return the table as PrettySpace draws it."""
    names = [f" {table.padded(name, at)} " for at, name in enumerate(table.names)]
    title = table.prefix(None) + " ".join(names)
    title = title.rstrip(" ") if table.right[-1] else title[:-1]
    text = f"{title}\n\n" + _body(table, ("", " ", ""))
    if table.footer:
        text += f"\n{title}\n\n"
    return text + "\n" if table.left_out else text


FORMATS = (
    Format(
        "Pretty",
        "A table drawn for people.",
        partial(PrettyWriter, grid=Grid(compact=False)),
        aliases=("PrettyNoEscapes", "PrettyMonoBlock", "PrettyNoEscapesMonoBlock"),
    ),
    Format(
        "PrettyCompact",
        "A table drawn for people, without lines between rows.",
        partial(PrettyWriter, grid=Grid(compact=True)),
        aliases=(
            "PrettyCompactNoEscapes",
            "PrettyCompactMonoBlock",
            "PrettyCompactNoEscapesMonoBlock",
        ),
    ),
    Format(
        "PrettySpace",
        "A table for people, by blanks.",
        partial(PrettyWriter, grid=Grid(compact=True, space=True)),
        aliases=("PrettySpaceNoEscapes", "PrettySpaceMonoBlock", "PrettySpaceNoEscapesMonoBlock"),
    ),
    Format("Vertical", "A line for each value, for people.", VerticalWriter),
)
