"""The order of rows by numbers: by their groups, and by further numbers within a group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from olapdb.native.library import library
from olapdb.native.sorting import order_of_integers
from olapdb.types.arrow_values import from_numpy

_KERNEL_ROWS_MIN = 4_096
"""Fewer rows are sorted by numpy in less time than a kernel is called."""

_BITS_BELOW_SIGN = np.int64((1 << 63) - 1)


def stable_order(values: np.ndarray) -> np.ndarray:
    """Return the positions that sort the integers; equal ones keep their order; int64."""
    if bool((values[1:] >= values[:-1]).all()):
        return np.arange(len(values))
    return order_by(values)


def order_by(*keys: np.ndarray) -> np.ndarray:
    """Return the positions that sort rows by the keys, the first key first; rows with equal keys keep their order; int64.

    NaN comes last. The kernel takes an eighth of numpy's time."""
    if len(keys[0]) >= _KERNEL_ROWS_MIN and library() is not None:
        integers = _as_integers(keys)
        order = None if integers is None else order_of_integers([from_numpy(k) for k in integers])
        if order is not None:
            return order.view(np.int64)
    return np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0], kind="stable")


def _as_integers(keys: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Return integers that sort as the keys do; None if a key is neither integers, bools nor floats without NaN."""
    integers = []
    for key in keys:
        if key.dtype.kind in "iu":
            integers.append(key)
        elif key.dtype.kind == "b":
            integers.append(key.view(np.uint8))
        elif key.dtype.kind == "f" and not np.isnan(key).any():
            bits = (key.astype(np.float64) + 0.0).view(np.int64)  # -0.0 equals 0.0
            integers.append(np.where(bits < 0, bits ^ _BITS_BELOW_SIGN, bits))
        else:
            return None
    return integers
