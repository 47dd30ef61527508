"""The order of arrays, tuples and maps: element by element, a shorter array before a longer one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns, nested
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy


def nested_ranks(
    array: pa.Array, *, missing_low: bool = False, zeros_apart: bool = False
) -> np.ndarray:
    """Return for each row the position of its value among the sorted distinct values, as int64.

    Arrays, tuples and maps are compared element by element. NaN, alone or as an element, ranks above all other values
    and NULL above NaN; with `missing_low` both rank below, NULL lowest. 0.0 and -0.0 are one value; with `zeros_apart`
    -0.0 ranks below 0.0, so that equal ranks are the same bytes."""
    order = _Order(missing_low, zeros_apart)
    return order.ranks(array)


def places_in(array: pa.Array, keys: pa.Array) -> pa.Array:
    """Return for each value the place of the first equal one among the keys, of the same type; NULL where there is none.
    NULL is equal to NULL."""
    if not pa.types.is_nested(array.type):
        return pc.index_in(array, keys)
    ranks = nested_ranks(pa.concat_arrays([keys, array]))
    return pc.index_in(from_numpy(ranks[len(keys) :]), from_numpy(ranks[: len(keys)]))


@dataclass(frozen=True, slots=True)
class _Order:
    """An order of values: where NULL and NaN are, and whether -0.0 is another value than 0.0."""

    missing_low: bool
    zeros_apart: bool

    def ranks(self, array: pa.Array) -> np.ndarray:
        """Return for each row the position of its value among the sorted distinct values."""
        is_null = np.asarray(array.is_null())
        is_nan = np.zeros(len(array), bool)
        if pa.types.is_floating(array.type):
            is_nan = np.asarray(pc.is_null(array, nan_is_null=True)) & ~is_null
        present = ~(is_null | is_nan)
        _, dense = np.unique(self._ranks_of_present(array)[present], return_inverse=True)
        count = int(dense.max(initial=-1)) + 1
        null_rank, nan_rank, first = (0, 1, 2) if self.missing_low else (count + 1, count, 0)
        result = np.full(len(array), null_rank, np.int64)
        result[is_nan] = nan_rank
        result[present] = dense.reshape(-1) + first
        return result

    def _ranks_of_present(self, array: pa.Array) -> np.ndarray:
        """Return integers that compare as the values do; those of NULL and NaN are arbitrary."""
        if pa.types.is_struct(array.type):
            ranks = np.zeros(len(array), np.int64)
            for field in columns.struct_fields(array):
                inner = self.ranks(field)
                # Both factors are below the number of rows and three, so that no product overflows.
                pairs = ranks * (int(inner.max(initial=0)) + 1) + inner
                ranks = np.unique(pairs, return_inverse=True)[1].reshape(-1)
            return ranks
        if pa.types.is_list(array.type):
            return self._list_ranks(*columns.elements_of(array))
        if pa.types.is_map(array.type):
            offsets, keys, values = nested.map_parts(array)
            return self._list_ranks(offsets, pa.StructArray.from_arrays([keys, values], ["k", "v"]))
        if pa.types.is_null(array.type):
            return np.zeros(len(array), np.int64)
        if pa.types.is_floating(array.type):
            return _float_ranks(array, zeros_apart=self.zeros_apart)
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        return _text_ranks(array)

    def _list_ranks(self, offsets: np.ndarray, elements: pa.Array) -> np.ndarray:
        """Return ranks of arrays: the ranks of an array's elements, written big endian, are compared as bytes."""
        data = np.frombuffer(self.ranks(elements).astype(">i8").tobytes(), np.uint8)
        return _text_ranks(columns.binary(columns.strings_from(offsets * 8, data)))


def _float_ranks(array: pa.Array, *, zeros_apart: bool) -> np.ndarray:
    """Return integers that compare as the floats do; those of NULL and NaN are arbitrary."""
    values = columns.numpy_values(pc.fill_null(array, 0)).astype(np.float64)
    if not zeros_apart:
        values = values + 0.0  # makes 0.0 of -0.0
    bits = values.view(np.int64)
    return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)


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
