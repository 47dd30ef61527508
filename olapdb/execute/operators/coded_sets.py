"""Sets of distinct values as codes of a dictionary, until the groups of a GROUP BY are merged.

An aggregate that keeps distinct values (`keeps_distinct`) has such a list of codes for each group in place of its state,
where its argument comes as a dictionary.  Sets of the same dictionary are merged by a bit for each code.  At the end
the aggregate makes its result of them, or its states where these are wanted.

Where a group has a good part of all codes, the set stays these bits, its marks:

    list<dictionary>                    codes of the dictionary
    fixed_size_list<dictionary>[words]  words of 64 bits in place of codes, for this module alone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import single_chunk
from olapdb.errors import MemoryLimitExceeded
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Groups
from olapdb.functions.kernels.columns import from_values
from olapdb.native import distinct
from olapdb.native.library import library
from olapdb.plan.expressions import AggregateCall
from olapdb.types.arrow_values import to_numpy

_CODES_MAX = 2**31 - 1
_BYTES_PER_CODE_MAX = 8
"""The bytes of marks for each code that is set, beyond which sets are lists: a listed code takes 4 bytes, and some time to
find and to mark again."""

Sets: TypeAlias = pa.ListArray | pa.FixedSizeListArray


def set_of(column: pa.DictionaryArray, groups: Groups) -> Sets:
    """Return the distinct codes of each group's values, ascending: as a list for each group, or, where that takes less
    memory, as a bit for each code ("marks")."""
    marks = group_kernels.marked_codes(column, groups)
    if marks is None:
        return _sets(*group_kernels.distinct_codes(column, groups), column.dictionary)
    if marks.nbytes <= _BYTES_PER_CODE_MAX * int(distinct.starts_of_marks(marks)[-1]):
        return _marked_sets(marks, column.dictionary)
    return _sets(*distinct.codes_of_marks(marks), column.dictionary)


def joined_sets(parts: Sequence[Sets]) -> Sets:
    """Return the sets of several partials one after the other; they have one dictionary."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, pa.FixedSizeListArray) for part in parts):
        return _marked_sets(np.concatenate([*map(_marks_of, parts)]), parts[0].values.dictionary)
    parts = [*map(listed, parts)]
    sizes = np.concatenate([np.diff(to_numpy(part.offsets)) for part in parts])
    codes = np.concatenate([to_numpy(part.values.indices) for part in parts])
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return _sets(offsets, codes, parts[0].values.dictionary)


def merged_sets(sets: Sets, groups: Groups) -> Sets:
    """Return one set for each group, the union of its sets; `groups` says to which group each set belongs."""
    if groups.count == len(sets):  # each is alone: groups are numbered by first appearance
        return sets
    dictionary = sets.values.dictionary
    if isinstance(sets, pa.FixedSizeListArray):
        marks = distinct.joined_marks(_marks_of(sets), groups.codes, groups.count)
        return _marked_sets(marks, dictionary)
    offsets = to_numpy(sets.offsets).astype(np.int64)
    if library() is not None:
        codes = to_numpy(sets.values.indices)
        union = distinct.union_of_codes(offsets, codes, groups.codes, groups.count, len(dictionary))
        if union is not None:
            return _sets(*union, dictionary)
    return set_of(sets.values, group_kernels.element_groups(offsets, groups))


def states_of_sets(call: AggregateCall, sets: Sets) -> pa.Array:
    """Return the states of an aggregate over these sets."""
    sets = listed(sets)
    values = sets.values.dictionary.take(sets.values.indices)
    sizes = np.diff(to_numpy(sets.offsets))
    groups = Groups(np.repeat(np.arange(len(sets)), sizes), len(sets))
    return single_chunk(call.aggregate.state([values], groups))


def finalized_sets(call: AggregateCall, sets: Sets) -> pa.Array:
    """Return the results of an aggregate over these sets."""
    dictionary = sets.values.dictionary
    results = None
    if isinstance(sets, pa.FixedSizeListArray) and not dictionary.null_count:
        results = call.aggregate.of_marked(dictionary, _marks_of(sets))
    if results is None and not dictionary.null_count:
        sets = listed(sets)
        offsets = to_numpy(sets.offsets).astype(np.int64)
        codes = to_numpy(sets.values.indices)
        results = call.aggregate.of_distinct(dictionary, offsets, codes)
    if results is None:
        results = call.aggregate.finalize(states_of_sets(call, sets))
    return single_chunk(results)


def listed(sets: Sets) -> pa.ListArray:
    """Return sets as lists of ascending codes; sets that are lists already unchanged."""
    if not isinstance(sets, pa.FixedSizeListArray):
        return sets
    return _sets(*distinct.codes_of_marks(_marks_of(sets)), sets.values.dictionary)


def _marked_sets(marks: np.ndarray, dictionary: pa.Array) -> pa.FixedSizeListArray:
    """Return sets as marks of the codes of a dictionary."""
    words = pa.array(marks.reshape(-1))
    values = pa.DictionaryArray.from_arrays(words, dictionary, safe=False)
    return pa.FixedSizeListArray.from_arrays(values, marks.shape[1])


def _marks_of(sets: pa.FixedSizeListArray) -> np.ndarray:
    """Return the marks of sets: uint64 of shape (sets, words)."""
    marks: np.ndarray = to_numpy(sets.flatten().indices).reshape(-1, sets.type.list_size)
    return marks


def _sets(offsets: np.ndarray, codes: np.ndarray, dictionary: pa.Array) -> pa.ListArray:
    """Return lists of codes of a dictionary; `offsets` are where they begin.

    Raises MemoryLimitExceeded for more codes than the offsets of Arrow's lists can count."""
    if offsets[-1] > _CODES_MAX:
        raise MemoryLimitExceeded(
            f"The groups of one step have {offsets[-1]:,} distinct values, at most {_CODES_MAX:,} fit.",
            hint="Lower max_memory_usage, so that groups are spilled earlier, or group by fewer keys.",
        )
    indices = from_values(codes.astype(np.int32, copy=False), pa.int32())
    values = pa.DictionaryArray.from_arrays(indices, dictionary, safe=False)
    return pa.ListArray.from_arrays(from_values(offsets.astype(np.int32), pa.int32()), values)
