"""Literal rows to CSV, by a scan of bytes that finds rows, fields and quotes.

A compiled kernel reads them byte by byte (`native/literals.c`). This is the form in numpy: a byte is inside a string where the number of quotes up to it is odd.  `''` inside a string changes
the parity twice, so it needs no special case; an escaped quote is not counted.  The scan never
guesses: the grammar reads whatever does not look exactly like rows of plain literals.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from olapdb.native.library import library
from olapdb.native.literals import PlainRows, plain_rows

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]

_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA, _NEWLINE = b"'\\(),\n"
_STRUCTURE = np.zeros(256, dtype=np.bool_)
_STRUCTURE[list(b"(),")] = True
_SPACE = np.zeros(256, dtype=np.bool_)
_SPACE[list(b" \t\r\n\f\v")] = True
_BARE = np.zeros(256, dtype=np.bool_)
_BARE[list(b"0123456789+-.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] = True
_ESCAPED = np.arange(256, dtype=np.uint8)
_KNOWN_ESCAPE = np.zeros(256, dtype=np.bool_)
_KNOWN_ESCAPE[[*range(1, 32), 127]] = True
for _letter, _byte in zip(b"abefnrtv0\\'\"`/=", b"\a\b\x1b\f\n\r\t\v\0\\'\"`/=", strict=True):
    _ESCAPED[_letter] = _byte
    _KNOWN_ESCAPE[_letter] = True


def scan_plain_rows(text: str, columns: int) -> PlainRows | None:
    """Return the rows of `text` as CSV; None where a value is no plain literal or rows are uneven."""
    body = text.strip().removesuffix(";").rstrip().removesuffix(",").rstrip()
    if not body.startswith("(") or not body.endswith(")") or columns == 0:
        return None
    try:
        encoded = body.encode()
    except UnicodeEncodeError:  # half a surrogate pair: the grammar names the place
        return None
    if library() is not None:
        return plain_rows(encoded, columns)
    data = np.frombuffer(encoded, dtype=np.uint8)
    if "\\" in body:
        unescaped = _without_escapes(data)
        if unescaped is None:
            return None
        data = unescaped
    return _scan(data, columns)


def _scan(data: Bytes, columns: int) -> PlainRows | None:
    """Return rows without backslashes as CSV.

    None if a string does not end, a value is no plain literal, two values have only a space between
    them, or a row does not have `columns` values.
    """
    quotes = data == _QUOTE
    parity = np.bitwise_xor.accumulate(quotes) if quotes.any() else quotes
    if parity[-1]:
        return None
    outside = ~(parity | quotes)
    blank = outside & _SPACE[data]
    if blank.any():
        squeezed = _squeeze(data, quotes, parity, outside, blank)
        if squeezed is None:
            return None
        data, quotes, parity, outside = squeezed
    bare = data[outside]
    if not (_BARE | _STRUCTURE)[bare].all():
        return None
    return _rows(data, quotes, parity, outside & _STRUCTURE[data], columns)


def _squeeze(
    data: Bytes, quotes: Mask, parity: Mask, outside: Mask, blank: Mask
) -> tuple[Bytes, Mask, Mask, Mask] | None:
    """Drop the bytes of `blank` from all arrays; return None where they separated two values."""
    keep = ~blank
    kept_offsets = np.flatnonzero(keep)
    gaps = np.flatnonzero(np.diff(kept_offsets) > 1)
    structure = outside & _STRUCTURE[data]
    before, after = structure[kept_offsets[gaps]], structure[kept_offsets[gaps + 1]]
    if not (before | after).all():
        return None
    return data[keep], quotes[keep], parity[keep], outside[keep]


def _rows(
    data: Bytes, quotes: Mask, parity: Mask, structure: Mask, columns: int
) -> PlainRows | None:
    """Return the rows as CSV; None unless `structure` forms rows of `columns` fields each.

    `structure` marks the parentheses and commas outside strings."""
    marks = np.flatnonzero(structure)
    kinds = data[marks]
    # every row is "(" columns-1 commas ")", and a comma between rows: a fixed rhythm
    rhythm = np.full(columns + 2, _COMMA, dtype=np.uint8)
    rhythm[0], rhythm[columns] = _OPEN, _CLOSE
    rows, rest = divmod(len(marks) + 1, columns + 2)
    if rest or not np.array_equal(kinds, np.tile(rhythm, rows)[:-1]):
        return None
    places = np.append(marks, len(data)).reshape(rows, columns + 2)
    opens, closes = places[:, 0], places[:, columns]
    if opens[0] != 0 or closes[-1] != len(data) - 1:
        return None
    if (places[:-1, columns + 1] != closes[:-1] + 1).any():
        return None
    if (opens[1:] != places[:-1, columns + 1] + 1).any():
        return None
    starts = places[:, :columns] + 1
    ends = places[:, 1 : columns + 1]
    if (starts >= ends).any() or not _strings_fill_fields(data, quotes, parity, starts, ends):
        return None
    return _as_csv(data, structure, places, columns, data[starts], opens, closes)


def _strings_fill_fields(
    data: Bytes, quotes: Mask, parity: Mask, starts: Offsets, ends: Offsets
) -> bool:
    """Return whether each string is a whole field, from the field's start to its end."""
    if not quotes.any():
        return True
    opening = quotes & parity
    # the second of `''` inside a string opens again at once: no start of a string
    opening[1:] &= ~(quotes[:-1] & ~parity[:-1])
    quoted = data[starts] == _QUOTE
    if int(opening.sum()) != int(quoted.sum()) or not opening[starts[quoted]].all():
        return False
    return bool((data[ends[quoted] - 1] == _QUOTE).all())


