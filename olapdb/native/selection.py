"""Calls of the kernels that select rows. Each needs the library.

The forms in numpy and Arrow are `functions/kernels/columns.true_positions` and
`compute/ordering.rows_within`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import DECIMAL128, validity_of, values_of

_WORD_BITS = 64
_WIDTHS = (1, 2, 4, 8, 16)
"""The bytes of a value that `kept_values` takes."""
_SLACK_BYTES = 32
"""Behind the values that `kept_values` writes: the kernel moves several at once."""


def positions(mask: pa.BooleanArray) -> np.ndarray:
    """Return the positions of the rows that are true, ascending; NULL counts as false. int64."""
    kept = empty(mask.true_count, np.int64)
    if len(kept):
        address = mask.buffers()[1].address
        validity, _ = validity_of(mask)
        kernels().olapdb_positions(address, validity, mask.offset, len(mask), kept)
    return kept


def coded_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows whose code is 0 or more, ascending, and their codes; int64 both."""
    coded, kept = empty(len(codes), np.int64), empty(len(codes), np.int64)
    count = kernels().olapdb_coded_rows(codes, len(codes), coded, kept)
    return coded[:count], kept[:count]


def kept_values(column: pa.Array, mask: pa.BooleanArray, count: int) -> pa.Array | None:
    """Return the values of the `count` rows that are true in a mask without NULL. Returns None for columns with
    NULL, for types of no fixed width of whole bytes, and for masks that begin within a byte."""
    if isinstance(column, pa.DictionaryArray):
        codes = kept_values(column.indices, mask, count)
        if codes is None:
            return None
        return pa.DictionaryArray.from_arrays(codes, column.dictionary, safe=False)
    arrow = column.type
    if mask.offset % 8 or not (pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow)):
        return None
    width = arrow.bit_width // 8
    data = column.buffers()[1]
    if width not in _WIDTHS or data is None or column.null_count:
        return None
    kept = empty(count * width + _SLACK_BYTES, np.uint8)
    address, bits = data.address + width * column.offset, mask.buffers()[1].address
    kernels().olapdb_keep_values(width, address, bits, mask.offset, len(mask), kept)
    return pa.Array.from_buffers(arrow, count, [None, pa.py_buffer(kept[: count * width])], 0)


def positions_within(
    column: pa.Array, bound: pa.Array, *, descending: bool, nulls_first: bool
) -> np.ndarray | None:
    """Return the positions of the rows that do not come after the bound, an array of one value,
    ascending; int64. With `nulls_first` rows of NULL and NaN are among them.

    Returns None for types without a kernel."""
    rows = len(column)
    positions = empty(rows, np.int64)
    if pa.types.is_string(column.type) and rows:
        _, offsets, data = column.buffers()
        text = bound.buffers()[2]
        text_offsets = np.frombuffer(bound.buffers()[1], np.int32, 2, 4 * bound.offset)
        count = kernels().olapdb_texts_within(
            offsets.address + 4 * column.offset,
            None if data is None else data.address,
            *validity_of(column),
            rows,
            None if text is None else text.address + int(text_offsets[0]),
            int(text_offsets[1] - text_offsets[0]),
            descending,
            nulls_first,
            positions,
        )
        return positions[:count]
    described = _fixed_width(column)
    if described is None:
        return None
    _, limit, _, _ = _fixed_width(bound) or described
    count = kernels().olapdb_within(*described, rows, limit, descending, nulls_first, positions)
    return positions[:count]


def keep_between(
    column: pa.Array, low: np.ndarray, high: np.ndarray, kept: np.ndarray, *, outside: bool = False
) -> int | None:
    """Keep in `kept` the rows whose value lies between both bounds, included, which are one value each of
    the column's width; with `outside` those whose value does not. Return their number. NaN lies in no range,
    and NULL is never kept.

    `kept` has a bit for each row, in words of 64 bits, the first row's the lowest. Returns None for
    types without a kernel, and changes nothing."""
    described = _fixed_width(column)
    if described is None:
        return None
    return int(kernels().olapdb_keep_between(*described, len(column), low, high, outside, kept))


