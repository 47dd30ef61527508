"""Parquet, Arrow, ArrowStream and ORC: columns as Arrow reads and writes them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, orc
from pyarrow import parquet as pq

from olapdb import errors, types
from olapdb.formats.arrow_types import type_of_field, with_nullability
from olapdb.formats.base import Ending, Format, Header, Input, Reader, Rows, Structure, Writer
from olapdb.formats.heads import unknown_field
from olapdb.formats.name_matching import matched_names
from olapdb.functions.edges import exported
from olapdb.functions.kernels.arrow_clocks import (
    as_integers,
    has_durations,
    time_of_day_type,
    times_of_day,
)
from olapdb.types.arrow import exported_type

_BATCH_ROWS = 65_536


class _Sink(io.RawIOBase):
    """A file object that collects what is written to it, until `take`."""

    def __init__(self) -> None:
        """Start empty, at position 0."""
        super().__init__()
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """Return True: the file is for writing."""
        return True

    def write(self, data: Any) -> int:
        """Keep the bytes; return their number."""
        piece = bytes(data)
        self._pieces.append(piece)
        self._position += len(piece)
        return len(piece)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._position

    def take(self) -> bytes:
        """Return the bytes written since the last call, and forget them."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class ColumnarWriter(Writer):
    """A writer of one of Arrow's file formats; `open_writer` opens Arrow's writer on a sink."""

    def __init__(
        self,
        header: Header,
        open_writer: Callable[[_Sink, pa.Schema, Header], Any],
        written_type: Callable[[types.DataType], pa.DataType] | None = None,
    ) -> None:
        """Open Arrow's writer for the header's columns. `written_type` maps a column's type to its Arrow type in the
        file."""
        super().__init__(header)
        for name, data_type in zip(header.names, header.types, strict=True):
            if isinstance(types.plain(data_type), types.AggregateFunction):
                raise errors.UnsupportedMethod(
                    f"Column {name}: a state, of type {data_type}, is not written to this format.",
                    hint="Finalize it: finalizeAggregation(…).",
                )
        written_type = written_type or _file_type
        fields = [
            pa.field(name, written_type(data_type), nullable=types.is_nullable(data_type))
            for name, data_type in zip(header.names, header.types, strict=True)
        ]
        self._schema = pa.schema(fields)
        self._sink = _Sink()
        self._writer = open_writer(self._sink, self._schema, header)

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Write the rows; return the bytes that Arrow's writer put out so far, perhaps none. Raises
        UnsupportedMethod."""
        arrays = [
            _as_written(exported(column, data_type), field.type)
            for column, data_type, field in zip(
                batch.columns, self.header.types, self._schema, strict=True
            )
        ]
        try:
            self._writer.write(pa.Table.from_arrays(arrays, schema=self._schema))
        except pa.ArrowNotImplementedError as error:
            raise errors.UnsupportedMethod(
                f"The format has no such column: {error}.", hint="Write it as toString(…)."
            ) from error
        return self._sink.take()

    def finish(self, ending: Ending) -> bytes:
        """Return the rest of the file."""
        self._writer.close()
        return self._sink.take()


def _file_type(data_type: types.DataType) -> pa.DataType:
    """Return the Arrow type of a column in a file: the type that users get, except that UUID stays UUID, and Time is
    a time of day."""
    if isinstance(types.plain(data_type), types.UUID):
        return pa.uuid()
    return with_nullability(time_of_day_type(exported_type(data_type)), data_type)


def _parquet_type(data_type: types.DataType) -> pa.DataType:
    """Return the Arrow type of a column in Parquet. Raises UnknownType for a Time."""
    if has_durations(exported_type(data_type)):
        raise errors.UnknownType(
            f"Parquet has no column of type {data_type}.", hint="Write it as toString(…)."
        )
    return _file_type(data_type)


def _as_written(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values to the Arrow type `target` of the file."""
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array)
    if array.type == target:
        return array
    if has_durations(array.type):
        return times_of_day(array)
    # ORC has UInt64 as Int64 of the same 64 bits.
    return array.cast(options=pc.CastOptions(target_type=target, allow_int_overflow=True))


