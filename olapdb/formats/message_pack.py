"""MsgPack: the values of a row one behind the other, each with its kind in its first byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Format, Writer
from olapdb.formats.message_pack_read import READER
from olapdb.formats.texts import body
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import binaries, fixed_bytes, joined, scalar_bytes
from olapdb.functions.strings.rendering import display_array

NIL = 0xC0
_FIXED = (types.FixedString, types.IPv6, types.WideNumber, types.Decimal)
"""Types whose values are bytes; decimals of at most 18 digits are numbers."""
_NUMBER_DIGITS = 18


class MessagePackWriter(Writer):
    """A writer of MsgPack."""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the bytes of the rows."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the MsgPack bytes of each row. Raises IllegalColumn for a type that MsgPack cannot express."""
        representation = self.header.settings.text("output_format_msgpack_uuid_representation")
        pairs = zip(batch.columns, self.header.types, strict=True)
        return joined([encoded(column, kind, representation) for column, kind in pairs])


def encoded(array: pa.Array, data_type: types.DataType, uuids: str) -> pa.Array:
    """Encode each value as MsgPack. `uuids` is the form of a UUID: ext, bin or str."""
    match data_type:
        case types.Nullable(inner):
            return _nullable(array, inner, uuids)
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return encoded(array, inner, uuids)
        case types.Nothing():
            return pa.repeat(pa.scalar(bytes((NIL,))), len(array))
        case types.String():
            return _with_sizes(columns.binary(array))
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            return _lists(offsets, encoded(elements, inner, uuids), is_map=False)
        case types.Map(key, value):
            offsets, entries = columns.elements_of(array)
            keys, values = columns.struct_fields(entries)
            pairs = joined([encoded(keys, key, uuids), encoded(values, value, uuids)])
            return _lists(offsets, pairs, is_map=True)
        case types.Tuple(elements=kinds):
            fields = columns.struct_fields(array)
            head = _heads(np.full(len(array), len(kinds)), *_ARRAY)
            parts = [encoded(f, kind, uuids) for f, kind in zip(fields, kinds, strict=True)]
            return joined([head, *parts])
        case types.UUID():
            return _uuids(array, data_type, uuids)
        case types.Float():
            return _floats(array, data_type)
        case types.AggregateFunction() | types.Variant() | types.Dynamic() | types.Json():
            raise errors.IllegalColumn(f"Type {data_type} is not supported for MsgPack output.")
        case _ if _is_bytes(data_type):
            return _with_sizes(fixed_bytes(scalar_bytes(array, data_type)))
        case _:
            return integers(_as_integers(array, data_type))


def _is_bytes(data_type: types.DataType) -> bool:
    """Return whether values of the type are written as bytes."""
    is_short = isinstance(data_type, types.Decimal) and data_type.precision <= _NUMBER_DIGITS
    return isinstance(data_type, _FIXED) and not is_short


def _as_integers(array: pa.Array, data_type: types.DataType) -> np.ndarray:
    """Return numbers, days, ticks and codes as int64, or uint64 where the type is UInt64."""
    if isinstance(data_type, types.Integer) and not isinstance(data_type, types.Boolean):
        values = columns.numpy_values(array)
        return values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)
    rows = scalar_bytes(array, data_type)
    width = rows.shape[1]
    unsigned = isinstance(data_type, types.Date | types.DateTime | types.DateTime64 | types.IPv4)
    return (
        np.ascontiguousarray(rows)
        .view(f"<{'u' if unsigned else 'i'}{width}")[:, 0]
        .astype(np.int64)
    )


def _nullable(array: pa.Array, inner: types.DataType, uuids: str) -> pa.Array:
    """Encode NULL as nil and other values as `inner`."""
    nil = bytes((NIL,))
    if array.null_count == len(array):
        return pa.repeat(pa.scalar(nil), len(array))
    if not array.null_count:
        return encoded(array, inner, uuids)
    present = encoded(array.drop_null(), inner, uuids)
    valid = array.is_valid()
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    values = present.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
    return pc.fill_null(values, nil)


# --- heads

_ARRAY = (16, 0x90, (None, 0xDC, 0xDD))
_MAP = (16, 0x80, (None, 0xDE, 0xDF))
_BYTES = (0, 0, (0xC4, 0xC5, 0xC6))