def keep_not_after(
    column: pa.Array, bound: pa.Array, kept: np.ndarray, *, descending: bool
) -> bool:
    """Keep in `kept` (as in `keep_between`) the rows whose value does not come after the bound, an array of one
    value. Return False for columns other than integers, dates, times and short decimals, and change nothing."""
    values, limit = values_of(column), values_of(bound)
    if values is None or limit is None or not values.is_integer or limit.type != values.type:
        return False
    ends = np.iinfo(values.numbers.dtype)
    last = np.array([ends.max if descending else ends.min], values.numbers.dtype)
    low, high = (limit.numbers, last) if descending else (last, limit.numbers)
    return keep_between(column, low, high, kept) is not None


def keep_best(
    column: pa.Array, bound: pa.Array | None, limit: int, kept: np.ndarray, *, descending: bool
) -> bool:
    """Keep in `kept` (as in `keep_between`) the rows whose value comes neither after the bound, an array of one value,
    nor after the `limit`-th best value of the rows in `kept`; rows that are equal to it stay. Return False for columns
    with NULL and those other than integers, dates, times and short decimals, and change nothing.

    The same in numpy is `np.partition` of the rows in `kept`."""
    values = values_of(column)
    limits = None if bound is None else values_of(bound)
    if values is None or values.validity is not None or not values.is_integer:
        return False
    if bound is not None and (limits is None or limits.type != values.type):
        return False
    heap = empty(limit, values.numbers.dtype)
    first = None if limits is None else limits.numbers
    kernels().olapdb_keep_best(
        values.type, values.numbers, values.rows, descending, first, limit, heap, kept
    )
    return True


def kept_rows(mask: pa.BooleanArray | None, rows: int) -> np.ndarray:
    """Return the rows that a mask without NULL keeps (None: all), as `keep_between` and `keep_flagged` take
    them: a copy, uint64."""
    words = -(-rows // _WORD_BITS)
    if mask is None:
        kept = empty(words, np.uint64)
        kept.fill(~np.uint64(0))
        return kept
    kept = np.zeros(words, np.uint64)
    bits = np.frombuffer(mask.buffers()[1], np.uint8, -(-(mask.offset + rows) // 8))
    if mask.offset:
        flags = np.unpackbits(bits, bitorder="little")
        bits = np.packbits(flags[mask.offset : mask.offset + rows], bitorder="little")
    kept.view(np.uint8)[: len(bits)] = bits
    return kept


def as_mask(kept: np.ndarray, rows: int) -> pa.BooleanArray:
    """Return the rows that `kept` keeps as a mask without NULL, over the same memory."""
    return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(kept)])


def keep_flagged(codes: pa.Array, flags: np.ndarray, kept: np.ndarray) -> None:
    """Keep in `kept` (as in `keep_between`) the rows whose code, an integer, has a flag of 1. `flags` has
    a uint8 of 0 or 1 for each code, the last one for NULL."""
    values = values_of(codes)
    assert values is not None
    assert flags.dtype == np.uint8
    kernels().olapdb_keep_flagged(*values.column, len(codes), flags, len(flags) - 1, kept)


def _fixed_width(column: pa.Array) -> tuple[int, np.ndarray | int, int | None, int] | None:
    """Return the arguments that describe a column of numbers, times or 128-bit decimals to a kernel: bytes of a value,
    values, validity bitmap or None, and bit of row 0. None for other columns."""
    values = values_of(column)
    if values is not None:
        return values.column
    buffer = column.buffers()[1] if pa.types.is_decimal128(column.type) else None
    if buffer is None:
        return None
    return DECIMAL128, buffer.address + 16 * column.offset, *validity_of(column)
