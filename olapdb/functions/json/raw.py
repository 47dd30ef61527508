"""JSON values as JSON texts again: without spaces, numbers and escapes in one spelling."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.base import Environment
from olapdb.functions.casts import cast
from olapdb.functions.json.escapes import quote
from olapdb.functions.json.index import SCALAR, STRING, JsonIndex
from olapdb.functions.json.paths import keys_of
from olapdb.functions.kernels import columns
from olapdb.types import FLOAT64, INT64, UINT64, make_nullable
from olapdb.types import STRING as TEXT

WIDE_INTEGER = r"^-?[0-9]+$"


def raw_texts(index: JsonIndex, tokens: np.ndarray, environment: Environment) -> pa.Array:
    """Return the JSON text of each value; "" for token -1."""
    present = np.flatnonzero(tokens >= 0)
    first = tokens[present]
    counts = np.zeros(len(tokens), np.int64)
    counts[present] = index.close[first] - first + 1
    offsets = columns.offsets_from_counts(counts)
    starts = np.repeat(np.where(tokens >= 0, tokens, 0) - offsets[:-1], counts)
    pieces = _pieces(index, starts + np.arange(offsets[-1]), environment)
    return pc.binary_join(columns.lists_from(offsets, pieces), "")


def _pieces(index: JsonIndex, tokens: np.ndarray, environment: Environment) -> pa.Array:
    """Return the text that each token adds to its value's JSON text; for a container only the opening bracket.

    Strings are escaped in one way, floats have ClickHouse's spelling, and an integer that fits neither Int64 nor
    UInt64 is in quotes."""
    pieces = index.texts(tokens)
    kind = index.kind[tokens]
    strings = np.flatnonzero(kind == STRING)
    if len(strings):
        decoded = keys_of(index, tokens[strings])
        pieces = columns.replaced_rows(pieces, strings, quote(decoded))
    scalars = np.flatnonzero(kind == SCALAR)
    if len(scalars):
        numbers = number_texts(pieces.take(pa.array(scalars)), environment)
        wide = is_wide_integer(numbers, environment)
        if wide.any():
            numbers = columns.replaced_rows(
                numbers, np.flatnonzero(wide), quote(numbers.filter(pa.array(wide)))
            )
        pieces = columns.replaced_rows(pieces, scalars, numbers)
    return pieces


def number_texts(scalars: pa.Array, environment: Environment) -> pa.Array:
    """Return scalars as texts, floats among them in ClickHouse's spelling: 2.50 is 2.5, 1e3 is 1000, -0 is 0."""
    floats = columns.numpy_values(pc.match_substring_regex(scalars, r"^-?[0-9].*[.eE]")) != 0
    if floats.any():
        at = np.flatnonzero(floats)
        values = cast.cast_column(
            scalars.take(pa.array(at)), TEXT, FLOAT64, environment, strict=True
        )
        shown = cast.cast_column(values, FLOAT64, TEXT, environment, strict=True)
        scalars = columns.replaced_rows(scalars, at, shown)
    zero = columns.numpy_values(pc.equal(scalars, "-0")).astype(bool) & ~floats
    if zero.any():
        scalars = columns.replaced_rows(
            scalars, np.flatnonzero(zero), pa.array(["0"] * int(zero.sum()))
        )
    return scalars


def is_wide_integer(scalars: pa.Array, environment: Environment) -> np.ndarray:
    """Return whether each scalar is an integer that neither Int64 nor UInt64 holds."""
    digits = pc.match_substring_regex(scalars, WIDE_INTEGER)
    wide = columns.numpy_values(
        pc.and_(digits, pc.greater_equal(pc.binary_length(scalars), 19))
    ).astype(bool)
    if wide.any():
        at = np.flatnonzero(wide)
        texts = scalars.take(pa.array(at))
        fits = [
            np.asarray(
                cast.cast_or_null(texts, TEXT, make_nullable(t), environment).is_valid()
            ).astype(bool)
            for t in (INT64, UINT64)
        ]
        wide[at] = ~(fits[0] | fits[1])
    return wide
