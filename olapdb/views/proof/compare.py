"""Comparison of two tables of a target's rows: the expected ones and the actual ones.

If the engine merges rows, they are matched by key (each key once on both sides); else the tables
are compared as multisets. Equal values are identical, except for sums of floats, which depend on
the order of addition. So floats that merges add up, and floats in states, are also equal within
1e-9 of their magnitude. A Float32 is never a sum (`column_conversion`). Everything is vectorised:
one grouping over both sides matches the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.functions import display_array
from olapdb.lineage.invalidation import column_texts
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import Column, Table
from olapdb.types import AggregateFunction, DataType, SimpleAggregateFunction

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
    table: Table, keys: Sequence[str], expected: pa.Table, actual: pa.Table
) -> Difference:
    """Compare two tables by key; each table holds a key at most once. `keys` are column names,
    empty where each table is a single row."""
    index_expected, index_actual = _match_keys(table, keys, expected, actual)
    both = np.flatnonzero((index_expected >= 0) & (index_actual >= 0))
    only_expected = index_expected[(index_expected >= 0) & (index_actual < 0)]
    only_actual = index_actual[(index_expected < 0) & (index_actual >= 0)]
    left, right = expected.take(index_expected[both]), actual.take(index_actual[both])
    wrong = np.zeros(len(both), dtype=bool)
    largest = 0.0
    for column in table.stored_columns:
        if column.name in keys:
            continue
        differs, largest_here = compare_columns(
            single_chunk(left.column(column.name)),
            single_chunk(right.column(column.name)),
            FLOAT_TOLERANCE if _adds_floats(table, column) else 0.0,
        )
        wrong |= differs
        largest = max(largest, largest_here)
    return Difference(
        keys_compared=len(index_expected),
        missing=len(only_expected),
        extra=len(only_actual),
        differing=int(wrong.sum()),
        largest_difference=largest,
        examples=_examples(
            table,
            keys,
            (
                ("differing", left.filter(pa.array(wrong))),
                ("missing", expected.take(only_expected)),
                ("extra", actual.take(only_actual)),
            ),
        ),
    )


def _adds_floats(table: Table, column: Column) -> bool:
    """Return whether the column holds states, or sums that merges of the table add up."""
    if isinstance(column.type, AggregateFunction):
        return True
    if isinstance(column.type, SimpleAggregateFunction):
        return column.type.function in ("sum", "sumWithOverflow", "sumMap")
    return table.engine.name == "SummingMergeTree"


def compare_rows(table: Table, expected: pa.Table, actual: pa.Table) -> Difference:
    """Compare two tables as multisets. A row that `expected` has more often is missing, one that
    `actual` has more often is extra."""
    names = [c.name for c in table.stored_columns]
    counts_expected, counts_actual, first = _count_rows(table, names, expected, actual)
    missing = np.maximum(counts_expected - counts_actual, 0)
    extra = np.maximum(counts_actual - counts_expected, 0)
    both = pa.concat_tables([expected, actual])
    keys = [k for k in key_columns(table) if k is not None] or names
    return Difference(
        keys_compared=len(first),
        missing=int(missing.sum()),
        extra=int(extra.sum()),
        examples=_examples(
            table,
            keys,
            (("missing", both.take(first[missing > 0])), ("extra", both.take(first[extra > 0]))),
        ),
    )


# --- matching ------------------------------------------------------------------------------------


def _match_keys(
    table: Table, keys: Sequence[str], expected: pa.Table, actual: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """Return each distinct key's row numbers in `expected` and `actual`, -1 where it is absent."""
    if not keys:
        rows = max(expected.num_rows, actual.num_rows)
        at = np.arange(rows)
        return (np.where(at < expected.num_rows, at, -1), np.where(at < actual.num_rows, at, -1))
    columns = _groupable(table, keys, expected, actual)
    none_expected = pa.nulls(expected.num_rows, pa.int64())
    none_actual = pa.nulls(actual.num_rows, pa.int64())
    index_expected = pa.chunked_array([pa.array(np.arange(expected.num_rows)), none_actual])
    index_actual = pa.chunked_array([none_expected, pa.array(np.arange(actual.num_rows))])
    names = [f"k{i}" for i in range(len(columns))]
    joined = pa.table([*columns, index_expected, index_actual], names=[*names, "e", "a"])
    grouped = joined.group_by(names).aggregate([("e", "max"), ("a", "max")])
    return _indices(grouped.column("e_max")), _indices(grouped.column("a_max"))