def _as_csv(
    data: Bytes,
    structure: Mask,
    places: Offsets,
    columns: int,
    first: Bytes,
    opens: Offsets,
    closes: Offsets,
) -> PlainRows:
    """Return the rows as CSV: closing parentheses become line feeds.

    Opening parentheses and the commas between rows are dropped."""
    drop = np.zeros(len(data), dtype=np.bool_)
    drop[opens] = True
    drop[places[:-1, columns + 1]] = True
    csv_data = data.copy()
    csv_data[closes] = _NEWLINE
    inside = ~structure
    has_newlines = bool(((data == _NEWLINE) & inside).any() or ((data == 13) & inside).any())
    longest = int((closes - opens).max()) + 1
    return PlainRows(csv_data[~drop].tobytes(), first, longest, has_newlines)


def _without_escapes(data: Bytes) -> Bytes | None:
    r"""Replace escapes: `\n` by a line feed, `\'` by `''`; an unknown `\d` stays.

    Returns None for `\x41` and `\N`, and for a backslash outside a string.
    """
    backslashes = np.flatnonzero(data == _BACKSLASH)
    # in a run of backslashes the 1st, 3rd, … escape the byte behind them
    begins = np.flatnonzero(np.diff(backslashes, prepend=-2) != 1)
    lengths = np.diff(np.append(begins, len(backslashes)))
    rank = np.arange(len(backslashes)) - np.repeat(begins, lengths)
    escaping = backslashes[rank % 2 == 0]
    if escaping[-1] + 1 >= len(data):
        return None
    escaped = data[escaping + 1]
    if ((escaped == ord("x")) | (escaped == ord("N"))).any():
        return None
    counted = data == _QUOTE
    counted[escaping + 1] = False
    if not np.bitwise_xor.accumulate(counted)[escaping].all():
        return None
    known = _KNOWN_ESCAPE[escaped]
    quote = escaped == _QUOTE
    unescaped = data.copy()
    unescaped[escaping[known] + 1] = _ESCAPED[escaped[known]]
    unescaped[escaping[quote]] = _QUOTE
    keep = np.ones(len(data), dtype=np.bool_)
    keep[escaping[known & ~quote]] = False
    return unescaped[keep]
