"""Calls of the kernels that number equal rows. Each needs the library to be loaded.

Codes and first rows are as `compute/group_codes.Factorised` has them, whose forms in numpy and Arrow
give the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import address_of, empty
from olapdb.native.values import (
    ColumnValues,
    as_integers,
    is_integer_type,
    number_type,
    validity_of,
    values_of,
    values_of_numbers,
)
from olapdb.records import dataclass

_TABLE_MAX = 1 << 31
_CAPACITY_MIN = 4096
"""Hash tables begin with 64 KiB, which stay in a processor's second cache."""
_SPARE = 64
"""A table of n slots takes five eighths of n keys, less those that are read ahead."""
_SLOT_WORDS = 2
_STEP_SAMPLE = 256
"""So many values are looked at for a step before all are divided by it."""
_NARROW_BYTES = 2
"""A table has a place for each value of integers so wide."""
_OFFSET_BYTES = {
    pa.string().id: 4,
    pa.binary().id: 4,
    pa.large_string().id: 8,
    pa.large_binary().id: 8,
}


@dataclass(frozen=True)
class Digit:
    """A column as a digit of a packed key: value - `low`, NULL the largest of `count` digits."""

    values: ColumnValues
    low: int
    count: int

    @property
    def arguments(self) -> tuple[object, ...]:
        """Return the column and the digit as kernels take them."""
        return (*self.values.column, self.values.rows, self.low % (1 << 64), self.count)

    @property
    def words(self) -> tuple[int, ...]:
        """Return the column and the digit as words of 64 bits, for a table of digits."""
        number, numbers, validity, bit = self.values.column
        low = (self.low + (1 << 63)) % (1 << 64) - (1 << 63)
        return number, address_of(numbers), validity or 0, bit, low, self.count


