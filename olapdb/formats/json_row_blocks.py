"""The rows of a stream of JSON: where each object or array starts and ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.formats.base import Input
from olapdb.formats.blocks import blocks_of
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.escapes import spans
from olapdb.native.json import json_rows
from olapdb.native.library import library

_BACKSLASH, _QUOTE = ord("\\"), ord('"')
_OPEN = np.zeros(256, bool)
_OPEN[list(b"{[")] = True
_CLOSE = np.zeros(256, bool)
_CLOSE[list(b"}]")] = True


def outside_strings(data: np.ndarray, quote: int = _QUOTE) -> np.ndarray:
    """Return a mask of the bytes outside strings. Strings are between `quote` characters, which a backslash may
    escape."""
    backslash = data == _BACKSLASH
    quotes = data == quote
    if backslash.any():
        position = np.arange(len(data))
        other = np.maximum.accumulate(np.where(backslash, -1, position))
        escaped = np.zeros(len(data), bool)
        escaped[1:] = (((position - other) & 1) == 1)[:-1] & backslash[:-1]
        quotes &= ~escaped
    return ~np.bitwise_xor.accumulate(quotes)


def row_spans(data: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and end of each object or array at nesting depth `depth`."""
    if library() is not None:
        return json_rows(data, depth)
    outside = outside_strings(data)
    opens, closes = _OPEN[data] & outside, _CLOSE[data] & outside
    level = np.cumsum(opens.astype(np.int32) - closes)
    starts = np.flatnonzero(opens & (level == depth + 1))
    ends = np.flatnonzero(closes & (level == depth)) + 1
    return starts[: len(ends)], ends


def _is_wrapped(data: bytes, opening: bytes) -> bool:
    """Return whether all rows, which begin with `opening`, are elements of one array. Rows that are arrays themselves
    never are: the first value of a row may be an array."""
    start = data.lstrip()
    return opening == b"{" and start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"]")


class RowBlocks:
    """A stream of JSON rows, read a block at a time as texts. Commas, blanks and line feeds may separate rows, and
    one array may enclose rows that are objects."""

    def __init__(self, source: Input, opening: bytes) -> None:
        """Take the source; `opening` is the bracket with which a row begins."""
        self._source = source
        self._opening = opening
        self._depth: int | None = None

    def _end(self, data: bytes) -> int:
        """Return the number of bytes up to the end of the last whole row."""
        if self._depth is None:
            self._depth = int(_is_wrapped(data, self._opening))
            self._bracket = data.find(b"[") + 1 if self._depth else 0
        values = np.frombuffer(data, np.uint8)
        depth = self._depth if self._bracket else 0
        _, ends = row_spans(values, depth)
        return int(ends[-1]) if len(ends) else 0

    def texts(self) -> Iterator[pa.Array]:
        """Yield the texts of the rows of each block. Raises IncorrectData for text that is not a row."""
        ended = True
        for block in blocks_of(self._source.stream, self._end):
            data = block
            if self._bracket:  # the first block of rows in one array
                data, self._bracket = block[self._bracket :], 0
            rows, closed = _texts(data, self._opening, in_array=bool(self._depth))
            ended = not self._depth or closed
            if len(rows):
                yield rows
        if not ended:
            raise errors.IncorrectData("The array of rows does not end: its ] is missing.")


class KeyedRowBlocks:
    """A stream of one JSON object whose member values are the rows; read a block at a time as texts, with the
    members' names."""

    def __init__(self, source: Input) -> None:
        """Take the source."""
        self._source = source
        self._opened = 0

    def _end(self, data: bytes) -> int:
        """Return the number of bytes up to the end of the last whole row."""
        if not self._opened:
            self._opened = data.find(b"{") + 1
            self._starts = True
        _, ends = row_spans(np.frombuffer(data, np.uint8), int(self._starts))
        return int(ends[-1]) if len(ends) else 0

    def pairs(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield the quoted names and the texts of the rows of each block. Raises IncorrectData for other text."""
        for block in blocks_of(self._source.stream, self._end):
            data = block
            if self._starts:
                data, self._starts = block[self._opened :], False
            values = np.frombuffer(data, np.uint8)
            starts, ends = row_spans(values, 0)
            before = spans(values, np.concatenate(([0], ends[:-1]))[: len(starts)], starts)
            names = regexes.extracted(before, _NAME)
            rest = data[ends[-1] :] if len(ends) else data
            if names.null_count or rest.strip(b" \t\r\n}"):
                raise errors.IncorrectData('The data are no object of rows: {"row_1": {…}, …}.')
            if len(names):
                yield names.field(0), spans(values, starts, ends)


_NAME = r"""^[ \t\r\n,]*(?P<name>"(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*$"""


def _texts(data: bytes, opening: bytes, *, in_array: bool) -> tuple[pa.Array, bool]:
    """Return the texts of the rows of a block, and whether it has a ] outside of rows. Raises CannotParseInput for
    anything but commas and blanks between rows, CannotReadAllData for an incomplete last row."""
    values = np.frombuffer(data, np.uint8)
    starts, ends = row_spans(values, 0)
    gap_starts, gap_ends = np.append(0, ends), np.append(starts, len(values))
    _, rest = columns.bytes_of(spans(values, gap_starts, gap_ends))
    junk = rest[~np.isin(rest, list(b" \t\r\n,;]" if in_array else b" \t\r\n,;"))]
    if len(junk) and opening == b"{" and junk[0] == opening[0]:
        raise errors.CannotReadAllData(
            "A row of JSON does not end.", hint="Its last bracket, or a quote, is missing."
        )
    if len(junk) or (len(starts) and (values[starts] != opening[0]).any()):
        raise errors.CannotParseInput(
            f"The data are no rows of JSON that begin with {opening.decode()}.",
            hint="Each row is an object or an array, as the format says; the last one must end.",
        )
    return spans(values, starts, ends), bool((rest == ord("]")).any())
