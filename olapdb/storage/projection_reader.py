"""Read a projection of a part: rows of the same file, after the part's own, with their own footer."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.functions.base import Environment
from olapdb.model.part import Part
from olapdb.model.schema import Projection, SkipIndex, Table
from olapdb.storage.checksum import mismatch
from olapdb.storage.part_file import PartFile
from olapdb.storage.part_footer import PartFooter, file_columns
from olapdb.storage.projections import PROJECTION_PREFIX, ProjectionPlace
from olapdb.storage.reader import InlineRows, PartReader
from olapdb.storage.store import Store


class ProjectionReader(PartReader):
    """A reader of a projection of one part through `shape`, a table of the projection's columns.

    It has no skip indexes. `part` has the rows and granules of the projection."""

    def __init__(
        self,
        store: Store,
        snapshot: InlineRows,
        part: Part,
        shape: Table,
        environment: Environment,
        place: tuple[str, ProjectionPlace],
    ) -> None:
        """Create a reader of the projection of the name and at the place `place`."""
        super().__init__(store, snapshot, part, shape, environment)
        self.name = place[0]
        self._file = ProjectionFile(store, part, *place)

    def skip_index(self, index: SkipIndex, arrow: pa.DataType) -> pa.RecordBatch | None:
        """Return None: the skip indexes of the part are built over the part's own order of rows, not the
        projection's."""
        return None


class ProjectionFile(PartFile):
    """A projection within the file of a part: other columns, with a footer of their own."""

    def __init__(self, store: Store, part: Part, name: str, place: ProjectionPlace) -> None:
        """Name the projection, which is at `place` in the file."""
        super().__init__(store, part)
        self._name, self._place = name, place

    @property
    def cache_path(self) -> str:
        """The key in caches: the file's, with the projection's name."""
        return f"{self._part.path}#{self._name}"

    def read_footer(self, source: pa.NativeFile) -> PartFooter:
        """Read the projection's footer from the open file and verify it."""
        if source.size() != self._part.bytes:
            raise mismatch(self._part, f"has {source.size()} bytes now")
        place = self._place
        tail = source.read_at(place.footer_bytes, place.offset)
        if zlib.crc32(tail) != place.crc:
            raise mismatch(self._part, "has a damaged projection")
        metadata = pq.read_metadata(pa.BufferReader(tail))
        return PartFooter(metadata, file_columns(metadata.schema.to_arrow_schema()))


def stored_projection(
    reader: PartReader, projection: Projection, column_types: Sequence[tuple[int, str]]
) -> ProjectionPlace | None:
    """Return where the part has the projection. None if it lacks it, or has it as it was defined
    otherwise."""
    text = reader.metadata(f"{PROJECTION_PREFIX}{projection.name}")
    if text is None:
        return None
    place = ProjectionPlace.of_json(text)
    return place if place.matches(projection, column_types) else None
