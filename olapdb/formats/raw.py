"""RawBLOB: values as they are, without anything between them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Format, Input, Reader, Rows, Structure, Writer
from olapdb.formats.row_binary import encoded
from olapdb.formats.texts import body, joined_rows
from olapdb.functions.kernels import columns
from olapdb.functions.strings.rendering import display_array
from olapdb.functions.variants.values import gathered


class RawWriter(Writer):
    """A writer of RawBLOB: texts as they are, numbers as their bytes. It has no bytes for states of
    aggregates."""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the values of each row one behind the other; NULL is nothing."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of each row as one text."""
        texts = [
            columns.text(_bytes(column, types.plain(data_type)))
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return joined_rows(texts, "")


def _bytes(column: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return the bytes of values; NULL gives no bytes. Raises UnsupportedMethod for containers."""
    if isinstance(data_type, types.String | types.FixedString):
        return columns.binary(column).fill_null(b"")
    if isinstance(data_type, types.Array | types.Map | types.Tuple | types.AggregateFunction):
        raise errors.UnsupportedMethod(
            f"RawBLOB does not write a column of type {data_type}.", hint="Write toString(…) of it."
        )
    if isinstance(data_type, types.Json):
        return columns.binary(display_array(column, data_type)).fill_null(b"")
    if isinstance(data_type, types.Variant | types.Dynamic):
        return gathered(column, data_type, _bytes, pa.binary()).fill_null(b"")
    valid = columns.validity(column)
    if valid is None:
        return encoded(column, data_type)
    return columns.scatter(encoded(column.drop_null(), data_type), valid).fill_null(b"")


def _infer(source: Input) -> Structure:
    """Return the single String column of RawBLOB."""
    return (("raw_blob", types.STRING),)


def _read(source: Input) -> Iterator[Rows]:
    """Yield the whole stream as one value. Raises BadArguments for several wanted columns."""
    names = [name for name, _ in source.structure or _infer(source)]
    if len(names) != 1:
        raise errors.BadArguments(f"RawBLOB is one column, not {len(names)}.")
    value = columns.text(pa.array([source.stream.read()], pa.binary()))
    yield Rows((names[0],), (types.STRING,), (value,), 1)


FORMATS = (Format("RawBLOB", "Values without separators.", RawWriter, Reader(_infer, _read)),)
