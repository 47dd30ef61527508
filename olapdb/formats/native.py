"""Native: blocks of columns as ClickHouse keeps them, each column with its name and type in front."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Format, Header, Writer
from olapdb.formats.native_read import READER
from olapdb.formats.row_binary import encoded
from olapdb.formats.texts import body
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import scalar_bytes, varints
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.variants.values import alternatives_of, numbers_of

KEY_VERSION = np.uint64(1)
"""The version of a column of LowCardinality: each block has keys of its own."""
NUMBERS_OF_ROWS = np.uint64(0)
"""The version of a column of Variant: a byte a row says which alternative it has."""
OWN_KEYS = 3 << 9
"""The bits of a block of LowCardinality that say so; the lowest byte is the size of an index."""


class NativeWriter(Writer):
    """A writer of Native: a block for each batch."""

    def __init__(self, header: Header) -> None:
        """Take the columns of the result."""
        super().__init__(header)
        self._has_rows = False

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows as one Native block. Raises NotSupportedError for states of aggregates."""
        self._has_rows = True
        pieces = [_size(batch.num_columns), _size(batch.num_rows)]
        pairs = zip(self.header.names, batch.columns, self.header.types, strict=True)
        for name, column, data_type in pairs:
            pieces += [_text(name), _text(_written_name(data_type))]
            pieces += [_prefix(data_type), _column(column, data_type)]
        return b"".join(pieces)


def _written_name(data_type: types.DataType) -> str:
    """Return the type name as written in files: a DateTime without its zone, as ClickHouse writes it."""
    return "DateTime" if data_type.name.startswith("DateTime(") else data_type.name


def _size(number: int) -> bytes:
    """Encode a number as a varint: groups of 7 bits, lowest first."""
    return body(varints(np.array([number])))


def _text(text: str) -> bytes:
    """Return the UTF-8 bytes of a text, preceded by their number."""
    return body(encoded(pa.array([text], pa.string()), types.STRING))


def _prefix(data_type: types.DataType) -> bytes:
    """Return the bytes before a column's values: the version numbers of each LowCardinality in the type."""
    match data_type:
        case types.LowCardinality():
            return KEY_VERSION.tobytes()
        case types.Nullable(inner) | types.Array(inner):
            return _prefix(inner)
        case types.SimpleAggregateFunction(inner=inner):
            return _prefix(inner)
        case types.Map(key, value):
            return _prefix(key) + _prefix(value)
        case types.Tuple(elements=elements):
            return b"".join(_prefix(element) for element in elements)
        case types.Variant(alternatives):
            return NUMBERS_OF_ROWS.tobytes() + b"".join(map(_prefix, alternatives))
        case _:
            return b""


def _column(array: pa.Array, data_type: types.DataType) -> bytes:
    """Encode the values of a column. Raises NotSupportedError for states of aggregates."""
    match data_type:
        case types.Nullable(inner):
            nulls = array.is_null().cast(pa.uint8()).to_numpy()
            return bytes(nulls.tobytes()) + _column(_without_nulls(array, inner), inner)
        case types.LowCardinality(inner):
            return _with_keys(array, inner)
        case types.SimpleAggregateFunction(inner=inner):
            return _column(array, inner)
        case types.String():
            return body(encoded(array, data_type))
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            return _ends(offsets) + _column(elements, inner)
        case types.Map(key, value):
            offsets, entries = columns.elements_of(array)
            keys, values = columns.struct_fields(entries)
            return _ends(offsets) + _column(keys, key) + _column(values, value)
        case types.Tuple(elements=elements):
            fields = columns.struct_fields(array)
            if not fields:
                return b"0" * len(array)
            return b"".join(_column(f, kind) for f, kind in zip(fields, elements, strict=True))
        case types.Variant(alternatives):
            own = {
                alternative.place: alternative.values
                for alternative in alternatives_of(array, data_type)
            }
            values = (_column(own[at], t) for at, t in enumerate(alternatives) if at in own)
            return numbers_of(array).tobytes() + b"".join(values)
        case types.Nothing():
            return b"0" * len(array)
        case types.Dynamic() | types.Json():
            raise errors.NotSupportedError(
                f"Native of {data_type} is not supported.",
                hint="Write toString(…) of it, or JSONEachRow.",
            )
        case types.AggregateFunction():
            raise errors.NotSupportedError(
                f"Native of {data_type} is not supported: states have other bytes here.",
                hint="finalizeAggregation gives the value.",
            )
        case _:
            return scalar_bytes(array, data_type).tobytes()


def _ends(offsets: np.ndarray) -> bytes:
    """Encode the end of each list as a count of elements from the first list's start."""
    return bytes((offsets[1:] - offsets[:1]).astype(np.uint64).tobytes())


def _without_nulls(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Replace NULLs by the default of the type."""
    if not array.null_count:
        return array
    valid = array.is_valid()
    behind = pc.add(pc.cumulative_sum(valid.cast(pa.int64())), -1)
    defaults = _default_of(data_type)
    values = pa.concat_arrays([array.drop_null(), defaults])
    last = pa.scalar(len(values) - 1, pa.int64())
    return values.take(pc.if_else(valid, behind, last))


def _default_of(data_type: types.DataType) -> pa.Array:
    """Return the default of a type as an array of one row."""
    return columns.single(default_value(data_type))


def _with_keys(array: pa.Array, inner: types.DataType) -> bytes:
    """Encode a LowCardinality column: the width of the indices, the dictionary, and an index for each row. The first
    dictionary entry stands for NULL, or is the type's default."""
    if not len(array):
        return b""
    key_type = inner.inner if isinstance(inner, types.Nullable) else inner
    dense = pc.dictionary_encode(array)
    keys = pa.concat_arrays([_default_of(key_type), dense.dictionary.cast(key_type.arrow)])
    indices = pc.fill_null(pc.add(dense.indices.cast(pa.int64()), 1), 0).to_numpy()
    size = int(np.searchsorted([1 << 8, 1 << 16, 1 << 32], len(keys), side="left"))
    kind = np.dtype(f"<u{1 << size}")
    head = np.array([OWN_KEYS | size, len(keys)], np.uint64).tobytes()
    rows = np.uint64(len(array)).tobytes()
    return bytes(head + _column(keys, key_type) + rows + indices.astype(kind).tobytes())


FORMATS = (
    Format(
        "Native",
        "Blocks of columns, as ClickHouse keeps them.",
        NativeWriter,
        READER,
        endings=("native",),
    ),
)
