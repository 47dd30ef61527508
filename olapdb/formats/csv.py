"""CSV: values between commas, texts in double quotes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from olapdb import errors, types
from olapdb.formats.absent import apart
from olapdb.formats.base import Ending, Format, Header, Input, Reader, Rows, Structure, Writer
from olapdb.formats.blocks import blocks_of, without_empty_end
from olapdb.formats.csv_quotes import CsvShape, inside_quotes, shape_of
from olapdb.formats.csv_shape import evened, leaf_counts, placed, row_sizes, tuple_of_texts
from olapdb.formats.csv_single_quotes import with_double_quotes
from olapdb.formats.delimited import infer_texts, with_dynamics
from olapdb.formats.header_detection import read_head
from olapdb.formats.heads import Head, count_error, no_structure, numbered_names
from olapdb.formats.texts import (
    body,
    is_text,
    joined_rows,
    shown,
    style_of,
    with_null,
    zero_for_empty,
)
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import gathered
from olapdb.records import dataclass

_UNQUOTED = types.Integer | types.Float | types.Decimal | types.Boolean | types.Interval
_WITH_BLANKS = types.String | types.FixedString | types.Enum | types.Boolean
_QUOTE, _NEWLINE = ord('"'), ord("\n")
_BLANKS = (ord(" "), ord("\t"))


class CsvWriter(Writer):
    """A writer of CSV. `head_lines`: 1 for a line of names, 2 for names and types. A tuple is written as one column
    for each element, unless the setting says otherwise."""

    def __init__(self, header: Header, head_lines: int = 0) -> None:
        """Take the columns; `head_lines` as for the class."""
        super().__init__(header)
        settings = header.settings
        self._head_lines = head_lines
        self._delimiter = settings.text("format_csv_delimiter")
        self._null = settings.text("format_csv_null_representation")
        self._end = "\r\n" if settings.boolean("output_format_csv_crlf_end_of_line") else "\n"
        self._splits = settings.boolean("output_format_csv_serialize_tuple_into_separate_columns")

    def start(self) -> bytes:
        """Return the lines of names and of types, as far as the format has them."""
        columns = tuple(zip(self.header.names, self.header.types, strict=True))
        splits = self.header.settings.boolean(
            "output_format_csv_header_serialize_tuple_into_separate_columns"
        )
        leaves = (
            columns
            if not splits
            else [leaf for column in columns for leaf in self._leaves(*column)]
        )
        lines = ([name for name, _ in leaves], [t.name for _, t in leaves])[: self._head_lines]
        quoted = [[f'"{text.replace(chr(34), chr(34) * 2)}"' for text in line] for line in lines]
        return "".join(self._delimiter.join(line) + self._end for line in quoted).encode()

    def _leaves(self, name: str, data_type: types.DataType) -> Iterator[tuple[str, types.DataType]]:
        """Yield (name, type) of a column, or, if the setting splits tuples, those of each element."""
        plain = types.plain(data_type)
        if self._splits and isinstance(plain, types.Tuple) and plain.elements:
            for field, element in zip(plain.field_names, plain.elements, strict=True):
                yield from self._leaves(f"{name}.{field}", element)
        else:
            yield name, data_type

    def column_texts(self, column: pa.Array, data_type: types.DataType) -> Iterator[pa.Array]:
        """Yield the quoted texts of a column, or, if the setting splits tuples, those of each element."""
        plain = types.plain(data_type)
        if self._splits and isinstance(plain, types.Tuple):
            if not plain.elements:
                yield pa.array([""] * len(column), pa.string())
            for field, element in zip(columns.struct_fields(column), plain.elements, strict=True):
                yield from self.column_texts(field, element)
            return
        yield with_null(self._quoted(column, data_type), self._null)

    def _quoted(self, column: pa.Array, data_type: types.DataType) -> pa.Array:
        """Return values as texts, all quoted except numbers; NULL stays null."""
        plain = types.plain(data_type)
        if isinstance(plain, types.Variant | types.Dynamic):
            return gathered(column, plain, self._quoted, pa.string())
        texts = shown(column, data_type, self.header)
        is_span = isinstance(plain, types.Interval) and style_of(self.header).spans
        if isinstance(plain, _UNQUOTED) and not is_span:
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        return pc.binary_join_element_wise('"', doubled, '"', "")

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, each on its line."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        texts = [
            text
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
            for text in self.column_texts(column, data_type)
        ]
        return joined_rows(texts, self._delimiter, "", self._end)

    def finish(self, ending: Ending) -> bytes:
        """Return the totals and the extremes, those that exist, each after an empty line."""
        end = self._end.encode()
        return b"".join(end + self.write(rows) for rows in ending.rows_behind)


# --- reading


@dataclass(frozen=True)
class _Layout:
    """How CSV is read. `detects`: the first lines may be names, and types, though the format has
    none. `ragged`: rows may have fewer or more values. `trims_end`: without empty lines at the end.
    `missing` is the text of a value that a row lacks."""

    delimiter: str
    head_lines: int
    nulls: tuple[str, ...]
    skipped: int
    detects: bool
    ragged: bool
    trims_end: bool
    missing: str
    trims: bool = True
    """Blanks around values do not belong to them; else they belong to texts without quotes."""
    ends_in_text: bool = True
    """The last column has texts, or is not known. Blanks behind its value without quotes belong to it where the data end
    without a line feed, as in ClickHouse."""

    @classmethod
    def of(cls, source: Input, head_lines: int) -> _Layout:
        """Return the layout that the settings give. Raises BadArguments for a delimiter that is not one ASCII
        character."""
        settings = source.settings
        delimiter = settings.text("format_csv_delimiter")
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
            raise errors.BadArguments(f"format_csv_delimiter is one character, not {delimiter!r}.")
        if delimiter in " \t" and not settings.boolean(
            "input_format_csv_allow_whitespace_or_tab_as_delimiter"
        ):
            raise errors.BadArguments(
                f"CSV does not have {delimiter!r} as format_csv_delimiter: blanks around values are skipped.",
                hint="SETTINGS input_format_csv_allow_whitespace_or_tab_as_delimiter = 1, or the format"
                " CustomSeparated.",
            )
        nulls = [settings.text("format_csv_null_representation")]
        if settings.boolean("input_format_csv_empty_as_default"):
            nulls.append("")
        skipped = settings.integer("input_format_csv_skip_first_lines")
        detects = not head_lines and settings.boolean("input_format_csv_detect_header")
        ragged = settings.boolean("input_format_csv_allow_variable_number_of_columns")
        trims_end = settings.boolean("input_format_csv_skip_trailing_empty_lines")
        missing = nulls[-1]
        return cls(
            delimiter,
            head_lines,
            tuple(nulls),
            skipped,
            detects,
            ragged,
            trims_end,
            missing,
            _trims(source),
        )

    def blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        """Yield blocks of whole rows."""
        blocks = blocks_of(stream, partial(_end_of_rows, delimiter=self.delimiter))
        return without_empty_end(blocks) if self.trims_end else blocks

    def width(self, block: bytes) -> int:
        """Return the number of columns that the rows of a block without names have."""
        if not self.ragged:
            return len(_first_line(block, self))
        values, is_mark = _marks(block, self.delimiter)
        return int(row_sizes(values, is_mark)[1].max())


def _marks(data: bytes, delimiter: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of the rows, with a final line feed, and a mask of the bytes that end values."""
    data = data if data.endswith(b"\n") else data + b"\n"
    values = np.frombuffer(data, np.uint8)
    inside = inside_quotes(data, delimiter)
    return values, ((values == _NEWLINE) | (values == ord(delimiter))) & ~inside


