"""Read parts: only the requested columns and row groups, and only bytes whose checksum matches.

Columns are found by their id, not their name: a renamed column is still found in old parts, and a
column that was dropped and added again is not.  Values of a column whose type changed are cast.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from olapdb.config import tuning
from olapdb.errors import CorruptedData, InternalError
from olapdb.functions import cast_column, parse_type
from olapdb.functions.base import Environment
from olapdb.functions.kernels.decimal_width import is_short
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds, Part
from olapdb.model.schema import Column, SkipIndex, Table
from olapdb.records import dataclass
from olapdb.storage.checksum import unreadable, verify_inline
from olapdb.storage.column_statistics import bounds_hold, has_bounds, statistics_bounds
from olapdb.storage.part_file import CODED_ROW_BYTES_MAX, PartFile
from olapdb.storage.part_footer import (
    PartFooter,
    column_positions,
    stored_type_name,
    ticks_per_unit,
)
from olapdb.storage.shared_codes import may_have_codes
from olapdb.storage.skip_indexes import METADATA_PREFIX, IndexPlace, parse_index
from olapdb.storage.store import Store
from olapdb.storage.stored_values import as_named, as_stored, long_form
from olapdb.threads import refuse_if_ending
from olapdb.types import Float, plain


class InlineRows(Protocol):
    """The part of a Snapshot that a reader needs."""

    def inline_rows(self, part: Part) -> bytes:
        """Return the Arrow IPC file bytes of an inline part."""
        ...


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a part. `bounds` maps the table's column names to bounds, computed at first
    access; a column without known bounds is absent."""

    index: int
    rows: int
    bounds: Mapping[str, ColumnBounds]