def _count_rows(
    table: Table, names: Sequence[str], expected: pa.Table, actual: pa.Table
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each distinct row, its count in `expected`, its count in `actual`, and its first
    position in both tables concatenated."""
    columns = _groupable(table, names, expected, actual)
    rows = expected.num_rows + actual.num_rows
    is_expected = pa.array(np.arange(rows) < expected.num_rows).cast(pa.int64())
    labels = [f"k{i}" for i in range(len(columns))]
    joined = pa.table(
        [*columns, is_expected, pa.array(np.arange(rows))], names=[*labels, "expected", "at"]
    )
    grouped = joined.group_by(labels).aggregate(
        [("expected", "sum"), ("expected", "count"), ("at", "min")]
    )
    of_expected = _indices(grouped.column("expected_sum"))
    of_both = _indices(grouped.column("expected_count"))
    return of_expected, of_both - of_expected, _indices(grouped.column("at_min"))


def _groupable(
    table: Table, names: Sequence[str], expected: pa.Table, actual: pa.Table
) -> list[pa.ChunkedArray]:
    """Return the named columns of both sides, `expected` first, as Acero can group them."""
    columns = []
    for name in names:
        column = table.column(name)
        assert column is not None
        pieces = [
            _groupable_array(single_chunk(side.column(name)), column.type)
            for side in (expected, actual)
        ]
        columns.append(pa.chunked_array(pieces))
    return columns


def _groupable_array(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return the column as Acero can group it: nested values as text, one NaN, and 0.0 for -0.0."""
    if pa.types.is_nested(array.type):
        return display_array(array, data_type)
    if pa.types.is_floating(array.type):
        zero = pa.scalar(0.0, array.type)
        nan = pa.scalar(float("nan"), array.type)
        return pc.if_else(pc.is_nan(array), nan, pc.add(array, zero))
    return array


def _indices(column: pa.ChunkedArray) -> np.ndarray:
    """Return the column as int64, with -1 for NULL."""
    found: np.ndarray = single_chunk(pc.fill_null(column, -1)).to_numpy(zero_copy_only=False)
    return found.astype(np.int64)


# --- values --------------------------------------------------------------------------------------


def compare_columns(
    left: pa.Array, right: pa.Array, tolerance: float = 0.0
) -> tuple[np.ndarray, float]:
    """Return a mask of the rows that differ, and the largest absolute difference of two numbers.

    Floats are equal within `tolerance` times their magnitude. Structs (states) are compared field
    by field, lists element by element where the lengths are equal. NaN equals NaN and NULL equals
    NULL.
    """
    left_null, right_null = _nulls(left), _nulls(right)
    differs = left_null != right_null
    kind = left.type
    if pa.types.is_struct(kind):
        inner, largest = np.zeros(len(left), dtype=bool), 0.0
        for at in range(kind.num_fields):
            wrong, size = compare_columns(
                pc.struct_field(left, at), pc.struct_field(right, at), tolerance
            )
            inner |= wrong
            largest = max(largest, size)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        inner, largest = _compare_lists(left, right, tolerance)
    elif pa.types.is_floating(kind):
        inner, largest = _compare_floats(left, right, tolerance)
    elif pa.types.is_null(kind):
        inner, largest = np.zeros(len(left), dtype=bool), 0.0
    else:
        inner, largest = _compare_exact(left, right)
    return differs | (inner & ~left_null & ~right_null), largest


def _nulls(array: pa.Array) -> np.ndarray:
    """Return a mask of the NULLs."""
    mask: np.ndarray = pc.is_null(array).to_numpy(zero_copy_only=False)
    return mask


def _compare_floats(left: pa.Array, right: pa.Array, tolerance: float) -> tuple[np.ndarray, float]:
    """Return a mask of the rows that differ, and the largest finite difference (0.0 without one).

    Values are the same if equal, both NaN, or as close as the relative tolerance.
    """
    a = left.to_numpy(zero_copy_only=False).astype(np.float64)
    b = right.to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(a - b)
        close = distance <= tolerance * np.maximum(np.abs(a), np.abs(b))
        close &= np.isfinite(distance)
    same = (a == b) | close | (np.isnan(a) & np.isnan(b))
    wrong = distance[~same]
    finite = wrong[np.isfinite(wrong)]
    return ~same, float(finite.max()) if len(finite) else 0.0


def _compare_exact(left: pa.Array, right: pa.Array) -> tuple[np.ndarray, float]:
    """Compare for equality. The difference is of integers and Decimals, else 0.0."""
    wrong = pc.fill_null(pc.not_equal(left, right), False).to_numpy(zero_copy_only=False)
    if not wrong.any() or not (pa.types.is_integer(left.type) or pa.types.is_decimal(left.type)):
        return wrong, 0.0
    mask = pa.array(wrong)
    a = left.filter(mask).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    b = right.filter(mask).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return wrong, float(np.nanmax(np.abs(a - b)))


def _compare_lists(left: pa.Array, right: pa.Array, tolerance: float) -> tuple[np.ndarray, float]:
    """Compare lists, or maps as lists of entries: first the lengths, then the elements."""
    if pa.types.is_map(left.type):
        left, right = _as_lists(left), _as_lists(right)
    lengths = [
        pc.fill_null(pc.list_value_length(side), 0).to_numpy(zero_copy_only=False)
        for side in (left, right)
    ]
    wrong = lengths[0] != lengths[1]
    same = np.flatnonzero(~wrong)
    a, b = left.take(pa.array(same)).flatten(), right.take(pa.array(same)).flatten()
    if len(a) != len(b):  # a NULL list beside an empty one
        return wrong, 0.0
    element_wrong, largest = compare_columns(a, b, tolerance)
    owners = np.repeat(same, lengths[0][same])
    wrong[owners[element_wrong]] = True
    return wrong, largest


def _as_lists(maps: pa.Array) -> pa.Array:
    """Return the maps as lists of (key, value) structs."""
    entries = pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)])
    return maps.cast(pa.list_(entries))


def _examples(
    table: Table, keys: Sequence[str], groups: Sequence[tuple[str, pa.Table]]
) -> tuple[str, ...]:
    """Return up to five keys as text, each with its problem: "differing (JFK, 2013-01-01)"."""
    found: list[str] = []
    for what, rows in groups:
        head = rows.slice(0, EXAMPLES_MAX - len(found))
        if not head.num_rows:
            continue
        texts = []
        for name in keys:
            column = table.column(name)
            assert column is not None
            texts.append(column_texts(head.column(name), column.type))
        joined = [", ".join(one) for one in zip(*texts, strict=True)] if texts else [""]
        found += [f"{what} ({key})" for key in joined]
    return tuple(found)
