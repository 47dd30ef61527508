"""The combinators -Array, -ForEach and -Resample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    NumberOfArgumentsDoesntMatch,
    SizesOfArraysDoNotMatch,
    TooFewArguments,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.combinators import Combinator, State
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.types import Array, DataType, Date, DateTime, Integer, plain

_BUCKETS_MAX = 1 << 20


@dataclass(frozen=True)
class ArrayElements(Combinator):
    """-Array: over all elements of the arrays; the state is that of the aggregate inside."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        offsets, elements = element_lists(self.name, arguments)
        return self.inner.state(elements, group_kernels.element_groups(offsets, groups))


@dataclass(frozen=True)
class ForEach(Combinator):
    """-ForEach: the first elements, the second ones, … each on their own. State: Array of states,
    as long as the longest array."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        offsets, elements = element_lists(self.name, arguments)
        lists, owners = _by_position(offsets, groups)
        return columns.lists_from(lists, self.inner.state(elements, owners))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        lists, owners = _by_position(offsets, groups)
        return columns.lists_from(lists, self.inner.merge(elements, owners))

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        return columns.lists_from(offsets, self.inner.finalize(elements))


@dataclass(frozen=True)
class Resample(Combinator):
    """-Resample(start, end, step): rows by the bucket of their last argument, those outside left
    out; the last bucket ends at `end`, too. State: Array of as many states as there are buckets."""

    start: int = 0
    end: int = 0
    step: int = 1
    buckets: int = 0

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        *rest, keys = arguments
        if pa.types.is_temporal(keys.type):
            keys = keys.view(pa.int64() if keys.type.bit_width == 64 else pa.int32())
        found = columns.numpy_values(keys)
        wide = np.uint64 if found.dtype.kind == "u" else np.int64
        found, start, end, step = found.astype(wide), *map(wide, (self.start, self.end, self.step))
        inside = (found >= start) & (found < end)
        rest, kept = group_kernels.filter_rows(rest, groups, inside)
        bucket = ((found[inside] - start) // step).astype(np.int64)
        codes = kept.codes * self.buckets + bucket
        made = self.inner.state(rest, Groups(codes, groups.count * self.buckets))
        return columns.lists_from(np.arange(groups.count + 1) * self.buckets, made)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        owners = group_kernels.element_groups(offsets, groups)
        codes = owners.codes * self.buckets + _positions(offsets)
        made = self.inner.merge(elements, Groups(codes, groups.count * self.buckets))
        return columns.lists_from(np.arange(groups.count + 1) * self.buckets, made)

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        return columns.lists_from(offsets, self.inner.finalize(elements))


def element_lists(name: str, arguments: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """The elements of arrays of equal lengths; SizesOfArraysDoNotMatch otherwise."""
    split = [columns.elements_of(one) for one in arguments]
    offsets = split[0][0]
    for others, _ in split[1:]:
        if not np.array_equal(offsets, others):
            raise SizesOfArraysDoNotMatch(
                f"The arrays that {name} takes from one row have different lengths."
            )
    return offsets, [elements for _, elements in split]


def _positions(offsets: np.ndarray) -> np.ndarray:
    return np.asarray(np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)))


def _by_position(offsets: np.ndarray, groups: Groups) -> tuple[np.ndarray, Groups]:
    """(offsets of the groups' lists, the place in them of each element)."""
    lengths = np.zeros(groups.count, np.int64)
    np.maximum.at(lengths, groups.codes, np.diff(offsets))
    lists = columns.offsets_from_counts(lengths)
    owners = group_kernels.element_groups(offsets, groups)
    codes = lists[owners.codes].astype(np.int64) + _positions(offsets)
    return lists, Groups(codes, int(lists[-1]))


def _element_types(name: str, types: tuple[DataType, ...]) -> tuple[DataType, ...]:
    if not types:
        raise TooFewArguments(f"Aggregate function {name} needs at least one array.")
    found = []
    for one in types:
        array = plain(one)
        if not isinstance(array, Array):
            raise illegal_argument(name, one, "an array")
        found.append(array.inner)
    return tuple(found)


def resolve_array(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    inner = resolve(name, parameters, _element_types(f"{name}Array", types))
    same = inner.state_type
    if not isinstance(inner, State):
        same = state_type_of(f"{inner.name}Array", inner.parameters, types, same.state)
    return ArrayElements(
        f"{inner.name}Array",
        inner.parameters,
        types,
        inner.result_type,
        same,
        inner,
        merge_class=inner.merge_class,
        additive=inner.additive,
        merge_function=inner.merge_function,
    )


def resolve_for_each(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    inner = resolve(name, parameters, _element_types(f"{name}ForEach", types))
    spelt = f"{inner.name}ForEach"
    state = state_type_of(spelt, inner.parameters, types, Array(inner.state_type.state))
    return ForEach(
        spelt,
        inner.parameters,
        types,
        Array(inner.result_type),
        state,
        inner,
        merge_class=inner.merge_class,
    )


def resolve_resample(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    spelt = f"{name}Resample"
    if len(parameters) < 3 or not types:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {spelt} takes parameters (start, end, step) and a key, its last"
            " argument."
        )
    *own, start, end, step = parameters
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        raise ArgumentOutOfBound(f"The start, end and step of {spelt} are integers.")
    buckets = 0 if end < start or step < 1 else -((start - end) // step)
    if step < 1 or buckets > _BUCKETS_MAX:
        raise ArgumentOutOfBound(
            f"The step of {spelt} is at least 1, with {_BUCKETS_MAX} buckets at most."
        )
    key = plain(types[-1])
    if not isinstance(key, Integer | Date | DateTime):
        raise illegal_argument(spelt, types[-1], "an integer key")
    unsigned = isinstance(key, Integer) and not key.signed
    lowest, highest = (0, (1 << 64) - 1) if unsigned else (-(1 << 63), (1 << 63) - 1)
    if not (lowest <= start <= highest and lowest <= end <= highest and step <= highest):
        raise ArgumentOutOfBound(
            f"The start, end and step of {spelt} are numbers from {lowest} to {highest}, as its key."
        )
    inner = resolve(name, tuple(own), types[:-1])
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
