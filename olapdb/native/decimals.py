"""Calls of the kernels of decimals. Each needs the library.

The forms in numpy and Arrow are in `functions/numeric/decimals.py` and `functions/kernels/decimal_width.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.native.library import kernels
from olapdb.native.memory import address_of, empty
from olapdb.native.values import DECIMAL128, FLOATS_FROM, values_of

_OPERATIONS = {"plus": 0, "minus": 1, "multiply": 2}
COLUMN, CONSTANT, SCALE = 3, 4, 5
"""The operations of `compute` besides those three."""
DEPTH_MAX = 8
"""The most values that a program of `compute` may have at a time."""


def operation_of(name: str) -> int | None:
    """Return the number of plus, minus and multiply; None for other functions."""
    return _OPERATIONS.get(name)


def shorten(address: int, values: np.ndarray) -> None:
    """Fill `values` (int64) from 128-bit decimals that fit 64 bits, which begin at the address."""
    kernels().olapdb_shorten_decimals(address, len(values), values)


def lengthen(values: np.ndarray, words: np.ndarray) -> None:
    """Fill `words` with the two halves of each of the int64 `values`, the lower one first."""
    kernels().olapdb_lengthen_decimals(values, len(values), words)


def compute(steps: np.ndarray, inputs: Sequence[pa.Array], rows: int) -> np.ndarray | None:
    """Return the values, int64, of an expression over columns of `rows` rows, those of nulls included.

    `steps` is the program, int64 of shape (steps, 3), see `olapdb_compute_decimals`. Returns None where the
    type of a column has no kernel, or a value does not fit its width."""
    described = [_described(column) for column in inputs]
    table = np.empty((len(described), 2), np.int64)
    for at, column in enumerate(described):
        if column is None:
            return None
        kind, place = column
        address = place if isinstance(place, int) else address_of(place)
        table[at] = kind, address
    values = empty(rows, np.int64)
    if not kernels().olapdb_compute_decimals(steps, len(steps), table, rows, values):
        return None
    return values


def combine(
    operation: str,
    columns: Sequence[pa.Array],
    powers: Sequence[int],
    rows: int,
    result: tuple[pa.DataType, int],
) -> pa.Array | None:
    """Return the sum, difference or product of two columns, each without its point and times a power of
    ten; NULL where either is NULL.

    A column of one row has that value in all rows. `result` is the Arrow type, a decimal128, and the width
    of the integer that must hold each value: 32, 64 or 128 bits. Returns None where the type of a column
    has no kernel, an operand does not fit 64 bits, or a value does not fit."""
    arrow, bits = result
    described = [_described(column) for column in columns]
    left, right = described
    if left is None or right is None:
        return None
    steps = [int(len(column) == rows) for column in columns]
    words = empty(2 * rows, np.int64)
    fits = kernels().olapdb_combine_decimals(
        _OPERATIONS[operation],
        *(*left, steps[0], powers[0]),
        *(*right, steps[1], powers[1]),
        *(rows, bits, words),
    )
    if not fits:
        return None
    combined = pa.Array.from_buffers(arrow, rows, [None, pa.py_buffer(words)])
    for column in columns:
        if column.null_count:
            valid = column.is_valid() if len(column) == rows else column.is_valid()[0]
            combined = pc.if_else(valid, combined, pa.scalar(None, arrow))
    return combined


def _described(column: pa.Array) -> tuple[int, np.ndarray | int] | None:
    """Return the kernels' number of the type, and the values: the address of the first one for a decimal128, an
    array for other types. None for types without this kernel, and for arrays without values."""
    if pa.types.is_decimal128(column.type):
        data = column.buffers()[1]
        return None if data is None else (DECIMAL128, data.address + 16 * column.offset)
    values = values_of(column)
    if values is None or values.type >= FLOATS_FROM or not len(column):
        return None
    return values.type, values.numbers
