"""Minima and maxima of columns, for pruning: of a whole part, and of each of its row groups.

Absent bounds mean "any value may occur".  A float column with a NaN has none: a NaN is in no
interval, but `NOT (x > 5)` selects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.model.part import ColumnBounds
from olapdb.model.schema import Column, Table
from olapdb.storage.min_max import min_max_candidates
from olapdb.types.arrow_values import to_numpy

if TYPE_CHECKING:
    from olapdb.storage.parquet.column_facts import ColumnFacts

TEXT_BOUND_MAX = 64
"""Characters; a column with a longer minimum or maximum has no bounds at part level."""

_WORD = re.compile(r"\w+")


def has_bounds(data_type: types.DataType) -> bool:
    """Return whether values of the type have an order that bounds can carry as JSON."""
    return isinstance(
        types.plain(data_type),
        types.Integer
        | types.Enum
        | types.IPv4
        | types.Float
        | types.Boolean
        | types.String
        | types.Date
        | types.Date32
        | types.DateTime
        | types.DateTime64
        | types.Time
        | types.Time64,
    )


def table_bounds(
    table: Table, rows: pa.Table, names: Iterable[str] | None = None
) -> dict[str, ColumnBounds]:
    """Return the bounds of the named columns (None: all) that can have bounds, by column name."""
    chosen = None if names is None else set(names)
    columns = [c for c in table.stored_columns if chosen is None or c.name in chosen]
    return bounds_of(rows, [column for column in columns if has_bounds(column.type)])


def bounds_of(rows: pa.Table, columns: Iterable[Column]) -> dict[str, ColumnBounds]:
    """Return the bounds of these columns, each of which can have some, by column name."""
    bounds = {}
    for column in columns:
        column_range = column_bounds(rows.column(column.name), column.type)
        if column_range is not None:
            bounds[column.name] = column_range
    return bounds


def column_bounds(values: pa.ChunkedArray, data_type: types.DataType) -> ColumnBounds | None:
    """Return (minimum, maximum, number of nulls) of a column of `data_type.arrow`; (None, None,
    nulls) if all are null. None if there are no valid bounds: NaN among the values, long texts,
    bytes."""
    nulls = values.null_count
    kind = types.plain(data_type)
    if (
        isinstance(kind, types.Integer | types.Enum | types.IPv4 | types.Time | types.Time64)
        and not nulls
        and pa.types.is_integer(values.type)
    ):
        return _integer_bounds(values)
    if len(values) == 1 and pa.types.is_string(values.type) and not nulls:
        return _text_bounds(values[0], values[0], nulls)
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
    return _text_bounds(low, high, nulls)


def _text_bounds(low: pa.Scalar, high: pa.Scalar, nulls: int) -> ColumnBounds | None:
    """Return the bounds of texts, or of other values that Python has; None for long texts and bytes."""
    try:
        minimum, maximum = low.as_py(), high.as_py()
    except UnicodeDecodeError:  # bytes, which JSON cannot carry
        return None
    if isinstance(minimum, str) and max(len(minimum), len(maximum)) > TEXT_BOUND_MAX:
        return None
    return (minimum, maximum, nulls)


def _integer_bounds(values: pa.ChunkedArray) -> ColumnBounds:
    """Return the bounds of integers without nulls, at a fifth of the cost of Arrow's kernel for
    small parts."""
    chunks = [to_numpy(chunk) for chunk in values.chunks if len(chunk)]
    if not chunks:
        return (None, None, 0)
    return (int(min(chunk.min() for chunk in chunks)), int(max(chunk.max() for chunk in chunks)), 0)


def encoded_bounds(facts: ColumnFacts, data_type: types.DataType) -> ColumnBounds | None:
    """Return the bounds of a column that kernels encoded, the same as `column_bounds` finds in its values."""
    if facts.has_nan:
        return None
    if not facts.ends:
        return (None, None, facts.nulls)
    arrow = data_type.arrow
    if pa.types.is_string(arrow):
        least, greatest = min(low for low, _ in facts.ends), max(high for _, high in facts.ends)
        try:
            minimum, maximum = least.decode(), greatest.decode()
        except UnicodeDecodeError:
            return None
        is_long = max(len(minimum), len(maximum)) > TEXT_BOUND_MAX
        return None if is_long else (minimum, maximum, facts.nulls)
    kind = (
        "f" if pa.types.is_floating(arrow) else "u" if pa.types.is_unsigned_integer(arrow) else "i"
    )
    stored = np.frombuffer(b"".join(map(b"".join, facts.ends)), f"<{kind}{len(facts.ends[0][0])}")
    low, high = stored.min().item(), stored.max().item()
    if pa.types.is_timestamp(arrow) and arrow.unit == "s":  # Parquet has no seconds
        low, high = low // 1_000, high // 1_000
    return (low + 0, high + 0, facts.nulls)  # no -0.0


class ChunkStatistics(Protocol):
    """The part of `pq.Statistics` that bounds need."""

    has_null_count: bool
    null_count: int
    has_min_max: bool
    num_values: int
    min_raw: int
    max_raw: int
    min: object
    max: object


def statistics_bounds(
    statistics: ChunkStatistics | None, data_type: types.DataType, ticks_per_unit: int
) -> ColumnBounds | None:
    """Return the bounds from the Parquet statistics of a column chunk (a `pq.Statistics` or None).

    `ticks_per_unit` is how many stored ticks a unit of the table's type has. Parquet has no
    seconds, so a DateTime is stored in milliseconds: 1000.
    """
    if statistics is None or not statistics.has_null_count:
        return None
    nulls = statistics.null_count
    if not statistics.has_min_max:
        return (None, None, nulls) if statistics.num_values == 0 else None
    kind = types.plain(data_type)
    if isinstance(kind, types.DateTime | types.DateTime64 | types.Date | types.Date32):
        raw_low, raw_high = statistics.min_raw, statistics.max_raw
        return (raw_low // ticks_per_unit, raw_high // ticks_per_unit, nulls)
    try:
        low, high = statistics.min, statistics.max
    except UnicodeDecodeError:
        return None
    if isinstance(low, date | datetime | bytes):
        return None
    return (low, high, nulls)


def bounds_hold(before: types.DataType, after: types.DataType) -> bool:
    """Return whether a column's bounds under the type `before` are valid under the type `after`,
    because the conversion changes no value."""
    old, new = types.plain(before), types.plain(after)
    match old, new:
        case types.Integer(), types.Integer():
            return new.minimum <= old.minimum and old.maximum <= new.maximum
        case types.Enum(), types.Enum():
            return set(old.elements) <= set(new.elements)
        case types.Float(), types.Float():
            return old.bits <= new.bits
        case (types.Date(), types.Date32()) | (types.DateTime(), types.DateTime()):
            return True
        case types.DateTime64(), types.DateTime64():
            return old.precision == new.precision
        case _:
            return old == new


def key_columns(table: Table) -> frozenset[str]:
    """Return the columns whose name occurs in the sorting key, the partition key or the TTL."""
    texts = [item.expression for item in table.sorting_key]
    texts += [table.partition_key, table.ttl, *(column.ttl for column in table.columns)]
    text = " ".join(texts)
    words = set(_WORD.findall(text))
    return frozenset(
        c.name
        for c in table.columns
        if c.name in words
        or (not _WORD.fullmatch(c.name) and types.quote_identifier(c.name) in text)
    )


def without(bounds: Mapping[str, ColumnBounds], names: Iterable[str]) -> dict[str, ColumnBounds]:
    """Return the bounds without those of the named columns."""
    dropped = set(names)
    return {name: column_range for name, column_range in bounds.items() if name not in dropped}
