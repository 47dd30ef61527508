"""JSON values as those of a Variant: a token belongs to the first alternative of which it is one, whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, SCALAR, STRING, JsonIndex
from olapdb.functions.kernels import columns
from olapdb.functions.variants import texts as variant_texts
from olapdb.functions.variants.values import NO_ALTERNATIVE, alternatives_of, assembled, numbers_of
from olapdb.types.arrow_values import from_numpy

_CONTAINERS = (types.Array, types.Tuple, types.Map)
_NUMBERS = (types.Integer, types.Float, types.Decimal)
_TEXTS = (types.String, types.FixedString)


class TokenReader(Protocol):
    """A reader of an index's tokens as values (`olapdb.functions.json.read`)."""

    @property
    def index(self) -> JsonIndex:
        """The index of the tokens."""

    def values(self, tokens: np.ndarray, data_type: types.DataType) -> pa.Array:
        """Return the values of tokens as the type."""

    def strings(self, tokens: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Return strings decoded and other values as they are written, and a mask of the tokens that have a text."""


def read_variants(
    reader: TokenReader, tokens: np.ndarray, variant: types.Variant, parse: variant_texts.Parse
) -> tuple[pa.Array, np.ndarray]:
    """Return tokens as values of a Variant, and a mask of those that an alternative takes; null is NULL, and counts as
    taken.

    A string is read as any text is, but becomes no array, tuple or map. What no other alternative takes is a String,
    as it is written, if the Variant has that."""
    kind = reader.index.kind_of(tokens)
    texts, present = reader.strings(tokens)
    texts = pc.if_else(pa.array(present), texts, pa.scalar(None, pa.string()))
    numbers = np.full(len(tokens), NO_ALTERNATIVE, np.uint8)
    pieces: list[tuple[int, np.ndarray, pa.Array]] = []
    orders = {
        STRING: [p for p in variant_texts.text_order(variant) if not _is(variant, p, _CONTAINERS)],
        SCALAR: [
            *variant_texts.text_order(variant, (types.Boolean,)),
            *variant_texts.text_order(variant, _NUMBERS),
            *variant_texts.text_order(variant, _TEXTS),
        ],
    }
    for own_kind, order in orders.items():
        rows = np.flatnonzero(kind == own_kind)
        if len(rows):
            read = variant_texts.of_texts(texts.take(from_numpy(rows)), variant, parse, order)
            numbers[rows] = numbers_of(read)
            pieces += [(a.place, rows[a.rows], a.values) for a in alternatives_of(read, variant)]
    rest = np.flatnonzero((kind == ARRAY) | (kind == OBJECT))
    for place in variant_texts.text_order(variant, _CONTAINERS):
        fitting = fits(reader, tokens[rest], variant.alternatives[place], parse)
        rows, rest = rest[fitting], rest[~fitting]
        if len(rows):
            values = reader.values(tokens[rows], types.plain(variant.alternatives[place]))
            numbers[rows] = place
            pieces.append((place, rows, values))
    for place in variant_texts.text_order(variant, _TEXTS)[:1]:
        if len(rest):
            numbers[rest] = place
            pieces.append((place, rest, texts.take(from_numpy(rest))))
    converted = (numbers != NO_ALTERNATIVE) | ~present
    return assembled(variant, numbers, _by_place(pieces)), converted


def _is(variant: types.Variant, place: int, kinds: tuple[type[types.DataType], ...]) -> bool:
    """Return whether the alternative at `place` is of one of the kinds."""
    return isinstance(types.plain(variant.alternatives[place]), kinds)


def _by_place(pieces: list[tuple[int, np.ndarray, pa.Array]]) -> dict[int, pa.Array]:
    """Join pieces of (place, rows, values): return the values of each alternative in the order of their rows."""
    by_place: dict[int, pa.Array] = {}
    for place in {piece[0] for piece in pieces}:
        own = [(rows, values) for at, rows, values in pieces if at == place]
        if len(own) == 1:
            by_place[place] = own[0][1]
            continue
        order = np.argsort(np.concatenate([rows for rows, _ in own]), kind="stable")
        by_place[place] = pa.concat_arrays([values for _, values in own]).take(from_numpy(order))
    return by_place


def fits(
    reader: TokenReader, tokens: np.ndarray, data_type: types.DataType, parse: variant_texts.Parse
) -> np.ndarray:
    """Return a mask of the tokens that are values of the type, with all elements that they contain."""
    plain, index = types.plain(data_type), reader.index
    kind = index.kind_of(tokens)
    if isinstance(plain, types.Variant):
        return np.ones(len(tokens), bool)

    def inner(members: np.ndarray, element: types.DataType) -> np.ndarray:
        """Return whether each token is a value of the type of an element."""
        return fits(reader, members, element, parse)

    match plain:
        case types.Array():
            return _all_members(index, tokens, kind == ARRAY, lambda t: inner(t, plain.inner))
        case types.Map():
            return _all_members(index, tokens, kind == OBJECT, lambda t: inner(t, plain.value))
        case types.Tuple():
            return _fits_tuple(index, tokens, plain, inner)
        case _:
            return _fits_scalar(reader, tokens, data_type, parse)


def _all_members(
    index: JsonIndex,
    tokens: np.ndarray,
    usable: np.ndarray,
    member_fits: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return a mask of the `usable` tokens, arrays or objects, whose members all fit."""
    offsets, members = paths.members_of(index, np.where(usable, tokens, -1))
    bad = ~member_fits(members)
    owners = columns.parents_of(offsets)
    has_bad = np.bincount(owners[bad], minlength=len(tokens)) > 0
    return usable & ~has_bad


def _fits_tuple(
    index: JsonIndex,
    tokens: np.ndarray,
    plain: types.Tuple,
    inner: Callable[[np.ndarray, types.DataType], np.ndarray],
) -> np.ndarray:
    """Return a mask of the tokens that are values of a tuple: arrays of as many elements, or objects with no other
    keys than its names."""
    kind = index.kind_of(tokens)
    offsets, members = paths.members_of(
        index, np.where((kind == ARRAY) | (kind == OBJECT), tokens, -1)
    )
    owners = columns.parents_of(offsets)
    places = np.arange(len(members)) - offsets[owners]
    is_object = kind[owners] == OBJECT
    if is_object.any():
        keys = paths.keys_of(index, members[is_object] - 2)
        names = pa.array(plain.names, pa.string())
        known = pc.fill_null(pc.index_in(keys, names), -1)
        places[is_object] = columns.numpy_values(known)
    fitting = np.zeros(len(members), bool)
    for place, element in enumerate(plain.elements):
        own = np.flatnonzero(places == place)
        fitting[own] = inner(members[own], element)
    has_bad = np.bincount(owners[~fitting], minlength=len(tokens)) > 0
    sizes = np.diff(offsets)
    is_whole = np.where(kind == ARRAY, sizes == len(plain.elements), sizes > 0)
    usable = (kind == ARRAY) | ((kind == OBJECT) & bool(plain.names))
    return np.asarray(usable & is_whole & ~has_bad)


def _fits_scalar(
    reader: TokenReader, tokens: np.ndarray, data_type: types.DataType, parse: variant_texts.Parse
) -> np.ndarray:
    """Return which tokens are values of a type without elements, as a mask. A string is no number and a number is no
    text; null is a value of a Nullable type."""
    plain = types.plain(data_type)
    kind = reader.index.kind_of(tokens)
    texts, present = reader.strings(tokens)
    written = (types.Boolean, *_NUMBERS)
    wanted = (kind == (SCALAR if isinstance(plain, written) else STRING)) & present
    rows = np.flatnonzero(wanted)
    fitting = ~present & types.is_nullable(data_type)
    if len(rows):
        fitting[rows] = variant_texts.are_values(texts.take(from_numpy(rows)), plain, parse)
    return fitting
