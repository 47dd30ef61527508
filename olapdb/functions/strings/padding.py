"""Functions that trim, pad and repeat strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IndexOfPositionalArgument, TooLargeStringSize
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, slices
from olapdb.functions.strings.arguments import (
    TEXT_TYPES,
    integers,
    integers_rule,
    saturated_integers,
    text_rule,
)
from olapdb.types import STRING, DataType, Integer
from olapdb.types.arrow_values import from_numpy


def _trim(function: Callable[..., pa.Array]) -> scalar.Kernel:
    """Return the kernel of a trim: `function`, Arrow's, removes spaces, or the characters in the second argument."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Trim spaces or the given characters from each string."""
        array = columns.text(arrays[0])
        if len(arrays) == 1:
            return function(array, characters=" ")
        return slices.per_value(
            [array, arrays[1]],
            (1,),
            lambda others, values: function(others[0], characters=values[0]),
        )

    return kernel


def _pad(*, left: bool, utf8: bool) -> scalar.Kernel:
    """Return the kernel of leftPad or rightPad, in bytes or with `utf8` in characters; longer strings are cut to the
    width."""

    def padded(array: pa.Array, width: np.ndarray, filler: str) -> pa.Array:
        """Return the strings cut or padded to `width` units by `filler`, an empty one as a
        space.
        """
        filler = filler or " "
        size = slices.lengths_of(array, utf8=utf8)
        missing = np.maximum(width - size, 0)
        truncated = slices.pieces(
            array, np.zeros(len(array), np.int64), np.maximum(width, 0), utf8=utf8
        )
        if not missing.any():
            return truncated
        run = filler * (int(missing.max()) // max(len(filler), 1) + 1)
        runs = pa.repeat(pa.scalar(run), len(array))
        padding = slices.pieces(runs, np.zeros(len(array), np.int64), missing, utf8=utf8)
        return pc.binary_join_element_wise(
            *((padding, truncated) if left else (truncated, padding)), ""
        )

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Pad the strings; raise IndexOfPositionalArgument for a negative length,
        TooLargeStringSize beyond 1,000,000.
        """
        array, width = columns.text(arrays[0]), saturated_integers(arrays[1])
        if (width < 0).any():
            raise IndexOfPositionalArgument(
                "The length that a string is padded to must not be negative."
            )
        if (width > 1_000_000).any():
            raise TooLargeStringSize("A string can be padded to 1,000,000 characters.")
        if len(arrays) == 2:
            return padded(array, width, " ")
        return slices.per_value(
            [array, arrays[1], columns.text(arrays[2])],
            (2,),
            lambda others, values: padded(others[0], integers(others[1]), values[0]),
        )

    return kernel


def _pad_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the arguments are (string, integer[,
    string]).
    """
    scalar.require(name, types[::2], TEXT_TYPES, "a String")
    scalar.require(name, types[1:2], Integer, "an integer")
    return STRING


def _repeat(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return each string n times, "" for a negative n: the kernel of repeat.

    Raises TooLargeStringSize if any n exceeds 1,000,000.
    """
    count = np.maximum(saturated_integers(arrays[1]), 0)
    if (count > 1_000_000).any():
        raise TooLargeStringSize("A string can be repeated 1,000,000 times.")
    return pc.binary_repeat(columns.text(arrays[0]), from_numpy(count))


def _space(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return strings of n spaces, with the limits of `_repeat`: the kernel of space."""
    return _repeat([pa.repeat(pa.scalar(" "), len(arrays[0])), arrays[0]], call)


_ONE_TEXT, _TWO_TEXTS = text_rule(STRING), text_rule(STRING, 2)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "trimBoth",
        _TWO_TEXTS,
        _trim(pc.ascii_trim),
        count=(1, 2),
        aliases=("trim",),
        insensitive=True,
    ),
    scalar.define(
        "trimLeft",
        _TWO_TEXTS,
        _trim(pc.ascii_ltrim),
        count=(1, 2),
        aliases=("ltrim",),
        insensitive=True,
    ),
    scalar.define(
        "trimRight",
        _TWO_TEXTS,
        _trim(pc.ascii_rtrim),
        count=(1, 2),
        aliases=("rtrim",),
        insensitive=True,
    ),
    scalar.define(
        "leftPad",
        _pad_rule,
        _pad(left=True, utf8=False),
        count=(2, 3),
        aliases=("lpad",),
        insensitive=True,
    ),
    scalar.define(
        "rightPad",
        _pad_rule,
        _pad(left=False, utf8=False),
        count=(2, 3),
        aliases=("rpad",),
        insensitive=True,
    ),
    scalar.define("leftPadUTF8", _pad_rule, _pad(left=True, utf8=True), count=(2, 3)),
    scalar.define("rightPadUTF8", _pad_rule, _pad(left=False, utf8=True), count=(2, 3)),
    scalar.define("repeat", _ONE_TEXT, _repeat, count=2, insensitive=True),
    scalar.define("space", integers_rule, _space, insensitive=True),
)
