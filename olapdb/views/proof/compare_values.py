"""Comparison of two columns of values: exact, or with a tolerance for sums of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.types.arrow_values import from_numpy

Compare: TypeAlias = Callable[[pa.Array, pa.Array, pa.Array | None], tuple[np.ndarray, float]]
"""Compares two columns of elements, with their magnitudes if these are known; returns what `compare_columns` returns."""


def compare_columns(
    left: pa.Array, right: pa.Array, tolerance: float = 0.0, magnitudes: pa.Array | None = None
) -> tuple[np.ndarray, float]:
    """Return a mask of the rows that differ, and the largest absolute difference of two numbers.

    Floats are equal within `tolerance` times their magnitude, or times that of `magnitudes`, which
    has the type of both sides. Structs (states) are compared field by field, lists element by
    element where the lengths are equal. NaN equals NaN and NULL equals NULL.
    """
    left_null, right_null = nulls(left), nulls(right)
    differs = left_null != right_null
    kind = left.type
    if pa.types.is_struct(kind):
        inner, largest = np.zeros(len(left), dtype=bool), 0.0
        for index in range(kind.num_fields):
            field_differs, field_difference = compare_columns(
                pc.struct_field(left, index),
                pc.struct_field(right, index),
                tolerance,
                None if magnitudes is None else pc.struct_field(magnitudes, index),
            )
            inner |= field_differs
            largest = max(largest, field_difference)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        inner, largest = compare_lists(
            left, right, lambda a, b, added: compare_columns(a, b, tolerance, added), magnitudes
        )
    elif pa.types.is_floating(kind):
        inner, largest = _compare_floats(left, right, tolerance, magnitudes)
    elif pa.types.is_null(kind):
        inner, largest = np.zeros(len(left), dtype=bool), 0.0
    else:
        inner, largest = _compare_exact(left, right)
    return differs | (inner & ~left_null & ~right_null), largest


def nulls(array: pa.Array) -> np.ndarray:
    """Return a mask of the NULLs."""
    mask: np.ndarray = pc.is_null(array).to_numpy(zero_copy_only=False)
    return mask


def _compare_floats(
    left: pa.Array, right: pa.Array, tolerance: float, magnitudes: pa.Array | None
) -> tuple[np.ndarray, float]:
    """Return for each row whether the values differ by more than the relative `tolerance`, and the
    greatest finite difference of these rows (0.0 without one). NaN equals NaN. The tolerance is
    relative to the values, and to a row's finite magnitude, if this is greater."""
    values = [side.to_numpy(zero_copy_only=False).astype(np.float64) for side in (left, right)]
    size = np.maximum(np.abs(values[0]), np.abs(values[1]))
    if magnitudes is not None:
        added = magnitudes.to_numpy(zero_copy_only=False).astype(np.float64)
        size = np.maximum(size, np.where(np.isfinite(added), np.abs(added), 0.0))
    return _within(values[0], values[1], tolerance, size)


def compare_scaled(
    left: pa.Array, right: pa.Array, scale: Sequence[np.ndarray], tolerance: float
) -> tuple[np.ndarray, float]:
    """Compare structs field by field: floats within `tolerance` times the `scale` of their field, shape (rows,), or times
    their own magnitude where the scale is not finite, since it overflowed; other values exactly. Return what
    `compare_columns` returns."""
    differs, largest = np.zeros(len(left), dtype=bool), 0.0
    for at, size in enumerate(scale):
        fields = [pc.struct_field(side, at) for side in (left, right)]
        if pa.types.is_floating(fields[0].type):
            values = [f.to_numpy(zero_copy_only=False).astype(np.float64) for f in fields]
            own_size = np.maximum(np.abs(values[0]), np.abs(values[1]))
            finite_size = np.where(np.isfinite(size), size, own_size)
            field_differs, difference = _within(values[0], values[1], tolerance, finite_size)
        else:
            field_differs, difference = compare_columns(*fields)
        differs |= field_differs
        largest = max(largest, difference)
    return differs, largest


