"""Write a part of sorted rows: a Parquet file, bytes for the catalog, or only a placeholder's
facts.

The file is plain Parquet that any reader opens: sorted, row groups of about 65,536 rows (or the
table's `index_granularity`; fewer where values are long, see `row_group_size`), statistics, page index and page checksums on, and the part's facts as
JSON in the footer under `olapdb.part`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.config import tuning
from olapdb.errors import OperationalError
from olapdb.functions.kernels.decimal_width import decimal_class, is_short, with_precision
from olapdb.model.encoding import FOOTER_KEY, encode_footer
from olapdb.model.part import ColumnBounds, Part, new_part_id
from olapdb.model.schema import Column, Table
from olapdb.records import dataclass
from olapdb.storage.checksum import checksum_of_bytes, checksum_of_file
from olapdb.storage.codec import column_codec
from olapdb.storage.column_cache import ChunkKey
from olapdb.storage.column_chunks import cut_array, split_column, whole_array
from olapdb.storage.column_statistics import bounds_of, encoded_bounds, has_bounds
from olapdb.storage.distinct_counts import METADATA_KEY as DISTINCT_KEY
from olapdb.storage.distinct_counts import encode_sketches, is_sketched, sketch, wants_sketches
from olapdb.storage.encodings import DIFFERENCES, columns_of_differences
from olapdb.storage.parquet.row_group_writer import OneThreadWriter, RowGroupsWriter, parquet_writer
from olapdb.storage.part_layout import PartLayout, check_rows, layout_of, own_layout
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.projections import PROJECTION_PREFIX, Appended, write_projection
from olapdb.storage.row_group_size import row_group_rows
from olapdb.storage.skip_indexes import METADATA_PREFIX, build_index, stored_index
from olapdb.storage.store import Store, storage_error
from olapdb.storage.stored_values import compact_form
from olapdb.threads import ThreadPool, cores

Answer = TypeVar("Answer")

ROW_GROUP_ROWS = 65_536
WRITTEN_SHARE_MAX = 4
"""A file that would fill more than this part of the column cache does not enter it when written."""
DATA_FOLDER = "data"
_IPC_OPTIONS = pa.ipc.IpcWriteOptions()
"""Given explicitly: pyarrow looks into os.environ for each writer without."""
_PACKED_IPC_OPTIONS = pa.ipc.IpcWriteOptions(
    compression=pa.Codec("zstd", compression_level=1), use_threads=False
)


@dataclass(frozen=True, slots=True)
class StagedPart:
    """A part that is written but not committed. `inline_rows` are the bytes for AddPart of an
    inline part."""

    part: Part
    inline_rows: bytes | None = None


def write_part(
    store: Store, table: Table, rows: pa.Table, plan: PartPlan, *, lease_id: str, threads: int = 0
) -> StagedPart:
    """Stage one part; it is invisible until a commit adds it.

    `rows` are sorted by the sorting key, of one partition, their columns named, typed and ordered
    as `table.stored_columns`.  0 rows make a placeholder part, at most `plan.inline_bytes_max`
    bytes (in memory) an inline one, more a file, staged under `lease_id` and encoded by `threads`
    (0: all cores).  Raises InternalError for rows that do not fit the table, and the Store's
    errors.
    """
    layout = layout_of(store, table)
    check_rows(layout, rows)
    if rows.num_rows > 0 and rows.nbytes <= plan.inline_bytes_max:
        return _inline_part(layout, rows, plan)
    part_id = new_part_id()
    make = _maker(table, rows, plan, part_id)
    if rows.num_rows == 0:
        return StagedPart(make(bytes=0))
    group_rows = row_group_rows(table, rows)
    part = make(
        bytes=0,
        path=part_path(table.id, lease_id, part_id),
        granules=-(-rows.num_rows // group_rows),
        codec=plan.codec,
    )
    written = _file_part(store, part, layout, rows, plan, group_rows, threads or cores())
    if plan.keeps_rows:
        _keep_columns(store, written.path, table, rows, group_rows, owned=plan.owns_rows)
    return StagedPart(written)


def _maker(table: Table, rows: pa.Table, plan: PartPlan, part_id: str) -> Callable[..., Part]:
    """Return a constructor of the part's record with all facts filled in but those that depend on where it is written:
    place, sizes, checksum, bounds."""
    return partial(
        Part,
        id=part_id,
        table_id=table.id,
        partition_id=plan.partition_id,
        partition_value=plan.partition_value,
        rows=rows.num_rows,
        blocks=plan.blocks,
        level=plan.level,
        schema_version=table.version,
        contributions=tuple(plan.contributions),
        created_ms=int(time.time() * 1000),
    )


def part_path(table_id: str, lease_id: str, part_id: str) -> str:
    """Return the path of a part's file. It contains the lease's id, so that vacuum knows which
    process staged it."""
    return f"{DATA_FOLDER}/{table_id}/{lease_id}-{part_id}.parquet"


def lease_of_path(path: str) -> str:
    """Return the lease under which the file was staged; "" for a name that is not of a part."""
    lease, dash, _ = path.rpartition("/")[2].partition("-")
    return lease if dash else ""


def _widened(layout: PartLayout, rows: pa.Table) -> pa.Table:
    """Return the rows with the types of a file: decimals with the most digits of their width, 9,
    18, 38 or 76.

    A sum may exceed its column's precision, and Parquet would truncate it to the bytes that the
    precision needs. The field's metadata names the column's own type.
    """
    schema, columns = layout.schema, []
    for position, values in enumerate(rows.columns):
        field = schema.field(position)
        if pa.types.is_decimal(field.type):
            wide = decimal_class(field.type)
            schema = schema.set(position, field.with_type(wide))
            chunks = [with_precision(chunk, wide) for chunk in values.chunks]
            values = pa.chunked_array(chunks, wide)
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=schema)


def _inline_part(layout: PartLayout, rows: pa.Table, plan: PartPlan) -> StagedPart:
    """Encode the rows as an Arrow IPC file for the catalog, compressed if they are not few. Return the part with its
    size, checksum and bounds."""
    table = layout.table
    sink = pa.BufferOutputStream()
    shaped = pa.Table.from_arrays(rows.columns, schema=layout.schema)
    sizes = {n: _bytes(values) for n, values in zip(rows.column_names, rows.columns, strict=True)}
    is_packed = sum(sizes.values()) >= tuning.PACKED_INLINE_BYTES_MIN
    options = _PACKED_IPC_OPTIONS if is_packed else _IPC_OPTIONS
    with pa.ipc.new_file(sink, layout.schema, options=options) as writer:
        writer.write_table(shaped)
    data = sink.getvalue().to_pybytes()
    part = _maker(table, rows, plan, new_part_id())(
        bytes=len(data),
        inline=True,
        checksum=checksum_of_bytes(data),
        bounds=bounds_of(rows, layout.bounded_keys),
        uncompressed_bytes=sizes,
        compressed_bytes=sizes,
        granules=1,
    )
    return StagedPart(part, data)


def _bytes(values: pa.ChunkedArray) -> int:
    """Return `values.nbytes`, computed directly for integers: the property is slow for many small
    parts."""
    if pa.types.is_integer(values.type) and not values.null_count:
        return len(values) * int(values.type.byte_width)
    return int(values.nbytes)


def _file_part(
    store: Store,
    part: Part,
    layout: PartLayout,
    rows: pa.Table,
    plan: PartPlan,
    group_rows: int,
    threads: int,
) -> Part:
    """Write the file of a part, in row groups of `group_rows` rows; return the part with its checksum, bounds and
    sizes."""
    table, index_values = layout.table, plan.derived.indexes
    closed: list[tuple[pq.FileMetaData, str | None]] = []
    shaped = _widened(layout, rows)
    bounds: dict[str, ColumnBounds] = {}

    def write_to(sink: pa.NativeFile) -> None:
        """Write rows, skip indexes and footer as a Parquet file; leave its metadata and checksum in
        `closed`."""
        options = _writer_options(table, shaped, plan.codec)
        with (
            parquet_writer(
                sink,
                shaped.schema,
                options,
                rows=rows.num_rows,
                row_group_size=group_rows,
                threads=threads,
                sketched=_sketched_columns(table, rows.num_rows),
            ) as writer,
            _part_facts(table, rows, writer) as part_facts,
        ):
            writer.write_table(shaped, group_rows)
            for index in table.indexes:
                if index.name in index_values:
                    values = index_values[index.name]
                    data = build_index(index, values, group_rows)
                    place = stored_index(index, table, values.type, writer.write(data), data)
                    writer.add_key_value_metadata({METADATA_PREFIX + index.name: place.to_json()})
            for name, projected in plan.derived.projections.items():
                projection_place = write_projection(
                    Appended(writer, sink),
                    projected,
                    _widened(own_layout(projected.shape), projected.rows),
                    _writer_options(projected.shape, projected.rows, plan.codec),
                    threads,
                )
                writer.add_key_value_metadata(
                    {PROJECTION_PREFIX + name: projection_place.to_json()}
                )
            part_bounds, sketches = part_facts()
            bounds.update(part_bounds)
            if sketches:
                writer.add_key_value_metadata({DISTINCT_KEY: encode_sketches(sketches)})
            footer = encode_footer(
                replace(part, bounds=bounds), table, tuple(plan.replaces), plan.swap, plan.after
            )
            writer.add_key_value_metadata({FOOTER_KEY: footer})
            closed.append((writer.close(), writer.checksum()))

    try:
        size = store.write(part.path, write_to)
        ((metadata, checksum),) = closed
        if checksum is None:
            with store.open_input(part.path) as source:
                checksum = checksum_of_file(source)
    except BaseException as error:
        # No other process knows the file's name; if this fails too, vacuum finds it by its lease.
        with suppress(OperationalError):
            store.delete(part.path)
        if isinstance(error, OSError):  # it was written, but cannot be read back
            raise storage_error(error, part.path) from error
        raise
    compressed, uncompressed = column_bytes(metadata, table)
    return replace(
        part,
        bytes=size,
        checksum=checksum,
        bounds=bounds,
        compressed_bytes=compressed,
        uncompressed_bytes=uncompressed,
    )


def _keep_columns(
    store: Store, path: str, table: Table, rows: pa.Table, group_rows: int, *, owned: bool
) -> None:
    """Put the rows of a file that was just written, in row groups of `group_rows` rows, into the column cache, as a
    reader would find them. A file whose commit fails is never read, and leaves the cache with the oldest entries.

    Rows that are not `owned` are copied: the caller may change its arrays. So are slices of a larger
    block, whose memory they would hold."""
    cache = store.cache.columns
    if rows.nbytes > cache.shared.bytes_max // WRITTEN_SHARE_MAX:
        return
    starts = range(0, rows.num_rows, group_rows)
    sizes = [min(group_rows, rows.num_rows - start) for start in starts]
    for column in table.stored_columns:
        keys = [ChunkKey(column.id, group, False) for group in range(len(sizes))]
        values = compact_form(rows.column(column.name))
        whole = whole_array(values) if owned or is_short(values.type) else None
        if whole is not None:
            cache.keep_whole(path, keys, cut_array(whole, sizes))
        else:
            cache.keep(path, keys, split_column(values, sizes, copies=True))


PartFacts = tuple[dict[str, ColumnBounds], dict[int, np.ndarray]]
"""Bounds by the columns' names, and the registers of sketches by their ids; for few rows no sketches."""