class PartReader:
    """A reader of one part through `table`, whose schema may be newer than the part's.

    Safe for many threads; files are opened for each read, footers are cached by the store.
    """

    def __init__(
        self,
        store: Store,
        snapshot: InlineRows,
        part: Part,
        table: Table,
        environment: Environment | None = None,
        *,
        caches: bool = True,
    ) -> None:
        """Create a reader. `environment` (the time zone) matters only where values are cast to or
        from text. With `caches` false, decoded columns are taken from the cache but not kept there,
        as for a part that is about to be replaced."""
        self._store = store
        self._snapshot = snapshot
        self._part = part
        self._table = table
        self._environment = (environment or Environment()).of_warehouse
        self._columns = {column.name: column for column in table.stored_columns}
        self._file = PartFile(store, part, caches=caches)

    @property
    def part(self) -> Part:
        """The part that is read."""
        return self._part

    @property
    def cache_path(self) -> str:
        """The key in caches of what is read: the path of the file, with the name of a projection behind # where one is
        read."""
        return self._file.cache_path

    @cached_property
    def _past(self) -> PartColumns:
        """The table's former column names and types, computed once."""
        return PartColumns(self._table)

    @property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each row group. Threads may read footers through it at the same time: a cached property has one
        lock for all readers before Python 3.12."""
        part = self._part
        if part.rows == 0:
            return ()
        return (part.rows,) if part.inline else self._file.footer().group_rows

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The row groups in order; none for a placeholder part, one for an inline part."""
        if self._part.inline and self._part.rows:
            return (RowGroup(0, self._part.rows, self._past.bounds(self._part)),)
        return tuple(
            RowGroup(index, rows, _GroupBounds(self, index))
            for index, rows in enumerate(self.group_rows)
        )

    def read(
        self,
        columns: Sequence[str],
        row_groups: Sequence[int] | None = None,
        *,
        use_threads: bool = False,
        coded: Collection[str] = (),
        shared: Collection[str] = (),
    ) -> pa.Table:
        """Return the named columns of the row groups (None: all) in order, with the table's types.

        Text columns named in `coded` come as dictionaries where the part has them so, which is much
        faster: no text is made for each row. Those in `shared` come in a compact form where the column
        cache has them so: texts and wide integers as codes of one dictionary of the file (see `shared_codes`),
        Decimals of at most 18 digits as Decimal64.

        Columns that the part lacks are left out. If no column is left, so is the number of rows;
        take it from `part.rows` or `row_groups`. Raises FileDoesntExist, ChecksumDoesntMatch or
        CorruptedData, which name the part.
        """
        refuse_if_ending()
        requested = [self._column(name) for name in columns]
        if self._part.rows == 0:
            return pa.table({c.name: pa.nulls(0, c.type.arrow) for c in requested})
        rows = (
            self._inline(requested)
            if self._part.inline
            else self._from_file(requested, row_groups, use_threads, (coded, shared))
        )
        if row_groups is not None and self._part.inline and 0 not in row_groups:
            return rows.slice(0, 0)
        return rows

    def is_cached(self, names: Sequence[str]) -> bool:
        """Return whether the cache has all row groups of the stored columns among these names, in any form."""
        if self._part.inline or not self._part.rows:
            return False
        return self._file.has_cached(
            [self._columns[name].id for name in names if name in self._columns]
        )

    def unread_text_bytes(self, name: str, group: int) -> int:
        """Return the bytes of a text column in the part's file, without compression, if this process has not read the row
        group of it and its texts seldom repeat; else 0."""
        size = self._part.uncompressed_bytes.get(name, 0)
        if self._part.inline or size <= CODED_ROW_BYTES_MAX * self._part.rows:
            return 0
        return 0 if self._file.was_read(self._column(name).id, group) else size

    def value_bytes(self, name: str) -> int:
        """Return about how many bytes a value of a column takes in memory, 0 where the part does not tell. The file says
        it of all but texts that repeat: of them it has codes, and the size of its row groups bounds their bytes."""
        part = self._part
        size = part.uncompressed_bytes.get(name, 0) // max(part.rows, 1)
        if part.inline or part.granules < 2 or self.group_rows[0] >= self._table.granule_rows:
            return size
        column = self._columns.get(name)
        if column is None or not self._file.has_dictionary(column.id):
            return size
        return max(size, tuning.ROW_GROUP_BYTES_MAX // self.group_rows[0])

    def has_column(self, name: str) -> bool:
        """Return whether the part holds the column; if not, the caller fills in its default."""
        column = self._column(name)
        if self._part.rows == 0:
            return True
        if self._part.inline:
            return column.id in column_positions(self._inline_table().schema)
        return column.id in self._file.footer().columns

    def skip_index(self, index: SkipIndex, arrow: pa.DataType) -> pa.RecordBatch | None:
        """Return the part's index, a row for each block of `index.granularity` row groups (see
        `storage.skip_indexes`).

        Return None if the part was written before the index had its present definition over values
        of the type `arrow`.
        """
        if self._part.inline or not self._part.rows or self.converts(index.columns):
            return None
        text = self.metadata(f"{METADATA_PREFIX}{index.name}")
        if text is None:
            return None
        place = IndexPlace.of_json(text)
        if not place.matches_definition(index, self._table, arrow):
            return None
        key = (self.cache_path, index.name)
        cached = self._store.cache.indexes.get(key)
        if isinstance(cached, pa.RecordBatch):
            return cached
        with self._file.suspecting(), self._file.open() as source:
            try:
                batch = parse_index(place, source.read_at(place.size_bytes, place.offset))
            except CorruptedData as error:
                raise unreadable(self._part, error) from error
        self._store.cache.indexes.put(key, batch, max(place.size_bytes, batch.nbytes))
        return batch

    def metadata(self, key: str) -> bytes | None:
        """Return an entry of the file's key-value metadata; None for a part without a file, and one
        without that entry."""
        if self._part.inline or not self._part.rows:
            return None
        return (self._file.footer().metadata.metadata or {}).get(key.encode())

    def converts(self, names: Collection[str]) -> bool:
        """Return whether values of any of the columns are cast when they are read."""
        if not self._table.past:
            return False
        columns = (self._columns[name] for name in names if name in self._columns)
        return any(
            {*self._past.types_in(self._part, column)} - {column.type.name} for column in columns
        )

    def bounds_of(self, name: str, group: int) -> ColumnBounds | None:
        """Return the bounds of one column in one row group, numbered from 0. None if they are not
        known."""
        return self.bounds_in_groups(name)[group]

    def bounds_in_groups(self, name: str) -> Sequence[ColumnBounds | None]:
        """Return the bounds of one column in each row group, None where they are not known."""
        if self._part.inline or not self._part.rows:
            return [group.bounds.get(name) for group in self.row_groups]
        footer = self._file.footer()
        column = self._columns.get(name)
        if column is None or not has_bounds(column.type):
            return [None] * footer.metadata.num_row_groups
        key = (column.id, column.type.name, self._table.past)
        known = footer.known_bounds.get(key)
        if known is None:
            known = footer.known_bounds[key] = self._bounds_in_groups(column, footer)
        return known

    def _bounds_in_groups(self, column: Column, footer: PartFooter) -> list[ColumnBounds | None]:
        """Return the bounds of one column in each row group, None where they are not known."""
        unknown: list[ColumnBounds | None] = [None] * footer.metadata.num_row_groups
        stored = footer.columns.get(column.id)
        if stored is None or stored.leaf_count != 1:
            return unknown
        # Parquet's statistics skip NaN; the part's bounds are absent if there was one.
        if isinstance(plain(column.type), Float) and stored.name not in self._part.bounds:
            return unknown
        ticks = ticks_per_unit(stored.type, column.type.arrow)
        if ticks is None or not self._bounds_hold(column, stored.type_name):
            return unknown
        chunks = (
            footer.metadata.row_group(group).column(stored.first_leaf)
            for group in range(len(unknown))
        )
        return [statistics_bounds(chunk.statistics, column.type, ticks) for chunk in chunks]

    def _column(self, name: str) -> Column:
        """Return the stored column of this name. Raise InternalError if the table stores none."""
        column = self._columns.get(name)
        if column is None:
            raise InternalError(f"Column {name!r} is not stored by the table.")
        return column

    # --- inline parts

    def _inline(self, requested: Sequence[Column]) -> pa.Table:
        """Read the requested columns of an inline part. Columns that the part lacks are missing in
        the result."""
        table = self._inline_table()
        positions = column_positions(table.schema)
        return self._with_table_names(
            [
                (
                    c,
                    table.column(positions[c.id]),
                    stored_type_name(table.schema.field(positions[c.id])),
                )
                for c in requested
                if c.id in positions
            ]
        )

    def _inline_table(self) -> pa.Table:
        """Return all rows of an inline part from the cache; else read them from the catalog, verify
        their checksum and cache them."""
        cache = self._store.cache.inline
        cached = cache.get(self._part.id)
        if isinstance(cached, pa.Table):
            return cached
        with self._file.suspecting():
            data = self._snapshot.inline_rows(self._part)
            verify_inline(self._part, data)
            try:
                table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
            except pa.ArrowException as error:
                raise unreadable(self._part, error) from error
        cache.put(self._part.id, table, max(len(data), table.nbytes))
        return table

    # --- files

    def _from_file(
        self,
        requested: Sequence[Column],
        row_groups: Sequence[int] | None,
        use_threads: bool,
        dictionaries: tuple[Collection[str], Collection[str]],
    ) -> pa.Table:
        """Return the requested columns and row groups (None: all) of the part's file, from the
        cache where it has them. Columns that the part lacks are missing in the result.
        `dictionaries` are `coded` and `shared` of `read`, for columns whose type is unchanged."""
        footer = self._file.footer()
        stored = [(c, footer.columns[c.id]) for c in requested if c.id in footer.columns]
        if not stored:
            return pa.table({})
        groups = range(footer.metadata.num_row_groups) if row_groups is None else row_groups
        as_dictionaries, may_share = (
            frozenset(
                s.id for c, s in stored if c.name in names and self._is_unchanged(c, s.type_name)
            )
            for names in dictionaries
        )
        coded = frozenset(s.id for c, s in stored if may_have_codes(c.type))
        columns = self._file.read(
            [s for _, s in stored], groups, (as_dictionaries, may_share & coded), use_threads
        )
        return self._with_table_names(
            [(c, columns[s.id], s.type_name) for c, s in stored],
            frozenset(c.name for c, s in stored if s.id in may_share),
        )

    # --- types

    def _bounds_hold(self, column: Column, type_name: str) -> bool:
        """Return whether the file's bounds are valid after all conversions since the part was
        written. `type_name` is the file's type of the column."""
        if self._is_unchanged(column, type_name):
            return True
        types = [*map(parse_type, self._past.types_in(self._part, column)), column.type]
        pairs = zip([parse_type(type_name), *types], types, strict=False)
        return all(bounds_hold(before, after) for before, after in pairs)

    def _with_table_names(
        self, columns: Sequence[tuple[Column, pa.ChunkedArray, str]], compact: Collection[str] = ()
    ) -> pa.Table:
        """Return (column, values, type name in the file) triples as a table with the columns'
        present names and types; Decimals of the columns `compact` may be short."""
        arrays = [
            values
            if column.name in compact and is_short(values.type)
            else self._typed(column, long_form(values), name)
            for column, values, name in columns
        ]
        return pa.table(arrays, names=[column.name for column, _, _ in columns])

    def _typed(self, column: Column, values: pa.ChunkedArray, type_name: str) -> pa.ChunkedArray:
        """Convert stored values to the column's present type, through each type that it had since
        the part was written. Dictionaries are returned unchanged."""
        if pa.types.is_dictionary(values.type):
            return values
        if self._is_unchanged(column, type_name):
            same = values.type == column.type.arrow
            return values if same else as_stored(values, column.type.arrow)
        stored = parse_type(type_name)
        values = as_named(values, type_name)
        arrays = values.chunks or [pa.nulls(0, stored.arrow)]
        before = stored
        for after in (*map(parse_type, self._past.types_in(self._part, column)), column.type):
            arrays = [
                cast_column(array, before, after, self._environment, strict=True)
                for array in arrays
            ]
            before = after
        return pa.chunked_array(arrays, column.type.arrow)

    def _is_unchanged(self, column: Column, type_name: str) -> bool:
        """Return whether the file's type is the column's present type and never changed in between;
        True for a file that does not name its types."""
        if type_name == "":
            return True
        if type_name != column.type.name:
            return False
        if not self._table.past:
            return True
        return all(past_type == type_name for past_type in self._past.types_in(self._part, column))


class _GroupBounds(Mapping[str, ColumnBounds]):
    """The bounds of a row group, read from the footer's statistics one column at a time."""

    def __init__(self, reader: PartReader, group: int) -> None:
        self._reader = reader
        self._group = group
        self._known: dict[str, ColumnBounds | None] = {}

    def __getitem__(self, name: str) -> ColumnBounds:
        if name not in self._known:
            self._known[name] = self._reader.bounds_of(name, self._group)
        bounds = self._known[name]
        if bounds is None:
            raise KeyError(name)
        return bounds

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._reader._columns if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None
