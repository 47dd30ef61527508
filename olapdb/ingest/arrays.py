"""Chunked columns as one array, which is what functions take."""

from __future__ import annotations

import pyarrow as pa


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece; not copied where it is in one already."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks or [pa.array([], column.type)])