@contextmanager
def _part_facts(
    table: Table, rows: pa.Table, writer: OneThreadWriter | RowGroupsWriter
) -> Iterator[Callable[[], PartFacts]]:
    """Yield a function that returns the facts about a part once its rows are written. Those about columns that kernels
    encode come with the encoding; the others are found during the `with` block."""
    columns = table.stored_columns
    known = writer.known_columns
    others = [column for column in columns if column.name not in known]
    sketched = _sketched_columns(table, rows.num_rows)
    with _concurrently(
        rows.num_rows if others else 0, _column_facts, others, rows, sketched
    ) as computed:

        def whole() -> PartFacts:
            """Return the facts about all columns, in the order of the table."""
            encoded = writer.column_facts()
            missing = [c for c in columns if c.name in known and c.name not in encoded]
            computed_bounds, sketches = computed()
            missing_bounds, missing_sketches = _column_facts(missing, rows, sketched)
            bounds = computed_bounds | missing_bounds
            sketches |= missing_sketches
            for column in columns:
                facts = encoded.get(column.name)
                if facts is None:
                    continue
                column_range = (
                    encoded_bounds(facts, column.type) if has_bounds(column.type) else None
                )
                if column_range is not None:
                    bounds[column.name] = column_range
                if facts.registers is not None:
                    sketches[column.id] = facts.registers
            in_order = {c.name: bounds[c.name] for c in columns if c.name in bounds}
            return in_order, {c.id: sketches[c.id] for c in columns if c.id in sketches}

        yield whole


