"""Rows that a condition drops as NULLs of a column, which share the column's values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.native.library import library
from olapdb.native.values import values_of


def null_unless(
    arguments: Sequence[pa.Array], condition: pa.BooleanArray, *, counted: bool = False
) -> pa.Array | None:
    """Return the only argument with NULL where the condition, of as many rows, is not true.

    The values are shared, not copied. `counted` asks for a column whose values do not matter, NULL also
    where any of the arguments is. Return None where kernels cannot read such a column: the caller then
    takes the rows."""
    if library() is None or not len(condition):
        return None
    keep = condition.fill_null(False) if condition.null_count else condition
    for argument in arguments:
        if argument.null_count:
            keep = pc.and_(keep, argument.is_valid())
    if keep.offset:
        keep = pc.and_(keep, keep)
    bitmap = keep.buffers()[1]
    if keep.offset or bitmap is None:
        return None
    if counted:
        return pa.Array.from_buffers(pa.bool_(), len(keep), [bitmap, bitmap])
    (argument,) = arguments
    is_decimal = pa.types.is_decimal128(argument.type)
    data = argument.buffers()[1] if is_decimal or values_of(argument) is not None else None
    if data is None:
        return None
    width = argument.type.bit_width // 8
    values = data.slice(argument.offset * width, len(argument) * width)
    return pa.Array.from_buffers(argument.type, len(argument), [bitmap, values])
