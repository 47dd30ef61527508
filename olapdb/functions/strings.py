"""Strings: length, case, search, replace, trim, pad, substring, concat, format."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotCompileRegexp, CannotParse
from olapdb.functions import arrays as array_functions
from olapdb.functions import arrays_whole, columns, slices, text
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.scalar import (
    Definition,
    Invocation,
    Kernel,
    custom,
    define,
    illegal,
    require,
    usual,
)
from olapdb.types import (
    INT32,
    STRING,
    UINT8,
    UINT64,
    UUID,
    Array,
    DataType,
    Date,
    DateTime,
    Decimal,
    FixedString,
    Integer,
    Map,
    String,
    plain,
)

TEXT = (String, FixedString)
_REST = np.int64(2**62)


def _rule(
    result: DataType, texts: int = 1
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types[:texts], TEXT, "a String")
        require(name, types[texts:], Integer, "an integer")
        return result

    return rule


def _mapped(function: Callable[[pa.Array], pa.Array]) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        return function(columns.text(arrays[0]))

    return kernel


def _integers(array: pa.Array) -> np.ndarray:
    return columns.numpy_values(array).astype(np.int64)


# --- length -------------------------------------------------------------------------------------


def _length_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, (*TEXT, Array, Map), "a String, Array or Map")
        return result

    return rule


def _sizes(array: pa.Array) -> np.ndarray:
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        return np.diff(columns.offsets_of(array))
    return slices.lengths_of(array)


def _length(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    return columns.from_values(_sizes(arrays[0]), pa.uint64())


def _emptiness(*, wanted: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
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
    begin = np.where(start > 0, start - 1, np.where(start < 0, size + start, size))
    before = np.minimum(begin, 0)
    count = np.where(count < 0, np.maximum(size - begin + count, 0), count)
    return np.maximum(begin, 0), np.maximum(count + before, 0)


def _substring(*, utf8: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array = columns.text(arrays[0])
        size = slices.lengths_of(array, utf8=utf8)
        count = _integers(arrays[2]) if len(arrays) > 2 else np.full(len(array), _REST)
        begin, taken = _from_position(_integers(arrays[1]), size, count)
        return slices.pieces(array, begin, taken, utf8=utf8)

    return kernel


def _left(*, utf8: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array, count = columns.text(arrays[0]), _integers(arrays[1])
        size = slices.lengths_of(array, utf8=utf8)
        taken = np.where(count < 0, np.maximum(size + count, 0), count)
        return slices.pieces(array, np.zeros(len(array), np.int64), taken, utf8=utf8)

    return kernel


def _right(*, utf8: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array, count = columns.text(arrays[0]), _integers(arrays[1])
        size = slices.lengths_of(array, utf8=utf8)
        taken = np.where(count < 0, np.maximum(size + count, 0), np.minimum(count, size))
        return slices.pieces(array, size - taken, taken, utf8=utf8)

    return kernel


# --- search -------------------------------------------------------------------------------------


def _position(*, utf8: bool = False, ignore_case: bool = False, swapped: bool = False) -> Kernel:
    def one(arrays: list[pa.Array], needles: list[str], starts: np.ndarray | None) -> pa.Array:
        haystack, needle = arrays[0], needles[0]
        if ignore_case:
            haystack, needle = pc.utf8_lower(haystack), needle.lower()
        skipped = np.zeros(len(haystack), np.int64)
        if starts is not None:
            skipped = np.maximum(starts - 1, 0)
            haystack = slices.pieces(haystack, skipped, np.full(len(haystack), _REST), utf8=utf8)
        encoded = needle.encode("utf-8", "surrogateescape")
        found = columns.numpy_values(pc.find_substring(columns.binary(haystack), encoded)).astype(
            np.int64
        )
        if utf8:
            before = slices.pieces(
                haystack, np.zeros(len(haystack), np.int64), np.maximum(found, 0)
            )
            found = np.where(found < 0, found, slices.lengths_of(before, utf8=True))
        return columns.from_values(np.where(found < 0, 0, found + 1 + skipped), pa.uint64())

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        haystack, needle = (columns.text(a) for a in (arrays[:2][::-1] if swapped else arrays[:2]))
        rest = arrays[2:]
        return slices.per_value(
            [haystack, needle, *rest], (1,),
            lambda others, values: one(others, values, _integers(others[1]) if rest else None),
        )  # fmt: skip

    return kernel


def _prefix(*, end: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array, affix = (columns.text(a) for a in arrays)
        size, wanted = slices.lengths_of(array), slices.lengths_of(affix)
        start = size - wanted if end else np.zeros(len(array), np.int64)
        piece = slices.pieces(array, np.maximum(start, 0), wanted)
        same = np.asarray(pc.equal(columns.binary(piece), columns.binary(affix))) & (wanted <= size)
        return columns.from_values(same, pa.uint8())

    return kernel


def _matching(function: Callable[[pa.Array, str], pa.Array], *, negated: bool = False) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        found = slices.per_value(
            [columns.text(a) for a in arrays], (1,), lambda o, v: function(o[0], v[0])
        )
        return columns.from_values(np.asarray(found) != negated, pa.uint8())

    return kernel


def _regex(array: pa.Array, pattern: str) -> pa.Array:
    try:
        return pc.match_substring_regex(array, pattern)
    except pa.ArrowInvalid as error:
        raise CannotCompileRegexp(
            f"The regular expression {pattern!r} is wrong: {error}."
        ) from None


def _like(array: pa.Array, pattern: str) -> pa.Array:
    return pc.match_like(array, pattern)


def _ilike(array: pa.Array, pattern: str) -> pa.Array:
    return pc.match_like(array, pattern, ignore_case=True)


def _count_substrings(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    def one(others: list[pa.Array], needles: list[str]) -> pa.Array:
        if not needles[0]:
            return columns.from_values(np.zeros(len(others[0]), np.int64), pa.uint64())
        return pc.count_substring(others[0], needles[0]).cast(pa.uint64())

    return slices.per_value([columns.text(a) for a in arrays], (1,), one)


# --- replace ------------------------------------------------------------------------------------


def _replacing(function: Callable[[pa.Array, str, str], pa.Array]) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        texts = [columns.text(a) for a in arrays]
        return slices.per_value(texts, (1, 2), lambda others, values: function(others[0], *values))

    return kernel


def _replace_all(array: pa.Array, old: str, new: str) -> pa.Array:
    return pc.replace_substring(array, old, new) if old else array


def _replace_one(array: pa.Array, old: str, new: str) -> pa.Array:
    return pc.replace_substring(array, old, new, max_replacements=1) if old else array


def _replace_regex(count: int | None) -> Callable[[pa.Array, str, str], pa.Array]:
    def function(array: pa.Array, pattern: str, new: str) -> pa.Array:
        try:
            return pc.replace_substring_regex(array, pattern, new, max_replacements=count)
        except pa.ArrowInvalid as error:
            raise BadArguments(f"The regular expression {pattern!r} is wrong: {error}.") from None

    return function


# --- trim and pad -------------------------------------------------------------------------------


def _trim(function: Callable[..., pa.Array]) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array = columns.text(arrays[0])
        if len(arrays) == 1:
            return function(array, characters=" ")
        return slices.per_value(
            [array, arrays[1]],
            (1,),
            lambda others, values: function(others[0], characters=values[0]),
        )

    return kernel


def _pad(*, left: bool, utf8: bool) -> Kernel:
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

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array, width = columns.text(arrays[0]), _integers(arrays[1])
        if (width > 1_000_000).any():
            raise BadArguments("A string can be padded to 1,000,000 characters.")
        if len(arrays) == 2:
            return one(array, width, " ")
        return slices.per_value(
            [array, arrays[1], columns.text(arrays[2])], (2,),
            lambda others, values: one(others[0], _integers(others[1]), values[0]),
        )  # fmt: skip

    return kernel


def _pad_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types[::2], TEXT, "a String")
    require(name, types[1:2], Integer, "an integer")
    return STRING


def _repeat(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    count = np.maximum(_integers(arrays[1]), 0)
    if (count > 1_000_000).any():
        raise BadArguments("A string can be repeated 1,000,000 times.")
    return pc.binary_repeat(columns.text(arrays[0]), pa.array(count))


def _space(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    return _repeat([pa.repeat(pa.scalar(" "), len(arrays[0])), arrays[0]], call)


def _space_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types, Integer, "an integer")
    return STRING


# --- concat and format --------------------------------------------------------------------------


def shown(array: pa.Array, data_type: DataType, call: Invocation) -> pa.Array:
    """Any value as text, as toString makes it, but FixedString with its zero bytes."""
    return text.display_array(array, data_type, call.environment.zone)


def _concat(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    if arguments and all(isinstance(plain(a.type), Array) for a in arguments):
        return array_functions.concatenation(name, arguments)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        texts = [shown(a, t, call) for a, t in zip(arrays, call.types, strict=True)]
        return pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]

    if not arguments:
        return ScalarCall(name, STRING, lambda v, r, e: pa.scalar(""))
    return usual(name, arguments, STRING, kernel)


def _concat_with(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    texts = [shown(a, t, call) for a, t in zip(arrays[1:], call.types[1:], strict=True)]
    if not texts:
        return pa.array([""] * call.rows, pa.string())
    return pc.binary_join_element_wise(*texts, columns.text(arrays[0]))


def _text_first(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types[:1], TEXT, "a String")
    return STRING


def _format(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    template = arguments[0].constant.as_py() if arguments[0].constant is not None else None
    if not isinstance(template, str):
        raise illegal(name, arguments[0].type, "a constant pattern")
    pieces = _template(template, len(arguments) - 1)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        made = [
            pa.repeat(pa.scalar(p), call.rows) if isinstance(p, str)
            else shown(arrays[p + 1], call.types[p + 1], call)
            for p in pieces
        ]  # fmt: skip
        return pc.binary_join_element_wise(*made, "") if len(made) > 1 else made[0]

    return usual(name, arguments, STRING, kernel)


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


def _ascii(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    first = slices.pieces(
        columns.text(arrays[0]),
        np.zeros(len(arrays[0]), np.int64),
        np.ones(len(arrays[0]), np.int64),
    )
    offsets, data = columns.bytes_of(columns.binary(first))
    out = np.zeros(len(first), np.int32)
    out[np.diff(offsets) > 0] = data
    return columns.from_values(out, pa.int32())


def _char(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    matrix = np.stack([_integers(a).astype(np.uint8) for a in arrays], axis=1)
    offsets = np.arange(call.rows + 1, dtype=np.int64) * len(arrays)
    return columns.strings_from(offsets, matrix.reshape(-1))


def _reverse_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    require(name, types, (*TEXT, Array), "a String or Array")
    return types[0] if isinstance(types[0], Array) else STRING


def _reverse(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Bytes, or the elements of an array."""
    if isinstance(call.types[0], Array):
        return arrays_whole.reversed_lists(arrays[0])
    offsets, data = columns.bytes_of(columns.binary(arrays[0]))
    owners = columns.parents_of(offsets)
    order = offsets[owners] + offsets[owners + 1] - 1 - np.arange(len(data))
    return columns.strings_from(offsets, data[order])