def _sketched_columns(table: Table, rows: int) -> frozenset[str]:
    """Return the columns whose distinct values a part of so many rows has a sketch of."""
    if not wants_sketches(rows):
        return frozenset()
    return frozenset(column.name for column in table.stored_columns if is_sketched(column.type))


def _column_facts(columns: Sequence[Column], rows: pa.Table, sketched: frozenset[str]) -> PartFacts:
    """Return the bounds of these columns, and sketches of the `sketched` ones among them."""
    bounds = bounds_of(rows, [column for column in columns if has_bounds(column.type)])
    sketches = {
        column.id: sketch(rows.column(column.name)) for column in columns if column.name in sketched
    }
    return bounds, sketches


@contextmanager
def _concurrently(
    rows: int, work: Callable[..., Answer], *arguments: object
) -> Iterator[Callable[[], Answer]]:
    """Yield a function that returns the result of `work(*arguments)`. For many rows the work runs
    on another thread during the `with` block; for few, when the function is called."""
    if rows <= ROW_GROUP_ROWS:
        yield partial(work, *arguments)
        return
    with ThreadPool(1, "olapdb-bounds") as pool:
        yield pool.submit(work, *arguments).result


def _writer_options(table: Table, rows: pa.Table, default_codec: str) -> dict[str, object]:
    """Return keyword arguments for `pq.ParquetWriter`; compression and encoding are set for each
    leaf column. `default_codec` is that of columns without one, "" for LZ4."""
    leaves = leaf_paths(table)
    codecs = [
        (column_codec(column, default_codec), leaves[column.name])
        for column in table.stored_columns
    ]
    dictionaries = [path for codec, paths in codecs if codec.dictionary for path in paths]
    levels = {path: codec.level for codec, paths in codecs for path in paths if codec.level}
    options: dict[str, object] = {
        "compression": {path: codec.compression for codec, paths in codecs for path in paths},
        "use_dictionary": dictionaries,
        "write_statistics": True,
        "write_page_index": True,
        "write_page_checksum": True,
        "store_decimal_as_integer": True,  # of up to 18 digits: they are read twice as fast
    }
    if levels:
        options["compression_level"] = levels
    encodings = {
        path: codec.encoding for codec, paths in codecs if codec.encoding for path in paths
    }
    of_differences = (
        name for name in columns_of_differences(table, rows) if name not in dictionaries
    )
    encodings.update(dict.fromkeys(of_differences, DIFFERENCES))
    if encodings:
        options["column_encoding"] = encodings
    sorting = _sorting_columns(table)
    if sorting:
        options["sorting_columns"] = sorting
    return options


