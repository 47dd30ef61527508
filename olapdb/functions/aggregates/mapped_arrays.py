"""sumMapFiltered, sumMapWithOverflow and their kin: sumMap of arrays under other names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.map_combinators import MappedArrays, mapped_arrays
from olapdb.functions.aggregates.names import MAPPED_ARRAYS
from olapdb.functions.aggregates.signatures import (
    ResolveAggregate,
    illegal_argument,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import DataType, Tuple, plain
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class FilteredArrays(MappedArrays):
    """sumMapFiltered(keys)(keys array, values array, …): the sums of the keys that are listed."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the keys that the parameter lists, sorted, and the sums of their values."""
        offsets, keys, values = self._split_state(super().state(arguments, groups))
        keep = self._is_listed(keys)
        counts = np.bincount(columns.parents_of(offsets)[keep], minlength=groups.count)
        keys, *values = [column.filter(from_numpy(keep)) for column in (keys, *values)]
        offsets = columns.offsets_from_counts(counts)
        return self._join_state(offsets, keys, values, self.state_type.arrow)

    def _is_listed(self, keys: pa.Array) -> np.ndarray:
        """Return a mask of the keys that the parameter lists; listed values of another type than the keys match no
        key."""
        (listed,) = self.parameters
        assert isinstance(listed, list)
        is_listed = np.zeros(len(keys), bool)
        for value in listed:
            if isinstance(value, int) and pa.types.is_string(keys.type):
                continue
            try:
                wanted = pa.scalar(value).cast(keys.type)
            except pa.ArrowException:
                continue
            is_listed |= np.asarray(pc.fill_null(pc.equal(keys, wanted), False))
        return is_listed


def resolve_mapped_arrays(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    """Return an aggregate of MAPPED_ARRAYS; `resolve` resolves the aggregate of the values.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    filtered = "Filtered" in name
    if not filtered:
        require_no_parameters(name, parameters)
    elif len(parameters) != 1:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes one parameter, the array of the keys.")
    elif not isinstance(parameters[0], list):
        raise IllegalTypeOfArgument(f"The parameter of {name} is the array of the keys.")
    if len(types) == 1 and not isinstance(plain(types[0]), Tuple):
        raise illegal_argument(name, types[0], "a Tuple of arrays")
    sums = mapped_arrays(MAPPED_ARRAYS[name], types, resolve)
    state = state_type_of(name, parameters, types, sums.state_type.state)
    sums = replace(sums, name=name, state_type=state, additive=False, merge_function="")
    if not filtered:
        return sums
    return FilteredArrays(
        name,
        parameters,
        types,
        sums.result_type,
        state,
        sums.inner,
        sums.others,
        merge_class=sums.merge_class,
    )
