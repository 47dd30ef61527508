"""combine: joins rows of equal sorting key. The one function by which engines differ.

Merges, FINAL and optimize_on_insert all call it, so what FINAL reads is what a full merge leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import DecimalOverflow, InternalError
from olapdb.execute.batches import single_chunk
from olapdb.execute.layout import TableLayout
from olapdb.execute.ordering import equal_to_previous
from olapdb.execute.survivors import collapsing, replacing, versioned_collapsing
from olapdb.functions import resolve_aggregate
from olapdb.functions.base import Groups
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
)

Combine = Callable[[TableLayout, pa.Table, Groups], pa.Table]


def combine(
    table: Table, rows: pa.Table, layout: TableLayout | None = None, *, unique: bool = False
) -> pa.Table:
    """The rows as a merge leaves them. `rows` are sorted by the sorting key, equal keys in the
    order of their insertion, and have the key's columns and those of `columns_to_combine`.

    Summing: sums; a row whose sums are all zero is dropped.  Aggregating: states merged.  Other
    columns keep their first value.  Replacing and Collapsing keep whole rows, see `survivors`; of
    what they keep FINAL hides some, see `survivors.visible`.  Of other engines the rows come back
    as they are.  `unique`: no two rows have one key.  Raises IncorrectData where a sign is not 1 or -1, an is_deleted not 0 or 1.
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
    return method(layout, rows, Groups(codes, int(codes[-1]) + 1))


def columns_to_combine(layout: TableLayout, wanted: Iterable[str]) -> frozenset[str]:
    """The columns that must be read so that `combine` gives the wanted ones as a merge would."""
    table = layout.table
    needed = set(wanted) | layout.sorting_columns
    if table.engine.name == "SummingMergeTree":
        needed |= {c.name for c in summed_columns(layout)}
    else:
        needed |= set(table.engine.arguments)
    return frozenset(needed)


def summed_columns(layout: TableLayout) -> tuple[Column, ...]:
    """The columns that SummingMergeTree adds up: those named, or every number that is in neither
    key."""
    table = layout.table
    in_keys = layout.sorting_columns | layout.partition_columns
    named = table.engine.arguments
    return tuple(
        c
        for c in table.stored_columns
        if _is_summable(c.type) and (c.name in named if named else c.name not in in_keys)
    )


def _is_summable(data_type: DataType) -> bool:
    """Numbers and Bool (true wins); not what only merges by a function of its own."""
    if isinstance(data_type, SimpleAggregateFunction):
        return False
    if isinstance(data_type, Nullable | LowCardinality):
        return _is_summable(data_type.inner)
    return isinstance(data_type, Integer | Float | Decimal | Boolean)


