"""Calls of the kernels that find the distinct values of groups. Each needs the library to be loaded.

`codes` is the group of each row, None where all rows are in one group.  The forms in numpy are in
`functions/aggregates/group_kernels.py` and `functions/aggregates/distinct.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import ColumnValues

_SPARE = 64
_SLOTS_PER_VALUE = 2
_WORD_BITS = 64
_WORDS_MIN = 1 << 12
_SIGN = np.uint64(1 << 63)


def distinct_values(
    values: ColumnValues, codes: np.ndarray | None, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return each group's distinct integers that are not NULL, sorted: the offsets of the groups,
    and the integers in their own type."""
    words, starts = grouped_words(values, codes, groups)
    _sort(words, starts, None, 0)
    dtype = values.numbers.dtype
    if dtype.kind == "i":
        return starts, (words[: starts[-1]] ^ _SIGN).view(np.int64).astype(dtype, copy=False)
    return starts, _shortened(words, starts).astype(dtype, copy=False)


def distinct_codes(
    values: ColumnValues, codes: np.ndarray | None, groups: int, count: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return each group's distinct codes that are not NULL, of codes from 0 up to `count`, sorted: the offsets of the
    groups, and the codes as int32. None where a bit for each code of each group takes more than the rows do."""
    marks = marked_codes(values, codes, groups, count)
    return None if marks is None else codes_of_marks(marks)


def marked_codes(
    values: ColumnValues, codes: np.ndarray | None, groups: int, count: int
) -> np.ndarray | None:
    """Return a bit for each code from 0 up to `count` that is set where a group has it: uint64 of shape (groups,
    words), the first code's the lowest bit. None where the bits take more than the rows do."""
    words = _words_of(count, groups, values.rows)
    if words is None:
        return None
    if codes is not None and len(codes) != values.rows:
        raise ValueError(f"{values.rows} rows have {len(codes)} codes.")
    marks = np.zeros((groups, words), np.uint64)
    kernels().olapdb_mark_codes(*values.column, codes, values.rows, words, marks)
    return marks


def joined_marks(marks: np.ndarray, owners: np.ndarray, groups: int) -> np.ndarray:
    """Return the union of sets of codes for each group, as `marked_codes` does; `owners` has the group of each set."""
    sets, words = marks.shape
    joined = np.zeros((groups, words), np.uint64)
    kernels().olapdb_join_marks(
        np.ascontiguousarray(marks), np.ascontiguousarray(owners, np.int64), sets, words, joined
    )
    return joined


def starts_of_marks(marks: np.ndarray) -> np.ndarray:
    """Return where the codes of each group begin if they are listed one after the other, and where the last ones end;
    int64."""
    groups, words = marks.shape
    starts = np.zeros(groups + 1, np.int64)
    kernels().olapdb_marked_codes(marks, groups, words, starts, None)
    return starts


def codes_of_marks(marks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes whose bit is set: the offsets of the groups, and the codes as int32, ascending in each group."""
    groups, words = marks.shape
    starts = starts_of_marks(marks)
    codes = empty(int(starts[-1]), np.int32)
    kernels().olapdb_marked_codes(marks, groups, words, starts, codes)
    return starts, codes


def union_of_codes(
    offsets: np.ndarray, codes: np.ndarray, owners: np.ndarray, groups: int, count: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the union of lists of int32 codes below `count` for each group, as `distinct_codes` does. `offsets` cut
    the codes into lists, `owners` has the group of each list."""
    words = _words_of(count, groups, len(codes))
    if words is None:
        return None
    bits = np.zeros(groups * words, np.uint64)
    kernels().olapdb_mark_lists(
        codes,
        np.ascontiguousarray(offsets, np.int64),
        len(owners),
        np.ascontiguousarray(owners, np.int64),
        words,
        bits,
    )
    return codes_of_marks(bits.reshape(groups, words))


def _words_of(count: int, groups: int, rows: int) -> int | None:
    """Return the words of 64 bits that a bit for each of `count` codes takes; None where those of all groups take
    more than the rows do."""
    words = -(-count // _WORD_BITS)
    return words if groups * words <= max(rows, _WORDS_MIN) else None


def sample(
    hashes: ColumnValues, codes: np.ndarray | None, skips: np.ndarray, size_max: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sample of each group's distinct uint64 hashes, sorted: offsets, hashes and skips.

    A sample has the hashes that 2^skip divides. `skips` are the least ones, int64, a number for each
    group; the result has those with which at most `size_max` hashes remain."""
    assert hashes.numbers.dtype == np.uint64
    skips = np.array(skips, np.int64)
    words, starts = grouped_words(hashes, codes, len(skips), skips)
    _sort(words, starts, skips, size_max)
    return starts, _shortened(words, starts), skips


def grouped_words(
    values: ColumnValues, codes: np.ndarray | None, groups: int, skips: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values that are not NULL as words, group by group, and where the groups begin.

    The words of signed integers have their sign bit flipped, so that they sort as the integers."""
    if codes is not None and len(codes) != values.rows:
        raise ValueError(f"{values.rows} rows have {len(codes)} codes.")
    starts = np.zeros(groups + 1, np.int64)
    words = empty(values.rows, np.uint64)
    kernels().olapdb_group_values(*values.column, codes, values.rows, groups, skips, starts, words)
    return words, starts


def _sort(words: np.ndarray, starts: np.ndarray, skips: np.ndarray | None, size_max: int) -> None:
    """Sort each group's words without duplicates, in place; close the groups up in `starts` too.

    With `skips` a group of more than `size_max` words keeps those that 2^skip divides, and its skip
    rises until they fit."""
    groups = len(starts) - 1
    largest = int(np.diff(starts).max(initial=0))
    workspace = empty(_SLOTS_PER_VALUE * largest + _SPARE, np.uint64)
    kernels().olapdb_distinct_sorted(words, groups, starts, skips, size_max, workspace)


def _shortened(words: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the words of all groups without the spare memory behind them: a copy unless there is none."""
    if starts[-1] == len(words):
        return words
    shortened = empty(int(starts[-1]), np.uint64)
    np.copyto(shortened, words[: starts[-1]])
    return shortened