def _title(array: pa.Array) -> pa.Array:
    return pc.ascii_title(array)


def _hexed(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    array = arrays[0]
    if isinstance(call.types[0], TEXT):
        offsets, data = columns.bytes_of(columns.binary(array))
        return columns.strings_from(offsets * 2, text.hex_matrix(data[:, None]).reshape(-1))
    if isinstance(call.types[0], UUID):
        return columns.text(columns.binary(_all_digits(text.fixed_bytes(array))))
    if isinstance(call.types[0], Decimal):
        return _all_digits(_decimal_bytes(array, call.types[0].precision))
    values = columns.numpy_values(array)
    if isinstance(call.types[0], Date):
        values = values.astype(np.uint16)
    elif isinstance(call.types[0], DateTime):
        values = values.astype(np.uint32)
    if values.dtype.kind in "iu":
        return _significant(values)
    raw = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).view(np.uint8)
    return _all_digits(raw.reshape(len(values), -1))


def _significant(values: np.ndarray) -> pa.Array:
    """The digits of integers, bytes that are zero at their front left out."""
    raw = values.astype(values.dtype.newbyteorder(">")).view(np.uint8).reshape(len(values), -1)
    nonzero = (raw != 0) | (np.arange(raw.shape[1]) == raw.shape[1] - 1)
    kept = np.arange(raw.shape[1])[None, :] >= np.argmax(nonzero, axis=1)[:, None]
    kept = np.repeat(kept, 2, axis=1)
    return columns.strings_from(
        columns.offsets_from_counts(kept.sum(axis=1)), text.hex_matrix(raw)[kept]
    )


