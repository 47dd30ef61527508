"""Integers that sort as other values do, for the kernels that sort by integers digit by digit.

"b", "a", NULL, "b"  ->  1, 0, NULL, 1        the place of each text among the distinct ones
-1.5, 0.0, 2.0       ->  their bits, those of negative numbers turned round
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.config import tuning
from olapdb.functions.kernels.decimal_width import has_short_form, shortened
from olapdb.functions.kernels.integer_order import sortable_bits
from olapdb.native.values import values_of
from olapdb.types.arrow_values import from_numpy, to_numpy


def sort_numbers(values: pa.Array) -> pa.Array:
    """Return integers that sort as the values do, NULL where the values are NULL. Return the values themselves for
    types without such integers, for floats with NaN, and for texts that seldom repeat."""
    arrow = values.type
    if pa.types.is_boolean(arrow):
        return values.cast(pa.uint8())
    if pa.types.is_floating(arrow):
        return _ordered_bits(values)
    if pa.types.is_decimal(arrow) and has_short_form(arrow):
        return shortened(values).view(pa.int64())
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return _places(values)
    return values


def _ordered_bits(values: pa.Array) -> pa.Array:
    """Return 64-bit integers that sort as the floats do, by their bits; -0.0 equals 0.0, NULL stays. Return the floats
    themselves if one is NaN, whose place depends on that of NULL."""
    known = values_of(values)
    if known is None:
        return values
    numbers = known.numbers.astype(np.float64) + 0.0  # -0.0 equals 0.0
    null = to_numpy(values.is_null()) if values.null_count else None
    if null is not None:
        numbers[null] = 0.0
    if np.isnan(numbers).any():
        return values
    return from_numpy(sortable_bits(numbers), null)


def _places(values: pa.Array) -> pa.Array:
    """Return for each text its place, from 0, among the distinct texts in their order. Return the texts themselves
    where few of a sample repeat."""
    sample = tuning.SORTED_TEXTS_SAMPLE
    if len(values) > sample:
        drawn = values.take(from_numpy(np.arange(0, len(values), len(values) // sample)))
        if pc.count_distinct(drawn).as_py() * 2 > len(drawn):
            return values
    coded = values.dictionary_encode()
    in_order = to_numpy(pc.array_sort_indices(coded.dictionary))
    places = np.empty(len(in_order), np.int32)
    places[in_order] = np.arange(len(in_order), dtype=np.int32)
    return from_numpy(places).take(coded.indices)
