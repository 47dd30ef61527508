"""startsWith and endsWith of texts and of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import NoCommonType
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns, slices
from olapdb.functions.kernels.supertypes import comparable_type
from olapdb.functions.scalar import (
    Invocation,
    Kernel,
    Resolver,
    ScalarDefinition,
    custom,
    standard_call,
)
from olapdb.functions.strings.arguments import text_rule
from olapdb.lazy import LazyModule
from olapdb.types import UINT8, Array, plain

if TYPE_CHECKING:
    from olapdb.functions.arrays import nested_equality
    from olapdb.functions.casts import cast
else:
    nested_equality = LazyModule("olapdb.functions.arrays.nested_equality")
    cast = LazyModule("olapdb.functions.casts.cast")

_TEXTS = text_rule(UINT8, 2)


def _of_texts(*, end: bool) -> Kernel:
    """Return the kernel of startsWith, or with `end` of endsWith, of texts."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return 1 where a string starts, or with `end` ends, with the bytes of its affix, else 0."""
        array, affix = (columns.text(a) for a in arrays)
        size, affix_size = slices.lengths_of(array), slices.lengths_of(affix)
        start = size - affix_size if end else np.zeros(len(array), np.int64)
        piece = slices.pieces(array, np.maximum(start, 0), affix_size)
        same = np.asarray(pc.equal(columns.binary(piece), columns.binary(affix))) & (
            affix_size <= size
        )
        return columns.from_values(same, pa.uint8())

    return kernel


def _of_arrays(name: str, arguments: Sequence[Argument], *, end: bool) -> ScalarCall:
    """Resolve startsWith, or with `end` endsWith, of two arrays; elements are compared as their common type, and NULL
    equals NULL.

    Raises NoCommonType."""
    types = [plain(a.type) for a in arguments]
    shared = comparable_type(types)
    if shared is None:
        raise NoCommonType(f"There is no supertype for types {types[0]}, {types[1]}.")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return 1 where the first array starts, or with `end` ends, with the elements of the second, else 0."""
        constant = all(isinstance(value, pa.Scalar) for value in values)
        rows = 1 if constant else rows
        array, affix = (
            cast.cast_column(columns.as_array(v, rows), t, shared, environment, strict=False)
            for v, t in zip(values, types, strict=True)
        )
        offsets, elements = columns.elements_of(array)
        affix_offsets, _ = columns.elements_of(affix)
        size, affix_size = np.diff(offsets), np.diff(affix_offsets)
        fits = affix_size <= size
        counts = np.where(fits, affix_size, 0)
        starts = np.where(end, offsets[1:] - counts, offsets[:-1])
        cut = columns.offsets_from_counts(counts)
        positions = np.arange(int(cut[-1])) + np.repeat(starts - cut[:-1], counts)
        pieces = columns.lists_from(cut, elements.take(pa.array(positions)))
        same = nested_equality.equal_rows(pieces, affix) & fits
        answers = columns.from_values(same, pa.uint8())
        return answers[0] if constant else answers

    return ScalarCall(name, UINT8, kernel)


def _affix(*, end: bool) -> Resolver:
    """Return the resolver of startsWith, or with `end` of endsWith, of texts or of arrays."""
    of_texts = _of_texts(end=end)

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for two arrays, or for texts. Raises IllegalTypeOfArgument."""
        if all(isinstance(plain(a.type), Array) for a in arguments):
            return _of_arrays(name, arguments, end=end)
        return standard_call(name, arguments, _TEXTS, of_texts)

    return resolve


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("startsWith", _affix(end=False), count=2),
    custom("endsWith", _affix(end=True), count=2),
)
