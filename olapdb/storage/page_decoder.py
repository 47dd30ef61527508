"""Decode pages of part files by a kernel, straight into the form that the column cache keeps.

It knows pages as our writer makes them: numbers, dates, times, short Decimals and texts; plain, of a dictionary or as
differences; compressed by LZ4 or not at all.  It reads the pages of a column with one call, verifies their checksums,
and makes one array of all row groups.  Whatever else is there, and whatever is damaged, is left to Arrow's reader,
whose errors say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.functions import parse_type
from olapdb.functions.kernels.decimal_width import has_short_form, short_form
from olapdb.native import pages
from olapdb.native.library import library
from olapdb.records import dataclass
from olapdb.storage.column_chunks import window_groups
from olapdb.storage.part_footer import FileColumn, PartFooter, ticks_per_unit

_PHYSICAL = {"INT32": 1, "INT64": 2, "FLOAT": 4, "DOUBLE": 5}
_CODECS = {"UNCOMPRESSED": 0, "LZ4": 1}
_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_FLOATS = ("FLOAT", "DOUBLE")
_MILLISECONDS = 1000
"""Of a second: Parquet has none, so that seconds are stored as milliseconds."""


@dataclass(frozen=True)
class ColumnPages:
    """The pages of a column of a file whose values a kernel decodes to the type `arrow`. `form` and `chunks` are as the
    functions of `native.pages` take them; `chunks` has all row groups of the file."""

    arrow: pa.DataType
    form: np.ndarray
    chunks: np.ndarray


@dataclass(frozen=True, eq=False)
class PageSource:
    """The open file that a kernel reads pages from, as it takes it. `memory` keeps the bytes of one in memory."""

    place: np.ndarray
    memory: pa.Buffer | None = None

    @staticmethod
    def of(file: pa.NativeFile) -> PageSource | None:
        """Return a file as the kernels read it: a file of the system, or one in memory. None for others, and
        without kernels."""
        if library() is None:
            return None
        if type(file) is pa.OSFile:
            return PageSource(np.array([file.fileno(), 0, 0], np.int64))
        if type(file) is pa.BufferReader:
            file.seek(0)
            memory = file.read_buffer()
            return PageSource(np.array([-1, memory.address, memory.size], np.int64), memory)
        return None


def column_pages(footer: PartFooter, column: FileColumn) -> ColumnPages | None:
    """Return the pages of a column, None if no kernel knows its type. Made once for a footer."""
    known = footer.known_pages
    if column.id not in known:
        known[column.id] = _column_pages(footer, column)
    return known[column.id]


def decode_pages(source: PageSource, column: ColumnPages, groups: Sequence[int]) -> pa.Array | None:
    """Return the values of some row groups as one array. None if Arrow has to read them."""
    chunks = column.chunks[list(groups)]
    if pa.types.is_string(column.arrow):
        return _decode_texts(source, column, chunks)
    decoded = pages.decode_numbers(source.place, chunks, column.form)
    if decoded is None:
        return None
    values, validity, nulls = decoded
    rows = int(chunks[:, 2].sum())
    return pa.Array.from_buffers(
        column.arrow,
        rows,
        [
            None if validity is None or not nulls else pa.py_buffer(validity),
            pa.py_buffer(values).slice(0, rows * int(column.form[3])),
        ],
        nulls,
    )


def _decode_texts(source: PageSource, column: ColumnPages, chunks: np.ndarray) -> pa.Array | None:
    """Return the texts of some row groups as one array; None if Arrow has to read them."""
    decoded = pages.decode_texts(source.place, chunks, column.form)
    if decoded is None:
        return None
    offsets, texts, validity, nulls = decoded
    bitmap = None if validity is None or not nulls else pa.py_buffer(validity)
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(column.arrow, len(offsets) - 1, buffers, nulls)


def runs_in_windows(groups: Sequence[int], group_rows: int) -> Iterator[Sequence[int]]:
    """Yield row groups that follow each other in one window of their file: those that the column cache may keep as
    one array."""
    window = window_groups(group_rows)
    start = 0
    for at in range(1, len(groups) + 1):
        if at == len(groups) or groups[at] != groups[at - 1] + 1 or not groups[at] % window:
            yield groups[start:at]
            start = at


def _column_pages(footer: PartFooter, column: FileColumn) -> ColumnPages | None:
    """Find the pages of a column of a type that a kernel knows."""
    if column.leaf_count != 1 or not footer.metadata.num_row_groups:
        return None
    leaf = footer.metadata.schema.column(column.first_leaf)
    arrow = _decoded_type(column)
    if arrow is None or leaf.max_repetition_level or leaf.max_definition_level > 1:
        return None
    groups = range(footer.metadata.num_row_groups)
    chunks = [footer.metadata.row_group(group).column(column.first_leaf) for group in groups]
    codec = chunks[0].compression
    if codec not in _CODECS or any(chunk.compression != codec for chunk in chunks):
        return None
    form = _form(leaf.physical_type, arrow, leaf.max_definition_level, _CODECS[codec])
    if form is None:
        return None
    if pa.types.is_string(arrow):
        form = (*form, int(any(chunk.has_dictionary_page for chunk in chunks)))
    return ColumnPages(
        arrow, np.array(form, np.int64), np.array([_place(chunk) for chunk in chunks], np.int64)
    )


def _form(
    physical: str, arrow: pa.DataType, is_optional: int, codec: int
) -> tuple[int, ...] | None:
    """Return how a kernel decodes the pages of a column, as the words that it takes: for texts (may be NULL, codec),
    for others (physical type, may be NULL, codec, bytes of a value, divisor of stored ticks). None if no kernel knows
    the physical type for this Arrow type."""
    if pa.types.is_string(arrow):
        return (is_optional, codec) if physical == "BYTE_ARRAY" else None
    if physical not in _PHYSICAL or pa.types.is_floating(arrow) != (physical in _FLOATS):
        return None
    width, stored_width = int(arrow.bit_width) // 8, _WIDTHS[physical]
    is_narrow = physical == "INT32" and width < stored_width
    is_widened = physical == "INT32" and pa.types.is_decimal(arrow)
    if width != stored_width and not is_narrow and not is_widened:
        return None
    divisor = _MILLISECONDS if pa.types.is_timestamp(arrow) and arrow.unit == "s" else 1
    return _PHYSICAL[physical], is_optional, codec, width, divisor


def _place(chunk: pq.ColumnChunkMetaData) -> tuple[int, int, int, int]:
    """Return where the pages of a column in a row group begin in the file, their bytes, the number of values, and their
    bytes without compression."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page:
        start = min(start, chunk.dictionary_page_offset)
    return start, chunk.total_compressed_size, chunk.num_values, chunk.total_uncompressed_size


def _decoded_type(column: FileColumn) -> pa.DataType | None:
    """Return the type in which the column cache keeps a column, if the values of its pages are those of the type."""
    stored = column.type
    named = stored if column.type_name == "" else parse_type(column.type_name).arrow
    if pa.types.is_decimal128(stored) and has_short_form(named) and stored.scale == named.scale:
        return short_form(named) if has_short_form(stored) else None
    is_known = pa.types.is_date32(named) or pa.types.is_timestamp(named)
    is_known = is_known or pa.types.is_integer(named) or pa.types.is_float32(named)
    is_known = is_known or pa.types.is_float64(named) or pa.types.is_string(named)
    if not is_known:
        return None
    if pa.types.is_timestamp(named):
        is_same = pa.types.is_timestamp(stored) and ticks_per_unit(stored, named) is not None
        return named if is_same and stored.unit in (named.unit, "ms") else None
    return named if stored == named else None
