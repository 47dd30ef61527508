"""BSONEachRow: a document of BSON for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Format, Header, Writer
from olapdb.formats.bson_read import READER
from olapdb.formats.texts import body
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import (
    binaries,
    fixed_bytes,
    joined,
    number_bytes,
    scalar_bytes,
)

DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, BOOL, TIME, NULL, INT32, INT64 = (
    *(0x01, 0x02, 0x03, 0x04, 0x05, 0x08),
    *(0x09, 0x0A, 0x10, 0x12),
)
"""The kinds of elements."""
_UUID = 4
_LONG_DIGITS = 18


class BsonWriter(Writer):
    """A writer of BSONEachRow."""

    def __init__(self, header: Header) -> None:
        """Take the columns and the settings."""
        super().__init__(header)
        self._texts = header.settings.boolean("output_format_bson_string_as_string")

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the documents of the rows."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the BSON document of each row. Raises IllegalColumn for a type that BSON cannot express."""
        elements = [
            self._element(name, column, kind)
            for name, column, kind in zip(
                self.header.names, batch.columns, self.header.types, strict=True
            )
        ]
        return _document(joined(elements))

    def _element(self, name: str, array: pa.Array, kind: types.DataType) -> pa.Array:
        """Encode a column as an element of each row's document: type code, name, value."""
        shown = pa.scalar(name.encode("utf-8", "surrogateescape") + b"\0")
        return self._named(pa.repeat(shown, len(array)), array, kind)

    def _named(self, names: pa.Array, array: pa.Array, kind: types.DataType) -> pa.Array:
        """Encode elements with a name for each: type code, name, zero byte, value."""
        if isinstance(kind, types.LowCardinality | types.SimpleAggregateFunction):
            return self._named(names, array, kind.inner)
        if isinstance(kind, types.Nothing) or array.null_count == len(array) > 0:
            return joined([pa.repeat(pa.scalar(bytes((NULL,))), len(array)), names])
        if isinstance(kind, types.Nullable):
            if not array.null_count:
                return self._named(names, array, kind.inner)
            valid = array.is_valid()
            present = self._named(names.filter(valid), array.drop_null(), kind.inner)
            absent = joined([pa.repeat(pa.scalar(bytes((NULL,))), len(array)), names])
            places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
            codes = present.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
            return pc.coalesce(codes, absent)
        code, value = self._value(array, kind)
        return joined([pa.repeat(pa.scalar(bytes((code,))), len(array)), names, value])

    def _value(self, array: pa.Array, kind: types.DataType) -> tuple[int, pa.Array]:
        """Return the BSON type code of a type, and the encoded values, which have no NULLs. Raises IllegalColumn."""
        match kind:
            case types.Boolean():
                return BOOL, fixed_bytes(number_bytes(array.cast(pa.uint8()).to_numpy()))
            case types.Float():
                return DOUBLE, _numbers(columns.numpy_values(array), np.float64)
            case types.Integer():
                return _integers(columns.numpy_values(array), kind.bits, kind.signed)
            case types.Enum() | types.Date() | types.Date32() | types.IPv4():
                raw = np.ascontiguousarray(scalar_bytes(array, kind))
                signed = isinstance(kind, types.Enum | types.Date32)
                values = raw.view(f"<{'i' if signed else 'u'}{raw.shape[1]}")[:, 0]
                return INT32, _numbers(
                    values.view(np.int32) if values.itemsize == 4 else values, np.int32
                )
            case types.DateTime() | types.Interval():
                return INT64, _numbers(columns.numpy_values(array), np.int64)
            case types.DateTime64():
                return TIME, fixed_bytes(scalar_bytes(array, kind))
            case types.Decimal(precision=precision) if precision <= _LONG_DIGITS:
                raw = scalar_bytes(array, kind)
                return (INT32 if raw.shape[1] == 4 else INT64), fixed_bytes(raw)
            case types.String():
                return self._texts_of(columns.binary(array))
            case types.FixedString():
                return self._texts_of(fixed_bytes(scalar_bytes(array, kind)))
            case types.UUID():
                return BINARY, _binary(fixed_bytes(scalar_bytes(array, kind)), _UUID)
            case types.IPv6() | types.WideNumber() | types.Decimal():
                return BINARY, _binary(fixed_bytes(scalar_bytes(array, kind)), 0)
            case types.Array(inner):
                return ARRAY, self._list(array, inner)
            case types.Map(key, value):
                return DOCUMENT, self._map(array, key, value)
            case types.Tuple():
                return self._tuple(array, kind)
            case _:
                raise errors.IllegalColumn(f"Type {kind} is not supported in BSON output format.")

    def _texts_of(self, texts: pa.Array) -> tuple[int, pa.Array]:
        """Encode texts as binaries, or as strings if the setting says so; return the type code and the values."""
        if not self._texts:
            return BINARY, _binary(texts, 0)
        sizes = np.diff(columns.bytes_of(texts)[0])
        return STRING, joined(
            [_numbers(sizes + 1, np.int32), texts, pa.repeat(pa.scalar(b"\0"), len(texts))]
        )

    def _list(self, array: pa.Array, inner: types.DataType) -> pa.Array:
        """Encode arrays as documents whose names are the positions 0, 1, …."""
        offsets, elements = columns.elements_of(array)
        parents = columns.parents_of(offsets - offsets[:1])
        places = np.arange(len(parents)) - (offsets - offsets[:1])[parents]
        names = columns.binary(pa.array(places).cast(pa.string()))
        ended = joined([names, pa.repeat(pa.scalar(b"\0"), len(names))])
        return _document(_grouped(offsets, self._named(ended, elements, inner)))

    def _map(self, array: pa.Array, key: types.DataType, value: types.DataType) -> pa.Array:
        """Encode maps as documents. Raises IllegalColumn for keys that are not texts."""
        if not isinstance(types.plain(key), types.String | types.FixedString):
            raise errors.IllegalColumn(
                f"Only maps with String key type are supported in BSON, not {key}."
            )
        offsets, entries = columns.elements_of(array)
        keys, values = columns.struct_fields(entries)
        names = joined([columns.binary(keys), pa.repeat(pa.scalar(b"\0"), len(keys))])
        return _document(_grouped(offsets, self._named(names, values, value)))

    def _tuple(self, array: pa.Array, kind: types.Tuple) -> tuple[int, pa.Array]:
        """Encode named tuples as documents, others as arrays; return the type code and the values."""
        fields = columns.struct_fields(array)
        names: Sequence[str] = kind.names or [str(at) for at in range(len(fields))]
        parts = [
            self._element(name, field, inner)
            for name, field, inner in zip(names, fields, kind.elements, strict=True)
        ]
        return (DOCUMENT if kind.names else ARRAY), _document(joined(parts))


