"""Partials of a GROUP BY: distinct keys and a state of each aggregate for each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import joined_column, make_batch, single_chunk
from olapdb.compute.group_codes import Factorised, factorise
from olapdb.config import tuning
from olapdb.execute.operators.compact_columns import (
    bytes_of_rows,
    have_one_dictionary,
    is_coded_set,
    plain_column,
)
from olapdb.functions.base import Groups
from olapdb.functions.kernels.columns import from_values
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import AggregateCall
from olapdb.plan.nodes import Aggregate
from olapdb.records import dataclass
from olapdb.threads import in_threads
from olapdb.types.arrow_values import from_numpy, to_numpy

if TYPE_CHECKING:
    from olapdb.execute.operators import coded_sets
else:
    coded_sets = LazyModule("olapdb.execute.operators.coded_sets")

MERGE_BYTES_PER_ITEM = 40
MERGE_COPIES = 4
_RANGES_PER_THREAD = 2


@dataclass(frozen=True)
class Partial:
    """Distinct keys, in order of appearance, and for each aggregate one state for each key.

    Keys may be codes of a dictionary, and states sets of such, until the partials are merged."""

    keys: list[pa.Array]
    states: list[pa.Array]
    groups: int
    set_column: tuple[pa.Array, ...] = ()
    """The number of the grouping set, where there are sets."""
    results: tuple[pa.Array, ...] = ()
    """The results of the calls, in place of states, of groups whose states memory does not take."""

    @cached_property
    def nbytes(self) -> int:
        """The size of keys and states; of codes that of their values."""
        return sum(map(_bytes, (*self.keys, *self.states)))

    @cached_property
    def items(self) -> int:
        """The number of groups, and of the elements of states that are lists, which merging sorts or hashes. Codes
        are merged by themselves, and do not count."""
        return self.groups + sum(0 if is_coded_set(s) else _list_elements(s) for s in self.states)

    def decoded(self, calls: Sequence[AggregateCall]) -> Partial:
        """Return the partial with the values of keys in place of codes, and states of the calls in place of sets."""
        return self.with_values().with_states(calls)

    def with_states(self, calls: Sequence[AggregateCall]) -> Partial:
        """Return the partial with states of the calls in place of sets."""
        states = [
            coded_sets.states_of_sets(call, column) if is_coded_set(column) else column
            for call, column in zip(calls, self.states, strict=True)
        ]
        return replace(self, states=states)

    def with_lists(self) -> Partial:
        """Return the partial with sets of codes as lists in place of bits for each code; other states unchanged."""
        states = [
            coded_sets.listed(column) if is_coded_set(column) else column for column in self.states
        ]
        return replace(self, states=states)

    def with_values(self) -> Partial:
        """Return the partial with the values of keys in place of codes."""
        keys = [
            key.dictionary.take(key.indices) if isinstance(key, pa.DictionaryArray) else key
            for key in self.keys
        ]
        return replace(self, keys=keys)

    def as_batch(self) -> pa.RecordBatch:
        """Return keys and states as a batch; it needs a column."""
        columns = [*self.keys, *self.states]
        return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(columns))])

    @staticmethod
    def of_batch(batch: pa.RecordBatch, keys: int) -> Partial:
        """Return the partial that `as_batch` made a batch of; its first `keys` columns are keys."""
        columns = batch.columns
        return Partial(columns[:keys], columns[keys:], batch.num_rows)


def first_of_groups(keys: Sequence[pa.Array], groups: Factorised) -> list[pa.Array]:
    """Return the keys of each group: those of its first row. Where no two rows share a group these are the
    keys as they are, since groups are numbered by their first rows."""
    if groups.count == len(groups.codes):
        return list(keys)
    first = from_values(groups.first, pa.int64())
    return [key.take(first) for key in keys]


def merging_bytes(nbytes: int, items: int) -> int:
    """Return an estimate of the bytes that merging partials needs, which have `nbytes` and `items` groups and elements of
    lists together: concatenated, partitioned and merged columns, and some numbers for each item."""
    return MERGE_COPIES * nbytes + MERGE_BYTES_PER_ITEM * items


def merge_partials(
    partials: Sequence[Partial], calls: Sequence[AggregateCall], threads: int
) -> Partial:
    """Return the union of the partials' groups; states are merged in the partials' order.

    What is codes of one dictionary in all partials is merged by these, which need no hashing of texts."""
    partials = _of_one_form(partials, calls)
    rows = sum(partial.groups for partial in partials)
    keys = [joined_column([p.keys[at] for p in partials]) for at in range(len(partials[0].keys))]
    codes = [key.indices if isinstance(key, pa.DictionaryArray) else key for key in keys]
    union = factorise(codes, rows, threads=threads)
    first = from_values(union.first, pa.int64())
    states = [
        coded_sets.joined_sets(c) if is_coded_set(c[0]) else single_chunk(pa.chunked_array(list(c)))
        for c in zip(*(p.states for p in partials), strict=True)
    ]
    merged = _merged(calls, states, union.groups, threads)
    return Partial([key.take(first) for key in keys], merged, union.count)


def _of_one_form(partials: Sequence[Partial], calls: Sequence[AggregateCall]) -> Sequence[Partial]:
    """Return the partials with one dictionary for each key that has codes, or its values, and states in place of sets
    with codes of several dictionaries."""
    first, *others = partials
    sets_differ = any(
        not all(map(have_one_dictionary, _elements_of_sets(first), _elements_of_sets(other)))
        for other in others
    )
    if sets_differ:
        partials = [partial.with_states(calls) for partial in partials]
    columns = [_of_one_dictionary(list(c)) for c in zip(*(p.keys for p in partials), strict=True)]
    return [
        replace(partial, keys=[column[at] for column in columns])
        for at, partial in enumerate(partials)
    ]


def _of_one_dictionary(keys: list[pa.Array]) -> list[pa.Array]:
    """Return a key of several partials as codes of one dictionary, or as values where that is not cheaper."""
    first, *others = keys
    if all(have_one_dictionary(first, other) for other in others):
        return keys
    coded = [key for key in keys if isinstance(key, pa.DictionaryArray)]
    values = sum(len(key.dictionary) for key in coded)
    types = {key.dictionary.type for key in coded}
    if len(coded) < len(keys) or len(types) > 1 or values > sum(map(len, keys)):
        return [plain_column(key) for key in keys]
    encoded = pa.chunked_array([key.dictionary for key in coded]).dictionary_encode()
    dictionary = encoded.chunk(0).dictionary
    return [
        pa.DictionaryArray.from_arrays(chunk.indices.take(key.indices), dictionary, safe=False)
        for chunk, key in zip(encoded.chunks, coded, strict=True)
    ]


def _elements_of_sets(partial: Partial) -> list[pa.Array]:
    """Return one column for each state of a partial: of a state that is a set of codes its elements, a dictionary; of
    any other the state itself."""
    return [states.values if is_coded_set(states) else states for states in partial.states]


def _bytes(column: pa.Array) -> int:
    """Return the bytes of a column. For codes of texts add about the bytes that the texts will have once decoded."""
    codes = column.values if is_coded_set(column) else column
    if not isinstance(codes, pa.DictionaryArray):
        return bytes_of_rows(column)
    if isinstance(column, pa.FixedSizeListArray):  # there are at most as many codes
        return int(codes.indices.nbytes) + int(codes.dictionary.nbytes)
    share = len(codes) / max(len(codes.dictionary), 1)
    return bytes_of_rows(codes) + int(codes.dictionary.nbytes * share)


def _merged(
    calls: Sequence[AggregateCall], states: Sequence[pa.Array], groups: Groups, threads: int
) -> list[pa.Array]:
    """Return the merged states of each call: several calls at a time where there are many states, and several
    ranges of groups where the states are large."""
    arguments = list(zip(calls, states, strict=True))
    if len(groups.codes) < tuning.MERGED_ROWS_MIN:
        return [_merged_call(call, column, groups, threads) for call, column in arguments]
    return in_threads(
        lambda call, column: _merged_call(call, column, groups, 1), arguments, threads
    )


def _merged_call(call: AggregateCall, states: pa.Array, groups: Groups, threads: int) -> pa.Array:
    """Return the merged states of one call, several ranges of groups at a time where that pays."""
    if is_coded_set(states):
        return coded_sets.merged_sets(states, groups)
    ranges = _ranges(states, groups, threads)
    if len(ranges) == 1:
        return single_chunk(call.aggregate.merge(states, groups))
    merged = call.aggregate.merge_runs(states, groups)
    if merged is not None:
        return single_chunk(merged)
    arguments = [(call, states, groups, *bounds) for bounds in ranges]
    return pa.concat_arrays(in_threads(_merged_range, arguments, threads))


def _ranges(states: pa.Array, groups: Groups, threads: int) -> list[tuple[int, int]]:
    """Return ranges of groups whose states are merged at the same time: more than one only for lists of many
    elements, about as many of them in each range."""
    elements = _elements(states) if threads > 1 else None
    if elements is None or elements.sum() < tuning.MERGED_ELEMENTS_MIN:
        return [(0, groups.count)]
    ends = np.cumsum(np.bincount(groups.codes, elements, groups.count))
    shares = np.arange(1, threads * _RANGES_PER_THREAD) / (threads * _RANGES_PER_THREAD)
    cuts = sorted(set((np.searchsorted(ends, ends[-1] * shares) + 1).tolist()))
    bounds = [0, *(cut for cut in cuts if cut < groups.count), groups.count]
    return list(pairwise(bounds))


def _elements(states: pa.Array) -> np.ndarray | None:
    """Return the number of elements of each state that is a list, or a struct with lists; None for others."""
    if pa.types.is_struct(states.type):
        counts = [_elements(field) for field in states.flatten()]
        lists = [count for count in counts if count is not None]
        return sum(lists[1:], lists[0]) if lists else None
    if not pa.types.is_list(states.type) or states.null_count:
        return None
    return np.diff(to_numpy(states.offsets))


def _list_elements(states: pa.Array) -> int:
    """Return the number of elements of states that are lists, or have a list inside: the most of any. Numbers, which
    need no dictionary of their own, count half."""
    if pa.types.is_struct(states.type):
        return max(map(_list_elements, states.flatten()), default=0)
    if not pa.types.is_list(states.type) or not len(states):
        return 0
    offsets = states.offsets
    elements = int(offsets[-1].as_py() - offsets[0].as_py())
    return elements // 2 if pa.types.is_primitive(states.type.value_type) else elements


def _merged_range(
    call: AggregateCall, states: pa.Array, groups: Groups, start: int, stop: int
) -> pa.Array:
    """Return the merged states of the groups from `start` up to `stop`, excluded."""
    rows = np.flatnonzero((groups.codes >= start) & (groups.codes < stop))
    within = Groups(groups.codes[rows] - start, stop - start)
    return single_chunk(call.aggregate.merge(states.take(from_numpy(rows)), within))


def group_by_some(
    finest: Partial, positions: Sequence[int], calls: Sequence[AggregateCall]
) -> Partial:
    """Return the groups of `finest` by only the keys at these positions, with merged states."""
    if len(positions) == len(finest.keys):
        return finest
    keys = [finest.keys[at] for at in positions]
    coarse = factorise(keys, finest.groups)
    first = from_numpy(coarse.first)
    states = [
        single_chunk(call.aggregate.merge(states, coarse.groups))
        for call, states in zip(calls, finest.states, strict=True)
    ]
    return Partial([key.take(first) for key in keys], states, coarse.count)


def empty_group(calls: Sequence[AggregateCall]) -> Partial:
    """Return the one group of an aggregation without keys over no rows."""
    groups = Groups(np.zeros(0, np.int64), 1)
    states = [
        single_chunk(
            call.aggregate.state([pa.nulls(0, a.type.arrow) for a in call.arguments], groups)
        )
        for call in calls
    ]
    return Partial([], states, 1)


def _finalized(call: AggregateCall, states: pa.Array) -> pa.Array:
    """Return the results of a call."""
    if is_coded_set(states):
        return coded_sets.finalized_sets(call, states)
    return single_chunk(call.aggregate.finalize(states))


def results_of(node: Aggregate, positions: Sequence[int]) -> list[tuple[AggregateCall, int]]:
    """Return the calls of an aggregation, each with the position of its states, as a `GroupMerger` takes them."""
    return [(call, at) for (_, call), at in zip(node.aggregates, positions, strict=True)]


def finalized(node: Aggregate, partial: Partial, positions: Sequence[int]) -> pa.RecordBatch:
    """Return the rows of the groups; `positions` are those of each aggregate's states."""
    results = partial.results or (
        _finalized(call, partial.states[position])
        for (_, call), position in zip(node.aggregates, positions, strict=True)
    )
    columns = [*partial.keys, *results, *partial.set_column]
    return make_batch(columns, node.schema, partial.groups)
