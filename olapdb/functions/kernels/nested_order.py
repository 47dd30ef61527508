"""The order of arrays, tuples and maps: element by element, a shorter array before a longer one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns, nested


def nested_ranks(array: pa.Array, *, missing_low: bool = False) -> np.ndarray:
    """Return for each row the position of its value among the sorted distinct values, as int64.

    Arrays, tuples and maps are compared element by element; NULL and NaN, alone or as elements,
    rank above all else, or below with `missing_low`."""
    missing = _missing(array)
    ranks = _ranks(array, missing_low)
    present = ~missing
    _, dense = np.unique(ranks[present], return_inverse=True)
    result = np.zeros(len(array), np.int64)
    result[present] = dense.reshape(-1) + (1 if missing_low else 0)
    if not missing_low:
        result[missing] = dense.max(initial=-1) + 1
    return result


def _missing(array: pa.Array) -> np.ndarray:
    """Return a mask of the values that are NULL or NaN."""
    if pa.types.is_floating(array.type):
        return np.asarray(pc.is_null(array, nan_is_null=True))
    return np.asarray(array.is_null())


def _ranks(array: pa.Array, missing_low: bool) -> np.ndarray:
    """Return integers that compare as the values do; those of NULL and NaN are arbitrary."""
    if pa.types.is_struct(array.type):
        ranks = np.zeros(len(array), np.int64)
        for field in columns.struct_fields(array):
            inner = nested_ranks(field, missing_low=missing_low)
            # Both factors are below the number of rows and two, so that no product overflows.
            pairs = ranks * (int(inner.max(initial=0)) + 1) + inner
            ranks = np.unique(pairs, return_inverse=True)[1].reshape(-1)
        return ranks
    if pa.types.is_list(array.type):
        return _list_ranks(*columns.elements_of(array), missing_low)
    if pa.types.is_map(array.type):
        offsets, keys, values = nested.map_parts(array)
        return _list_ranks(
            offsets, pa.StructArray.from_arrays([keys, values], ["k", "v"]), missing_low
        )
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return _text_ranks(array)


def _list_ranks(offsets: np.ndarray, elements: pa.Array, missing_low: bool) -> np.ndarray:
    """Return ranks of arrays: the ranks of an array's elements, written big endian, are compared as bytes."""
    ranks = nested_ranks(elements, missing_low=missing_low)
    data = np.frombuffer(ranks.astype(">i8").tobytes(), np.uint8)
    return _text_ranks(columns.binary(columns.strings_from(offsets * 8, data)))


def _text_ranks(array: pa.Array) -> np.ndarray:
    """Return ranks from 0 of values of types that Arrow can sort. The rank of NULL is arbitrary: it is 0, as that of the
    least value."""
    encoded = array.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    rank_of_code = np.empty(len(order) + 1, np.int64)
    rank_of_code[order] = np.arange(len(order))
    rank_of_code[-1] = 0
    codes = columns.numpy_values(pc.fill_null(encoded.indices, len(order))).astype(np.int64)
    return rank_of_code[codes]