def _all_digits(raw: np.ndarray) -> pa.Array:
    offsets = np.arange(len(raw) + 1, dtype=np.int64) * 2 * raw.shape[1]
    return columns.strings_from(offsets, text.hex_matrix(np.ascontiguousarray(raw)).reshape(-1))


def _decimal_bytes(array: pa.Array, precision: int) -> np.ndarray:
    """The little-endian bytes of decimals, as wide as ClickHouse stores them."""
    width = next(w for digits, w in ((9, 4), (18, 8), (38, 16), (76, 32)) if precision <= digits)
    stored = array.type.byte_width
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    raw = np.frombuffer(buffer, np.uint8, len(array) * stored, array.offset * stored)
    return raw.reshape(len(array), stored)[:, :width]


def _hex_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    if isinstance(types[0], Array | Map):
        raise illegal(name, types[0], "a String, number or date")
    return STRING


def _unhex(array: pa.Array) -> pa.Array:
    from olapdb.functions.cast_text import unhexed

    if not pc.all(pc.match_substring_regex(array, "^[0-9a-fA-F]*$")).as_py():
        raise CannotParse("unhex takes hexadecimal digits.")
    odd = pc.equal(pc.bit_wise_and(pc.binary_length(array), 1), 1)
    even = pc.if_else(odd, pc.binary_join_element_wise("0", array, ""), array)
    offsets, data = columns.bytes_of(even)
    return columns.strings_from(offsets // 2, unhexed(data))


_ONE, _TWO = _rule(STRING), _rule(STRING, 2)
_SEARCH, _POSITION = _rule(UINT8, 2), _rule(UINT64, 2)

DEFINITIONS: tuple[Definition, ...] = (
    define("length", _length_rule(UINT64), _length, aliases=("OCTET_LENGTH", "CARDINALITY"), insensitive=True),
    define("lengthUTF8", _rule(UINT64), _mapped(lambda a: pc.utf8_length(a).cast(pa.uint64())),
           aliases=("CHAR_LENGTH", "CHARACTER_LENGTH"), insensitive=True),
    define("empty", _length_rule(UINT8), _emptiness(wanted=True)),
    define("notEmpty", _length_rule(UINT8), _emptiness(wanted=False)),
    define("lower", _ONE, _mapped(pc.ascii_lower), aliases=("lcase",), insensitive=True),
    define("upper", _ONE, _mapped(pc.ascii_upper), aliases=("ucase",), insensitive=True),
    define("lowerUTF8", _ONE, _mapped(pc.utf8_lower)),
    define("upperUTF8", _ONE, _mapped(pc.utf8_upper)),
    define("reverse", _reverse_rule, _reverse, insensitive=True),
    define("reverseUTF8", _ONE, _mapped(pc.utf8_reverse)),
    define("initcap", _ONE, _mapped(_title), insensitive=True),
    define("substring", _ONE, _substring(utf8=False), count=(2, 3), aliases=("substr", "mid", "byteSlice"), insensitive=True),
    define("substringUTF8", _ONE, _substring(utf8=True), count=(2, 3)),
    define("left", _ONE, _left(utf8=False), count=2, insensitive=True),
    define("right", _ONE, _right(utf8=False), count=2, insensitive=True),
    define("leftUTF8", _ONE, _left(utf8=True), count=2),
    define("rightUTF8", _ONE, _right(utf8=True), count=2),
    define("position", _POSITION, _position(), count=(2, 3), insensitive=True),
    define("positionUTF8", _POSITION, _position(utf8=True), count=(2, 3)),
    define("positionCaseInsensitive", _POSITION, _position(ignore_case=True), count=(2, 3), aliases=("instr",), insensitive=True),
    define("locate", _POSITION, _position(swapped=True), count=(2, 3), insensitive=True),
    define("startsWith", _SEARCH, _prefix(end=False), count=2),
    define("endsWith", _SEARCH, _prefix(end=True), count=2),
    define("like", _SEARCH, _matching(_like), count=2),
    define("notLike", _SEARCH, _matching(_like, negated=True), count=2),
    define("ilike", _SEARCH, _matching(_ilike), count=2),
    define("notILike", _SEARCH, _matching(_ilike, negated=True), count=2),
    define("match", _SEARCH, _matching(_regex), count=2, aliases=("REGEXP_MATCHES",), insensitive=True),
    define("countSubstrings", _rule(UINT64, 2), _count_substrings, count=2, insensitive=True),
    define("replaceAll", _rule(STRING, 3), _replacing(_replace_all), count=3, aliases=("replace",), insensitive=True),
    define("replaceOne", _rule(STRING, 3), _replacing(_replace_one), count=3),
    define("replaceRegexpAll", _rule(STRING, 3), _replacing(_replace_regex(None)), count=3, aliases=("REGEXP_REPLACE",), insensitive=True),
    define("replaceRegexpOne", _rule(STRING, 3), _replacing(_replace_regex(1)), count=3),
    define("trimBoth", _TWO, _trim(pc.ascii_trim), count=(1, 2), aliases=("trim",), insensitive=True),
    define("trimLeft", _TWO, _trim(pc.ascii_ltrim), count=(1, 2), aliases=("ltrim",), insensitive=True),
    define("trimRight", _TWO, _trim(pc.ascii_rtrim), count=(1, 2), aliases=("rtrim",), insensitive=True),
    define("leftPad", _pad_rule, _pad(left=True, utf8=False), count=(2, 3), aliases=("lpad",), insensitive=True),
    define("rightPad", _pad_rule, _pad(left=False, utf8=False), count=(2, 3), aliases=("rpad",), insensitive=True),
    define("leftPadUTF8", _pad_rule, _pad(left=True, utf8=True), count=(2, 3)),
    define("rightPadUTF8", _pad_rule, _pad(left=False, utf8=True), count=(2, 3)),
    define("repeat", _ONE, _repeat, count=2, insensitive=True),
    define("space", _space_rule, _space, insensitive=True),
    custom("concat", _concat, count=(0, None), insensitive=True),
    define("concatWithSeparator", _text_first, _concat_with, count=(1, None), aliases=("concat_ws",), insensitive=True),
    custom("format", _format, count=(1, None)),
    define("ascii", _rule(INT32), _ascii, insensitive=True),
    define("char", _space_rule, _char, count=(1, None), insensitive=True),
    define("hex", _hex_rule, _hexed, insensitive=True),
    define("unhex", _ONE, _mapped(_unhex), insensitive=True),
)  # fmt: skip
