"""Sums in the type of the column, as in SummingMergeTree: integers wrap, decimals may exceed their
precision."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.errors import DecimalOverflow
from olapdb.functions.base import Groups
from olapdb.functions.kernels.decimal_width import decimal_bits, decimal_within_bits, with_precision
from olapdb.types.arrow_values import from_numpy, scalar_of, to_numpy


def wrapping_sums(column: pa.Array, groups: Groups) -> pa.Array:
    """Return one sum for each group; NULL is ignored, and the sum of only NULLs is NULL.

    Raises DecimalOverflow if a decimal does not fit 32 or 64 bits."""
    arrow = column.type
    valid = to_numpy(column.is_valid())
    if pa.types.is_decimal(arrow):
        table = pa.table({"code": groups.codes, "value": column})
        sums = table.group_by("code", use_threads=False).aggregate([("value", "sum")])
        return _narrowed(single_chunk(sums.column("value_sum")), arrow)
    filled = pc.fill_null(column, _zero(arrow))
    ordered = to_numpy(filled)[groups.order]
    if pa.types.is_boolean(arrow):
        any_valid = np.logical_or.reduceat(valid[groups.order], groups.starts)
        return from_numpy(np.logical_or.reduceat(ordered, groups.starts), null=~any_valid)
    sum_type: type = np.float64 if pa.types.is_floating(arrow) else ordered.dtype.type
    totals = np.add.reduceat(ordered, groups.starts, dtype=sum_type)
    any_valid = np.add.reduceat(valid[groups.order].astype(np.int64), groups.starts) > 0
    return from_numpy(totals.astype(ordered.dtype), null=~any_valid).cast(arrow)


def is_default(column: pa.Array, nullable: bool) -> np.ndarray:
    """Return a mask of the sums that count as empty: NULL if `nullable`, else zero or NULL."""
    if nullable:
        null: np.ndarray = to_numpy(column.is_null())
        return null
    return is_zero(column)


def is_zero(column: pa.Array) -> np.ndarray:
    """Return a mask of the sums that are zero or NULL."""
    zero: np.ndarray
    if pa.types.is_integer(column.type) and not column.null_count:
        zero = to_numpy(column) == 0  # the calls of Arrow cost more than a small block
        return zero
    zero = to_numpy(pc.fill_null(pc.equal(column, _zero(column.type)), True))
    return zero


def _zero(arrow: pa.DataType) -> pa.Scalar:
    """Return the zero of the type: false for a boolean."""
    return scalar_of(False if pa.types.is_boolean(arrow) else 0, arrow)


def _narrowed(sums: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return decimal sums as values of the column's type.

    As in ClickHouse only the width in bits limits them, so they may have more digits than the
    precision. Raises DecimalOverflow beyond 32 and 64 bits; wider sums wrap in their own width.
    """
    bits = decimal_bits(arrow)
    if bits > _BITS_CHECKED:
        return with_precision(sums, arrow)
    narrowed = decimal_within_bits(sums, arrow)
    if narrowed is None:
        raise DecimalOverflow(
            f"A sum does not fit the {bits} bits of a column of type "
            f"Decimal({arrow.precision}, {arrow.scale}).",
            hint="Sum into a wider column, such as Decimal(38, …): copy the table with "
            "INSERT … SELECT.",
        )
    return narrowed


_BITS_CHECKED = 64
