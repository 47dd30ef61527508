"""Streams of bytes in blocks of whole rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

BLOCK_BYTES = 1 << 23
"""Bytes that are read at once. A block has more where one row has."""


def blocks_of(
    stream: BinaryIO, end_of_rows: Callable[[bytes], int], block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """Yield the stream in blocks of whole rows; the last block also has the incomplete rest. `end_of_rows` returns
    the number of bytes of whole rows in its argument, 0 for none. A short stream is one block."""
    rest = block = b""
    wanted = block_bytes
    while data := stream.read(wanted):
        if block:
            yield block
        data = rest + data
        end = end_of_rows(data)
        block, rest = data[:end], data[end:]
        wanted = block_bytes if end else wanted * 2
    if block or rest:
        yield block + rest


def end_of_lines(data: bytes) -> int:
    """Return the number of bytes up to the last line feed, with it."""
    return data.rfind(b"\n") + 1


def end_of_escaped_lines(data: bytes) -> int:
    """Return the number of bytes up to and including the last line feed that no backslash precedes."""
    end = data.rfind(b"\n")
    while end > 0 and data[end - 1] == ord("\\"):
        start = end
        while start and data[start - 1] == ord("\\"):
            start -= 1
        if (end - start) % 2 == 0:
            break
        end = data.rfind(b"\n", 0, start)
    return end + 1


def without_empty_end(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks of lines, without the empty lines at the end of the last one."""
    held = b""
    for block in blocks:
        data = held + block
        end = len(data.rstrip(b"\r\n"))
        end = min(data.find(b"\n", end) + 1 or len(data), len(data)) if end else 0
        if end:
            yield data[:end]
        held = data[end:]


def take_lines(stream: BinaryIO, count: int) -> list[bytes]:
    """Read up to `count` lines of the stream, fewer at its end; return them without line ends."""
    lines = []
    for _ in range(count):
        line = stream.readline()
        if not line:
            break
        lines.append(line.rstrip(b"\r\n"))
    return lines


class Behind(io.RawIOBase):
    """A stream of bytes that were already read, followed by the rest of another stream."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        """Take the bytes that come first and the stream that follows."""
        self._first = first
        self._stream = stream

    def readable(self) -> bool:
        """Return True: this stream is only read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes read, 0 at the end."""
        data = self._first[: len(buffer)] or self._stream.read(len(buffer))
        self._first = self._first[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream that follows."""
        if not self.closed:
            self._stream.close()
        super().close()


def without_byte_order_mark(stream: BinaryIO) -> BinaryIO:
    """Return the stream without a UTF-8 byte order mark at its start."""
    first = stream.read(3)
    if first == b"\xef\xbb\xbf":
        return stream
    return cast(BinaryIO, io.BufferedReader(Behind(first, stream), BLOCK_BYTES))
