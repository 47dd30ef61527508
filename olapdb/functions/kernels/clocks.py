"""Values of Time and Time64: spans that clocks show, such as -12:34:56.5 and 100:00:00."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns
from olapdb.types import Time, Time64

Clock: TypeAlias = Time | Time64

SECONDS_MAX = 999 * 3600 + 59 * 60 + 59
"""The seconds of 999:59:59, the most of a Time; the least are as many below 0."""


def ticks_per_second(data_type: Clock) -> int:
    """Return the number of ticks in a second: 10 to the power of the precision, 1 for a Time."""
    return int(10**data_type.precision)


def ticks_max(data_type: Clock) -> int:
    """Return the greatest value of the type in ticks, 999:59:59.9…; the least is its negative."""
    return (SECONDS_MAX + 1) * ticks_per_second(data_type) - 1


def stopped(ticks: np.ndarray, data_type: Clock) -> np.ndarray:
    """Clamp ticks to the type's range."""
    most = ticks_max(data_type)
    return np.asarray(np.clip(ticks, -most, most))


def cut(ticks: np.ndarray, step: int) -> np.ndarray:
    """Divide ticks by `step`, truncated towards zero."""
    return np.asarray(np.sign(ticks) * (np.abs(ticks) // step))


def rescaled(ticks: np.ndarray, per_second: int, new_per_second: int) -> np.ndarray:
    """Convert ticks to another number of ticks a second, truncated towards zero; both are powers of ten."""
    if new_per_second >= per_second:
        return np.asarray(ticks * (new_per_second // per_second))
    return cut(ticks, per_second // new_per_second)


def clock_texts(array: pa.Array, data_type: Clock) -> pa.Array:
    """Return times as text: hours of at least two digits, with the precision's digits of a second.

    A span below 0 has a minus sign. NULL stays null.
    """
    ticks = columns.numpy_values(array).astype(np.int64)
    seconds, fraction = np.divmod(np.abs(ticks), ticks_per_second(data_type))
    pieces = [_padded(seconds // 3600, 2), _padded(seconds // 60 % 60, 2), _padded(seconds % 60, 2)]
    shown = pc.binary_join_element_wise(*pieces, ":")
    if data_type.precision:
        shown = pc.binary_join_element_wise(shown, _padded(fraction, data_type.precision), ".")
    shown = pc.binary_join_element_wise(pc.if_else(pa.array(ticks < 0), "-", ""), shown, "")
    return pc.if_else(array.is_valid(), shown, pa.scalar(None, pa.string()))


def _padded(values: np.ndarray, width: int) -> pa.Array:
    """Return numbers as texts of at least `width` digits, zero padded."""
    return pc.utf8_lpad(pa.array(values).cast(pa.string()), width=width, padding="0")
