"""Strings: length, case, trim, pad, substring, concat, format."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, TooLargeStringSize, ValueOutOfBound
from olapdb.functions import scalar
from olapdb.functions.arrays import basic as array_functions
from olapdb.functions.arrays import whole
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns, slices
from olapdb.functions.strings import text
from olapdb.functions.strings.base import (
    REST,
    TEXT,
    integers,
    integers_rule,
    mapped,
    sizes,
    text_rule,
)
from olapdb.types import STRING, UINT8, UINT64, Array, DataType, FixedString, Integer, Map, plain

# --- length -------------------------------------------------------------------------------------


def _length_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        scalar.require(name, types, (*TEXT, Array, Map), "a String, Array or Map")
        return result

    return rule


def _sizes(array: pa.Array) -> np.ndarray:
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        return np.diff(columns.offsets_of(array))
    return slices.lengths_of(array)


def _length(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    return columns.from_values(_sizes(arrays[0]), pa.uint64())


def _emptiness(*, wanted: bool) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        if isinstance(call.types[0], FixedString):
            found = text.fixed_bytes(arrays[0]).any(axis=1)
        else:
            found = _sizes(arrays[0]) != 0
        return columns.from_values(found != wanted, pa.uint8())

    return kernel


# --- substring ----------------------------------------------------------------------------------


def _from_position(
    start: np.ndarray, size: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """1-based and negative starts as ClickHouse reads them: (start from 0, length)."""
    start, count = np.maximum(start, -REST // 2), np.minimum(count, REST)  # sums stay in 64 bits
    begin = np.where(start > 0, start - 1, np.where(start < 0, size + start, size))
    before = np.minimum(begin, 0)
    count = np.where(count < 0, np.maximum(size - begin + count, 0), count)
    return np.maximum(begin, 0), np.maximum(count + before, 0)


def _substring(*, utf8: bool) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        array = columns.text(arrays[0])
        size = slices.lengths_of(array, utf8=utf8)
        count = integers(arrays[2]) if len(arrays) > 2 else np.full(len(array), REST)
        begin, taken = _from_position(integers(arrays[1]), size, count)
        return slices.pieces(array, begin, taken, utf8=utf8)

    return kernel


def _left(*, utf8: bool) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        array, count = columns.text(arrays[0]), integers(arrays[1])
        size = slices.lengths_of(array, utf8=utf8)
        taken = np.where(count < 0, np.maximum(size + count, 0), count)
        return slices.pieces(array, np.zeros(len(array), np.int64), taken, utf8=utf8)

    return kernel


def _right(*, utf8: bool) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        array, count = columns.text(arrays[0]), integers(arrays[1])
        size = slices.lengths_of(array, utf8=utf8)
        taken = np.where(count < 0, np.maximum(size + count, 0), np.minimum(count, size))
        return slices.pieces(array, size - taken, taken, utf8=utf8)

    return kernel


# --- trim and pad -------------------------------------------------------------------------------


def _trim(function: Callable[..., pa.Array]) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
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
    def one(array: pa.Array, width: np.ndarray, filler: str) -> pa.Array:
        size = slices.lengths_of(array, utf8=utf8)
        missing = np.maximum(width - size, 0)
        kept = slices.pieces(array, np.zeros(len(array), np.int64), np.maximum(width, 0), utf8=utf8)
        if not filler or not missing.any():
            return kept
        run = filler * (int(missing.max()) // max(len(filler), 1) + 1)
        runs = pa.repeat(pa.scalar(run), len(array))
        padding = slices.pieces(runs, np.zeros(len(array), np.int64), missing, utf8=utf8)
        return pc.binary_join_element_wise(*((padding, kept) if left else (kept, padding)), "")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        array, width = columns.text(arrays[0]), sizes(arrays[1])
        if (width < 0).any():
            raise ValueOutOfBound("The length that a string is padded to must not be negative.")
        if (width > 1_000_000).any():
            raise BadArguments("A string can be padded to 1,000,000 characters.")
        if len(arrays) == 2:
            return one(array, width, " ")
        return slices.per_value(
            [array, arrays[1], columns.text(arrays[2])],
            (2,),
            lambda others, values: one(others[0], integers(others[1]), values[0]),
        )

    return kernel


def _pad_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    scalar.require(name, types[::2], TEXT, "a String")
    scalar.require(name, types[1:2], Integer, "an integer")
    return STRING


def _repeat(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    count = np.maximum(sizes(arrays[1]), 0)
    if (count > 1_000_000).any():
        raise TooLargeStringSize("A string can be repeated 1,000,000 times.")
    return pc.binary_repeat(columns.text(arrays[0]), pa.array(count))


def _space(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    return _repeat([pa.repeat(pa.scalar(" "), len(arrays[0])), arrays[0]], call)


# --- concat and format --------------------------------------------------------------------------


def shown(array: pa.Array, data_type: DataType, call: scalar.Invocation) -> pa.Array:
    """Any value as text, as toString makes it, but FixedString with its zero bytes."""
    return text.display_array(array, data_type, call.environment.zone)


def _concat(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    if arguments and all(isinstance(plain(a.type), Array) for a in arguments):
        return array_functions.concatenation(name, arguments)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        texts = [shown(a, t, call) for a, t in zip(arrays, call.types, strict=True)]
        return pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]

    if not arguments:
        return ScalarCall(name, STRING, lambda v, r, e: pa.scalar(""))
    return scalar.usual(name, arguments, STRING, kernel)


def _concat_with(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    texts = [shown(a, t, call) for a, t in zip(arrays[1:], call.types[1:], strict=True)]
    if not texts:
        return pa.array([""] * call.rows, pa.string())
    return pc.binary_join_element_wise(*texts, columns.text(arrays[0]))


def _text_first(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    scalar.require(name, types[:1], TEXT, "a String")
    return STRING


def _format(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    template = arguments[0].constant.as_py() if arguments[0].constant is not None else None
    if not isinstance(template, str):
        raise scalar.illegal(name, arguments[0].type, "a constant pattern")
    pieces = _template(template, len(arguments) - 1)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        made = [
            pa.repeat(pa.scalar(p), call.rows)
            if isinstance(p, str)
            else shown(arrays[p + 1], call.types[p + 1], call)
            for p in pieces
        ]
        return pc.binary_join_element_wise(*made, "") if len(made) > 1 else made[0]

    return scalar.usual(name, arguments, STRING, kernel)


def _template(template: str, count: int) -> list[str | int]:
    pieces: list[str | int] = []
    following = 0
    for piece in re.split(r"(\{\{|\}\}|\{\d*\})", template):
        if piece in ("{{", "}}"):
            pieces.append(piece[0])
        elif piece.startswith("{") and piece.endswith("}"):
            index = int(piece[1:-1]) if piece != "{}" else following
            following += 1
            if index >= count:
                raise BadArguments(f"The pattern {template!r} needs more arguments.")
            pieces.append(index)
        elif piece:
            pieces.append(piece)
    return pieces or [""]


# --- letters ------------------------------------------------------------------------------------


def _reverse_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    scalar.require(name, types, (*TEXT, Array), "a String or Array")
    return types[0] if isinstance(types[0], Array) else _as_long(types[0])


def _letters_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    scalar.require(name, types, TEXT, "a String")
    return _as_long(types[0])


def _as_long(data_type: DataType) -> DataType:
    """What a text is whose letters are changed: as long as it was."""
    return data_type if isinstance(data_type, FixedString) else STRING


def _same_length(kernel: scalar.Kernel) -> scalar.Kernel:
    """Of a FixedString one of that length."""

    def sized(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        made = kernel(arrays, call)
        if isinstance(call.result, FixedString):
            return columns.binary(made).cast(call.result.arrow)
        return made

    return sized


def _reverse(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Bytes, or the elements of an array."""
    if isinstance(call.types[0], Array):
        return whole.reversed_lists(arrays[0])
    offsets, data = columns.bytes_of(columns.binary(arrays[0]))
    owners = columns.parents_of(offsets)
    order = offsets[owners] + offsets[owners + 1] - 1 - np.arange(len(data))
    return columns.strings_from(offsets, data[order])


