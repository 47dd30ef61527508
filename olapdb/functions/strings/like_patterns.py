"""LIKE patterns: what a pattern asks for, and the texts that match it.

A pattern without `_` asks for pieces of text one behind the other, which are compared byte by byte.  Others
go to Arrow, as regular expressions."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotParseEscapeSequence
from olapdb.functions.kernels import columns
from olapdb.native import texts as native_texts
from olapdb.native.library import library

_WHOLE_ESCAPES = r"(?:[^\\]|\\.)*"
_ESCAPE = r"\\([^%_\\])|\\([%_\\])"
_TOKEN = r"\\[%_\\]|."
"""Compiled at the first pattern that needs them: a first LIKE without a backslash needs none."""


def like(array: pa.Array, pattern: str) -> pa.Array:
    """Return a boolean for each text: whether it matches the LIKE pattern; NULL for NULL."""
    _check_end(pattern)
    pieces = pieces_of(pattern)
    if pieces is None:
        return pc.match_like(array, _with_literal_escapes(pattern))
    if library() is not None:
        return _having(array, pieces)
    if "\\" in pattern:
        return _having_by_regex(array, pieces)
    return pc.match_like(columns.binary(array), pattern.encode(errors="surrogateescape"))


def ilike(array: pa.Array, pattern: str) -> pa.Array:
    """Return whether each text matches a LIKE pattern in any case."""
    _check_end(pattern)
    return pc.match_like(array, _with_literal_escapes(pattern), ignore_case=True)


def containing(array: pa.Array, piece: str) -> pa.Array:
    """Return whether each text contains a piece of text."""
    if library() is None:
        return pc.match_substring(columns.binary(array), piece.encode(errors="surrogateescape"))
    return _having(array, ["", piece, ""])


def pieces_of(pattern: str) -> list[str] | None:
    """Return the pieces between the `%` of a LIKE pattern, without escapes; None if the pattern has a `_`.

    A backslash escapes `%`, `_` and itself; before another character it stands for itself."""
    if "\\" not in pattern:
        return None if "_" in pattern else pattern.split("%")
    pieces = [""]
    for token in re.findall(_TOKEN, pattern, re.DOTALL):
        if token == "_":
            return None
        if token == "%":
            pieces.append("")
        else:
            pieces[-1] += token[-1] if len(token) > 1 else token
    return pieces


def _having(array: pa.Array, pieces: list[str]) -> pa.Array:
    """Return whether each text has the pieces in this order, the first at its beginning, the last at
    its end; NULL for NULL."""
    first, last = bool(pieces[0]) or len(pieces) == 1, bool(pieces[-1]) or len(pieces) == 1
    sought = [
        piece.encode(errors="surrogateescape")
        for at, piece in enumerate(pieces)
        if piece or (len(pieces) == 1 and at == 0)
    ]
    matches = native_texts.match_pieces(array, sought, from_start=first, to_end=last)
    return columns.from_values(matches, pa.bool_(), columns.validity(array))


def _having_by_regex(array: pa.Array, pieces: list[str]) -> pa.Array:
    """Do the same as `_having` by a regular expression, which needs no escapes of LIKE: Arrow's `match_like` takes
    them as characters where a pattern only begins or ends with `%`."""
    escaped = [re.escape(piece.encode(errors="surrogateescape")) for piece in pieces]
    return pc.match_substring_regex(columns.binary(array), b"(?s)^" + b".*".join(escaped) + b"$")


def _check_end(pattern: str) -> None:
    """Raise CannotParseEscapeSequence for a backslash at the end that escapes nothing."""
    if pattern.endswith("\\") and not re.fullmatch(_WHOLE_ESCAPES, pattern, re.DOTALL):
        raise CannotParseEscapeSequence(
            f"Invalid escape sequence at the end of LIKE pattern {pattern!r}.",
            hint="Write two backslashes for one.",
        )


def _with_literal_escapes(pattern: str) -> str:
    """Return the pattern with each backslash doubled that escapes no wildcard: it stands for itself, but Arrow drops
    it."""
    if "\\" not in pattern:
        return pattern
    return re.sub(
        _ESCAPE, lambda m: m[0] if m[1] is None else "\\\\" + m[1], pattern, flags=re.DOTALL
    )
