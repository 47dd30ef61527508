"""Which rows of two columns hold the same value, arrays, tuples and maps among them.

Within a container NULL equals NULL and NaN equals NaN; -0.0 is 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns


def equal_rows(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Of columns of one type and length; bool, shape (rows,)."""
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    same = _equal_values(left, right)
    if not left.null_count and not right.null_count:
        return same
    there, here = np.asarray(left.is_valid()), np.asarray(right.is_valid())
    return np.where(there & here, same, there == here)


def _equal_values(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Without regard to NULL."""
    arrow = left.type
    if pa.types.is_list(arrow):
        return _equal_lists(left, right)
    if pa.types.is_map(arrow):
        return _equal_lists(_pairs(left), _pairs(right))
    if pa.types.is_struct(arrow):
        same = np.ones(len(left), bool)
        fields = zip(columns.struct_fields(left), columns.struct_fields(right), strict=True)
        for one, other in fields:
            same &= equal_rows(one, other)
        return same
    if pa.types.is_floating(arrow):
        one, other = columns.numpy_values(left), columns.numpy_values(right)
        return np.asarray((one == other) | (np.isnan(one) & np.isnan(other)))
    if pa.types.is_string(arrow):
        left, right = columns.binary(left), columns.binary(right)
    return np.asarray(pc.fill_null(pc.equal(left, right), False))


def _pairs(array: pa.Array) -> pa.Array:
    """A map as a list of its keys and values."""
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    sides = [array.keys.slice(start, count), array.items.slice(start, count)]
    entries = pa.StructArray.from_arrays(sides, ["0", "1"])
    return columns.lists_from(offsets - start, entries, columns.validity(array))


def _equal_lists(left: pa.Array, right: pa.Array) -> np.ndarray:
    (starts, ours), (others, theirs) = columns.elements_of(left), columns.elements_of(right)
    sizes = np.diff(starts)
    same = sizes == np.diff(others)
    if not same.all():  # the elements of the rows that are as long
        kept = np.where(same, sizes, 0)
        ends = columns.offsets_from_counts(kept)
        within = np.arange(int(ends[-1])) - np.repeat(ends[:-1], kept)
        ours, theirs = (
            elements.take(pa.array(np.repeat(begins[:-1], kept) + within))
            for begins, elements in ((starts, ours), (others, theirs))
        )
        starts = ends
    wrong = np.concatenate(([0], np.cumsum(~equal_rows(ours, theirs))))
    return np.asarray(same & (wrong[starts[1:]] == wrong[starts[:-1]]))


def rankable_values(array: pa.Array) -> pa.Array:
    """A column whose ranks are equal where its values are: maps as their keys and their values, which
    are lists; -0.0 as 0.0."""
    arrow = array.type
    if pa.types.is_floating(arrow):
        return pc.add(array, pa.scalar(0.0, arrow))
    if pa.types.is_list(arrow):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, rankable_values(elements))
    if pa.types.is_map(arrow):
        offsets = columns.offsets_of(array)
        start, rows = int(offsets[0]), int(offsets[-1] - offsets[0])
        sides = (rankable_values(one.slice(start, rows)) for one in (array.keys, array.items))
        fields = [columns.lists_from(offsets - start, side) for side in sides]
    elif pa.types.is_struct(arrow):
        fields = [rankable_values(one) for one in columns.struct_fields(array)]
    else:
        return array
    made = pa.struct([pa.field(str(at), one.type) for at, one in enumerate(fields)])
    return columns.structs_from(fields, made, columns.validity(array), len(array))
