"""Reads Avro: the values of a block of rows at once, by the positions at which they begin."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.avro_schema import Schema, parse_schema
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.byte_positions import ByteBlock, repeated, row_starts
from olapdb.formats.row_binary_read import scalars_of
from olapdb.functions.casts.parsing import parse_uuids
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_VARINT_BYTES = 10
_MOST_BYTES = 1 << 31
_SNAPPY_RATIO_MAX = 64
"""The most bytes that snappy makes of one: it copies at most 64 by an element of at least two."""
_MOST_EMPTY_ROWS = 1 << 27
"""The most rows of a block that has no bytes, such as rows of null: any number can stand there."""


def _zigzag(block: ByteBlock, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decode the zigzag longs at the positions; return the numbers and the positions after them."""
    raw, behind = block.varints(at, _VARINT_BYTES)
    bits = raw.view(np.uint64)
    return (bits >> np.uint64(1)).view(np.int64) ^ -(raw & 1), behind


def _ends(block: ByteBlock, at: np.ndarray, schema: Schema) -> np.ndarray:
    """Return for each position the position after the value of the schema that begins there."""
    match schema.kind:
        case "null":
            return at
        case "boolean":
            return block.moved(at, 1)
        case "int" | "long" | "enum":
            return _zigzag(block, at)[1]
        case "float":
            return block.moved(at, 4)
        case "double":
            return block.moved(at, 8)
        case "fixed":
            return block.moved(at, schema.size)
        case "bytes" | "string":
            sizes, behind = _zigzag(block, at)
            ends = block.moved(behind, np.clip(sizes, 0, block.beyond))
            return np.where(sizes < 0, block.beyond, ends)
        case "union":
            branch, behind = _zigzag(block, at)
            ends = np.full(len(at), block.beyond)
            for place, part in enumerate(schema.parts):
                ends = np.where(branch == place, _ends(block, behind, part), ends)
            return ends
        case "record":
            for part in schema.parts:
                at = _ends(block, at, part)
            return at
        case _:
            return _Chunks(block, schema).ends(at)


class _Chunks:
    """A reader of the chunks of arrays and maps: a chunk is a number of elements and the elements; 0 ends the list."""

    def __init__(self, block: ByteBlock, schema: Schema) -> None:
        """Take the block and the schema of the elements."""
        self._block = block
        element = Schema("string", types.STRING)
        parts = (element, *schema.parts) if schema.kind == "map" else schema.parts
        self.element = Schema("record", types.Tuple(tuple(p.type for p in parts)), parts)
        self._element_ends = partial(_ends, schema=self.element)
        everywhere = np.arange(block.beyond + 1)
        self._counts, self._starts = self._heads(everywhere)
        behind = repeated(block, self._starts, self._counts, self._element_ends)
        self._next = np.where(self._counts == 0, everywhere, behind)

    def _heads(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for the chunks at the positions their numbers of elements, and where the elements begin."""
        counts, behind = _zigzag(self._block, at)
        _, past = _zigzag(self._block, behind)  # a number below 0 is followed by that of the bytes
        starts = np.where(counts < 0, past, behind)
        return np.clip(np.abs(counts), 0, self._block.beyond), starts

    def ends(self, at: np.ndarray) -> np.ndarray:
        """Return the position after each list."""
        step = self._next
        while True:
            further = step[at]
            if (further == at).all():
                return np.asarray(self._starts[at])
            at, step = further, step[step]

    def elements(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of elements of each list, and the position of every element."""
        rows = len(at)
        owners = np.arange(rows)
        steps: list[tuple[np.ndarray, np.ndarray]] = []
        while len(at):
            counts = self._counts[at]
            parents = np.repeat(np.arange(len(at)), counts)
            places = np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
            starts = repeated(self._block, self._starts[at][parents], places, self._element_ends)
            steps.append((owners[parents], starts))
            further = self._next[at]
            goes_on = further != at
            at, owners = further[goes_on], owners[goes_on]
        if not steps:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        lists = np.concatenate([lengths for lengths, _ in steps])
        starts = np.concatenate([firsts for _, firsts in steps])
        return np.bincount(lists, minlength=rows), starts[np.argsort(lists, kind="stable")]


def _values(block: ByteBlock, at: np.ndarray, schema: Schema) -> pa.Array:
    """Decode the values at the positions, as the schema's data type."""
    arrow = schema.type.arrow
    match schema.kind:
        case "null":
            return pa.nulls(len(at), arrow)
        case "boolean":
            return pa.array(block.data[at] != 0)
        case "int" | "long":
            return _numbers(_zigzag(block, at)[0], schema.type)
        case "enum":
            places = _zigzag(block, at)[0]
            if ((places < 0) | (places >= len(schema.symbols))).any():
                raise errors.IncorrectData("The Avro data have an element that their enum lacks.")
            return columns.from_values(places.astype(columns.dtype_of(arrow)), arrow)
        case "float" | "double":
            width = 4 if schema.kind == "float" else 8
            return columns.from_values(block.bytes_at(at, width).view(f"<f{width}")[:, 0], arrow)
        case "bytes" | "string":
            sizes, behind = _zigzag(block, at)
            return _texts(spans(block.data, behind, behind + sizes), schema.type)
        case "fixed":
            return _fixed(block.bytes_at(at, schema.size), schema.type)
        case "union":
            return _union(block, at, schema)
        case "record":
            parts = []
            for part in schema.parts:
                parts.append(_values(block, at, part))
                at = _ends(block, at, part)
            return columns.structs_from(parts, arrow, rows=len(at))
        case _:
            return _lists(block, at, schema)


def _lists(block: ByteBlock, at: np.ndarray, schema: Schema) -> pa.Array:
    """Decode arrays or maps at the positions."""
    chunks = _Chunks(block, schema)
    counts, starts = chunks.elements(at)
    offsets = columns.offsets_from_counts(counts)
    fields = columns.struct_fields(_values(block, starts, chunks.element))
    if schema.kind == "array":
        return columns.lists_from(offsets, fields[0])
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), *fields)


