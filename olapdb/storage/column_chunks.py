"""Row groups of a column as arrays of their own, or as parts of one array.

Readers ask for row groups that follow each other as one array. Those that already lie one after the other in memory
need no copy. A window is a stretch of a file's row groups, the same for all readers: what the cache keeps as one
array lies in one window.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pyarrow as pa

from olapdb.native.memory import lasting_pool

_SHARED_BUFFER_RATIO = 1.25
"""Slices of a column are kept as they are unless its buffers are larger than its values by this."""

_JOINED_BYTES_MAX = 64 << 20
"""The most bytes of neighbouring chunks that the cache keeps as one array, which leaves it as a whole."""

_WINDOW_ROWS = (1 << 21) - 1
"""The most rows of a window of a file, see `window_groups`."""


def split_column(
    column: pa.ChunkedArray, sizes: Sequence[int], *, copies: bool = False
) -> list[pa.Array]:
    """Return the column cut into arrays of `sizes` rows. An array shares the column's buffers only if
    they hold little else, which a cache would keep in memory, and never with `copies`."""
    arrays = []
    start = 0
    for rows in sizes:
        chunks = column.slice(start, rows).chunks
        is_whole = len(chunks) == 1 and (
            chunks[0].get_total_buffer_size() <= _SHARED_BUFFER_RATIO * chunks[0].nbytes
        )
        if is_whole and not copies:
            arrays.append(chunks[0])
        else:
            arrays.append(pa.concat_arrays(chunks, memory_pool=lasting_pool()))
        start += rows
    return arrays


def whole_array(column: pa.ChunkedArray) -> pa.Array | None:
    """Return the only array of a column, if the cache may keep it as it is: its buffers hold little else,
    and it may be joined (see `may_be_joined`). None for others."""
    if column.num_chunks != 1 or not may_be_joined(column.chunks):
        return None
    (values,) = column.chunks
    holds_little_else = values.get_total_buffer_size() <= _SHARED_BUFFER_RATIO * values.nbytes
    return values if holds_little_else else None


def cut_array(values: pa.Array, sizes: Sequence[int]) -> list[pa.Array]:
    """Return an array cut into parts of `sizes` rows, which share its memory."""
    ends = itertools.accumulate(sizes)
    return [values.slice(end - size, size) for end, size in zip(ends, sizes, strict=True)]


def bytes_of_parts(values: pa.Array, parts: Sequence[pa.Array]) -> list[int]:
    """Return the bytes of the values of parts of an array."""
    if values.null_count == 0 and pa.types.is_primitive(values.type):
        width = int(values.type.bit_width)
        return [len(part) * width // 8 for part in parts]
    return [int(part.nbytes) for part in parts]


def window_groups(group_rows: int) -> int:
    """Return how many row groups of `group_rows` rows are a window of a file. Row groups that are kept as one array lie
    in one window, so that queries which read other groups together do not undo each other's arrays."""
    return 1 << (_WINDOW_ROWS // max(group_rows, 1)).bit_length()


def is_in_window(row_groups: Sequence[int], window: int) -> bool:
    """Return whether row groups follow each other without a gap in one window of their file; each window has `window`
    row groups."""
    first = row_groups[0]
    follow = all(row_group == first + at for at, row_group in enumerate(row_groups))
    return follow and first // window == row_groups[-1] // window


def neighbours(chunks: Sequence[pa.Array]) -> pa.Array | None:
    """Return chunks that lie one after the other in the same memory as one array, without a copy; None
    for others."""
    first = chunks[0]
    if len(chunks) == 1:
        return first
    if not _has_one_place(first.type):
        return None
    buffers = first.buffers()
    addresses = _addresses(buffers)
    stop = first.offset + len(first)
    for chunk in chunks[1:]:
        if chunk.offset != stop or chunk.type != first.type:
            return None
        if _addresses(chunk.buffers()) != addresses:
            return None
        stop += len(chunk)
    return pa.Array.from_buffers(first.type, stop - first.offset, buffers, offset=first.offset)


def are_one_array(left: pa.Array, right: pa.Array) -> bool:
    """Return whether two arrays are the same values in the same memory."""
    return (
        left.type == right.type
        and left.offset == right.offset
        and len(left) == len(right)
        and _addresses(left.buffers()) == _addresses(right.buffers())
    )


def may_be_joined(chunks: Sequence[pa.Array]) -> bool:
    """Return whether chunks of a column are kept as one array: not too many bytes, of a type without
    children and dictionaries."""
    return _has_one_place(chunks[0].type) and sum(map(_bytes, chunks)) <= _JOINED_BYTES_MAX


def _bytes(chunk: pa.Array) -> int:
    """Return about how many bytes the values of an array take; `nbytes` takes ten times as long where their width is
    fixed."""
    arrow = chunk.type
    if pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow):
        return len(chunk) * int(arrow.bit_width) // 8
    return int(chunk.nbytes)


def _has_one_place(arrow: pa.DataType) -> bool:
    """Return whether an array of the type is its buffers: no children, no dictionary."""
    return not (pa.types.is_nested(arrow) or pa.types.is_dictionary(arrow))


def _addresses(buffers: Sequence[pa.Buffer | None]) -> list[int]:
    """Return where buffers begin; 0 for those that are not there."""
    return [0 if buffer is None else buffer.address for buffer in buffers]
