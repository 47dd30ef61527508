"""RawBLOB: values as they are, without anything between them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Format, Header, Input, Reader, Rows, Structure, Writer
from olapdb.formats.texts import body, is_text, joined_rows
from olapdb.functions.kernels import columns
from olapdb.types.arrow import enum_texts


class RawWriter(Writer):
    """A writer of RawBLOB. It takes texts: raises UnsupportedMethod for other columns."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        for name, data_type in zip(header.names, header.types, strict=True):
            if not is_text(data_type):
                raise errors.UnsupportedMethod(
                    f"RawBLOB writes texts; column {name} has type {data_type}.",
                    hint=f"Write toString({name}).",
                )

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the values of each row one behind the other; NULL is nothing."""
        texts = [
            _bytes(column, types.plain(data_type))
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        if len(texts) == 1:
            return body(texts[0])
        return b"".join(value for row in zip(*(t.to_pylist() for t in texts)) for value in row)

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of each row as one text."""
        texts = [
            columns.text(_bytes(column, types.plain(data_type)))
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return joined_rows(texts, "")


def _bytes(column: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return texts, an Enum's too, as binary; NULL is empty."""
    if isinstance(data_type, types.Enum):
        column = enum_texts(column, data_type)
    return columns.binary(column).fill_null(b"")


def _infer(source: Input) -> Structure:
    """Return the one column of RawBLOB."""
    return (("raw_blob", types.STRING),)


def _read(source: Input) -> Iterator[Rows]:
    """Yield the whole stream as one value. Raises BadArguments for several wanted columns."""
    names = [name for name, _ in source.structure or _infer(source)]
    if len(names) != 1:
        raise errors.BadArguments(f"RawBLOB is one column, not {len(names)}.")
    value = columns.text(pa.array([source.stream.read()], pa.binary()))
    yield Rows((names[0],), (types.STRING,), (value,), 1)


FORMATS = (Format("RawBLOB", "Values without separators.", RawWriter, Reader(_infer, _read)),)
