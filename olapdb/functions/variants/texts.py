"""Texts as values of a Variant: which alternative reads each of them.

The alternatives are tried in an order: those that read few texts first, String last, as ClickHouse orders them
(`getVariantsDeserializeTextOrder`).  A text belongs to the first that reads it whole and unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import DataError, IncorrectData
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import NO_ALTERNATIVE, assembled
from olapdb.types.arrow_values import from_numpy

Parse: TypeAlias = Callable[[pa.Array, types.DataType], pa.Array]
"""A function from texts and a plain type to values, NULL for each text that is none."""

_TEXTS = (types.String, types.FixedString)
_NUMBERS = (types.Integer, types.Float, types.Decimal)
_CONTAINERS = (types.Array, types.Tuple, types.Map)
_ORDER: tuple[type[types.DataType], ...] = (
    types.Array,
    types.Tuple,
    types.Map,
    types.AggregateFunction,
    types.Enum,
    types.UUID,
    types.IPv4,
    types.IPv6,
    types.Boolean,
    types.Integer,
    types.WideNumber,
    types.Decimal,
    types.Float,
    types.Date,
    types.Date32,
    types.DateTime,
    types.DateTime64,
    types.FixedString,
    types.String,
)
_PLAUSIBLE: dict[type[types.DataType], str] = {
    types.Array: r"^\s*\[.*\]\s*$",
    types.Tuple: r"^\s*\(.*\)\s*$",
    types.Map: r"^\s*\{.*\}\s*$",
    types.IPv4: r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$",
    types.IPv6: r"^[0-9a-fA-F]*:[0-9a-fA-F:.]*$",
    types.Time: r"^-?[0-9]+:",
    types.Time64: r"^-?[0-9]+:",
    types.Date: r"^[0-9]{4}-?[0-9]{1,2}-?[0-9]{1,2}$",
    types.Date32: r"^[0-9]{4}-?[0-9]{1,2}-?[0-9]{1,2}$",
    types.DateTime: r"^[0-9]{4}-?[0-9]{2}[^.]*$",
    types.DateTime64: r"^[0-9]{4}-?[0-9]{2}",
}
"""What a text of the type looks like; others are not tried."""


def _depth(data_type: types.DataType) -> int:
    """Return how many levels of arrays, tuples and maps the type has."""
    match types.plain(data_type):
        case types.Array(inner):
            return 1 + _depth(inner)
        case types.Map(key, value):
            return 1 + max(_depth(key), _depth(value))
        case types.Tuple(elements):
            return 1 + max(map(_depth, elements), default=0)
        case _:
            return 0


def _rank(data_type: types.DataType) -> tuple[int, int, int]:
    """Return the sort key by which alternatives are tried: containers by depth, then by kind, then by size."""
    plain = types.plain(data_type)
    kinds = [at for at, kind in enumerate(_ORDER) if type(plain) is kind]
    kinds = kinds or [at for at, kind in enumerate(_ORDER) if isinstance(plain, kind)]
    size = 0
    if isinstance(plain, types.Integer | types.WideNumber):
        size = 2 * plain.bits + (not plain.signed)
    elif isinstance(plain, types.Decimal):
        size = plain.precision
    elif isinstance(plain, types.Float):
        size = plain.bits
    return -_depth(plain), kinds[0] if kinds else _ORDER.index(types.FixedString), size


def text_order(
    variant: types.Variant, kinds: tuple[type[types.DataType], ...] = (types.DataType,)
) -> list[int]:
    """Return the places of the alternatives of these kinds, in the order in which they are tried."""
    places = [at for at, t in enumerate(variant.alternatives) if isinstance(types.plain(t), kinds)]
    return sorted(places, key=lambda at: _rank(variant.alternatives[at]))


def literal_order(variant: types.Variant, source: types.DataType) -> list[int]:
    """Return the places of the alternatives that may read a literal of the type `source`, first to last.

    A text is no number, a number no date, and String reads what no other alternative does."""
    last = text_order(variant, _TEXTS)
    match types.plain(source):
        case types.String():
            exclude = (*_NUMBERS, *_CONTAINERS)
            others = text_order(variant)
            kept = [
                at
                for at in others
                if at not in last and not isinstance(types.plain(variant.alternatives[at]), exclude)
            ]
            return [*kept, *last]
        case types.Array() | types.Tuple() | types.Map():
            return [*text_order(variant, _CONTAINERS), *last]
        case types.Boolean():
            return [*text_order(variant, (types.Boolean,)), *last]
        case types.Integer() | types.Float() | types.Decimal():
            return [*text_order(variant, _NUMBERS), *last]
        case _:
            return [*text_order(variant, (type(types.plain(source)),)), *last]


def of_texts(
    texts: pa.Array, variant: types.Variant, parse: Parse, order: Sequence[int]
) -> pa.Array:
    """Return texts as values of the variant, NULL for NULL and for texts that no alternative reads.

    `order` has the places of the alternatives to try."""
    numbers = np.full(len(texts), NO_ALTERNATIVE, np.uint8)
    valid = columns.validity(texts)
    rows = np.arange(len(texts)) if valid is None else np.flatnonzero(valid)
    values: dict[int, pa.Array] = {}
    for place in order:
        if not len(rows):
            break
        read = _read(texts.take(from_numpy(rows)), variant.alternatives[place], parse)
        is_read = np.asarray(read.is_valid())
        numbers[rows[is_read]] = place
        values[place] = read.drop_null() if read.null_count else read
        rows = rows[~is_read]
    return assembled(variant, numbers, values)


def _read(texts: pa.Array, data_type: types.DataType, parse: Parse) -> pa.Array:
    """Return the values of the texts that an alternative reads, NULL for all others."""
    plain = types.plain(data_type)
    if isinstance(plain, types.String):
        return texts
    if isinstance(plain, types.AggregateFunction):
        return pa.nulls(len(texts), plain.arrow)
    if isinstance(plain, types.Boolean):
        known = pc.is_in(texts, pa.array(["true", "false"]))
        return pc.if_else(known, pc.equal(texts, "true"), pa.scalar(None, pa.bool_()))
    if isinstance(plain, types.Enum):
        names = pa.array([text for text, _ in plain.elements], pa.string())
        own = pa.array([number for _, number in plain.elements], plain.arrow)
        return own.take(pc.index_in(texts, names))
    plausible = np.asarray(_plausible(texts, plain))
    read = parse(texts.filter(pa.array(plausible)), plain)
    return read if plausible.all() else columns.scatter(read, plausible)


def are_values(texts: pa.Array, data_type: types.DataType, parse: Parse) -> np.ndarray:
    """Return a mask of the texts that a type reads as its values."""
    return np.asarray(_read(texts, data_type, parse).is_valid())


def _plausible(texts: pa.Array, plain: types.DataType) -> pa.Array:
    """Return a mask of the texts that may be values of the type: a cheap test before parsing."""
    if isinstance(plain, types.FixedString):
        return pc.less_equal(pc.binary_length(texts), plain.length)
    patterns = [pattern for kind, pattern in _PLAUSIBLE.items() if isinstance(plain, kind)]
    if patterns:
        return pc.match_substring_regex(columns.binary(texts), patterns[0])
    return pc.not_equal(texts, "")


def refuse_unread(texts: pa.Array, read: pa.Array, variant: types.Variant) -> DataError | None:
    """Return IncorrectData about the first text that no alternative reads, with its row; None if there is none."""
    unread = np.asarray(read.is_null()) & np.asarray(texts.is_valid())
    if not unread.any():
        return None
    row = int(np.argmax(unread))
    shown = columns.binary(texts)[row].as_py()[:80].decode("utf-8", "backslashreplace")
    return IncorrectData(
        f"Cannot parse {shown!r} as a value of {variant}.",
        hint="Add String to the Variant, which takes any text.",
    ).at_row(row)