def _heads(
    counts: np.ndarray, small: int, first: int, codes: tuple[int | None, int, int]
) -> pa.Array:
    """Encode sizes of texts, arrays or maps: one byte `first` + size for sizes below `small`, else a code of `codes`
    and the size in 1, 2 or 4 bytes."""
    code = np.where(counts < 1 << 16, codes[1], codes[2])
    width = np.where(counts < 1 << 16, 2, 4)
    if codes[0] is not None:
        code = np.where(counts < 1 << 8, codes[0], code)
        width = np.where(counts < 1 << 8, 1, width)
    is_small = counts < small
    code = np.where(is_small, first + counts, code)
    return _coded(code, np.where(is_small, 0, width), counts)


def _coded(code: np.ndarray, width: np.ndarray, numbers: np.ndarray) -> pa.Array:
    """Return each code byte followed by the low `width` bytes of the number, big endian."""
    big = numbers.astype(np.uint64).astype(">u8").view(np.uint8).reshape(len(numbers), 8)
    whole = np.concatenate((code.astype(np.uint8)[:, None], big), axis=1)
    used = np.arange(9) > 8 - width[:, None]
    used[:, 0] = True
    return binaries(columns.offsets_from_counts(width + 1), whole[used])


def integers(values: np.ndarray) -> pa.Array:
    """Encode integers as MsgPack in the fewest bytes."""
    bits = values.astype(np.uint64)
    limits = [np.uint64(1 << 7), np.uint64(1 << 8), np.uint64(1 << 16), np.uint64(1 << 32)]
    below = [bits < limit for limit in limits]
    code = np.select(below, [bits.astype(np.int64), 0xCC, 0xCD, 0xCE], 0xCF)
    width = np.select(below, [0, 1, 2, 4], 8)
    if values.dtype.kind == "i" and len(values) and int(values.min()) < 0:
        negative = values < 0
        above = [values >= -32, values >= -(1 << 7), values >= -(1 << 15), values >= -(1 << 31)]
        low = np.select(above, [values & 0xFF, 0xD0, 0xD1, 0xD2], 0xD3)
        code = np.where(negative, low, code)
        width = np.where(negative, np.select(above, [0, 1, 2, 4], 8), width)
    return _coded(code, width, bits)


def _with_sizes(texts: pa.Array) -> pa.Array:
    """Precede bytes by their MsgPack size."""
    sizes = np.diff(columns.bytes_of(texts)[0])
    return joined([_heads(sizes, *_BYTES), texts])


def _lists(offsets: np.ndarray, elements: pa.Array, *, is_map: bool) -> pa.Array:
    """Encode each list or map: the number of elements, then their bytes."""
    starts, data = columns.bytes_of(elements)
    first = offsets[0] if len(offsets) else 0
    bounds = starts[offsets - first] if len(elements) else np.zeros(len(offsets), np.int64)
    head = _heads(np.diff(offsets), *(_MAP if is_map else _ARRAY))
    return joined([head, binaries(bounds, data)])


def _floats(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Encode floats as MsgPack: a code, then the bytes, big endian."""
    values = columns.numpy_values(array)
    width = values.dtype.itemsize
    big = values.astype(values.dtype.newbyteorder(">")).view(np.uint8).reshape(len(values), width)
    code = np.full((len(values), 1), 0xCA if width == 4 else 0xCB, np.uint8)
    return fixed_bytes(np.concatenate((code, big), axis=1))


def _uuids(array: pa.Array, data_type: types.UUID, representation: str) -> pa.Array:
    """Encode UUIDs as extension, as 16 bytes, or as text, by `representation`."""
    if representation == "str":
        texts = columns.binary(display_array(array, data_type))
        return joined([pa.repeat(pa.scalar(b"\xd9\x24"), len(array)), texts])
    raw = scalar_bytes(array, data_type)
    big = raw.reshape(-1, 2, 8)[:, :, ::-1].reshape(-1, 16)
    head = b"\xd8\x02" if representation == "ext" else b"\xc4\x10"
    return joined([pa.repeat(pa.scalar(head), len(array)), fixed_bytes(big)])


FORMATS: Sequence[Format] = (
    Format(
        "MsgPack",
        "Values in MessagePack, row by row.",
        MessagePackWriter,
        READER,
        endings=("messagepack", "msgpack"),
    ),
)
