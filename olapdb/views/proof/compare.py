"""Comparison of two tables of a target's rows: the expected ones and the actual ones.

If the engine merges rows, they are matched by key (each key once on both sides); else the tables
are compared as multisets. Equal values are identical, except for sums of floats, which depend on
the order of addition. So floats that merges add up, as values or in states, and columns that the query
computes from such sums are also equal within 1e-9 of their magnitude, or of the magnitude of what
was added (`magnitudes`); keys of maps are exact, and states as exact as what they keep
(`compare_states`). A Float32 is never a sum (`column_conversion`). Everything is vectorised: one
grouping over both sides matches the keys.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.compute.group_codes import factorise
from olapdb.engine.combine import parameter_values, summed_columns
from olapdb.engine.layout import TableLayout
from olapdb.engine.summing_maps import nested_maps
from olapdb.functions import resolve_aggregate
from olapdb.lineage.invalidation import column_texts
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import Column, Table
from olapdb.records import dataclass
from olapdb.types import AggregateFunction, SimpleAggregateFunction
from olapdb.types.arrow_values import from_numpy
from olapdb.views.proof.compare_states import StateComparison
from olapdb.views.proof.compare_values import compare_columns, compare_maps

FLOAT_TOLERANCE = 1e-9
EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """The numbers of keys that are `missing`, `extra`, or `differing` in a value.

    `largest_difference` is absolute, of two numbers; `examples` are up to five keys as text.
    """

    keys_compared: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0
    largest_difference: float = 0.0
    examples: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Return whether no key is missing, extra or differing."""
        return self.missing == self.extra == self.differing == 0


def compare_keys(
    table: Table,
    keys: Sequence[str],
    expected: pa.Table,
    actual: pa.Table,
    magnitudes: pa.Table | None = None,
    rounded: frozenset[str] = frozenset(),
) -> Difference:
    """Compare two tables by key; each table holds a key at most once. `keys` are column names,
    empty where each table is a single row. `magnitudes` has, by the same keys, the magnitudes of
    what was added up; without it sums are compared by their own magnitude. `rounded` are columns
    that the query computes from sums of floats."""
    index_expected, index_actual = _match_keys(keys, expected, actual)
    in_both = np.flatnonzero((index_expected >= 0) & (index_actual >= 0))
    only_expected = index_expected[(index_expected >= 0) & (index_actual < 0)]
    only_actual = index_actual[(index_expected < 0) & (index_actual >= 0)]
    left, right = expected.take(index_expected[in_both]), actual.take(index_actual[in_both])
    added = None if magnitudes is None else _rows_of_keys(keys, left, magnitudes)
    if magnitudes is not None:
        only_expected = _rows_of_values(table, keys, expected, only_expected, magnitudes)
        only_actual = _rows_of_values(table, keys, actual, only_actual, magnitudes)
    differing, sums = np.zeros(len(in_both), dtype=bool), _summed_floats(table)
    largest = 0.0
    for column in table.stored_columns:
        if column.name in keys:
            continue
        of_left, of_right = (single_chunk(side.column(column.name)) for side in (left, right))
        of_added = None if added is None else single_chunk(added.column(column.name))
        is_sum = column.name in sums or column.name in rounded
        differs, largest_here = _compare_merged(column, of_left, of_right, of_added, is_sum)
        differing |= differs
        largest = max(largest, largest_here)
    return Difference(
        keys_compared=len(index_expected),
        missing=len(only_expected),
        extra=len(only_actual),
        differing=int(differing.sum()),
        largest_difference=largest,
        examples=_examples(
            table,
            keys,
            (
                ("differing", left.filter(from_numpy(differing))),
                ("missing", expected.take(only_expected)),
                ("extra", actual.take(only_actual)),
            ),
        ),
    )


def _summed_floats(table: Table) -> frozenset[str]:
    """Return the plain columns of a SummingMergeTree that it adds up; those of other values are exact anyway."""
    layout = TableLayout(table)
    names = [column.name for column in summed_columns(layout)]
    if table.engine.name == "SummingMergeTree":
        names += [name for nested_map in nested_maps(layout) for name in nested_map.values]
    return frozenset(names)


