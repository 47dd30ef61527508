"""The types of arrays, tuples and maps that are written as SQL writes them: [1, 2], (1, 'a'), {'k': 1}."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.formats.inference import Guess, all_match, type_of_texts
from olapdb.formats.json_row_blocks import outside_strings
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.escapes import spans, unescaped

_QUOTE = ord("'")
_OPEN = np.zeros(256, bool)
_OPEN[list(b"([{")] = True
_CLOSE = np.zeros(256, bool)
_CLOSE[list(b")]}")] = True
_NESTED = r"(?s)^(\[.*\]|\(.*\)|\{.*\})$"
_ARRAY, _TUPLE, _MAP = r"(?s)^\[.*\]$", r"(?s)^\(.*\)$", r"(?s)^\{.*\}$"


class _Mixed(Exception):
    """Raised when values have no common type."""


def type_of_nested(texts: pa.Array, guess: Guess) -> types.DataType | None:
    """Infer the type of texts that all are arrays, tuples or maps; None if any is something else."""
    if texts.null_count == len(texts) or not all_match(texts, _NESTED):
        return None
    try:
        return _type_of_literals(texts.drop_null(), guess)
    except _Mixed:
        return None


def type_of_values(texts: pa.Array, guess: Guess, *, numbers: bool = True) -> types.DataType | None:
    """Infer the type of a column of texts: a nested type, else as `type_of_texts` does."""
    nested_type = type_of_nested(texts, guess)
    return (
        type_of_texts(texts, numbers=numbers, guess=guess) if nested_type is None else nested_type
    )


def _type_of_literals(texts: pa.Array, guess: Guess) -> types.DataType | None:
    """Infer the type that all literals have; None if all are NULL. Raises _Mixed if they have no common type."""
    texts = pc.ascii_trim_whitespace(texts)
    texts = texts.filter(pc.not_equal(pc.ascii_upper(texts), "NULL"))
    if not len(texts):
        return None
    if all_match(texts, r"(?s)^'.*'$"):
        inner = unescaped(regexes.replaced(texts, r"(?s)^'(.*)'$", r"\1"))
        return type_of_texts(inner, numbers=False, guess=guess)
    if all_match(texts, _ARRAY):
        _, members = _members(texts, b",")
        return types.Array(_nullable(members, guess))
    if all_match(texts, _TUPLE):
        return _tuple_type(texts, guess)
    if all_match(texts, _MAP):
        _, members = _members(texts, b",:")
        if len(members) % 2:
            raise _Mixed
        even = np.arange(0, len(members), 2)
        key = _type_of_literals(members.take(even), guess) or types.STRING
        return types.Map(key, _nullable(members.take(even + 1), guess))
    text_type = type_of_texts(texts, guess=guess)
    if text_type == types.STRING:
        raise _Mixed
    return text_type


def _nullable(texts: pa.Array, guess: Guess) -> types.DataType:
    """Infer the type of elements, Nullable where possible."""
    return types.make_nullable(_type_of_literals(texts, guess) or types.STRING)


def _tuple_type(texts: pa.Array, guess: Guess) -> types.DataType:
    """Infer the type of tuples. Raises _Mixed for tuples of several sizes."""
    counts, members = _members(texts, b",")
    width = int(counts[0])
    if not width or (counts != width).any():
        raise _Mixed
    places = np.arange(0, len(members), width)
    elements = [_nullable(members.take(places + at), guess) for at in range(width)]
    return types.Tuple(tuple(elements))


def _members(texts: pa.Array, separators: bytes) -> tuple[np.ndarray, pa.Array]:
    """Return the number of members of each container, and the texts of all members. Raises _Mixed for brackets that
    do not match."""
    offsets, data = columns.bytes_of(texts)
    outside = outside_strings(data, _QUOTE)
    opens, closes = _OPEN[data] & outside, _CLOSE[data] & outside
    level = np.cumsum(opens.astype(np.int32) - closes)
    starts, ends = offsets[:-1], offsets[1:] - 1
    if (level[ends] != 0).any() or (level[starts] != 1).any() or (level < 0).any():
        raise _Mixed
    is_mark = np.isin(data, list(separators)) & outside & (level == 1)
    is_mark[starts] = True
    is_mark[ends] = True
    marks = np.flatnonzero(is_mark)
    is_end = np.zeros(len(data), bool)
    is_end[ends] = True
    firsts = marks[~is_end[marks]] + 1
    lasts = marks[np.flatnonzero(~is_end[marks]) + 1]
    members = spans(data, firsts, lasts)
    owner = np.searchsorted(starts, firsts, side="right") - 1
    filled = pc.not_equal(pc.ascii_trim_whitespace(members), "").to_numpy(zero_copy_only=False)
    counts = np.bincount(owner[filled], minlength=len(texts))
    return counts, members.filter(pa.array(filled))
