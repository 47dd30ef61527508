"""The combinators -Array, -ForEach and -Resample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
    SizesOfArraysDoNotMatch,
    TooFewArguments,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.combinators import Combinator, StateCombinator
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import Array, DataType, Date, DateTime, Integer, plain

_BUCKETS_MAX = 1 << 20


@dataclass(frozen=True)
class ArrayElements(Combinator):
    """-Array: aggregate all elements of the arrays. The state is the inner aggregate's."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the inner states over all elements of each group's arrays."""
        offsets, elements = element_lists(self.name, arguments)
        return self.inner.state(elements, group_kernels.element_groups(offsets, groups))


@dataclass(frozen=True)
class ForEach(Combinator):
    """-ForEach: aggregate the elements of each position by themselves.

    State: Array of inner states, as long as the group's longest array."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the array of inner states, one for each element position."""
        offsets, elements = element_lists(self.name, arguments)
        lists, owners = _by_position(offsets, groups)
        return columns.lists_from(lists, self.inner.state(elements, owners))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Merge the inner states of each group by position; the longest array decides the length."""
        offsets, elements = columns.elements_of(states)
        lists, owners = _by_position(offsets, groups)
        return columns.lists_from(lists, self.inner.merge(elements, owners))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group the array of inner results, one for each element position."""
        offsets, elements = columns.elements_of(states)
        return columns.lists_from(offsets, self.inner.finalize(elements))


@dataclass(frozen=True)
class Resample(Combinator):
    """-Resample(start, end, step): aggregate rows by the bucket of their last argument, the key.

    Rows with a key outside [start, end) are skipped. The last bucket ends at `end`, so it can be
    shorter. State: Array of inner states, one a bucket."""

    start: int = 0
    end: int = 0
    step: int = 1
    buckets: int = 0

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the inner states of its buckets; rows with a NULL are skipped."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        *values, keys = arguments
        if pa.types.is_temporal(keys.type):
            keys = keys.view(pa.int64() if keys.type.bit_width == 64 else pa.int32())
        key_values = columns.numpy_values(keys)
        wide_dtype = np.uint64 if key_values.dtype.kind == "u" else np.int64
        key_values, start, end, step = (
            key_values.astype(wide_dtype),
            *map(wide_dtype, (self.start, self.end, self.step)),
        )
        inside = (key_values >= start) & (key_values < end)
        values, inside_groups = group_kernels.filter_rows(values, groups, inside)
        # Differences of signed numbers may take 64 bits without a sign.
        distance = key_values[inside].astype(np.uint64) - start.astype(np.uint64)
        bucket = (distance // step.astype(np.uint64)).astype(np.int64)
        codes = inside_groups.codes * self.buckets + bucket
        states = self.inner.state(values, Groups(codes, groups.count * self.buckets))
        return columns.lists_from(np.arange(groups.count + 1) * self.buckets, states)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Merge the inner states of each group bucket by bucket. Raises IllegalTypeOfArgument."""
        offsets, elements = columns.elements_of(states)
        sizes = np.diff(offsets)
        if ((sizes != 0) & (sizes != self.buckets)).any():  # 0: the default of the type
            raise IllegalTypeOfArgument(f"{self.name} cannot merge states of other buckets.")
        owners = group_kernels.element_groups(offsets, groups)
        codes = owners.codes * self.buckets + _positions(offsets)
        merged = self.inner.merge(elements, Groups(codes, groups.count * self.buckets))
        return columns.lists_from(np.arange(groups.count + 1) * self.buckets, merged)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group the array of inner results, one for each bucket."""
        offsets, elements = columns.elements_of(states)
        return columns.lists_from(offsets, self.inner.finalize(elements))


def element_lists(name: str, arguments: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the offsets that the arrays share, shape (rows + 1,), and the elements of each array.

    Raises SizesOfArraysDoNotMatch if the arrays of a row differ in length; `name` is the
    aggregate's, for the message."""
    arrays = [columns.elements_of(array) for array in arguments]
    offsets = arrays[0][0]
    for other_offsets, _ in arrays[1:]:
        if not np.array_equal(offsets, other_offsets):
            raise SizesOfArraysDoNotMatch(
                f"The arrays that {name} takes from one row have different lengths."
            )
    return offsets, [elements for _, elements in arrays]


def _positions(offsets: np.ndarray) -> np.ndarray:
    """Return the position of each element in its list, from 0."""
    return np.asarray(np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)))


