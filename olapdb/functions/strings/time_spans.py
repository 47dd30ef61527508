"""Intervals as spans of time in the way of Kusto: 1.02:03:04.5000000."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import BadArguments
from olapdb.functions.kernels import columns

_NANOSECONDS = {
    "Nanosecond": 1,
    "Microsecond": 10**3,
    "Millisecond": 10**6,
    "Second": 10**9,
    "Minute": 60 * 10**9,
    "Hour": 3_600 * 10**9,
    "Day": 86_400 * 10**9,
    "Week": 7 * 86_400 * 10**9,
}
_TICK = 100
"""Nanoseconds of the smallest part that is shown."""
_TICKS_A_SECOND = 10**7


def time_spans(array: pa.Array, data_type: types.Interval) -> pa.Array:
    """Return intervals as texts; NULL stays null. Raise BadArguments for months, quarters and years."""
    unit = _NANOSECONDS.get(data_type.unit)
    if unit is None:
        raise BadArguments(
            "Cannot format a calendar interval in Kusto timespan format.",
            hint="SETTINGS interval_output_format = 'numeric' writes its number.",
        )
    counts = columns.numpy_values(array).astype(np.int64)
    scale = unit // _TICK
    if not scale and (counts % _TICK).any():
        raise BadArguments(
            "Cannot format an IntervalNanosecond that is not a multiple of 100 in Kusto timespan format."
        )
    ticks = np.abs(counts) * scale if scale else np.abs(counts) * unit // _TICK
    seconds, rest = ticks // _TICKS_A_SECOND, ticks % _TICKS_A_SECOND
    days = seconds // 86_400
    parts = (seconds // 3_600 % 24, seconds // 60 % 60, seconds % 60)
    clock = pc.binary_join_element_wise(*(_padded(part, 2) for part in parts), ":")
    empty = pa.scalar("")
    sign = pc.if_else(pa.array(counts < 0), "-", "")
    whole = pc.if_else(
        pa.array(days > 0),
        pc.binary_join_element_wise(pa.array(days).cast(pa.string()), ".", ""),
        empty,
    )
    fraction = pc.if_else(
        pa.array(rest > 0), pc.binary_join_element_wise(".", _padded(rest, 7), ""), empty
    )
    shown = pc.binary_join_element_wise(sign, whole, clock, fraction, "")
    return pc.if_else(array.is_valid(), shown, pa.scalar(None, pa.string()))


def _padded(numbers: np.ndarray, width: int) -> pa.Array:
    """Return numbers as texts, filled up with zeros in front to `width` characters."""
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=width, padding="0")
