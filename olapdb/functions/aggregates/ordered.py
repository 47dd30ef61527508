"""anyLast, first_value, last_value and groupArray, whose results depend on the order of rows.

`merge` takes the states in row order, which is the order of the source's blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.distinct import GroupUniqArray
from olapdb.functions.aggregates.extremes import fill_missing, picked_type
from olapdb.functions.aggregates.signatures import (
    array_limit,
    boxed,
    optional_value_type,
    require_count,
    require_no_parameters,
    state_type_of,
    unboxed,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import Array, DataType, Nullable, Tuple, plain, stored_type
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class Positional(Aggregate):
    """first_value, last_value and anyLast: the first or last value that is not NULL.

    State: Tuple(value Nullable(T))."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's first value that is not NULL; the last one unless first_value."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        rows = np.full(groups.count, -1, np.int64)
        positions = np.arange(len(values))
        if self.state_type.function == "first_value":
            rows[groups.codes[::-1]] = positions[::-1]
        else:
            rows[groups.codes] = positions
        arrow = self.state_type.arrow
        taken = group_kernels.take_rows(values, rows)
        return columns.structs_from([boxed(taken, arrow.field(0).type)], arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the first or last value that is not NULL of each group's states."""
        return self.state([self._values(states)], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the values; a group without values gives NULL, or the default if not Nullable."""
        return fill_missing(self._values(states), self)

    def _values(self, states: pa.Array) -> pa.Array:
        """Return the values of states; null for an empty group."""
        return unboxed(columns.struct_fields(states)[0], self.argument_types[0])


@dataclass(frozen=True)
class PositionalWithNulls(Aggregate):
    """any_respect_nulls and anyLast_respect_nulls: the first or last value, which may be NULL.

    State: Tuple(value Nullable(Tuple(value T))), NULL for a group without rows."""

    @property
    def takes_nulls(self) -> bool:
        """True: it may be NULL that comes first or last."""
        return True

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the value of each group's first row, or of its last one."""
        arrow = self.state_type.arrow
        box = columns.structs_from([arguments[0]], arrow.field(0).type)
        return self._taken(box, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the first or last state of each group that has rows."""
        boxes, groups = group_kernels.drop_null_rows(columns.struct_fields(states), groups)
        return self._taken(boxes[0], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the values; a group without rows gives NULL, or the default if not Nullable."""
        boxes = columns.struct_fields(states)[0]
        return fill_missing(columns.struct_fields(boxes)[0], self)

    def _taken(self, boxes: pa.Array, groups: Groups) -> pa.Array:
        """Return as states the first or last of each group's boxed values, none of them null."""
        rows = np.full(groups.count, -1, np.int64)
        positions = np.arange(len(boxes))
        if self.state_type.function == "any_respect_nulls":
            rows[groups.codes[::-1]] = positions[::-1]
        else:
            rows[groups.codes] = positions
        taken = group_kernels.take_rows(boxes, rows)
        return columns.structs_from([taken], self.state_type.arrow)


@dataclass(frozen=True)
class GroupArray(Aggregate):
    """groupArray([limit]): the values in row order, at most `limit` of them. State: Array(T)."""

    limit: int | None = None

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's values in row order, without NULLs, cut to the limit."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        order, counts = groups.order, groups.sizes
        limit = self.limit
        if limit is not None:
            within = np.arange(len(order)) - np.repeat(groups.starts, counts) < limit
            order, counts = order[within], np.minimum(counts, limit)
        elements = values.take(from_numpy(order))
        return columns.lists_from(columns.offsets_from_counts(counts), elements)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the arrays of each group in order of states, cut to the limit."""
        offsets, elements = columns.elements_of(states)
        return self.state([elements], group_kernels.element_groups(offsets, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the states unchanged."""
        return states


def positional(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve first_value, last_value or anyLast."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    result = picked_type(name, types[0])
    state = state_type_of(name, (), types, optional_value_type(types[0]))
    return Positional(
        name, (), types, result, state, merge_class="ordered", additive=True, merge_function=name
    )


def positional_with_nulls(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve any_respect_nulls or anyLast_respect_nulls."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    result = picked_type(name, types[0])
    box = Nullable(Tuple((stored_type(result),), ("value",)))
    state = state_type_of(name, (), types, Tuple((box,), ("value",)))
    return PositionalWithNulls(
        name, (), types, result, state, merge_class="ordered", additive=True, merge_function=name
    )


def group_array(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupArray or groupUniqArray, with an optional limit.

    Finished values merge only without a limit.
    """
    require_count(name, types, 1)
    limit = array_limit(name, parameters)
    array = Array(plain(types[0]))
    state = state_type_of(name, limit, types, array)
    unlimited = not limit  # arrays that a limit cut do not merge to the array it would cut
    merge_function = f"{name}Array" if unlimited else ""
    if name == "groupUniqArray":
        return GroupUniqArray(
            name, limit, types, array, state, additive=unlimited, merge_function=merge_function
        )
    return GroupArray(
        name,
        limit,
        types,
        array,
        state,
        int(str(limit[0])) if limit else None,
        merge_class="ordered",
        additive=unlimited,
        merge_function=merge_function,
    )
