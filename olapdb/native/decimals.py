"""Calls of the kernel of decimal arithmetic. It needs the library.

The form in numpy and Arrow is in `functions/numeric/decimals.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import DECIMAL128, FLOATS_FROM, values_of

_OPERATIONS = {"plus": 0, "minus": 1, "multiply": 2}


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
    """Return the kernels' number of the type and the values; None for types without this kernel."""
    if pa.types.is_decimal128(column.type):
        data = column.buffers()[1]
        return None if data is None else (DECIMAL128, data.address + 16 * column.offset)
    values = values_of(column)
    if values is None or values.type >= FLOATS_FROM or not len(column):
        return None
    return values.type, values.numbers