def _compare_merged(
    column: Column, left: pa.Array, right: pa.Array, added: pa.Array | None, is_sum: bool
) -> tuple[np.ndarray, float]:
    """Compare values of a column that is no key. Return what `compare_columns` returns. `added` has the values for
    the absolute values of what was added up; `is_sum`: the column is added up, or computed from sums."""
    kind = column.type
    if isinstance(kind, AggregateFunction):
        parameters = parameter_values(kind.parameters)
        aggregate = resolve_aggregate(kind.function, parameters, kind.arguments)
        comparison = StateComparison(FLOAT_TOLERANCE, of_sums=is_sum)
        return comparison.compare(aggregate, left, right, added)
    if isinstance(kind, SimpleAggregateFunction) and kind.function.startswith("sum"):
        if kind.function.startswith("sumMap"):
            return compare_maps(left, right, FLOAT_TOLERANCE, added)
        is_sum = True
    return compare_columns(left, right, FLOAT_TOLERANCE if is_sum else 0.0, added)


def _rows_of_keys(keys: Sequence[str], rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the row of `others` with the key of each of the rows, a row of NULLs without one."""
    index_rows, index_others = _match_keys(keys, rows, others)
    indices = np.full(rows.num_rows, -1, dtype=np.int64)
    of_rows = index_rows >= 0
    indices[index_rows[of_rows]] = index_others[of_rows]
    return others.take(pa.array(indices, mask=indices < 0))


def _rows_of_values(
    table: Table, keys: Sequence[str], rows: pa.Table, indices: np.ndarray, magnitudes: pa.Table
) -> np.ndarray:
    """Return the indices without those of rows that a SummingMergeTree may as well drop: all of
    their sums are zero within the tolerance of what was added."""
    if table.engine.name != "SummingMergeTree" or not len(indices):
        return indices
    kept = rows.take(indices)
    added = _rows_of_keys(keys, kept, magnitudes)
    has_value = np.zeros(len(indices), dtype=bool)
    for column in table.stored_columns:
        if column.name in keys:
            continue
        values = single_chunk(kept.column(column.name))
        if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            return indices
        zeros = pa.array(np.zeros(len(values)), values.type)
        added_here = single_chunk(added.column(column.name))
        differs, _ = compare_columns(values, zeros, FLOAT_TOLERANCE, added_here)
        has_value |= differs
    return indices[has_value]


def compare_rows(
    table: Table,
    expected: pa.Table,
    actual: pa.Table,
    rounded: frozenset[str] = frozenset(),
    magnitudes: pa.Table | None = None,
) -> Difference:
    """Compare two tables as multisets. A row that `expected` has more often is missing, one that
    `actual` has more often is extra. Two rows are equal too if they differ in the `rounded` columns
    only, within the tolerance: of their own magnitude, or of that of what was added up for the expected
    row. `magnitudes` has it in the same place; it is not used if it has other rows than `expected`."""
    names = [column.name for column in table.stored_columns]
    counts_expected, counts_actual, first = _count_rows(names, expected, actual)
    missing = np.maximum(counts_expected - counts_actual, 0)
    extra = np.maximum(counts_actual - counts_expected, 0)
    rows = pa.concat_tables([expected, actual])
    if rounded and missing.any() and extra.any():
        columns = dict(zip(names, _groupable(names, expected, actual), strict=True))
        if magnitudes is not None and not _are_same_rows(expected, magnitudes, rounded):
            magnitudes = None
        both = _BothSides(table, rows, columns, rounded, first, magnitudes)
        of_missing, of_extra = _near_rows(both, missing, extra)
        np.subtract.at(missing, of_missing, 1)
        np.subtract.at(extra, of_extra, 1)
    keys = [key for key in key_columns(table) if key is not None] or names
    return Difference(
        keys_compared=len(first),
        missing=int(missing.sum()),
        extra=int(extra.sum()),
        examples=_examples(
            table,
            keys,
            (("missing", rows.take(first[missing > 0])), ("extra", rows.take(first[extra > 0]))),
        ),
    )


def _are_same_rows(rows: pa.Table, others: pa.Table, rounded: frozenset[str]) -> bool:
    """Return whether both tables have the same values in the columns that are not `rounded`, in the same order."""
    names = [name for name in rows.column_names if name not in rounded]
    return bool(
        rows.num_rows == others.num_rows and rows.select(names).equals(others.select(names))
    )


@dataclass(frozen=True, slots=True)
class _BothSides:
    """The `rows` of both sides, the expected ones first, and their `columns` as they are grouped. `first` has a row of
    each distinct one, `magnitudes` what was added up for each expected row, if that is known."""

    table: Table
    rows: pa.Table
    columns: Mapping[str, pa.ChunkedArray]
    rounded: frozenset[str]
    first: np.ndarray
    magnitudes: pa.Table | None

    def differ(self, missing: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """Return a mask of the pairs of distinct rows whose rounded columns differ by more than the tolerance."""
        differs = np.zeros(len(missing), dtype=bool)
        sides = [from_numpy(self.first[side]) for side in (missing, extra)]
        at, has_own_magnitude = self.first[missing], self._has_own_magnitude()
        for column in self.table.stored_columns:
            if column.name not in self.rounded:
                continue
            values = single_chunk(self.rows.column(column.name))
            added = None
            if self.magnitudes is not None:  # of what is missing, the first row is an expected one
                known = pa.array(at, mask=~has_own_magnitude[at])
                added = single_chunk(self.magnitudes.column(column.name)).take(known)
            left, right = (values.take(side) for side in sides)
            differs |= _compare_merged(column, left, right, added, is_sum=True)[0]
        return differs

    def _has_own_magnitude(self) -> np.ndarray:
        """Return a mask of the expected rows whose magnitudes are known: those of all rows with the same other columns
        are the same. Rows of other magnitudes may be in another order than these."""
        if self.magnitudes is None:
            return np.zeros(0, dtype=bool)
        rows = self.magnitudes.num_rows
        others = [
            single_chunk(column).slice(0, rows)
            for name, column in self.columns.items()
            if name not in self.rounded
        ]
        of_others = factorise(others, rows).codes if others else np.zeros(rows, dtype=np.int64)
        sizes = [single_chunk(self.magnitudes.column(name)) for name in sorted(self.rounded)]
        firsts = factorise([from_numpy(of_others), *sizes], rows).first
        known: np.ndarray = np.bincount(of_others[firsts], minlength=rows)[of_others] == 1
        return known


def _near_rows(
    both: _BothSides, missing: np.ndarray, extra: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a missing and an extra row that are equal within the tolerance, as positions
    in `missing` and `extra`; a position occurs once for each pair.

    Rows are paired first that differ in rounded numbers only, then those that differ in rounded columns of any type."""
    numbers = {
        name
        for name, column in both.columns.items()
        if name in both.rounded and pa.types.is_floating(column.type)
    }
    pairs = []
    missing, extra = missing.copy(), extra.copy()
    for exact in (both.columns.keys() - numbers, both.columns.keys() - both.rounded):
        of_missing, of_extra = _pairs_of(both, missing, extra, exact)
        np.subtract.at(missing, of_missing, 1)
        np.subtract.at(extra, of_extra, 1)
        pairs.append((of_missing, of_extra))
    of_missing, of_extra = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return of_missing, of_extra


def _pairs_of(
    both: _BothSides, missing: np.ndarray, extra: np.ndarray, exact: Collection[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs as `_near_rows` does, of rows whose columns `exact` are equal: these are sorted by their rounded
    numbers and paired in this order."""
    owners = [np.repeat(np.arange(len(both.first)), counts) for counts in (missing, extra)]
    at = np.concatenate(owners)
    is_extra = np.repeat([False, True], [len(owner) for owner in owners])
    here = from_numpy(both.first[at])
    taken = {name: single_chunk(column).take(here) for name, column in both.columns.items()}
    numbers = [n for n in taken if n in both.rounded and pa.types.is_floating(taken[n].type)]
    group = np.zeros(len(at), dtype=np.int64)
    for name in exact:
        codes = taken[name].dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
        _, group = np.unique(np.stack([group, codes]), axis=1, return_inverse=True)
        group = group.reshape(-1)
    sorted_by = [taken[n].to_numpy(zero_copy_only=False) for n in reversed(numbers)]
    order = np.lexsort((*sorted_by, group, is_extra))
    place = np.empty(len(at), dtype=np.int64)
    for side in (order[: len(owners[0])], order[len(owners[0]) :]):
        starts = np.searchsorted(group[side], group[side])
        place[side] = np.arange(len(side)) - starts
    label = group * (len(at) + 1) + place
    _, left, right = np.intersect1d(label[~is_extra], label[is_extra], return_indices=True)
    of_missing, of_extra = at[left], at[right + len(owners[0])]
    near = ~both.differ(of_missing, of_extra)
    return of_missing[near], of_extra[near]


# --- matching ------------------------------------------------------------------------------------


def _match_keys(
    keys: Sequence[str], expected: pa.Table, actual: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """Return each distinct key's row numbers in `expected` and `actual`, -1 where it is absent."""
    if not keys:
        row_count = max(expected.num_rows, actual.num_rows)
        rows = np.arange(row_count)
        return (
            np.where(rows < expected.num_rows, rows, -1),
            np.where(rows < actual.num_rows, rows, -1),
        )
    columns = _groupable(keys, expected, actual)
    none_expected = pa.nulls(expected.num_rows, pa.int64())
    none_actual = pa.nulls(actual.num_rows, pa.int64())
    index_expected = pa.chunked_array([pa.array(np.arange(expected.num_rows)), none_actual])
    index_actual = pa.chunked_array([none_expected, pa.array(np.arange(actual.num_rows))])
    names = [f"k{number}" for number in range(len(columns))]
    joined = pa.table([*columns, index_expected, index_actual], names=[*names, "e", "a"])
    grouped = joined.group_by(names).aggregate([("e", "max"), ("a", "max")])
    return _indices(grouped.column("e_max")), _indices(grouped.column("a_max"))


def _count_rows(
    names: Sequence[str], expected: pa.Table, actual: pa.Table
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each distinct row, its count in `expected`, its count in `actual`, and its first
    position in both tables concatenated."""
    columns = _groupable(names, expected, actual)
    rows = expected.num_rows + actual.num_rows
    is_expected = pa.array(np.arange(rows) < expected.num_rows).cast(pa.int64())
    labels = [f"k{number}" for number in range(len(columns))]
    joined = pa.table(
        [*columns, is_expected, pa.array(np.arange(rows))], names=[*labels, "expected", "at"]
    )
    grouped = joined.group_by(labels).aggregate(
        [("expected", "sum"), ("expected", "count"), ("at", "min")]
    )
    of_expected = _indices(grouped.column("expected_sum"))
    of_both = _indices(grouped.column("expected_count"))
    return of_expected, of_both - of_expected, _indices(grouped.column("at_min"))


def _groupable(names: Sequence[str], expected: pa.Table, actual: pa.Table) -> list[pa.ChunkedArray]:
    """Return the named columns of both sides, `expected` first, as Acero can group them: with one NaN,
    0.0 for -0.0, and numbers in place of nested values."""
    columns = []
    for name in names:
        sides = [_one_zero(single_chunk(side.column(name))) for side in (expected, actual)]
        if pa.types.is_nested(sides[0].type):
            sides = _numbered(sides)
        columns.append(pa.chunked_array(sides))
    return columns


def _numbered(sides: Sequence[pa.Array]) -> list[pa.Array]:
    """Return, for each nested value of both sides, a number that only equal values have. Their texts do not
    tell a Variant's 1 from its '1', nor the two times of an hour that clocks repeat."""
    values = pa.concat_arrays(sides)
    numbers = from_numpy(factorise([values], len(values)).codes)
    return [numbers.slice(0, len(sides[0])), numbers.slice(len(sides[0]))]


def _one_zero(array: pa.Array) -> pa.Array:
    """Return the column, of floats with one NaN, and 0.0 for -0.0."""
    if not pa.types.is_floating(array.type):
        return array
    zero = pa.scalar(0.0, array.type)
    nan = pa.scalar(float("nan"), array.type)
    return pc.if_else(pc.is_nan(array), nan, pc.add(array, zero))


def _indices(column: pa.ChunkedArray) -> np.ndarray:
    """Return the column as int64, with -1 for NULL."""
    values: np.ndarray = single_chunk(pc.fill_null(column, -1)).to_numpy(zero_copy_only=False)
    return values.astype(np.int64)


# --- examples ------------------------------------------------------------------------------------


def _examples(
    table: Table, keys: Sequence[str], groups: Sequence[tuple[str, pa.Table]]
) -> tuple[str, ...]:
    """Return up to five keys as text, each with its problem: "differing (JFK, 2013-01-01)"."""
    examples: list[str] = []
    for problem, rows in groups:
        head = rows.slice(0, EXAMPLES_MAX - len(examples))
        if not head.num_rows:
            continue
        texts = []
        for name in keys:
            column = table.column(name)
            assert column is not None
            texts.append(column_texts(head.column(name), column.type))
        joined = [", ".join(values) for values in zip(*texts, strict=True)] if texts else [""]
        examples += [f"{problem} ({key})" for key in joined]
    return tuple(examples)