def _title(array: pa.Array) -> pa.Array:
    """The first letter of each word, of ASCII letters and digits, in upper case, others lower."""
    offsets, data = columns.bytes_of(columns.binary(pc.ascii_lower(array)))
    letters = (data >= ord("a")) & (data <= ord("z"))
    inside = letters | ((data >= ord("0")) & (data <= ord("9")))
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    heads = offsets[:-1][np.diff(offsets) > 0]
    begins[heads] = inside[heads]
    return columns.strings_from(offsets, np.where(begins & letters, data - 32, data))


_ONE, _TWO = text_rule(STRING), text_rule(STRING, 2)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "length",
        _length_rule(UINT64),
        _length,
        aliases=("OCTET_LENGTH", "CARDINALITY"),
        insensitive=True,
    ),
    scalar.define(
        "lengthUTF8",
        text_rule(UINT64),
        mapped(lambda a: pc.utf8_length(a).cast(pa.uint64())),
        aliases=("CHAR_LENGTH", "CHARACTER_LENGTH"),
        insensitive=True,
    ),
    scalar.define("empty", _length_rule(UINT8), _emptiness(wanted=True)),
    scalar.define("notEmpty", _length_rule(UINT8), _emptiness(wanted=False)),
    scalar.define(
        "lower",
        _letters_rule,
        _same_length(mapped(pc.ascii_lower)),
        aliases=("lcase",),
        insensitive=True,
    ),
    scalar.define(
        "upper",
        _letters_rule,
        _same_length(mapped(pc.ascii_upper)),
        aliases=("ucase",),
        insensitive=True,
    ),
    scalar.define("lowerUTF8", _ONE, mapped(pc.utf8_lower)),
    scalar.define("upperUTF8", _ONE, mapped(pc.utf8_upper)),
    scalar.define("reverse", _reverse_rule, _same_length(_reverse), insensitive=True),
    scalar.define("reverseUTF8", _ONE, mapped(pc.utf8_reverse)),
    scalar.define("initcap", _letters_rule, _same_length(mapped(_title)), insensitive=True),
    scalar.define(
        "substring",
        _ONE,
        _substring(utf8=False),
        count=(2, 3),
        aliases=("substr", "mid", "byteSlice"),
        insensitive=True,
    ),
    scalar.define("substringUTF8", _ONE, _substring(utf8=True), count=(2, 3)),
    scalar.define("left", _ONE, _left(utf8=False), count=2, insensitive=True),
    scalar.define("right", _ONE, _right(utf8=False), count=2, insensitive=True),
    scalar.define("leftUTF8", _ONE, _left(utf8=True), count=2),
    scalar.define("rightUTF8", _ONE, _right(utf8=True), count=2),
    scalar.define(
        "trimBoth", _TWO, _trim(pc.ascii_trim), count=(1, 2), aliases=("trim",), insensitive=True
    ),
    scalar.define(
        "trimLeft", _TWO, _trim(pc.ascii_ltrim), count=(1, 2), aliases=("ltrim",), insensitive=True
    ),
    scalar.define(
        "trimRight", _TWO, _trim(pc.ascii_rtrim), count=(1, 2), aliases=("rtrim",), insensitive=True
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
    scalar.define("repeat", _ONE, _repeat, count=2, insensitive=True),
    scalar.define("space", integers_rule, _space, insensitive=True),
    scalar.custom("concat", _concat, count=(0, None), insensitive=True),
    scalar.define(
        "concatWithSeparator",
        _text_first,
        _concat_with,
        count=(1, None),
        aliases=("concat_ws",),
        insensitive=True,
    ),
    scalar.custom("format", _format, count=(1, None)),
)
