"""Converts incoming data to blocks, the rows that one firing of a trigger sees.

A block is a `pa.Table` of the table's stored columns, in their order, of exactly their Arrow types.
A value that its column cannot hold unchanged is an error that names its column, row and value, and
is raised before anything is written (`olapdb.functions.casts.lossless`).  Where a column of the
data has the table's type, or a narrower one, no value is compared.

NULL in a column that is not Nullable becomes the column's default with `null_as_default`
(ClickHouse's `input_format_null_as_default` and `insert_null_as_default`, for SQL). Arrow data that
a program inserts raises CannotInsertNull instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.config import Settings
from olapdb.engine.column_defaults import DefaultColumns
from olapdb.formats.conversion import store_with_nulls
from olapdb.functions import cast_column, store_column
from olapdb.functions.base import Environment
from olapdb.ingest.constraints import check_constraints
from olapdb.ingest.nested_columns import check_nested_sizes
from olapdb.ingest.plain_arrays import plain_arrays, type_of_arrow, without_extensions
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.cache import Cache
from olapdb.types import UUID, DataType, IPv6, is_nullable, make_nullable, plain

Data: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]"


ALLOW_LOSSY = "insert_allow_lossy_conversion"
"""The setting of an INSERT that converts values as CAST does."""


def insertable_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns that an INSERT without a column list takes, in order."""
    return tuple(c for c in table.columns if c.default_kind in ("", "DEFAULT"))


@dataclass(frozen=True)
class BlockMaker:
    """A converter of columns called `names`, of `types`, into blocks of `table`. Thread-safe.

    With `null_as_default` a NULL becomes the default of a column that is not Nullable.  With
    `lossy` values are converted as CAST does; otherwise a value that would change is an error.
    """

    table: Table
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    defaults: DefaultColumns
    null_as_default: bool = False
    lossy: bool = False
    positions: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", _positions(self.table, self.names))

    def make(
        self, arrays: Sequence[pa.Array], rows: int, environment: Environment, first_row: int = 0
    ) -> pa.Table:
        """Return the block of the columns `arrays` of `rows` rows each.

        `first_row` is the row of the INSERT that the block begins with, for error messages.  Raises
        DataError, which names column and row."""
        given = {
            name: self._convert(name, arrays[at], self.types[at], environment, first_row)
            for name, at in self.positions.items()
        }
        if self.null_as_default:
            given = self._without_nulls(given, rows, environment)
        full = self.defaults.complete(given, rows, environment, storing=True)
        check_nested_sizes(self.table, full, first_row)
        if self.defaults.constraints:
            check_constraints(
                self.defaults.constraints, self.table, full, rows, environment, first_row
            )
        stored = self.table.stored_columns
        return pa.Table.from_arrays([full[c.name] for c in stored], names=[c.name for c in stored])

    def _convert(
        self, name: str, array: pa.Array, source: DataType, environment: Environment, first_row: int
    ) -> pa.Array:
        """Convert one column to its table column's type; raise a DataError that names column and
        row."""
        column = self.table.column(name)
        assert column is not None
        target = column.type
        if self.null_as_default and array.null_count and not is_nullable(target):
            target = make_nullable(target)
        if array.type == target.arrow and plain(source) == plain(target):
            if array.null_count and not is_nullable(target) and not self.null_as_default:
                row = int(pc.index(pc.is_null(array), True).as_py())
                raise _with_place(
                    errors.CannotInsertNull(f"NULL is no value of {column.type}.").at_row(row),
                    self.table,
                    name,
                    first_row,
                )
            return array
        try:
            if self.lossy:
                return cast_column(array, source, target, environment, strict=True)
            if self.null_as_default:
                return store_with_nulls(array, source, column.type, environment)
            return store_column(array, source, target, environment)
        except errors.DataError as error:
            raise _with_place(error, self.table, name, first_row) from None

    def _without_nulls(
        self, given: dict[str, pa.Array], rows: int, environment: Environment
    ) -> dict[str, pa.Array]:
        """Replace NULLs in columns that are not Nullable by the columns' defaults."""
        holed = {
            name: array
            for name, array in given.items()
            if array.null_count and not is_nullable(self._type(name))
        }
        if not holed:
            return given
        rest = {name: array for name, array in given.items() if name not in holed}
        filled = self.defaults.complete(
            rest, rows, environment, names=holed.keys(), storing=True, holed=holed
        )
        return {name: filled[name] for name in given}

    def _type(self, name: str) -> DataType:
        """Return the type of the table's column, which must exist."""
        column = self.table.column(name)
        assert column is not None
        return column.type


@dataclass(frozen=True, slots=True)
class InsertedData:
    """The data of an INSERT: its columns are `columns` by position (None: by name), of the
    ClickHouse types `types` (None: those of `type_of_arrow`). With `null_as_default` a NULL becomes
    the default of a column that is not Nullable."""

    data: Data
    columns: Sequence[str] | None = None
    types: Sequence[DataType] | None = None
    null_as_default: bool = False


