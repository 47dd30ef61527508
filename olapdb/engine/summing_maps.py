"""Nested maps of SummingMergeTree: arrays `…Map.key`, `…Map.value`; values of equal keys add up.

    aMap.id [1, 2]   aMap.v [10, 20]
    aMap.id [2, 3]   aMap.v [1, 1]        merge to [1, 2, 3], [10, 21, 1]

As ClickHouse: https://clickhouse.com/docs/engines/table-engines/mergetree-family/summingmergetree
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.compute.batches import single_chunk
from olapdb.compute.ordering import OrderColumn, equal_to_previous, sort_indices
from olapdb.engine.layout import TableLayout
from olapdb.engine.summing import is_zero, wrapping_sums
from olapdb.errors import DecimalOverflow, SizesOfArraysDoNotMatch
from olapdb.functions.base import Groups
from olapdb.functions.kernels.decimal_width import decimal_class, with_precision
from olapdb.model.schema import Column
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy, to_numpy

_KEY_TYPES = (
    types.Integer,
    types.Boolean,
    types.Date,
    types.Date32,
    types.DateTime,
    types.UUID,
    types.IPv4,
    types.IPv6,
    types.String,
    types.FixedString,
    types.Enum,
)
_VALUE_TYPES = (types.Integer, types.Boolean, types.Float, types.Decimal)
_KEY_ENDINGS = ("ID", "Key", "Type")


@dataclass(frozen=True)
class NestedMap:
    """The key and value columns of a nested map; their arrays have equal lengths in each row."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return all columns of the map."""
        return self.keys + self.values


@lru_cache(maxsize=1_024)
def nested_maps(layout: TableLayout) -> tuple[NestedMap, ...]:
    """Return the nested maps of a table: arrays named `…Map.x` outside its sorting and partition keys.

    The first array of a map is a key. So is each array whose name ends with ID, Key or Type."""
    arrays: dict[str, list[Column]] = {}
    for column in layout.table.stored_columns:
        name, separator, _ = column.name.partition(".")
        if separator and name.endswith("Map") and isinstance(column.type, types.Array):
            arrays.setdefault(name, []).append(column)
    in_keys = layout.sorting_columns | layout.partition_columns
    maps = (_map_of(columns) for columns in arrays.values())
    return tuple(
        nested_map
        for nested_map in maps
        if nested_map is not None and not in_keys.intersection(nested_map.names)
    )


def _map_of(columns: list[Column]) -> NestedMap | None:
    """Return the map of these arrays, None if the type of a key or value is not suitable."""
    keys = tuple(
        column
        for position, column in enumerate(columns)
        if not position or column.name.endswith(_KEY_ENDINGS)
    )
    values = tuple(column for column in columns if column not in keys)
    if not values or not all(isinstance(_element(column), _KEY_TYPES) for column in keys):
        return None
    if not all(_is_summable(_element(column)) for column in values):
        return None
    return NestedMap(tuple(column.name for column in keys), tuple(column.name for column in values))


def _element(column: Column) -> types.DataType:
    """Return the element type of an Array column, without LowCardinality."""
    assert isinstance(column.type, types.Array)
    return types.without_low_cardinality(column.type.inner)


def _is_summable(data_type: types.DataType) -> bool:
    """Return whether values of the type, perhaps Nullable, can be added up."""
    inner = data_type.inner if isinstance(data_type, types.Nullable) else data_type
    return isinstance(inner, _VALUE_TYPES)


def merge_map(nested_map: NestedMap, rows: pa.Table, groups: Groups) -> Mapping[str, pa.Array]:
    """Return the map's columns with a row for each group: keys ascending, values of equal keys added.

    With one key, keys whose values are all zero are dropped in every row.  With several keys, a row
    alone in its group is unchanged, and only keys that were added up to zero are dropped.  `rows` are
    in the order of their groups.  Raises SizesOfArraysDoNotMatch if arrays of a row differ in
    length, DecimalOverflow if a sum exceeds its precision.
    """
    map_columns = {name: single_chunk(rows.column(name)) for name in nested_map.names}
    entries = {name: values.flatten() for name, values in map_columns.items()}
    owners = np.repeat(groups.codes, _lengths(nested_map, map_columns))
    several_keys = len(nested_map.keys) > 1
    # Only entries of one number merge. In a row that stays unchanged each entry has its own number,
    # so that its entries also keep their order.
    entry_numbers = np.arange(owners.size) if several_keys else np.zeros(owners.size, np.int64)
    entry_numbers[groups.sizes[owners] > 1] = 0
    order = sort_indices(
        [OrderColumn(from_numpy(owners)), OrderColumn(from_numpy(entry_numbers))]
        + [OrderColumn(entries[name]) for name in nested_map.keys],
        owners.size,
    )
    sorted_keys = [entries[name].take(order) for name in nested_map.keys]
    positions = to_numpy(order)
    owners, entry_numbers = owners[positions], entry_numbers[positions]
    begins_group = ~equal_to_previous(
        [from_numpy(owners), from_numpy(entry_numbers), *sorted_keys], owners.size
    )
    merged = Groups(np.cumsum(begins_group) - 1, int(begins_group.sum()))
    columns = {
        name: values.take(from_numpy(merged.starts))
        for name, values in zip(nested_map.keys, sorted_keys, strict=True)
    }
    is_zero_entry = merged.sizes > 1 if several_keys else np.ones(merged.count, bool)
    for name in nested_map.values:
        values = entries[name].take(order)
        columns[name] = _within_precision(wrapping_sums(values, merged)) if merged.count else values
        is_zero_entry = is_zero_entry & is_zero(columns[name])
    remaining = from_numpy(np.flatnonzero(~is_zero_entry))
    sizes = np.bincount(owners[merged.starts][~is_zero_entry], minlength=groups.count)
    offsets = from_numpy(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    return {
        name: pa.ListArray.from_arrays(offsets, values.take(remaining), type=map_columns[name].type)
        for name, values in columns.items()
    }


def _lengths(nested_map: NestedMap, lists: Mapping[str, pa.Array]) -> np.ndarray:
    """Return the number of entries of each row; raise SizesOfArraysDoNotMatch if arrays differ."""
    first_name, *other_names = nested_map.names
    lengths: np.ndarray = to_numpy(lists[first_name].value_lengths())
    for name in other_names:
        if not np.array_equal(lengths, to_numpy(lists[name].value_lengths())):
            raise SizesOfArraysDoNotMatch(
                f"Arrays of {first_name} and {name}, columns of one map, differ in length.",
                hint="DELETE these rows, or UPDATE the shorter arrays.",
            )
    return lengths


def _within_precision(sums: pa.Array) -> pa.Array:
    """Return the sums; raise DecimalOverflow if a decimal exceeds its precision.

    Parquet would cut such decimals in arrays to the bytes of the precision."""
    if not pa.types.is_decimal(sums.type):
        return sums
    try:
        return with_precision(sums, decimal_class(sums.type)).cast(sums.type)
    except pa.ArrowInvalid as error:
        raise DecimalOverflow(
            f"A sum does not fit the Decimal({sums.type.precision}, {sums.type.scale}) of a map.",
            hint="Make the array one of Decimal(38, …): copy the table with INSERT … SELECT.",
        ) from error
