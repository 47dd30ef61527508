"""Calls of the kernels that number equal rows. Each needs the library to be loaded.

Codes and first rows are as `compute/group_codes.Factorised` has them, whose forms in numpy and Arrow
give the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import Values, validity_of, values_of

_TABLE_MAX = 1 << 31
_CAPACITY_MIN = 4096
_GROWTH = 4
"""Hash tables begin with 64 KiB, which stay in a processor's second cache."""
_SPARE = 64
"""A table of n slots takes five eighths of n keys, less those that are read ahead."""
_SLOT_WORDS = 2
_OFFSET_BYTES = {
    pa.string().id: 4,
    pa.binary().id: 4,
    pa.large_string().id: 8,
    pa.large_binary().id: 8,
}


def pack(leaves: Sequence[pa.Array], radix_max: int) -> tuple[np.ndarray, int] | None:
    """Pack each row's integers, dates or times into one number; return the numbers and their bound.

    NULL is one more digit after the largest. Returns None for other types, without rows, and where
    the bound would exceed `radix_max`."""
    columns: list[tuple[Values, int, int]] = []
    radix = 1
    for leaf in leaves:
        values = values_of(leaf)
        if values is None or not values.is_integer or not len(leaf):
            return None
        low, high = bounds(values)
        digits = high - low + 1 + (values.validity is not None)
        radix *= digits
        if radix > radix_max:
            return None
        columns.append((values, low, digits))
    rows = len(leaves[0])
    packed = empty(rows, np.int64)
    for at, (values, low, digits) in enumerate(columns):
        kernels().olapdb_pack(*values.column, rows, low % (1 << 64), digits, at == 0, packed)
    return packed, radix


def bounds(values: Values) -> tuple[int, int]:
    """Return the least and the largest value of a column of integers; (0, -1) if all are NULL."""
    ends = np.zeros(2, np.uint64)
    if not kernels().olapdb_bounds(*values.column, values.rows, ends):
        return 0, -1
    if values.numbers.dtype.kind == "i":
        ends = ends.view(np.int64)
    return int(ends[0]), int(ends[1])


def number_dense(keys: np.ndarray, radix: int) -> tuple[np.ndarray, np.ndarray]:
    """Number int64 keys below `radix` by first appearance; return the codes and first rows."""
    rows = len(keys)
    assert rows < _TABLE_MAX
    codes, firsts = empty(rows, np.int64), empty(min(rows, radix), np.int64)
    count = kernels().olapdb_number_dense(keys, rows, radix, empty(radix, np.int32), codes, firsts)
    return codes, firsts if count == len(firsts) else firsts[:count].copy()


def number(column: pa.Array) -> tuple[np.ndarray, np.ndarray] | None:
    """Number equal values by first appearance; return the codes and first rows.

    NULL equals NULL; floats are equal by their bits. Returns None for types without a kernel."""
    values = values_of(column)
    if values is not None:
        return number_keys(_keys_of(values), column)
    if not len(column):
        return None
    if column.type.id in _OFFSET_BYTES:
        return _number_texts(column)
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_decimal(column.type):
        return _number_texts(column)
    return None


def number_keys(keys: np.ndarray, column: pa.Array | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Number keys of 64 bits by first appearance; return the codes and first rows.

    Where `column` is NULL its key is not read."""
    validity = (None, 0) if column is None else validity_of(column)
    return _number(kernels().olapdb_number_hashed, (keys, *validity), len(keys))


def _number_texts(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Number texts, binary values or values of fixed width; return the codes and first rows."""
    arrow, buffers = column.type, column.buffers()
    start = 0 if buffers[-1] is None else buffers[-1].address
    offset_bytes = _OFFSET_BYTES.get(arrow.id, 0)
    width = 0 if offset_bytes else arrow.bit_width // 8
    start += column.offset * width
    offsets = buffers[1].address + column.offset * offset_bytes if offset_bytes else None
    column_of_texts = (start, offsets, offset_bytes, width, *validity_of(column))
    return _number(kernels().olapdb_number_texts, column_of_texts, len(column))


def _number(
    kernel: Callable[..., None], column: tuple[object, ...], rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run a kernel that numbers `rows` rows, with a larger table each time that it is full.

    Returns the codes, and the first row of each code."""
    codes, firsts = empty(rows, np.int64), empty(rows, np.int64)
    progress = np.array([0, 0, -1], np.int64)
    capacity, enough = _CAPACITY_MIN, 1 << (rows // 5 * 8 + _SPARE).bit_length()
    while progress[0] < rows:
        slots = empty(_SLOT_WORDS * capacity, np.int64)
        kernel(*column, rows, slots, capacity, progress, codes, firsts)
        del slots
        capacity = max(2 * capacity, min(_GROWTH * capacity, enough))
    count = int(progress[1])
    return codes, firsts if count == rows else firsts[:count].copy()


def _keys_of(values: Values) -> np.ndarray:
    """Return the values as 64 bits each; floats by their bits."""
    numbers = values.numbers
    if numbers.dtype.kind == "f":
        numbers = numbers.view(f"i{numbers.itemsize}")
    if numbers.itemsize == 8:
        return numbers.view(np.uint64)
    keys = empty(len(numbers), np.int64)
    np.copyto(keys, numbers)
    return keys.view(np.uint64)
