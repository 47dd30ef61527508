"""Avro: a file of Avro with its schema, in blocks of rows."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.avro_read import MAGIC, READER, SYNC_BYTES
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.texts import body
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import (
    binaries,
    fixed_bytes,
    joined,
    number_bytes,
    scalar_bytes,
)
from olapdb.functions.strings.rendering import display_array

_VARINT_BYTES = 10
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AvroWriter(Writer):
    """A writer of Avro. Raises BadArguments for columns whose names Avro does not allow."""

    def __init__(self, header: Header) -> None:
        """Build the schema of the columns and take the codec from the settings."""
        super().__init__(header)
        for name in header.names:
            if _NAME.fullmatch(name) is None:
                raise errors.BadArguments(
                    f"{name!r} is no name of a field of Avro.", hint="Give the column an alias."
                )
        self._codec = header.settings.text("output_format_avro_codec") or "snappy"
        self._schemas = _Schemas()
        fields = [
            {"name": name, "type": self._schemas.of(kind)}
            for name, kind in zip(header.names, header.types, strict=True)
        ]
        self._schema = json.dumps(
            {"type": "record", "name": "row", "fields": fields}, separators=(",", ":")
        ).encode("utf-8", "surrogateescape")
        self._sync = hashlib.blake2b(self._schema, digest_size=SYNC_BYTES).digest()

    def start(self) -> bytes:
        """Return the schema, the codec and the mark between blocks."""
        name = {"zstd": "zstandard"}.get(self._codec, self._codec)
        facts = {"avro.codec": name.encode(), "avro.schema": self._schema}
        pairs = b"".join(_sized(key.encode()) + _sized(value) for key, value in facts.items())
        return MAGIC + _number(len(facts)) + pairs + b"\0" + self._sync

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows as blocks of about output_format_avro_sync_interval bytes."""
        rows = self.rows(batch)
        starts, data = columns.bytes_of(rows)
        interval = max(self.header.settings.integer("output_format_avro_sync_interval"), 1)
        ends = np.unique(np.searchsorted(starts, np.arange(interval, int(starts[-1]), interval)))
        cuts = [0, *(end for end in ends.tolist() if 0 < end < len(rows)), len(rows)]
        blocks = []
        for first, last in pairwise(cuts):
            packed = _compressed(bytes(data[starts[first] : starts[last]]), self._codec)
            blocks += [_number(last - first), _number(len(packed)), packed, self._sync]
        return b"".join(blocks)

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the Avro bytes of each row, uncompressed."""
        pairs = zip(batch.columns, self.header.types, strict=True)
        return joined([encoded(column, kind) for column, kind in pairs])

    def finish(self, ending: Ending) -> bytes:
        """Return nothing: blocks end by themselves."""
        return b""


def _number(value: int) -> bytes:
    """Return an integer as an Avro long: zigzag, in groups of 7 bits."""
    return body(zigzag(np.array([value], np.int64)))


def _sized(data: bytes) -> bytes:
    """Return bytes preceded by their length."""
    return _number(len(data)) + data


def _compressed(data: bytes, codec: str) -> bytes:
    """Compress the bytes of a block with the codec."""
    match codec:
        case "deflate":
            packer = zlib.compressobj(wbits=-15)
            return packer.compress(data) + packer.flush()
        case "snappy":
            packed = pa.Codec("snappy").compress(data, asbytes=True)
            return bytes(packed) + zlib.crc32(data).to_bytes(4, "big")
        case "zstd":
            return bytes(pa.Codec("zstd").compress(data, asbytes=True))
        case _:
            return data


class _Schemas:
    """The builder of Avro schemas; each enum, fixed and record gets a name of its own."""

    def __init__(self) -> None:
        """Start without names."""
        self._count = 0

    def _name(self, kind: str) -> str:
        """Return a new name that begins with `kind`."""
        self._count += 1
        return f"{kind}_{self._count}"

    def of(self, kind: types.DataType) -> Any:
        """Return the Avro schema of a type, as a JSON value. Raises IllegalColumn for a type without one."""
        match kind:
            case types.Nullable(inner):
                return ["null", self.of(inner)]
            case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
                return self.of(inner)
            case types.Array(inner):
                return {"type": "array", "items": self.of(inner)}
            case types.Map(key, value) if isinstance(types.plain(key), types.String):
                return {"type": "map", "values": self.of(value)}
            case types.Tuple(elements=elements):
                names = kind.names or tuple(f"_{at}" for at in range(1, len(elements) + 1))
                fields = [
                    {"name": name, "type": self.of(element)}
                    for name, element in zip(names, elements, strict=True)
                ]
                return {"type": "record", "name": self._name("tuple"), "fields": fields}
            case types.Enum():
                symbols = [kind.texts[number] for number in sorted(kind.texts)]
                return {"type": "enum", "name": self._name("enum"), "symbols": symbols}
            case types.Decimal(precision=precision, scale=scale):
                facts = {"logicalType": "decimal", "precision": precision, "scale": scale}
                return {"type": "bytes", **facts}
            case types.DateTime64(precision=3 | 6 as precision):
                unit = "timestamp-millis" if precision == 3 else "timestamp-micros"
                return {"type": "long", "logicalType": unit}
            case types.UUID():
                return {"type": "string", "logicalType": "uuid"}
            case types.Date() | types.Date32():
                return {"type": "int", "logicalType": "date"}
            case types.FixedString() | types.IPv6() | types.WideNumber():
                size = kind.arrow.byte_width
                if isinstance(kind, types.WideNumber):
                    size = kind.bits // 8
                return {"type": "fixed", "name": self._name("fixed"), "size": size}
            case types.Float(bits=bits):
                return "float" if bits == 32 else "double"
            case types.Boolean():
                return "boolean"
            case types.String():
                return "string"
            case types.DateTime() | types.Interval():
                return "long"
            case types.IPv4():
                return "int"
            case types.Integer(bits=bits, signed=signed):
                return "int" if bits < 32 or (bits == 32 and signed) else "long"
            case types.Nothing():
                return "null"
            case _:
                raise errors.IllegalColumn(f"Type {kind} is not supported for Avro output.")


# --- values


def zigzag(values: np.ndarray) -> pa.Array:
    """Encode signed integers as Avro longs: zigzag, then groups of 7 bits, lowest first."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    shifts = np.arange(_VARINT_BYTES, dtype=np.uint64) * np.uint64(7)
    groups = bits[:, None] >> shifts
    used = groups > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    written = ((groups & np.uint64(0x7F)) | (more * np.uint64(0x80))).astype(np.uint8)
    return binaries(columns.offsets_from_counts(used.sum(axis=1)), written[used])


