"""ODBCDriver2: the form in which ClickHouse's ODBC driver takes results. Numbers of bytes are Int32, in front of
each text; NULL is -1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.formats.base import Ending, Format, Writer
from olapdb.formats.texts import body, shown
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import fixed_bytes
from olapdb.types import DataType, LowCardinality

_NULL_SIZE = -1


class OdbcWriter(Writer):
    """A writer of ODBCDriver2: two lines of names and types, then the values of the rows as texts."""

    def start(self) -> bytes:
        """Return the number of the lines of the head, and the lines: what each has, and an entry a column."""
        lines = (
            ("name", *self.header.names),
            ("type", *(_shown_type(kind).name for kind in self.header.types)),
        )
        return _int32(len(lines)) + b"".join(_line(line) for line in lines)

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the values of the rows."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the bytes of each row."""
        texts = [
            _sized(shown(column, data_type, self.header))
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return pc.binary_join_element_wise(*texts, b"")

    def finish(self, ending: Ending) -> bytes:
        """Return the totals as a row."""
        return b"" if ending.totals is None else self.write(ending.totals)


def _shown_type(kind: DataType) -> DataType:
    """Return the type that the driver is told: within other types it reads LowCardinality."""
    return kind.inner if isinstance(kind, LowCardinality) else kind


def _int32(number: int) -> bytes:
    """Return a number as four bytes, the least first."""
    return number.to_bytes(4, "little", signed=True)


def _line(texts: Sequence[str]) -> bytes:
    """Return a line of the head: the number of its texts, and each with its length."""
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    return _int32(len(encoded)) + b"".join(_int32(len(text)) + text for text in encoded)


def _sized(texts: pa.Array) -> pa.Array:
    """Return texts with their lengths in front; NULL is a length of -1 alone."""
    binary = columns.binary(texts)
    sizes = pc.fill_null(pc.binary_length(binary), _NULL_SIZE)
    heads = fixed_bytes(columns.numpy_values(sizes).astype("<i4").view(np.uint8).reshape(-1, 4))
    return pc.binary_join_element_wise(heads, pc.fill_null(binary, b""), b"")


FORMATS = (Format("ODBCDriver2", "The form that ClickHouse's ODBC driver takes.", OdbcWriter),)
