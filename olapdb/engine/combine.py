"""Combining rows of equal sorting key: the one function in which the engines differ.

Merges, FINAL and optimize_on_insert all call it, so FINAL reads the rows that a full merge would
leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.compute.ordering import equal_to_previous
from olapdb.engine.layout import TableLayout
from olapdb.engine.replacing_collapsing import (
    DroppedRows,
    collapsing,
    replacing,
    versioned_collapsing,
    without_counted_rows,
)
from olapdb.engine.summing import is_default, wrapping_sums
from olapdb.errors import DecimalOverflow, InternalError
from olapdb.functions import resolve_aggregate
from olapdb.functions.aggregates.registry import parse_parameter
from olapdb.functions.base import Groups
from olapdb.lazy import lazy_modules
from olapdb.model.schema import Column, Table
from olapdb.types import (
    AggregateFunction,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    LowCardinality,
    Nullable,
    SimpleAggregateFunction,
    is_nullable,
)
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.engine import summing_maps
else:
    (summing_maps,) = lazy_modules("olapdb.engine", "summing_maps")

Combine = Callable[[TableLayout, pa.Table, Groups], pa.Table]


def combine(
    table: Table,
    rows: pa.Table,
    layout: TableLayout | None = None,
    *,
    unique: bool = False,
    dropped: DroppedRows | None = None,
) -> pa.Table:
    """Return the rows as a merge leaves them; rows of other engines are unchanged.

    `rows` are sorted by the sorting key, equal keys in the order of their insertion. They have the
    key's columns and those of `columns_to_combine`. `unique`: no two rows have the same key. `dropped`: rows of the
    first key that `combine_first_rows` left out.

    Summing adds numbers and nested maps, and drops a row whose sums are all zero, unless there are
    states or maps.  Aggregating merges states.  Other columns keep their first value.  Coalescing keeps
    the last value of each column that is not NULL.  Replacing and
    Collapsing keep whole rows, see `replacing_collapsing`; FINAL hides some of them, see `visible`
    there.  Raises IncorrectData if a sign is not 1 or -1, or an is_deleted not 0 or 1.
    """
    if not table.engine.combines or not rows.num_rows:
        return rows
    layout = layout or TableLayout(table)
    method = _METHODS.get(table.engine.name)
    if method is None:
        raise InternalError(f"Engine {table.engine.name} has no way to combine rows.")
    rows = rows.combine_chunks()
    if unique:
        return method(layout, rows, Groups(np.arange(rows.num_rows), rows.num_rows))
    changed = ~equal_to_previous(layout.sorting_keys(rows), rows.num_rows)
    codes = np.cumsum(changed) - 1
    groups = Groups(codes, int(codes[-1]) + 1)
    if dropped is not None and method is collapsing:
        return collapsing(layout, rows, groups, dropped)
    return method(layout, rows, groups)


def combine_first_rows(
    table: Table, rows: pa.Table, layout: TableLayout, dropped: DroppedRows
) -> tuple[pa.Table, DroppedRows]:
    """Return fewer rows for the first rows of one key, so that `combine` makes of these and of the key's rows behind
    them what it makes of all; and the number of rows that were dropped so far. Rows stay as they are where that cannot be."""
    name = table.engine.name
    if name == "CollapsingMergeTree":
        return without_counted_rows(table, rows, dropped)
    if name != "SummingMergeTree":
        return combine(table, rows, layout), dropped
    if summing_maps.nested_maps(layout):
        return rows, dropped
    rows = rows.combine_chunks()
    try:
        return _with_sums(layout, rows, Groups(np.zeros(rows.num_rows, np.int64), 1)), dropped
    except DecimalOverflow:  # the rows behind may bring the sum back
        return rows, dropped


def keeps_distinct_keys(table: Table) -> bool:
    """Return whether `combine` returns rows unchanged of which no two have the same key, and leaves one row of each
    key of others."""
    return table.engine.name in _ONE_ROW_OF_A_KEY


def columns_to_combine(layout: TableLayout, names: Iterable[str]) -> frozenset[str]:
    """Return the columns that `combine` must read to compute these columns as a merge does."""
    table = layout.table
    needed = set(names) | layout.sorting_columns
    if table.engine.name == "SummingMergeTree":
        needed |= {column.name for column in summed_columns(layout)}
        for nested_map in summing_maps.nested_maps(layout):
            needed |= set(nested_map.names) if needed.intersection(nested_map.names) else set()
    elif table.engine.name != "CoalescingMergeTree":
        needed |= set(table.engine.arguments)
    return frozenset(needed)


@lru_cache(maxsize=1_024)
def summed_columns(layout: TableLayout) -> tuple[Column, ...]:
    """Return the columns that SummingMergeTree adds up: the named ones, or else every number outside
    both keys. Other engines add up none."""
    table = layout.table
    if table.engine.name != "SummingMergeTree":
        return ()
    in_keys = layout.sorting_columns | layout.partition_columns
    arguments = table.engine.arguments
    return tuple(
        column
        for column in table.stored_columns
        if _is_summable(column.type)
        and (column.name in arguments if arguments else column.name not in in_keys)
    )


def _is_summable(data_type: DataType) -> bool:
    """Return whether a type is a number or Bool, whose sum is OR, and no aggregate type."""
    if isinstance(data_type, SimpleAggregateFunction):
        return False
    if isinstance(data_type, Nullable | LowCardinality):
        return _is_summable(data_type.inner)
    return isinstance(data_type, Integer | Float | Decimal | Boolean)


def _summing(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    """Combine the groups as SummingMergeTree does."""
    names = rows.column_names
    summed_names = {column.name for column in summed_columns(layout) if column.name in names}
    maps = summing_maps.nested_maps(layout)
    if groups.count == rows.num_rows and not maps:
        return rows if _has_states(layout) else _without_zero_rows(layout, rows, summed_names)
    read_maps = [candidate for candidate in maps if candidate.keys[0] in names]
    combined = rows if groups.count == rows.num_rows else _with_sums(layout, rows, groups)
    columns = {name: combined.column(name) for name in names}
    for nested_map in read_maps:
        columns.update(summing_maps.merge_map(nested_map, rows, groups))
    combined = pa.table([columns[name] for name in names], schema=rows.schema)
    if maps or _has_states(layout):
        return combined
    return _without_zero_rows(layout, combined, summed_names)


def _with_sums(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    """Return one row for each group, with its sums and merged states, zero rows too; of other columns the first value."""
    columns = _merged_columns(layout, rows, groups)
    for column in summed_columns(layout):
        if column.name in columns:
            columns[column.name] = wrapping_sums(single_chunk(rows.column(column.name)), groups)
    return pa.table([columns[name] for name in rows.column_names], schema=rows.schema)


@lru_cache(maxsize=1_024)
def _has_states(layout: TableLayout) -> bool:
    """Return whether the engine also merges states; if so it keeps zero rows, as in ClickHouse.

    If the engine names its columns, only these are checked."""
    table, arguments = layout.table, layout.table.engine.arguments
    return any(
        isinstance(column.type, AggregateFunction | SimpleAggregateFunction)
        and (column.name in arguments if arguments else column.name not in layout.sorting_columns)
        for column in table.stored_columns
    )


def _aggregating(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    """Combine the groups as AggregatingMergeTree does."""
    if groups.count == rows.num_rows:
        return rows
    columns = _merged_columns(layout, rows, groups)
    return pa.table([columns[name] for name in rows.column_names], schema=rows.schema)


def _coalescing(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    """Combine the groups as CoalescingMergeTree does: the last value of each column that is not
    NULL. If the engine names its columns, the others keep their first value."""
    if groups.count == rows.num_rows:
        return rows
    columns = _merged_columns(layout, rows, groups)
    named = layout.table.engine.arguments
    for column in layout.table.stored_columns:
        name = column.name
        if name not in columns or name in layout.sorting_columns or (named and name not in named):
            continue
        if not isinstance(column.type, AggregateFunction | SimpleAggregateFunction):
            values = single_chunk(rows.column(name))
            columns[name] = values.take(_last_valid(values, groups))
    return pa.table([columns[name] for name in rows.column_names], schema=rows.schema)


def _last_valid(values: pa.Array, groups: Groups) -> pa.Array:
    """Return for each group the position of its last value that is not NULL, or of its last row if
    all are NULL."""
    last = np.append(groups.starts[1:], len(values)) - 1
    if not values.null_count:
        return from_numpy(last)
    rows = np.where(np.asarray(values.is_valid()), np.arange(len(values)), -1)
    latest = np.maximum.reduceat(rows, groups.starts)
    return from_numpy(np.where(latest < 0, last, latest))


_METHODS: Mapping[str, Combine] = {
    "CoalescingMergeTree": _coalescing,
    "SummingMergeTree": _summing,
    "AggregatingMergeTree": _aggregating,
    "ReplacingMergeTree": replacing,
    "CollapsingMergeTree": collapsing,
    "VersionedCollapsingMergeTree": versioned_collapsing,
}
"""By engine: (layout, sorted rows, groups of equal keys with ascending codes) -> combined rows."""

_ONE_ROW_OF_A_KEY = ("AggregatingMergeTree", "CoalescingMergeTree", "ReplacingMergeTree")
"""Not Collapsing, which keeps up to two rows of a key, nor Summing, which drops rows whose sums are zero."""


def _merged_columns(layout: TableLayout, rows: pa.Table, groups: Groups) -> dict[str, pa.Array]:
    """Return each column with merged states, or the first value of each group, by name."""
    first_rows = from_numpy(groups.starts)
    types = {
        stored_column.name: stored_column.type for stored_column in layout.table.stored_columns
    }
    merged = {}
    for name in rows.column_names:
        column = single_chunk(rows.column(name))
        data_type = types.get(name)
        if data_type is None or name in layout.sorting_columns:
            merged[name] = column.take(first_rows)
        else:
            merged[name] = _merge_column(column, data_type, groups, first_rows)
    return merged


def _merge_column(
    column: pa.Array, data_type: DataType, groups: Groups, first: pa.Array
) -> pa.Array:
    """Return one value for each group: the merged states, or the value at `first`."""
    match data_type:
        case AggregateFunction(function=function, parameters=parameters, arguments=arguments):
            return merge_states(function, parameters, arguments, column, groups)
        case SimpleAggregateFunction(function=function, inner=inner):
            return _merge_values(function, inner, column, groups)
        case _:
            return column.take(first)


def merge_states(
    function: str,
    parameters: Sequence[str],
    arguments: Sequence[DataType],
    states: pa.Array,
    groups: Groups,
) -> pa.Array:
    """Return one state for each group: the union of its rows' states."""
    aggregate = resolve_aggregate(function, parameter_values(parameters), arguments)
    return single_chunk(aggregate.merge(states, groups))


def parameter_values(parameters: Sequence[str]) -> list[object]:
    """Return the SQL literals of a type name ("0.9", "'x'") as Python values."""
    return [parse_parameter(literal) for literal in parameters]


def _merge_values(function: str, inner: DataType, column: pa.Array, groups: Groups) -> pa.Array:
    """Merge values of a SimpleAggregateFunction: apply the function to each group's values."""
    aggregate = resolve_aggregate(function, (), (inner,))
    merged = single_chunk(aggregate.finalize(aggregate.state([column], groups)))
    if merged.type == column.type:
        return merged
    return pc.cast(merged, column.type, safe=False)  # wraps, as ClickHouse does


def _without_zero_rows(layout: TableLayout, rows: pa.Table, summed: set[str]) -> pa.Table:
    """Return the rows without those whose sums are all zero (NULL in a Nullable column)."""
    zero: np.ndarray | None = None
    for column in layout.table.stored_columns:
        if column.name in summed:
            values = single_chunk(rows.column(column.name))
            empty = is_default(values, is_nullable(column.type))
            zero = empty if zero is None else zero & empty
            if not zero.any():  # the usual case: a count is never zero
                return rows
    return rows if zero is None else rows.filter(from_numpy(~zero))
