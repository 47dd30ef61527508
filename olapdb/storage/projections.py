"""Projections of a part: other orders or groups of its rows, inside its file.

A projection is a Parquet file within the part's: its pages and its footer lie between the part's
last row group and the part's footer, whose metadata holds their position (`olapdb.projection.<name>`).
All offsets are those in the part's file.  Other readers of Parquet do not see it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.lazy import LazyModule
from olapdb.model.schema import Projection, Table
from olapdb.records import dataclass
from olapdb.storage.part_plan import ProjectedRows

if TYPE_CHECKING:
    from olapdb.storage import row_group_size
    from olapdb.storage.parquet import row_group_writer
else:
    row_group_size = LazyModule("olapdb.storage.row_group_size")
    row_group_writer = LazyModule("olapdb.storage.parquet.row_group_writer")

PROJECTION_PREFIX = "olapdb.projection."


@dataclass(frozen=True, slots=True)
class ProjectionPlace:
    """The position of a projection's footer in a part's file, and what it is a projection of: its
    query, the ids and types of the columns that order or group its rows. `size_bytes` counts its
    pages too."""

    offset: int
    footer_bytes: int
    crc: int
    size_bytes: int
    rows: int
    granules: int
    query: str
    column_types: tuple[tuple[int, str], ...]

    def to_json(self) -> str:
        """Return the place and definition as JSON, for the footer's metadata."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: bytes) -> ProjectionPlace:
        """Parse the text of `to_json`."""
        facts = json.loads(text)
        types = tuple((number, name) for number, name in facts.pop("column_types"))
        return cls(**facts, column_types=types)

    def matches(self, projection: Projection, column_types: Sequence[tuple[int, str]]) -> bool:
        """Return whether this is the projection as the table defines it now, over columns of the
        same ids and types."""
        return self.query == projection.query and self.column_types == tuple(column_types)


def column_types(table: Table, names: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Return the ids and type names of the table's columns of these names."""
    columns = (table.column(name) for name in names)
    return tuple((column.id, column.type.name) for column in columns if column is not None)


class Appended:
    """The place behind what the writer of a part has written so far, as a file to append to."""

    def __init__(
        self,
        writer: row_group_writer.OneThreadWriter | row_group_writer.RowGroupsWriter,
        file: pa.NativeFile,
    ) -> None:
        self._writer = writer
        self._file = file

    def tell(self) -> int:
        """Return the offset in the part's file."""
        return int(self._file.tell())

    def write(self, data: bytes | pa.Buffer) -> None:
        """Append bytes to the part's file."""
        self._writer.write(data)


def write_projection(
    place: Appended,
    projected: ProjectedRows,
    rows: pa.Table,
    options: Mapping[str, object],
    threads: int,
) -> ProjectionPlace:
    """Append the projection to the part's file as a Parquet file whose offsets are those of the
    part's; return where its footer is. `rows` have the types of a file, `options` are those of
    its writer."""
    granule_rows = row_group_size.row_group_rows(projected.shape, rows)
    start = place.tell()
    writer = row_group_writer.RowGroupsWriter(place, rows.schema, options, max(1, threads))
    writer.write_table(rows, granule_rows)
    writer.close()
    tail, end = writer.tail, place.tell()
    return ProjectionPlace(
        end - len(tail),
        len(tail),
        zlib.crc32(tail),
        end - start,
        rows.num_rows,
        -(-rows.num_rows // granule_rows),
        projected.query,
        projected.column_types,
    )
