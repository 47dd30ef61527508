"""Exact comparison of 64-bit integers with floats: Float64 does not hold all of them.

ClickHouse's `accurate::` comparisons do the same: 9007199254740993 is not 9007199254740992.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions.base import Column
from olapdb.functions.kernels import columns

_FLOAT_OF_LIMIT = {"i": 2.0**63, "u": 2.0**64}
_HOLDS = {
    "equals": np.equal,
    "notEquals": np.not_equal,
    "less": np.less,
    "greater": np.greater,
    "lessOrEquals": np.less_equal,
    "greaterOrEquals": np.greater_equal,
}


def compare_mixed(name: str, left: Column, right: Column, rows: int) -> pa.Array:
    """Return whether the comparison `name` holds in each row, UInt8; NULL where either side is
    NULL.

    One side is an integer column, the other one of floats; a constant counts for every row.
    """
    valid = columns.all_valid([left, right], rows)
    arrays = [columns.as_array(c, 1) if isinstance(c, pa.Scalar) else c for c in (left, right)]
    values = [columns.numpy_values(a) for a in arrays]
    swapped = values[0].dtype.kind == "f"
    integers, floats = values[::-1] if swapped else values
    order = _order(integers, floats.astype(np.float64, copy=False))
    with np.errstate(invalid="ignore"):
        holds = _HOLDS[name](-order if swapped else order, 0.0)
    return columns.from_values(np.broadcast_to(holds, rows), pa.uint8(), valid)


def _order(integers: np.ndarray, floats: np.ndarray) -> np.ndarray:
    """Return numbers with the sign of integer minus float, exactly: 0 if they are equal, NaN if the float is."""
    kind = integers.dtype.kind
    top = _FLOAT_OF_LIMIT[kind]
    bottom = -top if kind == "i" else 0.0
    whole = np.floor(floats)
    inside = (whole >= bottom) & (whole < top)
    nearest = np.where(inside, whole, 0.0).astype(np.uint64 if kind == "u" else np.int64)
    wide = integers.astype(nearest.dtype, copy=False)
    above = (wide > nearest).astype(np.float64)
    order = above - (wide < nearest)
    order = np.where((order == 0) & (floats > whole), -1.0, order)
    order = np.where(inside, order, np.where(floats > 0, -1.0, 1.0))
    return np.where(np.isnan(floats), np.nan, order)