_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
}


def _orc_type(data_type: types.DataType) -> pa.DataType:
    """Return the Arrow type of a column in ORC, which has no unsigned numbers. Raises IllegalColumn for a Time."""
    if has_durations(exported_type(data_type)):
        raise errors.IllegalColumn(
            f"ORC has no column of type {data_type}.", hint="Write it as toString(…)."
        )
    return _signed(exported_type(data_type))


def _signed(kind: pa.DataType) -> pa.DataType:
    """Return the type with unsigned numbers replaced by signed ones that hold all values, except that UInt64 becomes
    Int64."""
    if pa.types.is_map(kind):
        return pa.map_(_signed(kind.key_type), _signed(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_signed(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([field.with_type(_signed(field.type)) for field in fields])
    return _SIGNED.get(kind, kind)


def _parquet_writer(sink: _Sink, schema: pa.Schema, header: Header) -> Any:
    """Open a Parquet writer that collects batches into row groups."""
    method = header.settings.text("output_format_parquet_compression_method")
    return _RowGroups(
        pq.ParquetWriter(sink, schema, compression=method),
        schema,
        max(1, header.settings.integer("output_format_parquet_row_group_size")),
    )


class _RowGroups:
    """A Parquet writer that collects rows into row groups of `rows_max` rows."""

    def __init__(self, writer: Any, schema: pa.Schema, rows_max: int) -> None:
        """Wrap Arrow's Parquet writer; `rows_max` is the number of rows of a row group."""
        self._writer = writer
        self._schema = schema
        self._rows_max = rows_max
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def write(self, table: pa.Table) -> None:
        """Add the rows, and write each row group that becomes full."""
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows >= self._rows_max:
            self._flush()

    def _flush(self) -> None:
        """Write the pending rows as a row group."""
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=self._rows_max)
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        """Write the pending rows and the footer."""
        self._flush()
        self._writer.close()


def _ipc_writer(sink: _Sink, schema: pa.Schema, header: Header, stream: bool) -> Any:
    """Open a writer of an Arrow IPC file, or with `stream` of an Arrow IPC stream."""
    method = header.settings.text("output_format_arrow_compression_method")
    compression = {"none": None, "lz4_frame": "lz4"}.get(method, method)
    options = ipc.IpcWriteOptions(compression=compression)
    return (ipc.new_stream if stream else ipc.new_file)(sink, schema, options=options)


def _orc_writer(sink: _Sink, schema: pa.Schema, header: Header) -> Any:
    """Open a writer of ORC."""
    return orc.ORCWriter(sink, compression="zstd")


# --- reading


def _opened(open_file: Callable[[BinaryIO], Any], source: Input, name: str) -> Any:
    """Open the input by `open_file`. Raises IncorrectData if it is not in the format `name`."""
    try:
        return open_file(source.stream)
    except (pa.ArrowInvalid, OSError) as error:
        raise errors.IncorrectData(f"The data are not {name}: {error}.") from error


def _parquet_batches(file: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Parquet file."""
    yield from file.iter_batches(_BATCH_ROWS, columns=names)


def _file_batches(file: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow file."""
    for number in range(file.num_record_batches):
        yield file.get_batch(number).select(names)


def _stream_batches(file: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow stream."""
    for batch in file:
        yield batch.select(names)


def _orc_batches(file: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the stripes of an ORC file."""
    for number in range(file.nstripes):
        stripe = file.read_stripe(number, columns=names or file.schema.names[:1])
        yield stripe.select(names) if isinstance(stripe, pa.RecordBatch) else stripe


def _schema_of(file: Any) -> pa.Schema:
    """Return the Arrow schema of an open file of any of these formats."""
    schema = getattr(file, "schema_arrow", None)
    return file.schema if schema is None else schema


def _reader(
    name: str,
    open_file: Callable[[BinaryIO], Any],
    batches: Callable[[Any, list[str]], Iterator[pa.RecordBatch]],
) -> Reader:
    """Build the reader of one of Arrow's file formats; `batches` yields the batches of an open file."""

    def infer(source: Input) -> Structure:
        """Return the file's columns."""
        schema = _schema_of(_opened(open_file, source, name))
        return tuple((field.name, type_of_field(field)) for field in schema)

    def read(source: Input) -> Iterator[Rows]:
        """Yield the needed columns of the file's batches. Raises IncorrectData."""
        file = _opened(open_file, source, name)
        fields = {field.name: type_of_field(field) for field in _schema_of(file)}
        own = _wanted(source, list(fields), name)
        names, kinds = tuple(own), tuple(fields[n] for n in own.values())
        try:
            for batch in batches(file, list(own.values())):
                arrays = tuple(plain_array(column) for column in batch.columns)
                yield Rows(names, kinds, arrays, batch.num_rows)
        except (pa.ArrowInvalid, OSError) as error:
            raise errors.IncorrectData(f"The {name} data are damaged: {error}.") from error

    return Reader(infer, read, named=True)


def _wanted(source: Input, names: list[str], form: str) -> dict[str, str]:
    """Return the column of the file for each wanted column. An unknown column is skipped if
    input_format_skip_unknown_fields is on; else it raises IncorrectData."""
    if source.structure is None:
        return {n: n for n in names if source.needed is None or n in source.needed}
    wanted = [name for name, _ in source.structure]
    kind = form.removesuffix("Stream").lower()
    if source.settings.boolean(f"input_format_{kind}_case_insensitive_column_matching"):
        meant = matched_names(names, wanted, "ignore_case")
    else:
        meant = tuple(names)
    sources: dict[str, str] = {}
    for name, own in zip(meant, names, strict=True):
        if name in wanted and (source.needed is None or name in source.needed):
            sources.setdefault(name, own)
        elif name not in wanted and not source.settings.boolean("input_format_skip_unknown_fields"):
            raise unknown_field(name, wanted)
    return sources


def plain_array(array: pa.Array) -> pa.Array:
    """Cast an array of a file to the Arrow type that the engine uses for its data type."""
    if isinstance(array.type, pa.BaseExtensionType):
        return plain_array(array.storage)
    if pa.types.is_dictionary(array.type):
        return plain_array(array.dictionary_decode())
    target = type_of_field(pa.field("", array.type)).arrow
    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type) and array.type.tz is None:
        return array.cast(pa.timestamp(array.type.unit, "UTC")).cast(target)
    whole = as_integers(array)
    return whole if whole.type == target else whole.cast(target)


FORMATS = (
    Format(
        "Parquet",
        "Apache Parquet.",
        partial(ColumnarWriter, open_writer=_parquet_writer, written_type=_parquet_type),
        _reader("Parquet", pq.ParquetFile, _parquet_batches),
        endings=("parquet", "pq"),
        appends=False,
    ),
    Format(
        "Arrow",
        "A file of Apache Arrow.",
        partial(ColumnarWriter, open_writer=partial(_ipc_writer, stream=False)),
        _reader("Arrow", ipc.open_file, _file_batches),
        endings=("arrow", "feather"),
        appends=False,
    ),
    Format(
        "ArrowStream",
        "A stream of Apache Arrow.",
        partial(ColumnarWriter, open_writer=partial(_ipc_writer, stream=True)),
        _reader("ArrowStream", ipc.open_stream, _stream_batches),
        endings=("arrows",),
        appends=False,
    ),
    Format(
        "ORC",
        "Apache ORC.",
        partial(ColumnarWriter, open_writer=_orc_writer, written_type=_orc_type),
        _reader("ORC", orc.ORCFile, _orc_batches),
        endings=("orc",),
        appends=False,
    ),
)
