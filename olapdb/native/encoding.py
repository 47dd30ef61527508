"""Calls of the kernels that encode columns as pages of Parquet. Each needs the library to be loaded.

The other form is Arrow's writer, see `storage/parquet/page_encoder.py`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import lasting
from olapdb.native.values import DECIMAL128, number_type, validity_of, values_of
from olapdb.records import dataclass

_FACTS = 9
_TABLE_BYTES, _BLOCK_BYTES, _PIECE_BYTES = 1 << 14, 1 << 10, 128
_PIECES = 7
_LEAST_SLOTS = 64


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """The pages of a column of a row group. Of numbers `least` and `greatest` are the bits, of texts the rows; without
    a value they say nothing."""

    bytes: int
    dictionary_bytes: int
    """The bytes of the page of the dictionary, 0 without one."""
    page_bytes: int
    """The bytes of the pages, if they were not compressed."""
    nulls: int
    encoding: int
    has_range: bool
    least: int
    greatest: int
    has_nan: bool
    """True if a value is NaN, which the range leaves out."""


def knows_numbers(arrow: pa.DataType) -> bool:
    """Return whether `encode_numbers` takes arrays of a type."""
    return number_type(arrow) is not None or pa.types.is_decimal128(arrow)


def encode_numbers(
    array: pa.Array, form: np.ndarray, out: np.ndarray, registers: np.ndarray | None = None
) -> EncodedChunk | None:
    """Encode numbers, dates, times or Decimals of 128 bits at the start of `out`, uint8. None if it is too small.

    `form` is as `NumberForm` in `encoding.c`, int64. `registers` are raised to the values, which are no floats then,
    as `storage/distinct_counts.py` does it."""
    rows = len(array)
    if pa.types.is_decimal128(array.type):
        data = array.buffers()[1]
        column: tuple[object, ...] = (
            DECIMAL128,
            data.address + array.type.byte_width * array.offset,
            *validity_of(array),
        )
    else:
        values = values_of(array)
        assert values is not None
        column = values.column
    body = (int(form[0]) + 1) * rows + _BLOCK_BYTES
    scratch = lasting(_TABLE_BYTES + 11 * rows + 3 * body + _PIECES * _PIECE_BYTES)
    facts = np.zeros(_FACTS, np.int64)
    problem = kernels().olapdb_encode_numbers(
        *column, rows, form, scratch, len(scratch), out, len(out), facts, registers
    )
    return None if problem else _chunk(facts)


def encode_texts(
    array: pa.Array, form: np.ndarray, out: np.ndarray, registers: np.ndarray | None = None
) -> EncodedChunk | None:
    """Encode texts at the start of `out`, uint8. None if it is too small.

    `form` says whether rows may be NULL, whether LZ4 compresses, and how many texts a dictionary may have. `registers`
    are raised to the texts, as `storage/distinct_counts.py` does it."""
    rows = len(array)
    _, offsets, data = array.buffers()
    body = 12 * rows + text_bytes(array) + _BLOCK_BYTES
    most = int(form[2])
    scratch_bytes = _TABLE_BYTES + 4 * rows + 24 * most + 3 * body + 4 * _LEAST_SLOTS
    scratch = lasting(scratch_bytes + _PIECES * _PIECE_BYTES)
    facts = np.zeros(_FACTS, np.int64)
    problem = kernels().olapdb_encode_texts(
        offsets.address + 4 * array.offset,
        scratch if data is None else data.address,
        *validity_of(array),
        rows,
        form,
        scratch,
        len(scratch),
        out,
        len(out),
        facts,
        registers,
    )
    return None if problem else _chunk(facts)


def text_range(array: pa.Array) -> tuple[int, int]:
    """Return the rows of the least and the greatest text, -1 without one."""
    _, offsets, data = array.buffers()
    ends = np.zeros(2, np.int64)
    kernels().olapdb_text_range(
        offsets.address + 4 * array.offset,
        ends if data is None else data.address,
        *validity_of(array),
        len(array),
        ends,
    )
    return int(ends[0]), int(ends[1])


def text_bytes(array: pa.Array) -> int:
    """Return the number of bytes of all texts of an array of at least one row."""
    ends = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    return int(ends[-1]) - int(ends[0])


def _chunk(facts: np.ndarray) -> EncodedChunk:
    """Return the numbers that a kernel left in `facts` under their names."""
    size, dictionary, page, nulls, encoding, has_range, least, greatest, has_nan = facts.tolist()
    return EncodedChunk(
        size, dictionary, page, nulls, encoding, bool(has_range), least, greatest, bool(has_nan)
    )
