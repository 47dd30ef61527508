"""Comparison of two tables of a target's rows: the expected ones and the actual ones.

If the engine merges rows, they are matched by key (each key once on both sides); else the tables
are compared as multisets. Equal values are identical, except for sums of floats, which depend on
the order of addition. So floats that merges add up, as values or in states, and columns that the query
computes from such sums are also equal within 1e-9 of their magnitude, or of the magnitude of what
was added (`magnitudes`). A Float32 is never a sum (`column_conversion`). Everything is vectorised:
one grouping over both sides matches the keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.compute.group_codes import factorise
from olapdb.engine.combine import parameter_values
from olapdb.functions import resolve_aggregate
from olapdb.lineage.invalidation import column_texts
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import Column, Table
from olapdb.records import dataclass
from olapdb.types import AggregateFunction, SimpleAggregateFunction
from olapdb.types.arrow_values import from_numpy
from olapdb.views.provability.rounding import merges_by_adding

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
    differing = np.zeros(len(in_both), dtype=bool)
    largest = 0.0
    for column in table.stored_columns:
        if column.name in keys:
            continue
        of_left, of_right = (single_chunk(side.column(column.name)) for side in (left, right))
        if _keeps_unordered_rows(column):
            differing |= _compare_unordered(of_left, of_right)
            continue
        differs, largest_here = compare_columns(
            of_left,
            of_right,
            FLOAT_TOLERANCE if _adds_floats(table, column) or column.name in rounded else 0.0,
            None if added is None else single_chunk(added.column(column.name)),
        )
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


def _adds_floats(table: Table, column: Column) -> bool:
    """Return whether merges of the table add up floats in the column: as sums, or in states.

    A state that keeps values of rows, as of max, argMax or quantileExact, has none that rounding
    changes: 1700000000.5 is no 1700000000.25."""
    if isinstance(column.type, AggregateFunction | SimpleAggregateFunction):
        return merges_by_adding(column.type)
    return table.engine.name == "SummingMergeTree"


def _keeps_unordered_rows(column: Column) -> bool:
    """Return whether the column has states that are lists of rows, whose order changes no result."""
    kind = column.type
    if not isinstance(kind, AggregateFunction):
        return False
    parameters = parameter_values(kind.parameters)
    return resolve_aggregate(kind.function, parameters, kind.arguments).keeps_unordered_rows


def _compare_unordered(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return a mask of the states that differ, whatever the order of the elements of their lists."""
    if pa.types.is_struct(left.type):
        of_fields = [
            _compare_unordered(pc.struct_field(left, at), pc.struct_field(right, at))
            for at in range(left.type.num_fields)
        ]
        any_differs: np.ndarray = np.logical_or.reduce(of_fields)
        return any_differs
    if not pa.types.is_list(left.type):
        return compare_columns(left, right)[0]
    lengths = [
        pc.fill_null(pc.list_value_length(side), 0).to_numpy(zero_copy_only=False)
        for side in (left, right)
    ]
    differs: np.ndarray = np.not_equal(lengths[0], lengths[1])
    compared = np.flatnonzero(~differs)
    elements = [side.take(from_numpy(compared)).flatten() for side in (left, right)]
    codes = factorise([pa.concat_arrays(elements)], 2 * len(elements[0])).codes
    owners = np.repeat(compared, lengths[0][compared])
    sorted_codes = [half[np.lexsort((half, owners))] for half in np.split(codes, 2)]
    differs[owners[sorted_codes[0] != sorted_codes[1]]] = True
    return differs


