"""Arrow data of a program as the arrays that blocks have, and the ClickHouse type that it is read as.

Programs send many layouts of one value: dictionaries, large offsets, views, runs. Blocks have one.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.compute.batches import single_chunk
from olapdb.config import tuning
from olapdb.formats.arrow_types import PRECISIONS, SCALAR_NAMES
from olapdb.functions import parse_type
from olapdb.functions.kernels.arrow_clocks import clock_of, ticks_of
from olapdb.native.memory import lasting_pool
from olapdb.threads import ThreadPool
from olapdb.types import DataType, make_nullable

_KNOWN_EXTENSIONS = ("arrow.uuid", "arrow.json", "arrow.bool8")
"""Arrow's own extension types whose storage says all: 16 bytes, a text, and an int8 for a bool."""


def without_extensions(rows: pa.Table) -> pa.Table:
    """Return the rows with columns of Arrow's extension types for UUIDs, JSON texts and bools of a byte
    as their storage. Other extension types stay."""
    for place, field in enumerate(rows.schema):
        if getattr(field.type, "extension_name", "") in _KNOWN_EXTENSIONS:
            stored = rows.column(place).cast(field.type.storage_type)
            if field.type.extension_name == "arrow.bool8":
                stored = stored.cast(pa.bool_())
            rows = rows.set_column(place, field.name, stored)
    return rows


def plain_arrays(rows: pa.Table, threads: int) -> list[pa.Array]:
    """Return the columns as blocks have them; long columns are joined in `threads` threads.

    Raises CannotConvertType."""
    copied = sum(column.num_chunks > 1 for column in rows.columns)
    if copied < 2 or threads == 1 or rows.num_rows < tuning.PARALLEL_COLUMNS_ROWS_MIN:
        return [_plain_array(column) for column in rows.columns]
    with ThreadPool(min(copied, threads), "olapdb-block") as pool:
        return list(pool.map(_plain_array, rows.columns))


def _plain_array(column: pa.ChunkedArray) -> pa.Array:
    """Return one array of the column's plain type.

    Raises CannotConvertType."""
    column = _without_runs(column)
    target = _plain_arrow(column.type)
    if target == pa.string() and _is_bytes(column.type):  # a String may have any bytes
        chunks = [chunk.cast(pa.binary()).view(target) for chunk in column.chunks]
        return single_chunk(pa.chunked_array(chunks, target), lasting_pool())
    if target != column.type:
        try:
            column = column.cast(target)
        except (
            pa.ArrowInvalid,
            pa.ArrowNotImplementedError,
        ) as error:  # bytes that are no UTF-8, say
            raise errors.CannotConvertType(f"Arrow type {column.type}: {error}.") from error
    return single_chunk(ticks_of(column), lasting_pool())


def _without_runs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with runs written out, and with a dictionary of views as one of strings:
    Arrow casts neither."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _without_runs(pa.chunked_array(chunks, kind.value_type))
    if pa.types.is_dictionary(kind) and kind.value_type in (pa.string_view(), pa.binary_view()):
        values = pa.string() if kind.value_type == pa.string_view() else pa.binary()
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(values))
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, pa.dictionary(kind.index_type, values))
    return column


def _is_bytes(kind: pa.DataType) -> bool:
    """Return whether values are bytes of any length."""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _plain_arrow(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which blocks hold a column of this type.

    A dictionary and runs become their value type. Texts and binary of any length become string,
    large and fixed-size lists become list, float16 becomes float32, date64 becomes date32. A
    timestamp without a zone gets UTC. Fields of structs and maps follow. Other types stay."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain_arrow(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if _is_bytes(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_arrow(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain_arrow(kind.key_type), _plain_arrow(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_arrow(field.type)) for field in kind.fields])
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pa.timestamp(kind.unit, "UTC")
    return kind


def type_of_arrow(kind: pa.DataType) -> DataType:
    """Return the ClickHouse type as which an Arrow column is read, Nullable where it can be.

    Naive timestamps are taken as UTC.  Raises CannotConvertType for types without a ClickHouse
    equivalent.
    """
    name = _type_name(_plain_arrow(kind))
    if name is None:
        raise errors.CannotConvertType(
            f"Arrow type {kind} has no ClickHouse type here.",
            hint="Cast the column before inserting it, to a number, string, date or timestamp.",
        )
    return make_nullable(parse_type(name))


def _type_name(kind: pa.DataType) -> str | None:
    """Return the ClickHouse name of an Arrow type; None if there is no equivalent."""
    if kind == pa.string():
        return "String"
    if kind in SCALAR_NAMES:
        return SCALAR_NAMES[kind]
    if clock := clock_of(kind):
        return clock.name
    if pa.types.is_timestamp(kind):
        return f"DateTime64({PRECISIONS[kind.unit]}, '{kind.tz or 'UTC'}')"
    if pa.types.is_decimal(kind):
        return f"Decimal({kind.precision}, {max(kind.scale, 0)})"
    if pa.types.is_fixed_size_binary(kind):
        return f"FixedString({kind.byte_width})"
    if pa.types.is_map(kind):
        key, value = _type_name(kind.key_type), _type_name(kind.item_type)
        return None if key is None or value is None else f"Map({key}, {value})"
    if pa.types.is_list(kind):
        inner = _type_name(kind.value_type)
        return None if inner is None else f"Array({inner})"
    if pa.types.is_struct(kind):
        names = [_type_name(kind.field(i).type) for i in range(kind.num_fields)]
        fields = [kind.field(i).name for i in range(kind.num_fields)]
        if any(n is None for n in names):
            return None
        inside = ", ".join(f"`{f}` {n}" for f, n in zip(fields, names, strict=True))
        return f"Tuple({inside})"
    return None
