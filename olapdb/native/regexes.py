"""Calls of the kernels that match regular expressions, which need the library.

The other form is Arrow's, in `functions/kernels/regexes.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.records import dataclass

GAVE_UP = 2
"""The outcome of a text that the kernel leaves to others: not ASCII, or too many steps."""
_BYTES_MAX = (1 << 31) - 1


@dataclass(frozen=True)
class Program:
    """A compiled regular expression: `words`, int32, are its header and instructions; `sets`, uint8, tables of 128 bytes."""

    words: np.ndarray
    sets: np.ndarray
    names: tuple[str | None, ...]
    """The names of the groups, from group 1 on."""
    may_be_empty: bool
    """Whether the pattern matches the empty text at some place."""


def matches(program: Program, texts: pa.Array) -> np.ndarray:
    """Return for each text 1 for a match, 0 for none, or GAVE_UP; uint8. NULL gives any of them."""
    outcomes = empty(len(texts), np.uint8)
    kernels().olapdb_regex_matches(*_arguments(program, texts), outcomes)
    return outcomes


def groups(
    program: Program, texts: pa.Array, arrow: pa.DataType
) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the outcomes as `matches` does, and the groups of each text's first match as arrays of type `arrow`; empty
    texts where there is none."""
    rows, count = len(texts), len(program.names)
    outcomes = empty(rows, np.uint8)
    starts, lengths = (empty(rows * count, np.int32) for _ in range(2))
    arguments = _arguments(program, texts)
    kernels().olapdb_regex_groups(*arguments, count, outcomes, starts, lengths)
    copied = []
    for group in range(count):
        span = slice(group * rows, (group + 1) * rows)
        offsets = empty(rows + 1, np.int32)
        data = empty(int(lengths[span].sum(dtype=np.int64)), np.uint8)
        kernels().olapdb_copy_spans(arguments[3], starts[span], lengths[span], rows, offsets, data)
        copied.append(_texts(arrow, rows, offsets, data))
    return outcomes, copied


def replaced(
    program: Program, texts: pa.Array, most: int, pieces: Sequence[int | bytes]
) -> tuple[np.ndarray, pa.Array] | None:
    """Return the outcomes as `matches` does, and the texts with up to `most` matches replaced, all for -1; rows given up are
    empty. `pieces` are the numbers of groups and the texts between them. None for too many bytes for one array."""
    rows = len(texts)
    outcomes, offsets = empty(rows, np.uint8), empty(rows + 1, np.int32)
    literals = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    described, at = [], 0
    for piece in pieces:
        size = len(piece) if isinstance(piece, bytes) else 0
        described.append((-1 if isinstance(piece, bytes) else piece, at, at + size))
        at += size
    arguments = (
        *_arguments(program, texts),
        most,
        np.array(described, np.int32).reshape(-1),
        len(described),
        np.frombuffer(literals + b"\0", np.uint8),
        outcomes,
        offsets,
    )
    capacity = texts.nbytes + rows * len(literals)
    while capacity <= _BYTES_MAX:
        data = empty(capacity + 1, np.uint8)
        if kernels().olapdb_regex_replace(*arguments, data, capacity) == rows:
            return outcomes, _texts(texts.type, rows, offsets, data)
        capacity *= 2
    return None


def _arguments(
    program: Program, texts: pa.Array
) -> tuple[np.ndarray, np.ndarray, int, int | None, int]:
    """Return the program, the addresses of the texts' offsets and bytes, and the number of rows."""
    _, offsets, data = texts.buffers()
    address = None if data is None else data.address
    return program.words, program.sets, offsets.address + 4 * texts.offset, address, len(texts)


def _texts(arrow: pa.DataType, rows: int, offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    """Return the array of texts with these offsets and bytes."""
    return pa.Array.from_buffers(arrow, rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
