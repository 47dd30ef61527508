"""Operations on the sets of each group: groupBitmapAnd, …Or, …Xor and groupArrayIntersect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import as_number
from olapdb.records import dataclass
from olapdb.types import UINT8, AggregateFunction, Array, DataType, Integer, Map, Tuple, plain
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class SetAggregate(Aggregate):
    """An aggregate that combines the sets of its rows: intersection, union, or symmetric difference (values in an odd
    number of sets). State: Tuple(seen UInt8, values Array(T)), the set sorted, NULL last. `seen` is 0 for a group
    without sets, so that it does not empty an intersection."""

    operation: str = "And"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Combine the sets of each group; NULL is skipped, and a set may repeat its values."""
        (lists,), groups = group_kernels.drop_null_rows(arguments, groups)
        offsets, elements = columns.elements_of(lists)
        ranking = group_kernels.rank_rows([elements])
        starts, ranks = group_kernels.distinct_ranks(
            ranking, Groups(columns.parents_of(offsets), len(lists))
        )
        return self._combined(starts, ranking.rows[ranks], elements, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the sets of each group's states; states of groups that saw no set are skipped."""
        seen, lists = columns.struct_fields(states)
        keep = columns.numpy_values(seen) != 0
        (lists,), groups = group_kernels.filter_rows([lists], groups, keep)
        offsets, elements = columns.elements_of(lists)
        return self._combined(offsets, np.arange(len(elements)), elements, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sets, or the number of their values if the result is a number."""
        sets = columns.struct_fields(states)[1]
        if isinstance(self.result_type, Integer):
            return columns.from_values(np.diff(columns.offsets_of(sets)), self.result_type.arrow)
        return sets

    def as_state(self, types: tuple[DataType, ...]) -> Aggregate:
        """Return -State of a bitmap aggregate: its result is a bitmap, as groupBitmap's states are."""
        return replace(
            self, name=f"{self.name}State", argument_types=types, result_type=plain(types[0])
        )

    def _combined(
        self, offsets: np.ndarray, rows: np.ndarray, elements: pa.Array, groups: Groups
    ) -> pa.Array:
        """Combine the sets of each group and return the states. The values of all sets are `elements` at `rows`, cut
        into sets by `offsets`."""
        owners = group_kernels.element_groups(offsets, groups)
        chosen = elements.take(from_numpy(rows))
        ranking = group_kernels.rank_rows([chosen])
        width = max(ranking.count, 1)
        pairs, times = np.unique(owners.codes * width + ranking.ranks, return_counts=True)
        codes, ranks = np.divmod(pairs, width)
        sizes = groups.sizes
        if self.operation == "And":
            keep = times == sizes[codes]
        elif self.operation == "Xor":
            keep = times % 2 == 1
        else:
            keep = np.ones(len(pairs), bool)
        counts = np.bincount(codes[keep], minlength=groups.count)
        values = chosen.take(from_numpy(ranking.rows[ranks[keep]]))
        sets = columns.lists_from(columns.offsets_from_counts(counts), values)
        seen = columns.from_values(sizes > 0, pa.uint8())
        return columns.structs_from([seen, sets], self.state_type.arrow)


def bitmap_operation(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupBitmapAnd, groupBitmapOr or groupBitmapXor of bitmaps.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    bitmap = plain(types[0])
    if not isinstance(bitmap, AggregateFunction) or bitmap.function != "groupBitmap":
        raise illegal_argument(name, types[0], "a bitmap, a state of groupBitmap,")
    state = state_type_of(name, (), types, Tuple((UINT8, bitmap.state), ("seen", "values")))
    operation = name.removeprefix("groupBitmap")
    result = as_number(plain(bitmap.arguments[0]))
    return SetAggregate(name, (), types, result, state, operation=operation)


def array_intersection(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupArrayIntersect of arrays: the values that all have, sorted.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    if parameters:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes no parameters.")
    require_count(name, types, 1)
    array = plain(types[0])
    if not isinstance(array, Array) or isinstance(plain(array.inner), Map | AggregateFunction):
        raise illegal_argument(name, types[0], "an array of values that can be compared")
    state = state_type_of(name, (), types, Tuple((UINT8, array), ("seen", "values")))
    return SetAggregate(name, (), types, array, state)