def _end_of_rows(data: bytes, delimiter: str) -> int:
    """Return the number of bytes up to and including the last line feed outside quotes."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    return shape_of(data, delimiter).end_of_rows


def _trimmed(data: bytes, layout: _Layout, shape: CsvShape | None) -> bytes:
    """Return the rows without blanks around unquoted values; unchanged if the layout keeps blanks, or without a shape."""
    if not layout.trims or shape is None or not shape.has_blanks:
        return data
    delimiter = layout.delimiter
    ends = (delimiter.encode(), b"\n", b"\r")
    blanks = [blank for blank in (b" ", b"\t") if blank not in ends]
    values = np.frombuffer(data, np.uint8)
    inside = inside_quotes(data, delimiter)
    blank = np.isin(values, [ord(b) for b in blanks]) & ~inside
    edge = np.isin(values, [ord(e) for e in ends]) & ~inside
    position = np.arange(len(values))
    solid = np.where(blank, -1, position)
    before = np.maximum.accumulate(solid)
    behind = np.minimum.accumulate(np.where(blank, len(values), position)[::-1])[::-1]
    last = int(before[-1])
    is_quoted = last > 0 and values[last] == _QUOTE and bool(inside[last - 1] & ~inside[last])
    # A block starts with an edge (-1), and ends with one unless the blanks before it belong to a text.
    edges = np.append(edge, is_quoted or not layout.ends_in_text)
    drop = blank & (edges[before] | (before < 0) | edges[np.minimum(behind, len(values))])
    return bytes(values[~drop])


def _shape(data: bytes, layout: _Layout) -> CsvShape | None:
    """Return the facts about some rows; None without quotes and blanks, where there is nothing to find."""
    return shape_of(data, layout.delimiter) if any(b in data for b in (b'"', b" ", b"\t")) else None


def _table(data: bytes, layout: _Layout, names: tuple[str, ...], first_row: int) -> pa.Table:
    """Parse a block of rows into columns of texts; values that mean NULL or a default are null. Raises IncorrectData
    if the last quote is not closed."""
    shape = _shape(data, layout)
    if shape is not None and shape.is_open:
        raise errors.IncorrectData(
            "The data are not CSV: a quoted value does not end.",
            hint="Is the file whole? A quote within a quoted value is written twice.",
        )
    if shape is not None and shape.text_behind_quotes is not None:
        raise _text_behind_quotes(data, layout, first_row, shape.text_behind_quotes)
    if layout.ragged:
        filler = (layout.delimiter + layout.missing).encode()
        data = evened(*_marks(data, layout.delimiter), len(names), filler)
    try:
        return csv.read_csv(
            io.BytesIO(_trimmed(data, layout, shape)),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=max(len(data), 1024)),
            csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
            ),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=list(layout.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise _bad_row(data, layout, names, first_row, error) from None


def _text_behind_quotes(
    data: bytes, layout: _Layout, first_row: int, closing: int
) -> errors.IncorrectData:
    """Return the error about the row that has text between a closing quote, at `closing`, and the delimiter."""
    before = data[:closing]
    feeds = np.frombuffer(before, np.uint8) == _NEWLINE
    row = first_row + int((feeds & ~inside_quotes(before, layout.delimiter)).sum())
    text = data[closing : closing + 20].decode("utf-8", "replace")
    return errors.IncorrectData(
        f"Row {row} has {text!r} behind a quoted value, where a delimiter is expected.",
        hint="A quote within a quoted value is written twice.",
    )


def _bad_row(
    data: bytes, layout: _Layout, names: tuple[str, ...], first_row: int, error: Exception
) -> errors.DataError:
    """Return the error about the first row whose number of values is wrong."""
    _, counts = row_sizes(*_marks(data, layout.delimiter))
    wrong = np.flatnonzero(counts != len(names))
    if not len(wrong):
        return errors.IncorrectData(f"The data are not CSV: {error}.")
    row, count = first_row + int(wrong[0]), int(counts[wrong[0]])
    if count > len(names):
        return errors.IncorrectData(f"Row {row} has {count} values for {len(names)} columns.")
    return count_error(row, count, names)


def _first_line(data: bytes, layout: _Layout) -> list[str | None]:
    """Return the values of the first row of a block; None for an empty one."""
    end = 0
    while True:
        feed = data.find(b"\n", end)
        end = len(data) if feed < 0 else feed + 1
        if feed < 0 or data.count(b'"', 0, end) % 2 == 0:
            break
    line = data[:end]
    width = 1 + _trimmed(line, layout, _shape(line, layout)).count(layout.delimiter.encode())
    for count in range(width, 0, -1):  # delimiters in quotes
        try:
            row = _table(line, layout, numbered_names(count), 1)
        except errors.DataError:
            continue
        return [None if not row.num_rows else row.column(at)[0].as_py() for at in range(count)]
    return []


def _names_of(line: bytes, layout: _Layout) -> list[str]:
    """Return the values of a head line; none if a quoted value continues on the next line."""
    if line.count(b'"') % 2 == 1:
        return []
    return [value or "" for value in _first_line(line, layout)]


def _read(source: Input, head_lines: int) -> Iterator[Rows]:
    """Yield the rows of one block at a time, values as texts."""
    layout = _Layout.of(source, head_lines)
    source = _with_double_quotes(source, layout)
    head, stream = read_head(source, layout, partial(_names_of, layout=layout))
    first_row = 1
    for block in layout.blocks(stream):
        if head is None:
            if source.structure is not None:
                head = Head(tuple(name for name, _ in source.structure))
            else:
                head = Head(numbered_names(layout.width(block)))
        layout = replace(layout, ends_in_text=_ends_in_text(source, head))
        counts = leaf_counts(head.names, source)
        places = numbered_names(sum(counts))  # names may repeat
        table = _table(block, layout, places, first_row)
        rows = _rows(source, head, table, counts, first_row)
        lacking = [name for name in rows.names if name in source.absent_apart]
        if any(rows.arrays[rows.names.index(name)].null_count for name in lacking):
            layout_of_nulls = replace(layout, nulls=layout.nulls[:1])
            present = _table(block, layout_of_nulls, places, first_row)
            nulls = _rows(source, head, present, counts, first_row)
            yield from apart(rows, {name: _emptied(rows, nulls, name) for name in lacking})
        else:
            yield rows
        first_row += table.num_rows


def _ends_in_text(source: Input, head: Head) -> bool:
    """Return whether the last column has texts, names of an Enum or Bools, whose parsers take blanks, or is not known."""
    kind = dict(source.structure or ()).get(head.names[-1] if head.names else "")
    while isinstance(kind, types.Tuple):
        kind = kind.elements[-1]
    return kind is None or isinstance(types.plain(kind), _WITH_BLANKS)


def _with_double_quotes(source: Input, layout: _Layout) -> Input:
    """Return the input with single-quoted values rewritten to double quotes, if the setting allows single quotes."""
    if not source.settings.boolean("format_csv_allow_single_quotes"):
        return source
    return replace(source, stream=with_double_quotes(source.stream, layout.delimiter))


def _trims(source: Input) -> bool:
    """Return whether the settings drop blanks around values."""
    settings = source.settings
    return settings.boolean("input_format_csv_trim_whitespaces") and not settings.boolean(
        "input_format_csv_allow_whitespace_or_tab_as_delimiter"
    )


def _emptied(rows: Rows, nulls: Rows, name: str) -> np.ndarray:
    """Return a mask of the rows whose value in column `name` is empty and stands for a default; `nulls` holds the
    same rows, read with empty values as texts."""
    at = rows.names.index(name)
    is_empty = pc.and_(rows.arrays[at].is_null(), nulls.arrays[at].is_valid())
    return np.asarray(is_empty.to_numpy(zero_copy_only=False))


def _rows(
    source: Input, head: Head, table: pa.Table, counts: tuple[int, ...], first_row: int
) -> Rows:
    """Return the wanted columns of a block; `counts` is the number of CSV values in each column (more than one for
    tuples)."""
    wanted = None if source.structure is None else dict(source.structure)
    by_name: dict[str, tuple[pa.Array, types.DataType]] = {}
    at = 0
    for name, count in zip(head.names, counts, strict=True):
        chunked = table.columns[at : at + count]
        at += count
        if name in by_name or (wanted is not None and name not in wanted):
            continue
        if source.needed is not None and name not in source.needed:
            continue
        texts = [pa.concat_arrays(column.chunks) for column in chunked]
        kind = None if wanted is None else wanted[name]
        if isinstance(kind, types.Tuple) and count > 1:
            try:
                by_name[name] = tuple_of_texts(texts, kind, source.environment), kind
            except errors.DataError as error:
                raise placed(error, name, first_row) from None
        else:
            values = texts[0]
            if kind is not None and not is_text(kind) and not _trims(source):
                values = pc.utf8_trim(values, " \t")
            by_name[name] = zero_for_empty(values, kind), types.Nullable(types.STRING)
    arrays = tuple(array for array, _ in by_name.values())
    kinds = tuple(kind for _, kind in by_name.values())
    return with_dynamics(Rows(tuple(by_name), kinds, arrays, table.num_rows), source)


def _infer(source: Input, head_lines: int) -> Structure:
    """Return the columns: names and types from the head, else types from the values of the first rows."""
    layout = _Layout.of(source, head_lines)
    source = _with_double_quotes(source, layout)
    plain = Input(source.stream, source.settings, source.environment)
    head, _ = read_head(plain, layout, partial(_names_of, layout=layout))
    if head is not None and head.types is not None:
        return tuple(zip(head.names, head.types, strict=True))
    block = next(layout.blocks(source.stream), None)
    if block is None:
        raise no_structure("they have no rows")
    detects = head is None and layout.detects
    if head is None:
        head = Head(numbered_names(layout.width(block)))
    table = _table(block, layout, numbered_names(len(head.names)), 1)
    rows = _rows(plain, head, table, (1,) * len(head.names), 1)
    if not source.settings.boolean("input_format_csv_use_best_effort_in_schema_inference"):
        return tuple((name, types.Nullable(types.STRING)) for name in rows.names)
    quoted_numbers = source.settings.boolean("input_format_csv_try_infer_numbers_from_strings")
    quoted = _quoted_columns(block, layout)
    return infer_texts(rows, plain, detects, quoted, quoted_numbers=quoted_numbers)


def _quoted_columns(data: bytes, layout: _Layout) -> tuple[frozenset[int], frozenset[int]]:
    """Return two sets of column numbers: columns with a quoted value in any row, and in any row after the first."""
    values = np.frombuffer(data, np.uint8)
    inside = inside_quotes(data, layout.delimiter)
    marks = np.flatnonzero(((values == _NEWLINE) | (values == ord(layout.delimiter))) & ~inside)
    opening = np.flatnonzero((values == _QUOTE) & inside)
    places = np.searchsorted(marks, opening)
    ends = np.flatnonzero(values[marks] == _NEWLINE)
    rows = np.searchsorted(ends, places)
    at = places - np.where(rows > 0, ends[rows - 1] + 1 if len(ends) else 0, 0)
    return frozenset(at.tolist()), frozenset(at[rows > 0].tolist())


def _reader(head_lines: int) -> Reader:
    """Return the reader of a CSV format."""
    return Reader(
        partial(_infer, head_lines=head_lines),
        partial(_read, head_lines=head_lines),
        named=head_lines > 0,
    )


def _format(suffix: str, head_lines: int, said: str) -> Format:
    """Return the format CSV + `suffix`; `said` is its description."""
    return Format(
        f"CSV{suffix}",
        f"Values between commas, texts in double quotes{said}.",
        partial(CsvWriter, head_lines=head_lines),
        _reader(head_lines),
        endings=("csv",) if not head_lines else (),
    )


FORMATS = (
    _format("", 0, ""),
    _format("WithNames", 1, " behind a line of names"),
    _format("WithNamesAndTypes", 2, " behind a line of names and one of types"),
)
