"""Comparison of two columns of states of an aggregate, as exact as what it keeps.

    sum, avg             the numbers, within a tolerance: the order of addition decides their last bits
    sumKahan             the sum, and its error, within the tolerance of the sum
    max, argMax, uniq …  the values of rows: exact
    keys of maps         exact; so are the values that -Distinct keeps, and counts
    lists of rows        the same rows, in whatever order they came
    moments              see `moments_scale`

A combinator that keeps several states of another aggregate is compared state by state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.group_codes import factorise
from olapdb.functions.aggregates.arg_extreme_combinators import ArgExtreme
from olapdb.functions.aggregates.array_combinators import ArrayElements, ForEach, Resample
from olapdb.functions.aggregates.combinators import (
    Combinator,
    DistinctCombinator,
    DividedLikeInner,
    SeenRowsCombinator,
    SimpleState,
    StateCombinator,
)
from olapdb.functions.aggregates.compensated import CompensatedSum
from olapdb.functions.aggregates.map_combinators import MappedArrays, MapValues
from olapdb.functions.aggregates.mean_tests import MeanTest
from olapdb.functions.aggregates.moving_average import ExponentialMovingAverage
from olapdb.functions.aggregates.tuple_combinator import TupleElements
from olapdb.functions.aggregates.wide_arguments import OfFloats
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy
from olapdb.views.proof.compare_values import compare_columns, compare_lists, compare_scaled, nulls
from olapdb.views.proof.moments import moments_scale


@dataclass(frozen=True, slots=True)
class StateComparison:
    """A comparison of states, within `tolerance` where their aggregate adds up floats, or (`of_sums`) may be one of such
    sums."""

    tolerance: float
    of_sums: bool = False

    def compare(
        self, aggregate: Aggregate, left: pa.Array, right: pa.Array, added: pa.Array | None = None
    ) -> tuple[np.ndarray, float]:
        """Return a mask of the states that differ, and the largest absolute difference of two numbers.

        `added` has the states of the absolute values of what was added up, where they are known. A NULL state
        equals a NULL state."""
        left_null, right_null = nulls(left), nulls(right)
        differs, largest = self._compare(aggregate, left, right, added)
        return (left_null != right_null) | (differs & ~left_null & ~right_null), largest

    def _compare(
        self, aggregate: Aggregate, left: pa.Array, right: pa.Array, added: pa.Array | None
    ) -> tuple[np.ndarray, float]:
        """Return what `compare` returns, of states that are not NULL."""
        if aggregate.keeps_unordered_rows:
            return _compare_unordered(left, right), 0.0
        match aggregate:
            case DistinctCombinator():
                return compare_columns(left, right)
            case ForEach(inner=inner) | Resample(inner=inner):
                return compare_lists(left, right, partial(self.compare, inner), added)
            case MapValues(inner=inner):
                return compare_lists(left, right, partial(self._compare_entries, inner), added)
            case MappedArrays(inner=inner, others=others):
                of_lists = [None, inner, *others]
                return self._compare_fields(of_lists, left, right, added, in_lists=True)
            case TupleElements(inners=inners):
                return self._compare_fields(inners, left, right, added)
            case MeanTest(moments=moments):
                return self._compare_fields((moments, moments), left, right, added)
            case SeenRowsCombinator(inner=inner) | ArgExtreme(inner=inner):
                return self._compare_fields((None, inner), left, right, added)
            case ExponentialMovingAverage():
                return self._compare_decayed(left, right, added)
            case CompensatedSum():
                return self._compare_compensated(left, right, added)
            case (
                DividedLikeInner()
                | StateCombinator()
                | SimpleState()
                | ArrayElements()
                | OfFloats()
            ):
                assert isinstance(aggregate, Combinator)
                return self.compare(aggregate.inner, left, right, added)
            case _:
                return self._compare_leaf(aggregate, left, right, added)

    def _compare_leaf(
        self, aggregate: Aggregate, left: pa.Array, right: pa.Array, added: pa.Array | None
    ) -> tuple[np.ndarray, float]:
        """Compare states that hold no states of another aggregate."""
        scale = moments_scale(aggregate, (left, right), added, self.tolerance)
        if scale is not None:
            return compare_scaled(left, right, scale, self.tolerance)
        rounded = self.of_sums or aggregate.merge_class == "float"
        return compare_columns(left, right, self.tolerance if rounded else 0.0, added)

    def _compare_fields(
        self,
        aggregates: Sequence[Aggregate | None],
        left: pa.Array,
        right: pa.Array,
        added: pa.Array | None,
        *,
        in_lists: bool = False,
    ) -> tuple[np.ndarray, float]:
        """Compare structs field by field: states of the `aggregates`, or (`in_lists`) lists of such; None for a field
        of values."""
        differs, largest = np.zeros(len(left), dtype=bool), 0.0
        for at, aggregate in enumerate(aggregates):
            fields = pc.struct_field(left, at), pc.struct_field(right, at)
            of_added = None if added is None else pc.struct_field(added, at)
            if aggregate is None:
                field_differs, difference = compare_columns(*fields)
            elif in_lists:
                compare = partial(self.compare, aggregate)
                field_differs, difference = compare_lists(*fields, compare, of_added)
            else:
                field_differs, difference = self.compare(aggregate, *fields, of_added)
            differs |= field_differs
            largest = max(largest, difference)
        return differs, largest

    def _compare_entries(
        self, inner: Aggregate, left: pa.Array, right: pa.Array, added: pa.Array | None
    ) -> tuple[np.ndarray, float]:
        """Compare entries (key, state) of maps."""
        return self._compare_fields((None, inner), left, right, added)

    def _compare_compensated(
        self, left: pa.Array, right: pa.Array, added: pa.Array | None
    ) -> tuple[np.ndarray, float]:
        """Return what `compare` returns, of states (sum, error): both fields may differ by the tolerance times the sum,
        since another order of addition gives another error."""
        sides = (left, right) if added is None else (left, right, added)
        sums = [pc.struct_field(side, 0).to_numpy(zero_copy_only=False) for side in sides]
        size: np.ndarray = np.fmax.reduce(np.abs(sums))
        return compare_scaled(left, right, (size, size), self.tolerance)

    def _compare_decayed(
        self, left: pa.Array, right: pa.Array, added: pa.Array | None
    ) -> tuple[np.ndarray, float]:
        """Return what `compare` returns, of states (seen, sum, time): only the sum is rounded."""
        _, left_sums, _ = columns.struct_fields(left)
        _, right_sums, _ = columns.struct_fields(right)
        of_added = None if added is None else columns.struct_fields(added)[1]
        differs, largest = compare_columns(left_sums, right_sums, self.tolerance, of_added)
        for at in (0, 2):
            differs |= compare_columns(pc.struct_field(left, at), pc.struct_field(right, at))[0]
        return differs, largest


def _compare_unordered(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return a mask of the states that differ, whatever the order of the elements of their lists."""
    if pa.types.is_struct(left.type):
        of_fields = [
            _compare_unordered(pc.struct_field(left, at), pc.struct_field(right, at))
            for at in range(left.type.num_fields)
        ]
        any_differs: np.ndarray = np.logical_or.reduce(of_fields)
        return any_differs
    if not pa.types.is_list(left.type):
        return compare_columns(left, right)[0]
    lengths = [
        pc.fill_null(pc.list_value_length(side), 0).to_numpy(zero_copy_only=False)
        for side in (left, right)
    ]
    differs: np.ndarray = np.not_equal(lengths[0], lengths[1])
    compared = np.flatnonzero(~differs)
    elements = [side.take(from_numpy(compared)).flatten() for side in (left, right)]
    codes = factorise([pa.concat_arrays(elements)], 2 * len(elements[0])).codes
    owners = np.repeat(compared, lengths[0][compared])
    sorted_codes = [half[np.lexsort((half, owners))] for half in np.split(codes, 2)]
    differs[owners[sorted_codes[0] != sorted_codes[1]]] = True
    return differs
