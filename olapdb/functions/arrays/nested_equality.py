"""Equality of the rows of two columns, arrays, tuples and maps included.

Within a container NULL equals NULL and NaN equals NaN; -0.0 is 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import count_marked, map_parts
from olapdb.types.arrow_values import from_numpy


def equal_rows(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return which rows of two columns of one type and length are equal; bool, shape (rows,). NULL
    equals NULL."""
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    same = _equal_values(left, right)
    if not left.null_count and not right.null_count:
        return same
    left_valid, right_valid = np.asarray(left.is_valid()), np.asarray(right.is_valid())
    return np.where(left_valid & right_valid, same, left_valid == right_valid)


def _equal_values(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return which rows are equal; the answer for rows with a NULL is undefined."""
    arrow = left.type
    if pa.types.is_list(arrow):
        return _equal_lists(left, right)
    if pa.types.is_map(arrow):
        return _equal_lists(_pairs(left), _pairs(right))
    if pa.types.is_struct(arrow):
        same = np.ones(len(left), bool)
        fields = zip(columns.struct_fields(left), columns.struct_fields(right), strict=True)
        for left_field, right_field in fields:
            same &= equal_rows(left_field, right_field)
        return same
    if pa.types.is_floating(arrow):
        x, y = columns.numpy_values(left), columns.numpy_values(right)
        return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))
    if pa.types.is_string(arrow):
        left, right = columns.binary(left), columns.binary(right)
    return np.asarray(pc.fill_null(pc.equal(left, right), False))


def _pairs(array: pa.Array) -> pa.Array:
    """Convert maps to lists of structs (key, value)."""
    offsets, keys, values = map_parts(array)
    entries = pa.StructArray.from_arrays([keys, values], ["0", "1"])
    return columns.lists_from(offsets, entries, columns.validity(array))


def _equal_lists(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return which rows' lists have the same length and equal elements; bool."""
    left_offsets, left_elements = columns.elements_of(left)
    right_offsets, right_elements = columns.elements_of(right)
    sizes = np.diff(left_offsets)
    same_size = sizes == np.diff(right_offsets)
    offsets = left_offsets
    if not same_size.all():  # only rows of equal sizes have elements to compare
        compared = np.where(same_size, sizes, 0)
        offsets = columns.offsets_from_counts(compared)
        positions = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], compared)
        left_elements, right_elements = (
            elements.take(from_numpy(np.repeat(starts[:-1], compared) + positions))
            for starts, elements in ((left_offsets, left_elements), (right_offsets, right_elements))
        )
    differences = count_marked(offsets, ~equal_rows(left_elements, right_elements))
    return np.asarray(same_size & (differences == 0))


def rankable_values(array: pa.Array) -> pa.Array:
    """Return the column in a form whose ranks are equal exactly where its values are.

    Maps become structs of the list of keys and the list of values; -0.0 becomes 0.0."""
    arrow = array.type
    if pa.types.is_floating(arrow):
        return pc.add(array, pa.scalar(0.0, arrow))
    if pa.types.is_list(arrow):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, rankable_values(elements))
    if pa.types.is_map(arrow):
        offsets, keys, values = map_parts(array)
        fields = [columns.lists_from(offsets, rankable_values(side)) for side in (keys, values)]
    elif pa.types.is_struct(arrow):
        fields = [rankable_values(field) for field in columns.struct_fields(array)]
    else:
        return array
    struct = pa.struct([pa.field(str(at), field.type) for at, field in enumerate(fields)])
    return columns.structs_from(fields, struct, columns.validity(array), len(array))