def number_integers(
    leaves: Sequence[pa.Array], radix_max: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Number rows of integers, dates or times by first appearance, through a table of a place for
    each possible row; return the codes and first rows.

    Returns None for other types, without rows, and where the table would exceed `radix_max`."""
    packing = digits_of(leaves, radix_max)
    return None if packing is None else _number_digits(*packing)


def number_codes(codes: np.ndarray, radix: int) -> tuple[np.ndarray, np.ndarray]:
    """Number int64 codes below `radix` by first appearance; return the new codes and first rows."""
    return _number_digits([Digit(values_of_numbers(codes), 0, radix)], radix)


def _number_digits(digits: Sequence[Digit], radix: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the numbers that have these digits and are below `radix`, by first appearance; return the
    codes and first rows."""
    rows = digits[0].values.rows
    assert rows < _TABLE_MAX
    packed = _packed(digits[:-1]) if len(digits) > 1 else None
    codes, firsts = empty(rows, np.int64), empty(min(rows, radix), np.int64)
    table = empty(radix, np.int32)
    count = kernels().olapdb_number_values(
        *digits[-1].arguments, radix, packed, table, codes, firsts
    )
    return codes, firsts if count == len(firsts) else firsts[:count].copy()


def pack(leaves: Sequence[pa.Array], radix_max: int) -> tuple[np.ndarray, int] | None:
    """Pack each row's integers, dates or times into one number; return the numbers and their bound.

    NULL is one more digit after the largest. Returns None for other types, without rows, and where
    the bound would exceed `radix_max`."""
    packing = digits_of(leaves, radix_max)
    return None if packing is None else (_packed(packing[0]), packing[1])


def digits_of(leaves: Sequence[pa.Array], radix_max: int) -> tuple[list[Digit], int] | None:
    """Return the columns as digits of one number, and its bound; None as `pack` does."""
    digits: list[Digit] = []
    radix = 1
    if not all(is_integer_type(leaf.type) for leaf in leaves):
        return None
    for leaf in leaves:
        values = values_of(leaf)
        if values is None or not len(leaf):
            return None
        low, high = bounds(values) if len(leaves) > 1 else _single_bounds(values, radix_max)
        count = high - low + 1 + (values.validity is not None)
        if radix * count > radix_max and values.validity is None:
            step = _step(values, low)
            if step > 1 and radix * ((high - low) // step + 1) <= radix_max:
                in_steps = _in_steps(values, low, step)
                if in_steps is not None:
                    values, low, count = in_steps, 0, (high - low) // step + 1
        radix *= count
        if radix > radix_max:
            return None
        digits.append(Digit(values, low, count))
    return digits, radix


def _single_bounds(values: ColumnValues, radix_max: int) -> tuple[int, int]:
    """Return (least, largest) of a single column: the bounds of its type where a table for all of its values has at
    most `radix_max` places, else those of the values, which must be read for it."""
    dtype = values.numbers.dtype
    if dtype.itemsize > _NARROW_BYTES or (1 << 8 * dtype.itemsize) >= radix_max:
        return bounds(values)
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _step(values: ColumnValues, low: int) -> int:
    """Return the largest number of which the distances of some values from `low` are multiples: 3,600 for times that are
    rounded down to hours; 0 if these are all `low`."""
    sample = values.numbers[:: max(values.rows // _STEP_SAMPLE, 1)]
    distances = sample.astype(np.uint64) - np.uint64(low % (1 << 64))
    return int(np.gcd.reduce(distances))


def _in_steps(values: ColumnValues, low: int, step: int) -> ColumnValues | None:
    """Return how many steps each value is above `low`, as UInt32; None where one is between two steps."""
    steps = empty(values.rows, np.uint32)
    inverse = -(-(1 << 64) // step)
    is_exact = kernels().olapdb_count_steps(
        values.type, values.numbers, values.rows, low % (1 << 64), step, inverse, steps
    )
    return values_of_numbers(steps) if is_exact else None


def write_multiples(values: np.ndarray, step: int, multiples: np.ndarray) -> bool:
    """Write int64 values, rounded down to multiples of `step`, to `multiples`, int64. Return False where a value is
    negative or needs more than 32 bits, and for a step of 1: then what is written is void.

    The form in numpy is `functions/datetime/rounding.multiples`."""
    if step < 2 or values.dtype != np.int64 or not values.flags.c_contiguous:
        return False
    inverse = -(-(1 << 64) // step)
    is_written = kernels().olapdb_multiples(values, len(values), step, inverse, multiples)
    return bool(is_written)


def _packed(digits: Sequence[Digit]) -> np.ndarray:
    """Return for each row the int64 number that its digits make."""
    packed = empty(digits[0].values.rows, np.int64)
    for at, digit in enumerate(digits):
        kernels().olapdb_pack(*digit.arguments, at == 0, packed)
    return packed


def key_digits(types: Sequence[pa.DataType]) -> list[int] | None:
    """Return how many digits a value of each column has where a row is a key of 64 bits: one for each
    number of its width, and NULL. None for other types, and for several columns of too many bits.

    One number needs no digit for NULL, which the caller tells apart."""
    digits = []
    for arrow in types:
        dtype = number_type(arrow)
        if dtype is None:
            return None
        digits.append((1 << 8 * dtype.itemsize) + 1)
    fits = bool(types) and (len(types) == 1 or math.prod(digits) <= 1 << 64)
    return digits if fits else None


def exact_keys(columns: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Array | None]:
    """Return a key of 64 bits for each row, of columns with `key_digits`, and the column whose NULLs have
    no key: a single one. Equal rows of any batches have equal keys."""
    values = [values_of(column) for column in columns]
    bits_of_columns = [bits for bits in values if bits is not None]
    assert len(bits_of_columns) == len(columns)
    if len(bits_of_columns) == 1:
        return _keys_of(bits_of_columns[0]), columns[0]
    digits = key_digits([column.type for column in columns])
    assert digits is not None
    packing = [
        Digit(bits, int(np.iinfo(bits.numbers.dtype).min), count)
        for bits, count in zip(map(as_integers, bits_of_columns), digits, strict=True)
    ]
    return _packed(packing).view(np.uint64), None


def bounds(values: ColumnValues) -> tuple[int, int]:
    """Return the least and the largest value of a column of integers; (0, -1) if all are NULL."""
    ends = np.zeros(2, np.uint64)
    if not kernels().olapdb_bounds(*values.column, values.rows, ends):
        return 0, -1
    if values.numbers.dtype.kind == "i":
        ends = ends.view(np.int64)
    return int(ends[0]), int(ends[1])


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


def number_rows(columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray] | None:
    """Number equal rows of several columns of a fixed width by first appearance; return the codes and first rows.

    NULL equals NULL; floats are equal by their bits. Returns None for types without a kernel, and without rows."""
    described = _key_columns(columns)
    if described is None:
        return None
    rows = len(columns[0])
    return _number(kernels().olapdb_number_rows, (described, len(columns)), rows, slot_words=1)


def number_divided(
    columns: Sequence[pa.Array], ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Number rows as `number_rows` does, where no row before one of `ends` is equal to one behind it."""
    described = _key_columns(columns)
    if described is None:
        return None
    rows = len(columns[0])
    longest = int(np.diff(ends, prepend=0).max())
    capacity = 1 << (longest // 5 * 8 + _SPARE).bit_length()
    slots, codes, firsts = empty(capacity, np.int64), empty(rows, np.int64), empty(rows, np.int64)
    count = kernels().olapdb_number_divided(
        described, len(columns), ends, len(ends), slots, capacity, codes, firsts
    )
    return codes, firsts if count == rows else firsts[:count].copy()


def _key_columns(columns: Sequence[pa.Array]) -> np.ndarray | None:
    """Describe columns of a fixed width to the kernels that number rows; None for other types, and without rows."""
    vectors = [values_of(column) for column in columns]
    known = [as_integers(vector) for vector in vectors if vector is not None and vector.rows]
    if len(known) < len(columns):
        return None
    assert known[0].rows < _TABLE_MAX
    return np.array(
        [
            (vector.type, address_of(vector.numbers), vector.validity or 0, vector.bit)
            for vector in known
        ],
        np.int64,
    )


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
    kernel: Callable[..., None],
    column: tuple[object, ...],
    rows: int,
    slot_words: int = _SLOT_WORDS,
) -> tuple[np.ndarray, np.ndarray]:
    """Run a kernel that numbers `rows` rows, with a larger table each time that it is full.

    Returns the codes, and the first row of each code."""
    codes, firsts = empty(rows, np.int64), empty(rows, np.int64)
    progress = np.array([0, 0, -1], np.int64)
    capacity = _CAPACITY_MIN
    while progress[0] < rows:
        slots = empty(slot_words * capacity, np.int64)
        kernel(*column, rows, slots, capacity, progress, codes, firsts)
        del slots
        # As many keys a row as so far would need this table; most often there are fewer.
        expected = int(progress[1]) * rows // max(int(progress[0]), 1)
        capacity = max(2 * capacity, 1 << (expected // 5 * 8 + _SPARE).bit_length())
    count = int(progress[1])
    return codes, firsts if count == rows else firsts[:count].copy()


def _keys_of(values: ColumnValues) -> np.ndarray:
    """Return the values as 64 bits each; floats by their bits."""
    numbers = values.numbers
    if numbers.dtype.kind == "f":
        numbers = numbers.view(f"i{numbers.itemsize}")
    if numbers.itemsize == 8:
        return numbers.view(np.uint64)
    keys = empty(len(numbers), np.int64)
    np.copyto(keys, numbers)
    return keys.view(np.uint64)