def leaf_paths(table: Table) -> Mapping[str, list[str]]:
    """Return Parquet's leaf columns of each column: `{"s": ["s.sum", "s.count"], "x": ["x"]}`."""
    return {
        column.name: _leaf_paths(column.name, column.type.arrow) for column in table.stored_columns
    }


def _leaf_paths(prefix: str, arrow: pa.DataType) -> list[str]:
    """Return Parquet's dotted paths of all leaf columns of a column, in their order in the file."""
    if pa.types.is_struct(arrow):
        return [p for field in arrow for p in _leaf_paths(f"{prefix}.{field.name}", field.type)]
    if pa.types.is_map(arrow):
        return [
            *_leaf_paths(f"{prefix}.key_value.key", arrow.key_type),
            *_leaf_paths(f"{prefix}.key_value.value", arrow.item_type),
        ]
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return _leaf_paths(f"{prefix}.list.element", arrow.value_type)
    return [prefix]


def _sorting_columns(table: Table) -> list[pq.SortingColumn]:
    """Return the longest prefix of the sorting key that consists of plain columns: Parquet can
    express no more."""
    leaf_index = {}
    at = 0
    for name, paths in leaf_paths(table).items():
        leaf_index[name] = at
        at += len(paths)
    sorting = []
    for item in table.sorting_key:
        name = item.expression.strip("`")
        if name not in leaf_index:
            break
        sorting.append(pq.SortingColumn(leaf_index[name], descending=item.descending))
    return sorting


def column_bytes(metadata: pq.FileMetaData, table: Table) -> tuple[dict[str, int], dict[str, int]]:
    """Return (compressed, uncompressed) bytes by column of the table, summed over row groups and
    leaves. Values of one width count whole: their encoding may take much less, before any compression."""
    owners = [name for name, paths in leaf_paths(table).items() for _ in paths]
    compressed = dict.fromkeys(owners, 0)
    uncompressed = dict.fromkeys(owners, 0)
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for leaf, owner in enumerate(owners):
            chunk = row_group.column(leaf)
            compressed[owner] += chunk.total_compressed_size
            uncompressed[owner] += chunk.total_uncompressed_size
    for column in table.stored_columns:
        if column.name in uncompressed:
            whole = metadata.num_rows * _value_bytes(column.type.arrow)
            uncompressed[column.name] = max(uncompressed[column.name], whole)
    return compressed, uncompressed


def _value_bytes(arrow: pa.DataType) -> int:
    """Return the bytes of a value of a type whose values have one width, 0 for other types."""
    flat = (
        pa.types.is_primitive(arrow)
        or pa.types.is_fixed_size_binary(arrow)
        or pa.types.is_decimal(arrow)
    )
    return -(-int(arrow.bit_width) // 8) if flat else 0
