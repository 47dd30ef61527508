"""Bytes of rows without anything between them: where each row begins, found for all bytes of a block at once.

The end of a value that began at a byte is a function of that byte, so that arrays of positions are
mapped to arrays of positions. A position behind the data is `ByteBlock.beyond`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from olapdb import errors
from olapdb.records import dataclass

BLOCK_BYTES = 1 << 18
"""Bytes whose rows are found at once: each has several positions of 8 bytes."""
_VARINT_BYTES = 5
_PADDING = 64
Ends = Callable[["ByteBlock", np.ndarray], np.ndarray]
"""What returns the position behind the value that begins at each position."""


@dataclass(frozen=True)
class ByteBlock:
    """The bytes of rows. `data` has zeros after its `size` bytes, so that reads past the end are safe."""

    data: np.ndarray
    size: int

    @staticmethod
    def of(data: bytes) -> ByteBlock:
        """Make a block of these bytes."""
        return ByteBlock(np.frombuffer(data + bytes(_PADDING), np.uint8), len(data))

    @property
    def beyond(self) -> int:
        """Return the position that stands for every position past the end."""
        return self.size + 1

    def moved(self, positions: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
        """Return positions moved by `counts` bytes; `beyond` where that is behind the end of the block."""
        ends = positions + counts
        return np.where((ends > self.size) | (positions > self.size), self.beyond, ends)

    def numbers(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Decode the varints (7 bits a byte) at the positions; return the numbers and the positions after them."""
        return self.varints(positions, _VARINT_BYTES)

    def varints(self, positions: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Decode varints as `numbers` does, of at most `width` bytes each."""
        result = np.zeros(len(positions), np.int64)
        length = np.zeros(len(positions), np.int64)
        goes_on = np.ones(len(positions), bool)
        for at in range(width):
            byte = self.data[positions + at].astype(np.int64)
            result += np.where(goes_on, (byte & 0x7F) << (7 * at), 0)
            length += goes_on
            goes_on &= byte >= 0x80
        return result, self.moved(positions, length)

    def bytes_at(self, positions: np.ndarray, width: int) -> np.ndarray:
        """Return `width` bytes from each position on; shape (positions, width)."""
        return np.ascontiguousarray(self.data[positions[:, None] + np.arange(width)])


def repeated(block: ByteBlock, at: np.ndarray, counts: np.ndarray, ends: Ends) -> np.ndarray:
    """Return for each position in `at` the one behind as many values in a row as `counts` says. `ends` gives the
    position behind one value; the steps over 2, 4, 8, … values are made from it."""
    step = ends(block, np.arange(block.beyond + 1))
    left = counts.copy()
    while True:
        at = np.where(left & 1, step[at], at)
        left >>= 1
        if not left.any():
            return at
        step = step[step]


def row_starts(block: ByteBlock, ends: Ends, format_name: str) -> tuple[np.ndarray, int]:
    """Return the start of each whole row of the block, and the end of the last one. `ends` maps the start of a row to
    its end. Raises IncorrectData for rows without bytes."""
    step = ends(block, np.arange(block.beyond + 1))
    starts = np.zeros(1, np.int64)
    while starts[-1] < block.size:
        starts = np.concatenate((starts, step[starts]))
        step = step[step]
        if len(starts) > 2 * (block.size + 1):
            raise errors.IncorrectData(f"The rows of {format_name} have no bytes.")
    whole = starts[starts <= block.size]
    return whole[: np.searchsorted(whole, whole[-1])], int(whole[-1])


def blocks_of_rows(
    stream: BinaryIO, ends: Ends, format_name: str, unit: str = "row"
) -> Iterator[tuple[ByteBlock, np.ndarray]]:
    """Yield blocks of whole rows, and the start of each row. `ends` maps the start of a row to its end; `unit` is the
    format's word for a row. Raises CannotReadAllData for an incomplete last row, IncorrectData for rows without
    bytes."""
    ready: tuple[ByteBlock, np.ndarray] | None = None
    rest = b""
    wanted = BLOCK_BYTES
    while data := stream.read(wanted):
        if ready is not None:
            yield ready
        data = rest + data
        at, end = row_starts(ByteBlock.of(data), ends, format_name)
        ready = (ByteBlock.of(data[:end]), at) if end else None
        rest = data[end:]
        wanted = BLOCK_BYTES if end else wanted * 2
    if rest:
        raise errors.CannotReadAllData(f"The data end within a {unit}.")
    if ready is not None:
        yield ready
