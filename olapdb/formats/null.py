"""Null: a result of which nothing is written."""

from __future__ import annotations

import pyarrow as pa

from olapdb.formats.base import Format, Writer


class NullWriter(Writer):
    """A writer that writes nothing: the query runs to its end."""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return nothing."""
        return b""


FORMATS = (Format("Null", "A result of which nothing is kept.", NullWriter),)
