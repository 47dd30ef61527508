"""Intervals of one unit as those of another: 3 minutes are 180 seconds, 181 seconds 3 minutes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import TypeMismatch
from olapdb.functions.kernels.supertypes import interval_size
from olapdb.types import Interval


def to_interval(array: pa.Array, source: Interval, target: Interval) -> pa.Array:
    """Return intervals in units of `target`; less than a whole unit is cut off.

    Raises TypeMismatch between months or longer units and days or shorter ones, since a month has no fixed number of
    days."""
    (of_months, size), (target_of_months, target_size) = map(interval_size, (source, target))
    if of_months != target_of_months:
        raise TypeMismatch(
            f"Conversion from {source} to {target} is not supported.",
            hint="A month has no fixed number of days.",
        )
    if size >= target_size:
        return pc.multiply(array, pa.scalar(size // target_size, pa.int64()))
    return pc.divide(array, pa.scalar(target_size // size, pa.int64()))