def _numbers(values: np.ndarray, dtype: type[np.generic]) -> pa.Array:
    """Return the bytes of numbers, cast to `dtype`."""
    return fixed_bytes(number_bytes(values.astype(dtype)))


def _integers(values: np.ndarray, bits: int, signed: bool) -> tuple[int, pa.Array]:
    """Encode integers as int32, or as int64 for types of more bits; return the type code and the values."""
    if bits <= 16 or (bits == 32 and signed):
        return INT32, _numbers(values, np.int32)
    return INT64, _numbers(values, np.int64)


def _binary(texts: pa.Array, kind: int) -> pa.Array:
    """Encode bytes as BSON binaries: length, subtype `kind`, bytes."""
    sizes = np.diff(columns.bytes_of(texts)[0])
    return joined(
        [_numbers(sizes, np.int32), pa.repeat(pa.scalar(bytes((kind,))), len(texts)), texts]
    )


def _document(elements: pa.Array) -> pa.Array:
    """Encode documents from the bytes of their elements: the size first, a zero byte last."""
    sizes = np.diff(columns.bytes_of(elements)[0])
    end = pa.repeat(pa.scalar(b"\0"), len(elements))
    return joined([_numbers(sizes + 5, np.int32), elements, end])


def _grouped(offsets: np.ndarray, elements: pa.Array) -> pa.Array:
    """Join the bytes of the elements of each list."""
    starts, data = columns.bytes_of(elements)
    first = offsets[0] if len(offsets) else 0
    bounds = starts[offsets - first] if len(elements) else np.zeros(len(offsets), np.int64)
    return binaries(bounds, data)


FORMATS = (
    Format(
        "BSONEachRow", "A document of BSON for each row.", BsonWriter, READER, endings=("bson",)
    ),
)