def _within(
    left: np.ndarray, right: np.ndarray, tolerance: float, size: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return for each row whether the numbers differ by more than `tolerance` times `size`, and the greatest finite
    difference of these rows, 0.0 without one. NaN equals NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(left - right)
        close = (distance <= tolerance * size) & np.isfinite(distance)
    same = (left == right) | close | (np.isnan(left) & np.isnan(right))
    differences = distance[~same]
    finite = differences[np.isfinite(differences)]
    return ~same, float(finite.max()) if len(finite) else 0.0


def _compare_exact(left: pa.Array, right: pa.Array) -> tuple[np.ndarray, float]:
    """Compare for equality. The difference is 0.0 unless the values are integers or Decimals."""
    differs = pc.fill_null(pc.not_equal(left, right), False).to_numpy(zero_copy_only=False)
    if not differs.any() or not (pa.types.is_integer(left.type) or pa.types.is_decimal(left.type)):
        return differs, 0.0
    mask = pa.array(differs)
    left_values = left.filter(mask).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    right_values = right.filter(mask).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return differs, float(np.nanmax(np.abs(left_values - right_values)))


def compare_lists(
    left: pa.Array, right: pa.Array, compare_elements: Compare, magnitudes: pa.Array | None = None
) -> tuple[np.ndarray, float]:
    """Compare lists, or maps as lists of entries: first the lengths, then the elements with `compare_elements`.
    Return what `compare_columns` returns, a NULL list being an empty one. `magnitudes` are lists too, in which each
    element has the place of the one whose magnitude it is."""
    if pa.types.is_map(left.type):
        left, right = _as_lists(left), _as_lists(right)
        magnitudes = None if magnitudes is None else _as_lists(magnitudes)
    lengths = [_lengths(side) for side in (left, right)]
    differs: np.ndarray = lengths[0] != lengths[1]
    compared = np.flatnonzero(~differs)
    left_items, right_items = (
        left.take(from_numpy(compared)).flatten(),
        right.take(from_numpy(compared)).flatten(),
    )
    if len(left_items) != len(right_items):  # a NULL list beside an empty one
        return differs, 0.0
    added = None if magnitudes is None else _elements_of(magnitudes, compared, lengths[0][compared])
    element_differs, largest = compare_elements(left_items, right_items, added)
    owners = np.repeat(compared, lengths[0][compared])
    differs[owners[element_differs]] = True
    return differs, largest


def _lengths(lists: pa.Array) -> np.ndarray:
    """Return the lengths of the lists, 0 for NULL."""
    lengths: np.ndarray = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(
        zero_copy_only=False
    )
    return lengths


def _elements_of(lists: pa.Array, rows: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return the elements of the lists of these rows, one after the other; for a list of another length than the
    given one, as many NULLs as that."""
    chosen = lists.take(from_numpy(rows))
    own_lengths = _lengths(chosen)
    fits = np.repeat(own_lengths == lengths, lengths)
    starts = np.repeat(np.cumsum(own_lengths) - own_lengths, lengths)
    within = np.arange(len(fits)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return chosen.flatten().take(pa.array(np.where(fits, starts + within, 0), mask=~fits))


def compare_maps(
    left: pa.Array, right: pa.Array, tolerance: float, magnitudes: pa.Array | None = None
) -> tuple[np.ndarray, float]:
    """Compare maps, or tuples of an array of keys and arrays of values: keys exactly, floats among the values within
    the tolerance. Return what `compare_columns` returns."""
    if pa.types.is_map(left.type):
        return compare_lists(
            left, right, lambda a, b, added: compare_maps(a, b, tolerance, added), magnitudes
        )
    differs, largest = compare_columns(pc.struct_field(left, 0), pc.struct_field(right, 0))
    for at in range(1, left.type.num_fields):
        fields = pc.struct_field(left, at), pc.struct_field(right, at)
        added = None if magnitudes is None else pc.struct_field(magnitudes, at)
        field_differs, difference = compare_columns(*fields, tolerance, added)
        differs |= field_differs
        largest = max(largest, difference)
    return differs, largest


def _as_lists(maps: pa.Array) -> pa.Array:
    """Return the maps as lists of (key, value) structs."""
    entries = pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)])
    return maps.cast(pa.list_(entries))
