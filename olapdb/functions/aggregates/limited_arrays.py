"""groupArraySorted and groupArrayLast: a limited number of each group's values as an array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.functions.kernels.nested_order import nested_ranks
from olapdb.records import dataclass
from olapdb.types import Array, DataType, Dynamic, Json, any_part, plain
from olapdb.types.arrow_values import from_numpy

_LIMIT_MAX = 0xFFFFFF


@dataclass(frozen=True)
class GroupArraySorted(Aggregate):
    """groupArraySorted(limit): the smallest values in their order, NaN last. State: Array(T)."""

    limit: int = 1

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's smallest values, sorted, without NULLs."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        order = order_by(groups.codes, nested_ranks(values, zeros_apart=True))
        starts, counts = groups.starts, groups.sizes
        kept = np.arange(len(order)) - np.repeat(starts, counts) < self.limit
        offsets = columns.offsets_from_counts(np.minimum(counts, self.limit))
        return columns.lists_from(offsets, values.take(from_numpy(order[kept])))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the smallest values of the arrays of each group."""
        offsets, elements = columns.elements_of(states)
        return self.state([elements], group_kernels.element_groups(offsets, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the states unchanged."""
        return states


@dataclass(frozen=True)
class GroupArrayLast(GroupArraySorted):
    """groupArrayLast(limit): the last values in the order of the rows. State: Array(T)."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's last values in row order, without NULLs."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        starts, counts = groups.starts, groups.sizes
        left = np.repeat(starts + counts, counts) - np.arange(len(values))
        offsets = columns.offsets_from_counts(np.minimum(counts, self.limit))
        return columns.lists_from(
            offsets, values.take(from_numpy(groups.order[left <= self.limit]))
        )


def limited_array(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupArraySorted or groupArrayLast, whose one parameter is the limit.

    Raises BadArguments."""
    if len(parameters) != 1 or not isinstance(parameters[0], int) or parameters[0] < 1:
        raise BadArguments(
            f"Aggregate function {name} has one parameter, a positive limit.",
            hint=f"Write {name}(10)(x).",
        )
    if parameters[0] > _LIMIT_MAX:
        raise BadArguments(f"The limit of {name} is at most {_LIMIT_MAX}, not {parameters[0]}.")
    require_count(name, types, 1)
    if name == "groupArraySorted" and any_part(types[0], (Dynamic, Json)):
        raise illegal_argument(name, types[0], "a value of one type (dynamicElement takes it)")
    array = Array(plain(types[0]))
    state = state_type_of(name, parameters, types, array)
    kind = GroupArrayLast if name == "groupArrayLast" else GroupArraySorted
    return kind(
        name,
        parameters,
        types,
        array,
        state,
        merge_class="ordered" if kind is GroupArrayLast else "exact",
        limit=parameters[0],
    )