def _union(block: ByteBlock, at: np.ndarray, schema: Schema) -> pa.Array:
    """Decode the values of a union of null and one type."""
    branch, behind = _zigzag(block, at)
    place = next((n for n, part in enumerate(schema.parts) if part.kind != "null"), None)
    if place is None:
        return pa.nulls(len(at), schema.type.arrow)
    valid = branch == place
    present = _values(block, behind[valid], schema.parts[place])
    return present if valid.all() else columns.scatter(present, valid)


def _numbers(values: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Convert decoded integers to the type: a number, a date or a timestamp."""
    if isinstance(data_type, types.DateTime64):
        return columns.from_values(values, data_type.arrow)
    return columns.from_values(values.astype(columns.dtype_of(data_type.arrow)), data_type.arrow)


def _texts(texts: pa.Array, data_type: types.DataType) -> pa.Array:
    """Convert decoded bytes to the type: a text, a UUID, or a Decimal."""
    if isinstance(data_type, types.Decimal):
        raw = columns.binary(texts)
        starts, data = columns.bytes_of(raw)
        return _decimals(data, starts, data_type)
    if isinstance(data_type, types.UUID):
        return parse_uuids(texts, data_type)
    return texts


def _decimals(data: np.ndarray, starts: np.ndarray, data_type: types.Decimal) -> pa.Array:
    """Decode decimals from big-endian integers of any size, at `starts` in `data`. Raises IncorrectData."""
    width = data_type.arrow.byte_width
    sizes = np.diff(starts)
    if (sizes > width).any() or (sizes == 0).any():
        raise errors.IncorrectData(f"A value of {data_type} has 1 to {width} bytes in Avro.")
    places = np.arange(width)
    negative = data[starts[:-1]] >= 0x80
    at = starts[1:, None] - 1 - places
    inside = places < sizes[:, None]
    fill = np.where(negative, 0xFF, 0).astype(np.uint8)[:, None]
    rows = np.where(inside, data[np.where(inside, at, 0)], fill)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(data_type.arrow, len(rows), buffers)


def _fixed(rows: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Convert values of equal size, one row of bytes each, to FixedStrings or Decimals."""
    if isinstance(data_type, types.Decimal):
        starts = np.arange(len(rows) + 1) * rows.shape[1]
        return _decimals(np.ascontiguousarray(rows).ravel(), starts, data_type)
    return scalars_of(rows, data_type)


# --- files


def _long(stream: BinaryIO) -> int | None:
    """Read the next Avro long of the stream; None at its end."""
    result = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            if shift:
                raise errors.CannotReadAllData("The Avro data end within a number.")
            return None
        result |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (result >> 1) ^ -(result & 1)
        if shift > 63:
            raise errors.IncorrectData("The data are not Avro: a number has too many bytes.")


def _exactly(stream: BinaryIO, size: int | None) -> bytes:
    """Read exactly `size` bytes of the stream. Raises CannotReadAllData, and IncorrectData for a bad size."""
    if size is None or not 0 <= size < _MOST_BYTES:
        raise errors.IncorrectData("The data are not Avro: a size is out of bounds.")
    data = stream.read(size)
    if len(data) < size:
        raise errors.CannotReadAllData("The Avro data end within a block.")
    return data


def _header(stream: BinaryIO) -> tuple[Schema, str, bytes]:
    """Read the header; return the schema, the codec and the sync marker. Raises IncorrectData for data that are not
    Avro."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise errors.IncorrectData("The data are no file of Avro.")
    facts: dict[str, bytes] = {}
    while count := _long(stream):
        if count < 0:
            _long(stream)
        for _ in range(abs(count)):
            name = _exactly(stream, _long(stream)).decode("utf-8", "replace")
            facts[name] = _exactly(stream, _long(stream))
    schema = parse_schema(facts.get("avro.schema", b"").decode("utf-8", "replace"))
    codec = facts.get("avro.codec", b"null").decode("utf-8", "replace")
    return schema, codec, _exactly(stream, SYNC_BYTES)


def _decompressed(data: bytes, codec: str) -> bytes:
    """Decompress a block. Raises IncorrectData for a wrong checksum, NotSupportedError for an unknown codec."""
    match codec:
        case "null":
            return data
        case "deflate":
            return zlib.decompress(data, -15)
        case "snappy":
            block = _snappy(data[:-4])
            if zlib.crc32(block) != int.from_bytes(data[-4:], "big"):
                raise errors.IncorrectData("A block of the Avro data has a wrong checksum.")
            return block
        case "zstandard":
            with pa.CompressedInputStream(pa.py_buffer(data), "zstd") as stream:
                return bytes(stream.read())
        case _:
            raise errors.NotSupportedError(
                f"The codec {codec!r} of Avro is not supported.",
                hint="There are null, deflate, snappy and zstandard.",
            )


def _snappy(data: bytes) -> bytes:
    """Decompress snappy data. Raises IncorrectData for an impossible size."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _SNAPPY_RATIO_MAX * len(data):
        raise errors.IncorrectData(f"A block of the Avro data cannot have {size} bytes.")
    return bytes(pa.Codec("snappy").decompress(data, decompressed_size=size, asbytes=True))


def _blocks(stream: BinaryIO, codec: str, sync: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of rows and the bytes of each block. Raises IncorrectData."""
    while (rows := _long(stream)) is not None:
        data = _decompressed(_exactly(stream, _long(stream)), codec)
        if _exactly(stream, SYNC_BYTES) != sync:
            raise errors.IncorrectData("The Avro data lack the mark behind a block.")
        if rows < 0 or (not data and rows > _MOST_EMPTY_ROWS):
            raise errors.IncorrectData(f"A block of the Avro data cannot have {rows} rows.")
        if rows:
            yield rows, data


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of a block at a time. Raises ThereIsNoColumn for a column that the data lack."""
    schema, codec, sync = _header(source.stream)
    wanted = dict(source.structure or ())
    for name in wanted:
        if name not in schema.names and not source.settings.boolean(
            "input_format_avro_allow_missing_fields"
        ):
            raise errors.ThereIsNoColumn(
                f"Field {name} not found in Avro schema.",
                hint=f"It has {', '.join(schema.names)}; input_format_avro_allow_missing_fields = 1"
                " takes defaults.",
            )
    ends = partial(_ends, schema=schema)
    for rows, data in _blocks(source.stream, codec, sync):
        block = ByteBlock.of(data)
        at, end = row_starts(block, ends, "Avro") if data else (np.zeros(rows, np.int64), 0)
        if len(at) != rows or end < block.size:
            raise errors.CannotReadAllData("A block of the Avro data has other rows than it says.")
        names, kinds, arrays = [], [], []
        for name, part in zip(schema.names, schema.parts, strict=True):
            is_needed = source.needed is None or name in source.needed
            if is_needed and (not wanted or name in wanted):
                names.append(name)
                arrays.append(_values(block, at, part))
                kinds.append(part.type)
            at = _ends(block, at, part)
        yield Rows(tuple(names), tuple(kinds), tuple(arrays), rows)


def _infer(source: Input) -> Structure:
    """Return the fields of the schema."""
    schema, _, _ = _header(source.stream)
    return tuple((name, part.type) for name, part in zip(schema.names, schema.parts, strict=True))


READER = Reader(_infer, _read, named=True)
