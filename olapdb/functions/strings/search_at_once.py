"""multiSearch… and multiMatchAny of the same needles in many texts at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.kernels import columns, slices
from olapdb.functions.kernels.by_value import bytes_of_text, values_by_row
from olapdb.functions.strings.arguments import DOT_MATCHES_ALL

Join = Callable[[np.ndarray], pa.Array]
"""A function of positions, from 1 or 0 where a needle is absent, shape (needles, rows)."""


def of_constant_needles(
    search: Callable[[pa.Array, list[str]], pa.Array | None], function: Callable[..., object]
) -> scalar.Kernel:
    """Return a kernel that searches all texts at once for constant needles, or calls the function
    with each distinct row, also where `search` returns None."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Search all texts at once if the needles are constant and `search` can, else each distinct row."""
        needles = call.constant(1)
        if isinstance(needles, list) and needles and None not in needles:
            answer = search(columns.text(arrays[0]), [_text(needle) for needle in needles])
            if answer is not None:
                return answer
        return values_by_row(arrays, function, call.result.arrow)

    return kernel


def _text(needle: str | bytes) -> str:
    """Return a needle as text; bytes that are not UTF-8 become surrogates."""
    return needle if isinstance(needle, str) else needle.decode("utf-8", "surrogateescape")


def searching(case: str, utf8: str, join: Join) -> Callable[[pa.Array, list[str]], pa.Array | None]:
    """Return a search for needles in all texts: `join` gets the first position of each needle in each text.

    `case` set ignores the case; positions count bytes, or with `utf8` characters."""

    def search(texts: pa.Array, needles: list[str]) -> pa.Array | None:
        """Find each needle in all texts; return None if case is ignored and, with `utf8`, any text has characters
        beyond ASCII."""
        offsets, data = columns.bytes_of(texts)
        wide = bool(utf8) and (data >= 0x80).any()
        if case:
            if wide:
                return None
            texts, needles = pc.ascii_lower(texts), [_ascii_lower(n) for n in needles]
        raw = columns.binary(texts)
        rows = [
            columns.numpy_values(pc.find_substring(raw, bytes_of_text(needle))).astype(np.int64)
            for needle in needles
        ]
        if wide:
            rows = [_in_characters(texts, places) for places in rows]
        positions = np.stack(rows) + 1
        positions[:, np.diff(offsets) == 0] = 0  # even of the empty needle
        return join(positions)

    return search


def _ascii_lower(needle: str) -> str:
    """Return the needle with its ASCII letters in lower case."""
    return bytes_of_text(needle).lower().decode("utf-8", "surrogateescape")


def _in_characters(texts: pa.Array, places: np.ndarray) -> np.ndarray:
    """Return positions in bytes as positions in characters; -1, for no match, stays."""
    before = slices.pieces(texts, np.zeros(len(places), np.int64), np.maximum(places, 0))
    return np.where(places < 0, -1, slices.lengths_of(before, utf8=True))


def all_positions(positions: np.ndarray) -> pa.Array:
    """Return each row's positions, from 1, or 0 for an absent needle, as a list."""
    needles, rows = positions.shape
    values = columns.from_values(positions.T.reshape(-1), pa.uint64())
    return columns.lists_from(np.arange(rows + 1) * needles, values)


def first_position(positions: np.ndarray) -> pa.Array:
    """Return the least position, from 1, at which any needle occurs in each row; 0 if none does."""
    never = np.iinfo(np.int64).max
    least = np.where(positions > 0, positions, never).min(axis=0)
    return columns.from_values(np.where(least == never, 0, least), pa.uint64())


def first_index(positions: np.ndarray) -> pa.Array:
    """Return the number, from 1, of the first needle that occurs in each row, or 0."""
    occurs = positions > 0
    return columns.from_values(
        np.where(occurs.any(axis=0), occurs.argmax(axis=0) + 1, 0), pa.uint64()
    )


def any_match(texts: pa.Array, patterns: list[str]) -> pa.Array:
    """Return whether any pattern matches each text, as UInt8."""
    matched = np.zeros(len(texts), bool)
    for pattern in patterns:
        matched |= np.asarray(pc.match_substring_regex(texts, DOT_MATCHES_ALL + pattern))
    return columns.from_values(matched.astype(np.uint8), pa.uint8())
