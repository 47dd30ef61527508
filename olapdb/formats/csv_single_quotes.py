"""CSV whose values may be in single quotes, as CSV with double quotes alone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from olapdb.formats.blocks import BLOCK_BYTES, blocks_of


def with_double_quotes(stream: BinaryIO, delimiter: str) -> BinaryIO:
    """Return the stream with single-quoted values rewritten to double-quoted ones. A doubled single quote becomes
    one, so that 'it''s' becomes "it's"."""
    edge = re.escape(delimiter.encode())
    of_values = re.compile(
        rb"(?:\A|(?<=[\n\r])|(?<=" + edge + rb"))([ \t]*)"
        rb"(?:(\"[^\"]*(?:\"\"[^\"]*)*(?:\"|\Z))|'([^']*(?:''[^']*)*)('|\Z))"
    )
    blocks = blocks_of(stream, partial(_end_of_rows, of_values=of_values))
    rewritten = (of_values.sub(_in_double_quotes, block) for block in blocks)
    return cast(BinaryIO, io.BufferedReader(_Blocks(rewritten, stream.close), BLOCK_BYTES))


def _in_double_quotes(match: re.Match[bytes]) -> bytes:
    """Return the matched value rewritten to double quotes; a double-quoted value, or one without a closing quote,
    unchanged."""
    blanks, double, single, end = match.groups()
    if double is not None:
        return match.group()
    text = single.replace(b"''", b"'").replace(b'"', b'""')
    return bytes(blanks + b'"' + text + (b'"' if end else b""))


def _end_of_rows(data: bytes, of_values: re.Pattern[bytes]) -> int:
    """Return the number of bytes up to and including the last line feed outside quotes."""
    spans = [match.span() for match in of_values.finditer(data)]
    feed = data.rfind(b"\n")
    while spans and spans[-1][1] > feed >= 0:
        start, _ = spans.pop()
        if start <= feed:
            feed = data.rfind(b"\n", 0, start)
    return feed + 1


class _Blocks(io.RawIOBase):
    """A stream over blocks of bytes that an iterator produces on demand."""

    def __init__(self, blocks: Iterator[bytes], close: Callable[[], None]) -> None:
        """Take the iterator of blocks, and the function that closes their source."""
        self._blocks = blocks
        self._close = close
        self._rest = b""

    def readable(self) -> bool:
        """Return True: this stream is only read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes read, 0 at the end."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        data = self._rest[: len(buffer)]
        self._rest = self._rest[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream that the blocks come from."""
        if not self.closed:
            self._close()
        super().close()