def encoded(array: pa.Array, kind: types.DataType) -> pa.Array:
    """Encode each value as Avro bytes, in the form of its type's schema."""
    match kind:
        case types.Nullable(inner):
            return _nullable(array, inner)
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return encoded(array, inner)
        case types.Nothing():
            return fixed_bytes(np.zeros((len(array), 0), np.uint8))
        case types.String():
            return _with_sizes(columns.binary(array))
        case types.UUID():
            return _with_sizes(columns.binary(display_array(array, kind)))
        case types.Decimal():
            rows = scalar_bytes(array, kind)[:, ::-1]
            return _with_sizes(fixed_bytes(np.ascontiguousarray(rows)))
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            return _lists(offsets, encoded(elements, inner))
        case types.Map(key, value):
            offsets, entries = columns.elements_of(array)
            keys, values = columns.struct_fields(entries)
            return _lists(offsets, joined([encoded(keys, key), encoded(values, value)]))
        case types.Tuple(elements=kinds):
            fields = columns.struct_fields(array)
            return joined([encoded(f, inner) for f, inner in zip(fields, kinds, strict=True)])
        case types.Boolean() | types.FixedString() | types.IPv6() | types.WideNumber():
            return fixed_bytes(scalar_bytes(array, kind))
        case types.Float():
            return fixed_bytes(number_bytes(columns.numpy_values(array)))
        case types.Enum():
            numbers = columns.numpy_values(array)
            return zigzag(np.searchsorted(np.array(sorted(kind.texts)), numbers).astype(np.int64))
        case types.Integer() | types.Interval():
            return zigzag(columns.numpy_values(array).astype(np.int64))
        case _:
            raw = np.ascontiguousarray(scalar_bytes(array, kind))
            signed = not isinstance(kind, types.Date | types.DateTime)
            values = raw.view(f"<{'i' if signed else 'u'}{raw.shape[1]}")[:, 0]
            return zigzag(values.astype(np.int64))


def _nullable(array: pa.Array, inner: types.DataType) -> pa.Array:
    """Encode values as a union of null and the type: branch 0 for NULL, else branch 1 and the value."""
    valid = array.is_valid()
    present = joined(
        [
            pa.repeat(pa.scalar(b"\x02"), len(array) - array.null_count),
            encoded(array.drop_null(), inner),
        ]
    )
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    values = present.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
    return pc.fill_null(values, b"\x00")


def _with_sizes(texts: pa.Array) -> pa.Array:
    """Precede each text by its length in bytes."""
    return joined([zigzag(np.diff(columns.bytes_of(texts)[0]).astype(np.int64)), texts])


def _lists(offsets: np.ndarray, elements: pa.Array) -> pa.Array:
    """Encode each list as one chunk of elements and a final 0."""
    starts, data = columns.bytes_of(elements)
    first = offsets[0] if len(offsets) else 0
    bounds = starts[offsets - first] if len(elements) else np.zeros(len(offsets), np.int64)
    counts = np.diff(offsets).astype(np.int64)
    heads = zigzag(counts)
    end = pc.if_else(pa.array(counts > 0), pa.scalar(b"\0"), pa.scalar(b""))
    return joined([heads, binaries(bounds, data), end])


FORMATS = (
    Format(
        "Avro",
        "A file of Avro with its schema.",
        AvroWriter,
        READER,
        endings=("avro",),
        appends=False,
    ),
)