def make_blocks(
    table: Table,
    inserted: InsertedData,
    *,
    snapshot: Snapshot,
    environment: Environment,
    settings: Mapping[str, object] | None = None,
    cache: Cache | None = None,
) -> Iterator[pa.Table]:
    """Yield blocks of the table from the data of an INSERT.

    Small batches are joined until they have `min_insert_block_size_rows` or `_bytes`, and blocks
    are cut at `max_insert_block_size`.  Empty data gives no block.  Raises NoSuchColumn,
    NumberOfColumnsDoesntMatch and DataError.
    """
    cache = cache or Cache()
    defaults = DefaultColumns.of(table, snapshot, environment, cache)
    known = Settings.of(settings)
    max_rows = known.integer("max_insert_block_size")
    min_rows = min(known.integer("min_insert_block_size_rows"), max_rows)
    min_bytes = known.integer("min_insert_block_size_bytes")
    lossy = allows_lossy(known)
    maker: BlockMaker | None = None
    first_row = 0
    for rows in _cut_blocks(_tables(inserted.data), max_rows, min_rows, min_bytes):
        if maker is None:
            names = inserted.columns
            key = (
                "maker",
                table.id,
                table.version,
                rows.schema,
                None if names is None else tuple(names),
                tuple(inserted.types or ()),
                inserted.null_as_default,
                lossy,
                environment.zone,
            )
            maker = cache.get_or_make(
                key, partial(_maker, table, rows.schema, inserted, defaults, lossy)
            )
        arrays = plain_arrays(rows, known.threads)
        yield maker.make(arrays, rows.num_rows, environment, first_row)
        first_row += rows.num_rows


def allows_lossy(settings: Mapping[str, object] | None) -> bool:
    """Return whether an INSERT with these settings converts values as CAST does."""
    return Settings.of(settings).boolean(ALLOW_LOSSY)


def _maker(
    table: Table, schema: pa.Schema, inserted: InsertedData, defaults: DefaultColumns, lossy: bool
) -> BlockMaker:
    """Return a block maker for the INSERT's data, which has `schema`.

    Raises NumberOfColumnsDoesntMatch if the counts of names and columns differ.
    """
    names = tuple(schema.names if inserted.columns is None else inserted.columns)
    types = inserted.types
    if len(names) != len(schema):
        raise errors.NumberOfColumnsDoesntMatch(
            f"The data have {len(schema)} columns, the INSERT into {table.database}.{table.name}"
            f" names {len(names)}: {', '.join(names)}.",
            hint="Give one value for each column, or list the columns after the table's name.",
        )
    if types is None:
        types = [_type_for(table, n, f.type) for n, f in zip(names, schema, strict=True)]
    given = tuple(types)
    return BlockMaker(table, names, given, defaults, inserted.null_as_default, lossy)


def _type_for(table: Table, name: str, kind: pa.DataType) -> DataType:
    """Return the type as which Arrow data for a column are read: 16 bytes for a UUID or an IPv6 are one,
    as in results."""
    column = table.column(name)
    target = None if column is None else plain(column.type)
    if isinstance(target, UUID | IPv6) and kind == target.arrow:
        return make_nullable(target)
    return type_of_arrow(kind)


def _positions(table: Table, names: Sequence[str]) -> dict[str, int]:
    """Return the index in `names` of each named column.

    Raises NoSuchColumn if any is missing or an ALIAS, IllegalColumn for a MATERIALIZED one, and
    DuplicateColumn if one is given twice.
    """
    positions: dict[str, int] = {}
    for at, name in enumerate(names):
        column = table.column(name)
        where = f"{table.database}.{table.name}"
        if column is None:
            have = ", ".join(c.name for c in table.columns)
            raise errors.NoSuchColumn(
                f"There is no column {name} in {where}.", hint=f"It has {have}."
            )
        if column.default_kind in ("MATERIALIZED", "ALIAS"):
            kind = errors.NoSuchColumn if column.default_kind == "ALIAS" else errors.IllegalColumn
            raise kind(
                f"Column {name} of {where} is {column.default_kind}: it cannot be inserted.",
                hint="Leave it out; it is computed.",
            )
        if name in positions:
            raise errors.DuplicateColumn(f"Column {name} of {where} is given twice.")
        positions[name] = at
    return positions


def _with_place(
    error: errors.DataError, table: Table, name: str, first_row: int
) -> errors.DataError:
    """Return the error with its place: table, column, and the row of the whole INSERT, from 1."""
    row = None if error.row is None else first_row + error.row
    place = f"Column {name} of {table.database}.{table.name}"
    place += "" if row is None else f", row {row + 1}"
    hint = error.hint
    if isinstance(error, errors.CannotInsertNull) and not hint:
        hint = "Make the column Nullable, or give each row a value; NaN, NaT and None of pandas are NULL."
    named = type(error)(f"{place}: {error.message}", hint=hint)
    named.column = name
    return named if row is None else named.at_row(row)


# --- cutting -------------------------------------------------------------------------------------


def _tables(data: Data) -> Iterator[pa.Table]:
    """Yield the data as Arrow tables: one per batch, or the one table."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        data = (data,)
    for rows in data:
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        yield without_extensions(table)


def _cut_blocks(
    tables: Iterator[pa.Table], max_rows: int, min_rows: int, min_bytes: int
) -> Iterator[pa.Table]:
    """Join and split tables into blocks of at most `max_rows` rows.

    A block ends once it has `min_rows` rows or `min_bytes` bytes (0: no limit); the last may be
    smaller. Raises ArgumentOutOfBound if `max_rows` is less than 1.
    """
    if max_rows < 1:
        raise errors.ArgumentOutOfBound("max_insert_block_size is at least 1.")
    pieces: list[pa.Table] = []
    rows, piece_bytes = 0, 0
    for table in tables:
        start = 0
        while start < table.num_rows:
            piece = table.slice(start, max_rows - rows)
            pieces.append(piece)
            start += piece.num_rows
            rows += piece.num_rows
            piece_bytes += piece.nbytes
            if rows >= min_rows or rows >= max_rows or (min_bytes and piece_bytes >= min_bytes):
                yield _concatenated(pieces)
                pieces, rows, piece_bytes = [], 0, 0
    if rows:
        yield _concatenated(pieces)


def _concatenated(tables: list[pa.Table]) -> pa.Table:
    """Return the tables, of which there is at least one, as one table."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
