"""The footer of a part's file: its columns, found by their ids, and the bounds of its row groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.model.part import ColumnBounds
from olapdb.model.schema import PastColumn
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.storage.page_decoder import ColumnPages

_FIELD_ID = b"PARQUET:field_id"
_TYPE_NAME = b"olapdb.type"


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file. Its leaves are the Parquet columns first_leaf..first_leaf+leaf_count-1;
    `type_name` is ClickHouse's, "" where the file does not name it."""

    id: int
    name: str
    type: pa.DataType
    type_name: str
    first_leaf: int
    leaf_count: int


@dataclass(frozen=True)
class PartFooter:
    """A verified footer; `columns` by column id.

    `known_bounds` has the bounds of columns in each row group, once a condition has asked for them, by
    column id, type and the table's former columns. `known_pages` has where the pages of columns are, once they were
    read, by column id; None for columns that Arrow reads."""

    metadata: pq.FileMetaData
    columns: Mapping[int, FileColumn]
    known_bounds: dict[tuple[int, str, tuple[PastColumn, ...]], list[ColumnBounds | None]] = field(
        default_factory=dict
    )
    known_pages: dict[int, ColumnPages | None] = field(default_factory=dict)

    @cached_property
    def group_rows(self) -> tuple[int, ...]:
        """The number of rows of each row group."""
        groups = range(self.metadata.num_row_groups)
        return tuple(self.metadata.row_group(index).num_rows for index in groups)


def file_columns(schema: pa.Schema) -> dict[int, FileColumn]:
    """Return the file's columns by column id. Fields without an id are left out."""
    columns = {}
    leaf = 0
    for of in schema:
        count = _leaf_count(of.type)
        column_id = field_id(of)
        if column_id is not None:
            columns[column_id] = FileColumn(
                column_id, of.name, of.type, stored_type_name(of), leaf, count
            )
        leaf += count
    return columns


def _leaf_count(arrow: pa.DataType) -> int:
    """Return how many Parquet columns a column of this type consists of."""
    if pa.types.is_map(arrow):
        return _leaf_count(arrow.key_type) + _leaf_count(arrow.item_type)
    if pa.types.is_struct(arrow):
        return sum(_leaf_count(field.type) for field in arrow)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return _leaf_count(arrow.value_type)
    return 1


def column_positions(schema: pa.Schema) -> dict[int, int]:
    """Return the position of each column in the schema, by column id."""
    ids = ((field_id(field), position) for position, field in enumerate(schema))
    return {column_id: position for column_id, position in ids if column_id is not None}


def field_id(of: pa.Field) -> int | None:
    """Return the id of the column in the field's metadata. None if there is none."""
    raw = (of.metadata or {}).get(_FIELD_ID)
    return None if raw is None else int(raw)


def stored_type_name(of: pa.Field) -> str:
    """Return the ClickHouse type in the field's metadata, "" if there is none."""
    return str((of.metadata or {}).get(_TYPE_NAME, b"").decode())


def ticks_per_unit(stored: pa.DataType, requested: pa.DataType) -> int | None:
    """Return how many stored ticks a unit of the requested type has: 1, or 1000 for seconds stored
    as milliseconds. None if the types are not comparable."""
    if stored == requested:
        # pyarrow restores seconds in the schema, but the file has milliseconds.
        return 1000 if pa.types.is_timestamp(stored) and stored.unit == "s" else 1
    if pa.types.is_integer(stored) and pa.types.is_integer(requested):
        return 1
    if pa.types.is_floating(stored) and pa.types.is_floating(requested):
        return 1
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(requested):
        return 1000 if (stored.unit, requested.unit) == ("ms", "s") else None
    return None