def _summing(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    summed = {c.name for c in summed_columns(layout) if c.name in rows.column_names}
    if groups.count == rows.num_rows:
        return _without_zero_rows(rows, summed)
    columns = _merged_columns(layout, rows, groups)
    for name in summed:
        columns[name] = _summed(single_chunk(rows.column(name)), groups)
    made = pa.table([columns[name] for name in rows.column_names], schema=rows.schema)
    return _without_zero_rows(made, summed)


def _aggregating(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    if groups.count == rows.num_rows:
        return rows
    columns = _merged_columns(layout, rows, groups)
    return pa.table([columns[name] for name in rows.column_names], schema=rows.schema)


_METHODS: Mapping[str, Combine] = {
    "SummingMergeTree": _summing,
    "AggregatingMergeTree": _aggregating,
    "ReplacingMergeTree": replacing,
    "CollapsingMergeTree": collapsing,
    "VersionedCollapsingMergeTree": versioned_collapsing,
}
"""By engine: layout, sorted rows, which of them have equal keys (codes ascending) -> rows."""


def _merged_columns(
    layout: TableLayout, rows: pa.Table, groups: Groups
) -> dict[str, pa.Array]:
    """States merged, plain columns their first value, by name."""
    first = pa.array(groups.starts)
    types = {c.name: c.type for c in layout.table.stored_columns}
    merged = {}
    for name in rows.column_names:
        column = single_chunk(rows.column(name))
        data_type = types.get(name)
        if data_type is None or name in layout.sorting_columns:
            merged[name] = column.take(first)
        else:
            merged[name] = _merged(column, data_type, groups, first)
    return merged


def _merged(
    column: pa.Array, data_type: DataType, groups: Groups, first: pa.Array
) -> pa.Array:
    match data_type:
        case AggregateFunction(function=function, parameters=parameters, arguments=arguments):
            return merge_states(function, parameters, arguments, column, groups)
        case SimpleAggregateFunction(function=function, inner=inner):
            return _merged_simply(function, inner, column, groups)
        case _:
            return column.take(first)


def merge_states(
    function: str,
    parameters: Sequence[str],
    arguments: Sequence[DataType],
    states: pa.Array,
    groups: Groups,
) -> pa.Array:
    """One state for each group, the union of its rows' states."""
    aggregate = resolve_aggregate(function, parameter_values(parameters), arguments)
    return single_chunk(aggregate.merge(states, groups))


def parameter_values(parameters: Sequence[str]) -> list[object]:
    """SQL literals of a type name ("0.9", "'x'") as Python values."""
    values: list[object] = []
    for text in parameters:
        if text.startswith("'"):
            values.append(text[1:-1])
        elif text.lstrip("-").isdigit():
            values.append(int(text))
        else:
            values.append(float(text))
    return values


def _merged_simply(
    function: str, inner: DataType, column: pa.Array, groups: Groups
) -> pa.Array:
    """A value that merges with itself: the function over the group's values."""
    aggregate = resolve_aggregate(function, (), (inner,))
    made = single_chunk(aggregate.finalize(aggregate.state([column], groups)))
    return made if made.type == column.type else wrapping_cast(made, column.type)


def _summed(column: pa.Array, groups: Groups) -> pa.Array:
    """Sums in the column's own type, wrapping as ClickHouse does; NULL counts as nothing, a group
    of NULLs only stays NULL."""
    arrow = column.type
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(arrow):
        table = pa.table({"code": groups.codes, "value": column})
        sums = table.group_by("code", use_threads=False).aggregate([("value", "sum")])
        made = single_chunk(sums.column("value_sum"))
        try:
            return made.cast(arrow)
        except pa.ArrowInvalid as error:  # Parquet would cut it to the precision's bytes
            raise DecimalOverflow(
                f"A sum does not fit Decimal({arrow.precision}, {arrow.scale}).",
                hint="Sum into a wider column, such as Decimal(38, …): copy the table with INSERT "
                "… SELECT.",
            ) from error
    plain = pc.fill_null(column, _zero(arrow))
    ordered = plain.to_numpy(zero_copy_only=False)[groups.order]
    if pa.types.is_boolean(arrow):
        any_valid = np.logical_or.reduceat(valid[groups.order], groups.starts)
        return pa.array(np.logical_or.reduceat(ordered, groups.starts), mask=~any_valid)
    wide: type = np.float64 if pa.types.is_floating(arrow) else ordered.dtype.type
    sums = np.add.reduceat(ordered, groups.starts, dtype=wide)
    any_valid = np.add.reduceat(valid[groups.order].astype(np.int64), groups.starts) > 0
    return pa.array(sums.astype(ordered.dtype), mask=~any_valid).cast(arrow)


def wrapping_cast(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """A number in another width, wrapping as ClickHouse does."""
    return pc.cast(column, arrow, safe=False)


def _without_zero_rows(rows: pa.Table, summed: set[str]) -> pa.Table:
    """Rows but for those whose sums are all zero (or NULL)."""
    if not summed:
        return rows
    zero: np.ndarray = np.ones(rows.num_rows, bool)
    for name in summed:
        column = single_chunk(rows.column(name))
        is_zero = pc.equal(column, _zero(column.type))
        zero &= pc.fill_null(is_zero, True).to_numpy(zero_copy_only=False)
    return rows if not zero.any() else rows.filter(pa.array(~zero))


def _zero(arrow: pa.DataType) -> pa.Scalar:
    return pa.scalar(False) if pa.types.is_boolean(arrow) else pa.scalar(0, arrow)
