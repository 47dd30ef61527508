"""Minima and maxima of columns, for pruning: of a whole part, and of each of its row groups.

Absent bounds mean "anything may be there".  A float column with a NaN has none: a NaN is in no
interval, but `NOT (x > 5)` keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.model.part import ColumnBounds
from olapdb.model.schema import Table
from olapdb.storage.min_max import min_max_candidates

TEXT_BOUND_MAX = 64
"""Characters; a column with a longer minimum or maximum has no bounds at part level."""

_WORD = re.compile(r"\w+")


def has_bounds(data_type: types.DataType) -> bool:
    """Whether values of the type have an order that bounds can carry as JSON."""
    return isinstance(
        types.plain(data_type),
        types.Integer
        | types.Float
        | types.Boolean
        | types.String
        | types.Date
        | types.Date32
        | types.DateTime
        | types.DateTime64,
    )


def table_bounds(
    table: Table, rows: pa.Table, names: Iterable[str] | None = None
) -> dict[str, ColumnBounds]:
    """Bounds of the named columns (None: all) that can have some; shape: column -> bounds."""
    wanted = None if names is None else set(names)
    bounds = {}
    for column in table.stored_columns:
        if (wanted is None or column.name in wanted) and has_bounds(column.type):
            found = column_bounds(rows.column(column.name), column.type)
            if found is not None:
                bounds[column.name] = found
    return bounds


def column_bounds(values: pa.ChunkedArray, data_type: types.DataType) -> ColumnBounds | None:
    """(minimum, maximum, nulls) of a column of `data_type.arrow`, or None (see the module)."""
    nulls = values.null_count
    kind = types.plain(data_type)
    if isinstance(kind, types.Integer) and not nulls and pa.types.is_integer(values.type):
        return _integer_bounds(values)
    values = min_max_candidates(values)
    if isinstance(kind, types.Float) and pc.any(pc.is_nan(values)).as_py():
        return None
    ends = pc.min_max(values)
    low, high = ends["min"], ends["max"]
    if not low.is_valid:
        return (None, None, nulls)
    if isinstance(kind, types.Date | types.Date32):
        return (low.value, high.value, nulls)
    if isinstance(kind, types.DateTime | types.DateTime64):
        return (low.value, high.value, nulls)
    try:
        minimum, maximum = low.as_py(), high.as_py()
    except UnicodeDecodeError:  # bytes, which JSON cannot carry
        return None
    if isinstance(minimum, str) and max(len(minimum), len(maximum)) > TEXT_BOUND_MAX:
        return None
    return (minimum, maximum, nulls)


def _integer_bounds(values: pa.ChunkedArray) -> ColumnBounds:
    """As below, for a fifth of what Arrow's kernel costs on the few rows of a small part."""
    chunks = [one.to_numpy() for one in values.chunks if len(one)]
    if not chunks:
        return (None, None, 0)
    return (int(min(one.min() for one in chunks)), int(max(one.max() for one in chunks)), 0)


def statistics_bounds(
    statistics: object, data_type: types.DataType, ticks_per_unit: int
) -> ColumnBounds | None:
    """The same from a column chunk's Parquet statistics (a `pq.Statistics` or None).

    `ticks_per_unit` is how many stored ticks a unit of the table's type has (Parquet knows no
    seconds, so that a DateTime lies there in milliseconds: 1000).
    """
    if statistics is None or not statistics.has_null_count:  # type: ignore[attr-defined]
        return None
    nulls: int = statistics.null_count  # type: ignore[attr-defined]
    if not statistics.has_min_max:  # type: ignore[attr-defined]
        return (None, None, nulls) if statistics.num_values == 0 else None  # type: ignore[attr-defined]
    kind = types.plain(data_type)
    if isinstance(kind, types.DateTime | types.DateTime64 | types.Date | types.Date32):
        low, high = statistics.min_raw, statistics.max_raw  # type: ignore[attr-defined]
        return (low // ticks_per_unit, high // ticks_per_unit, nulls)
    try:
        low, high = statistics.min, statistics.max  # type: ignore[attr-defined]
    except UnicodeDecodeError:
        return None
    if isinstance(low, date | datetime | bytes):
        return None
    return (low, high, nulls)


def bounds_hold(before: types.DataType, after: types.DataType) -> bool:
    """Whether bounds of values of one type are those of the same values as the other: what a
    change of a column's type leaves of its parts' bounds."""
    old, new = types.plain(before), types.plain(after)
    match old, new:
        case types.Integer(), types.Integer():
            return new.minimum <= old.minimum and old.maximum <= new.maximum
        case types.Float(), types.Float():
            return old.bits <= new.bits
        case (types.Date(), types.Date32()) | (types.DateTime(), types.DateTime()):
            return True
        case types.DateTime64(), types.DateTime64():
            return old.precision == new.precision
        case _:
            return old == new


def key_columns(table: Table) -> frozenset[str]:
    """Columns whose name occurs in the sorting key, the partition key or the TTL."""
    texts = [item.expression for item in table.sorting_key]
    words = set(_WORD.findall(" ".join((*texts, table.partition_key, table.ttl))))
    return frozenset(c.name for c in table.columns if c.name in words)


def without(bounds: Mapping[str, ColumnBounds], names: Iterable[str]) -> dict[str, ColumnBounds]:
    """The bounds but for those columns."""
    dropped = set(names)
    return {name: one for name, one in bounds.items() if name not in dropped}