def _by_position(offsets: np.ndarray, groups: Groups) -> tuple[np.ndarray, Groups]:
    """Group elements by group and position.

    Returns the offsets of the result lists, one list a group, and the groups of the elements."""
    lengths = np.zeros(groups.count, np.int64)
    np.maximum.at(lengths, groups.codes, np.diff(offsets))
    lists = columns.offsets_from_counts(lengths)
    owners = group_kernels.element_groups(offsets, groups)
    codes = lists[owners.codes].astype(np.int64) + _positions(offsets)
    return lists, Groups(codes, int(lists[-1]))


def _element_types(name: str, types: tuple[DataType, ...]) -> tuple[DataType, ...]:
    """Return the element types of the argument arrays; raise unless all arguments are arrays.

    Raises TooFewArguments and IllegalTypeOfArgument."""
    if not types:
        raise TooFewArguments(f"Aggregate function {name} needs at least one array.")
    element_types = []
    for argument_type in types:
        array = plain(argument_type)
        if not isinstance(array, Array):
            raise illegal_argument(name, argument_type, "an array")
        element_types.append(array.inner)
    return tuple(element_types)


def resolve_array_combinator(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    """Return -Array of the aggregate `name`; `resolve` resolves that one."""
    inner = resolve(name, parameters, _element_types(f"{name}Array", types))
    state = inner.state_type
    if not isinstance(inner, StateCombinator):
        state = state_type_of(f"{inner.name}Array", inner.parameters, types, state.state)
    return ArrayElements(
        f"{inner.name}Array",
        inner.parameters,
        types,
        inner.result_type,
        state,
        inner,
        merge_class=inner.merge_class,
        additive=inner.additive,
        merge_function=inner.merge_function,
    )


def resolve_for_each_combinator(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    """Return -ForEach of the aggregate `name`; `resolve` resolves that one."""
    inner = resolve(name, parameters, _element_types(f"{name}ForEach", types))
    full_name = f"{inner.name}ForEach"
    state = state_type_of(full_name, inner.parameters, types, Array(inner.state_type.state))
    return ForEach(
        full_name,
        inner.parameters,
        types,
        Array(inner.result_type),
        state,
        inner,
        merge_class=inner.merge_class,
    )


def resolve_resample_combinator(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    """Return -Resample of the aggregate `name`; `resolve` resolves that one.

    The last three parameters are start, end and step; the last argument is the key.

    Raises NumberOfArgumentsDoesntMatch, ArgumentOutOfBound and IllegalTypeOfArgument."""
    full_name = f"{name}Resample"
    if len(parameters) < 3 or not types:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {full_name} takes parameters (start, end, step) and a key, its last"
            " argument."
        )
    *inner_parameters, start, end, step = parameters
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        raise ArgumentOutOfBound(f"The start, end and step of {full_name} are integers.")
    buckets = 0 if end < start or step < 1 else -((start - end) // step)
    if step < 1 or buckets > _BUCKETS_MAX:
        raise ArgumentOutOfBound(
            f"The step of {full_name} is at least 1, with {_BUCKETS_MAX} buckets at most."
        )
    key = plain(types[-1])
    if not isinstance(key, Integer | Date | DateTime):
        raise illegal_argument(full_name, types[-1], "an integer key")
    unsigned = isinstance(key, Integer) and not key.signed
    lowest, highest = (0, (1 << 64) - 1) if unsigned else (-(1 << 63), (1 << 63) - 1)
    if not (lowest <= start <= highest and lowest <= end <= highest and step <= highest):
        raise ArgumentOutOfBound(
            f"The start, end and step of {full_name} are numbers from {lowest} to {highest}, as its key."
        )
    inner = resolve(name, tuple(inner_parameters), types[:-1])
    state = state_type_of(f"{inner.name}Resample", parameters, types, Array(inner.state_type.state))
    return Resample(
        f"{inner.name}Resample",
        parameters,
        types,
        Array(inner.result_type),
        state,
        inner,
        start,
        end,
        step,
        buckets,
        merge_class=inner.merge_class,
    )
