"""Nested maps of SummingMergeTree: arrays `…Map.key`, `…Map.value` of which equal keys are added up.

    aMap.id [1, 2]   aMap.v [10, 20]
    aMap.id [2, 3]   aMap.v [1, 1]        merge to [1, 2, 3], [10, 21, 1]

As ClickHouse: https://clickhouse.com/docs/engines/table-engines/mergetree-family/summingmergetree
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

_KEY_TYPES = (
    types.Integer,
    types.Boolean,
    types.Date,
    types.Date32,
    types.DateTime,
    types.UUID,
    types.String,
    types.FixedString,
)
_VALUE_TYPES = (types.Integer, types.Boolean, types.Float, types.Decimal)
_KEY_ENDINGS = ("ID", "Key", "Type")


@dataclass(frozen=True)
class NestedMap:
    """The names of its columns; their arrays are of one length in each row."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.keys + self.values


def nested_maps(layout: TableLayout) -> tuple[NestedMap, ...]:
    """Those of the table: arrays named `…Map.x`, the first a key, others where their name ends so."""
    found: dict[str, list[Column]] = {}
    for column in layout.table.stored_columns:
        name, dot, _ = column.name.partition(".")
        if dot and name.endswith("Map") and isinstance(column.type, types.Array):
            found.setdefault(name, []).append(column)
    in_keys = layout.sorting_columns | layout.partition_columns
    maps = (_map_of(columns) for columns in found.values())
    return tuple(m for m in maps if m is not None and not in_keys.intersection(m.names))


def _map_of(columns: list[Column]) -> NestedMap | None:
    """None where a key or a value is of a type that cannot be one: then it is arrays."""
    keys = tuple(c for i, c in enumerate(columns) if not i or c.name.endswith(_KEY_ENDINGS))
    values = tuple(c for c in columns if c not in keys)
    if not values or not all(isinstance(_element(c), _KEY_TYPES) for c in keys):
        return None
    if not all(_is_summable(_element(c)) for c in values):
        return None
    return NestedMap(tuple(c.name for c in keys), tuple(c.name for c in values))


def _element(column: Column) -> types.DataType:
    assert isinstance(column.type, types.Array)
    return column.type.inner


def _is_summable(data_type: types.DataType) -> bool:
    inner = data_type.inner if isinstance(data_type, types.Nullable) else data_type
    return isinstance(inner, _VALUE_TYPES)


def merged_map(one: NestedMap, rows: pa.Table, groups: Groups) -> Mapping[str, pa.Array]:
    """The map's columns, a row for each group: keys ascending, values of equal keys added up.

    With one key, keys whose values are all zero are left out, in every row.  With several, only a
    row that is joined with another is written anew, and only keys that were added up to zero leave.
    `rows` are in the order of their groups.
    """
    lists = {name: single_chunk(rows.column(name)) for name in one.names}
    lengths = _lengths(one, lists)
    entries = {name: values.flatten() for name, values in lists.items()}
    owners = np.repeat(groups.codes, lengths)
    alone = len(one.keys) > 1
    apart = np.arange(owners.size) if alone else np.zeros(owners.size, np.int64)
    if alone:
        apart[groups.sizes[owners] > 1] = 0
    order = sort_indices(
        [OrderColumn(pa.array(owners)), OrderColumn(pa.array(apart))]
        + [OrderColumn(entries[name]) for name in one.keys],
        owners.size,
    )
    sorted_keys = [entries[name].take(order) for name in one.keys]
    at = order.to_numpy(zero_copy_only=False)
    owners, apart = owners[at], apart[at]
    changed = ~equal_to_previous([pa.array(owners), pa.array(apart), *sorted_keys], owners.size)
    merged = Groups(np.cumsum(changed) - 1, int(changed.sum()))
    made = {
        name: values.take(pa.array(merged.starts))
        for name, values in zip(one.keys, sorted_keys, strict=True)
    }
    leaves = merged.sizes > 1 if alone else np.ones(merged.count, bool)
    for name in one.values:
        values = entries[name].take(order)
        made[name] = _within_precision(wrapping_sums(values, merged)) if merged.count else values
        leaves = leaves & is_zero(made[name])
    kept = pa.array(np.flatnonzero(~leaves))
    sizes = np.bincount(owners[merged.starts][~leaves], minlength=groups.count)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    return {
        name: pa.ListArray.from_arrays(offsets, values.take(kept), type=lists[name].type)
        for name, values in made.items()
    }


def _lengths(one: NestedMap, lists: Mapping[str, pa.Array]) -> np.ndarray:
    first, *others = one.names
    lengths: np.ndarray = lists[first].value_lengths().to_numpy(zero_copy_only=False)
    for name in others:
        if not np.array_equal(lengths, lists[name].value_lengths().to_numpy(zero_copy_only=False)):
            raise SizesOfArraysDoNotMatch(
                f"Arrays of {first} and {name}, columns of one map, differ in length.",
                hint="DELETE these rows, or UPDATE the shorter arrays.",
            )
    return lengths


def _within_precision(sums: pa.Array) -> pa.Array:
    """Decimals in arrays keep to their precision, since Parquet would cut them to its bytes."""
    if not pa.types.is_decimal(sums.type):
        return sums
    try:
        return with_precision(sums, decimal_class(sums.type)).cast(sums.type)
    except pa.ArrowInvalid as error:
        raise DecimalOverflow(
            f"A sum does not fit the Decimal({sums.type.precision}, {sums.type.scale}) of a map.",
            hint="Make the array one of Decimal(38, …): copy the table with INSERT … SELECT.",
        ) from error