def _rows_of_keys(keys: Sequence[str], rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the row of `others` with the key of each of the rows, a row of NULLs without one."""
    index_rows, index_others = _match_keys(keys, rows, others)
    found = np.full(rows.num_rows, -1, dtype=np.int64)
    of_rows = index_rows >= 0
    found[index_rows[of_rows]] = index_others[of_rows]
    return others.take(pa.array(found, mask=found < 0))


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
    table: Table, expected: pa.Table, actual: pa.Table, rounded: frozenset[str] = frozenset()
) -> Difference:
    """Compare two tables as multisets. A row that `expected` has more often is missing, one that
    `actual` has more often is extra. Two rows are equal too if they differ in the `rounded` columns
    only, within the tolerance."""
    names = [column.name for column in table.stored_columns]
    counts_expected, counts_actual, first = _count_rows(names, expected, actual)
    missing = np.maximum(counts_expected - counts_actual, 0)
    extra = np.maximum(counts_actual - counts_expected, 0)
    rows = pa.concat_tables([expected, actual])
    if rounded and missing.any() and extra.any():
        columns = dict(zip(names, _groupable(names, expected, actual), strict=True))
        of_missing, of_extra = _near_rows(columns, rounded, first, missing, extra)
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


def _near_rows(
    columns: Mapping[str, pa.ChunkedArray],
    rounded: frozenset[str],
    first: np.ndarray,
    missing: np.ndarray,
    extra: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a missing and an extra row that are equal within the tolerance, as positions
    in `missing` and `extra`; a position occurs once for each pair.

    Rows of equal other columns are sorted by their rounded ones and paired in this order.
    `columns` are those of all rows; `first` has the row of each position."""
    owners = [np.repeat(np.arange(len(first)), counts) for counts in (missing, extra)]
    at = np.concatenate(owners)
    is_extra = np.repeat([False, True], [len(owner) for owner in owners])
    taken = {n: single_chunk(c).take(from_numpy(first[at])) for n, c in columns.items()}
    numbers = [n for n in taken if n in rounded and pa.types.is_floating(taken[n].type)]
    group = np.zeros(len(at), dtype=np.int64)
    for name in taken.keys() - set(numbers):
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
    right = right + len(owners[0])
    differs = np.zeros(len(left), dtype=bool)
    for name in numbers:
        of_missing, of_extra = (taken[name].take(from_numpy(side)) for side in (left, right))
        differs |= compare_columns(of_missing, of_extra, FLOAT_TOLERANCE)[0]
    return at[left[~differs]], at[right[~differs]]


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


# --- values --------------------------------------------------------------------------------------


def compare_columns(
    left: pa.Array, right: pa.Array, tolerance: float = 0.0, magnitudes: pa.Array | None = None
) -> tuple[np.ndarray, float]:
    """Return a mask of the rows that differ, and the largest absolute difference of two numbers.

    Floats are equal within `tolerance` times their magnitude, or times that of `magnitudes`, which
    has the type of both sides. Structs (states) are compared field by field, lists element by
    element where the lengths are equal. NaN equals NaN and NULL equals NULL.
    """
    left_null, right_null = _nulls(left), _nulls(right)
    differs = left_null != right_null
    kind = left.type
    if pa.types.is_struct(kind):
        inner, largest = np.zeros(len(left), dtype=bool), 0.0
        for index in range(kind.num_fields):
            field_differs, field_difference = compare_columns(
                pc.struct_field(left, index),
                pc.struct_field(right, index),
                tolerance,
                None if magnitudes is None else pc.struct_field(magnitudes, index),
            )
            inner |= field_differs
            largest = max(largest, field_difference)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        inner, largest = _compare_lists(left, right, tolerance)
    elif pa.types.is_floating(kind):
        inner, largest = _compare_floats(left, right, tolerance, magnitudes)
    elif pa.types.is_null(kind):
        inner, largest = np.zeros(len(left), dtype=bool), 0.0
    else:
        inner, largest = _compare_exact(left, right)
    return differs | (inner & ~left_null & ~right_null), largest


def _nulls(array: pa.Array) -> np.ndarray:
    """Return a mask of the NULLs."""
    mask: np.ndarray = pc.is_null(array).to_numpy(zero_copy_only=False)
    return mask


def _compare_floats(
    left: pa.Array, right: pa.Array, tolerance: float, magnitudes: pa.Array | None
) -> tuple[np.ndarray, float]:
    """Return for each row whether the values differ by more than the relative `tolerance`, and the
    greatest finite difference of these rows (0.0 without one). NaN equals NaN. The tolerance is
    relative to the values, and to a row's finite magnitude, if this is greater."""
    left_values = left.to_numpy(zero_copy_only=False).astype(np.float64)
    right_values = right.to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(left_values - right_values)
        size = np.maximum(np.abs(left_values), np.abs(right_values))
        if magnitudes is not None:
            added = magnitudes.to_numpy(zero_copy_only=False).astype(np.float64)
            size = np.maximum(size, np.where(np.isfinite(added), np.abs(added), 0.0))
        close = distance <= tolerance * size
        close &= np.isfinite(distance)
    same = (left_values == right_values) | close | (np.isnan(left_values) & np.isnan(right_values))
    differences = distance[~same]
    finite = differences[np.isfinite(differences)]
    return ~same, float(finite.max()) if len(finite) else 0.0


def _compare_exact(left: pa.Array, right: pa.Array) -> tuple[np.ndarray, float]:
    """Compare for equality. The difference is 0.0 unless the values are integers or Decimals."""
    differs = pc.fill_null(pc.not_equal(left, right), False).to_numpy(zero_copy_only=False)
    if not differs.any() or not (pa.types.is_integer(left.type) or pa.types.is_decimal(left.type)):
        return differs, 0.0
    mask = pa.array(differs)
    left_values = left.filter(mask).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    right_values = right.filter(mask).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return differs, float(np.nanmax(np.abs(left_values - right_values)))


def _compare_lists(left: pa.Array, right: pa.Array, tolerance: float) -> tuple[np.ndarray, float]:
    """Compare lists, or maps as lists of entries: first the lengths, then the elements."""
    if pa.types.is_map(left.type):
        left, right = _as_lists(left), _as_lists(right)
    lengths = [
        pc.fill_null(pc.list_value_length(side), 0).to_numpy(zero_copy_only=False)
        for side in (left, right)
    ]
    differs = lengths[0] != lengths[1]
    compared = np.flatnonzero(~differs)
    left_items, right_items = (
        left.take(from_numpy(compared)).flatten(),
        right.take(from_numpy(compared)).flatten(),
    )
    if len(left_items) != len(right_items):  # a NULL list beside an empty one
        return differs, 0.0
    element_differs, largest = compare_columns(left_items, right_items, tolerance)
    owners = np.repeat(compared, lengths[0][compared])
    differs[owners[element_differs]] = True
    return differs, largest


def _as_lists(maps: pa.Array) -> pa.Array:
    """Return the maps as lists of (key, value) structs."""
    entries = pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)])
    return maps.cast(pa.list_(entries))


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
