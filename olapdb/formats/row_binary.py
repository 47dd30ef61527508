"""RowBinary: values as their bytes, row by row, without anything between them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Format, Header, Writer
from olapdb.formats.binary_types import encoded_type
from olapdb.formats.row_binary_read import binary_reader, with_json_as_text
from olapdb.formats.texts import body
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.dynamic.objects import entries_of
from olapdb.functions.dynamic.stored import read_texts
from olapdb.functions.dynamic.values import TypedRows, kinds, kinds_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import (
    fixed_bytes,
    joined,
    length_prefixed,
    scalar_bytes,
    varints,
)
from olapdb.functions.variants.values import NO_ALTERNATIVE, alternatives_of, in_rows
from olapdb.types.arrow_values import from_numpy

_OF_NULL = b"\x00"
"""NULL in a Dynamic: a value of the type Nothing, which has no bytes."""


class RowBinaryWriter(Writer):
    """A writer of RowBinary. `head_lines`: 1 for names in front, 2 for types too."""

    def __init__(self, header: Header, head_lines: int = 0) -> None:
        """Take the columns; `head_lines` as for the class."""
        super().__init__(header)
        self._head_lines = head_lines

    def start(self) -> bytes:
        """Return the number of columns, their names and their types, as far as the format has them."""
        if not self._head_lines:
            return b""
        heads = (self.header.names, [t.name for t in self.header.types])[: self._head_lines]
        texts = pa.array([text for head in heads for text in head], pa.string())
        count = np.array([len(self.header.names)])
        return body(varints(count)) + body(encoded(texts, types.STRING))

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the bytes of the rows."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the bytes of each row. Raises NotSupportedError for a type that RowBinary cannot express."""
        pairs = zip(batch.columns, self.header.types, strict=True)
        return joined([self._column(column, data_type) for column, data_type in pairs])

    def _column(self, column: pa.Array, data_type: types.DataType) -> pa.Array:
        """Encode the values of a column; a JSON is written as its text if the setting says so."""
        if self.header.settings.boolean("output_format_binary_write_json_as_string"):
            text = with_json_as_text(data_type)
            if text != data_type:
                column = cast_column(column, data_type, text, self.header.environment, strict=True)
                return encoded(column, text)
        return encoded(column, data_type)


def encoded(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Encode each value. Raises NotSupportedError for states of aggregates."""
    match data_type:
        case types.Nullable(inner):
            return _nullable(array, inner)
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return encoded(array, inner)
        case types.String():
            texts = columns.binary(array)
            lengths = np.diff(columns.bytes_of(texts)[0])
            return joined([varints(lengths), texts])
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            return length_prefixed(offsets, encoded(elements, inner))
        case types.Map(key, value):
            offsets, entries = columns.elements_of(array)
            keys, values = columns.struct_fields(entries)
            return length_prefixed(offsets, joined([encoded(keys, key), encoded(values, value)]))
        case types.Tuple(elements=kinds):
            fields = columns.struct_fields(array)
            if not fields:
                return fixed_bytes(np.zeros((len(array), 0), np.uint8))
            return joined([encoded(f, kind) for f, kind in zip(fields, kinds, strict=True)])
        case types.Variant():
            return _variants(array, data_type)
        case types.Json():
            return _objects(array, data_type)
        case types.Dynamic():
            return pc.fill_null(_of_kinds(kinds_of(array), len(array)), _OF_NULL)
        case types.AggregateFunction():
            raise errors.NotSupportedError(
                f"RowBinary of {data_type} is not supported: states have other bytes here.",
                hint="finalizeAggregation gives the value.",
            )
        case _:
            return fixed_bytes(scalar_bytes(array, data_type))


def _of_kinds(parts: Iterable[TypedRows], rows: int) -> pa.Array:
    """Encode values of several types by row, each preceded by the bytes of its type; rows without a value are NULL."""
    pieces, places = [], []
    for part in parts:
        values = encoded(part.values(), part.type)
        kind = pa.scalar(encoded_type(part.type))
        pieces.append(pc.binary_join_element_wise(kind, values, b""))
        places.append(part.rows)
    return in_rows(pieces, places, rows, pa.binary())


def _objects(array: pa.Array, data_type: types.Json) -> pa.Array:
    """Encode JSON objects: the number of paths, then each path's name and value; a value on a path without a declared
    type is preceded by its type."""
    entries = entries_of(array)
    named = pc.is_in(entries.paths, pa.array([path for path, _ in data_type.typed], pa.string()))
    free = pc.if_else(named, pa.scalar(None, pa.string()), entries.types)
    values = _of_kinds(kinds(free, entries.values), len(entries.rows))
    for path, kind in data_type.typed:
        rows = np.flatnonzero(np.asarray(pc.equal(entries.paths, path)))
        texts = read_texts(entries.values.take(from_numpy(rows)), kind)
        values = columns.replaced_rows(values, rows, encoded(texts, kind))
    counts = np.bincount(entries.rows, minlength=len(array))
    members = joined([encoded(entries.paths, types.STRING), pc.fill_null(values, _OF_NULL)])
    return length_prefixed(columns.offsets_from_counts(counts), members)


def _nullable(array: pa.Array, inner: types.DataType) -> pa.Array:
    """Encode NULL as a byte 1, other values as a byte 0 and the value."""
    if array.null_count == len(array):
        return pa.repeat(pa.scalar(b"\x01"), len(array))
    present = encoded(array.drop_null() if array.null_count else array, inner)
    present = pc.binary_join_element_wise(pa.scalar(b"\x00"), present, b"")
    if not array.null_count:
        return present
    valid = array.is_valid()
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    values = present.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
    return pc.fill_null(values, b"\x01")


def _variants(array: pa.Array, variant: types.Variant) -> pa.Array:
    """Encode a Variant as the alternative's number and the value; NULL as a byte 255."""
    pieces = [
        pc.binary_join_element_wise(
            pa.scalar(bytes((alternative.place,))),
            encoded(alternative.values, alternative.type),
            b"",
        )
        for alternative in alternatives_of(array, variant)
    ]
    rows = [alternative.rows for alternative in alternatives_of(array, variant)]
    return pc.fill_null(in_rows(pieces, rows, len(array), pa.binary()), bytes((NO_ALTERNATIVE,)))


FORMATS = (
    *(
        Format(
            f"RowBinary{head}",
            f"Values as bytes, row by row{said}.",
            partial(RowBinaryWriter, head_lines=lines),
            binary_reader(lines),
        )
        for lines, (head, said) in enumerate(
            (
                ("", ""),
                ("WithNames", ", names first"),
                ("WithNamesAndTypes", ", names and types first"),
            )
        )
    ),
    Format(
        "RowBinaryWithDefaults",
        "Values as bytes, row by row; a byte in front of each says whether a default stands for it.",
        reader=binary_reader(0, has_flags=True),
    ),
)
