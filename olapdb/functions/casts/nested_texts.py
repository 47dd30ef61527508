"""Texts of arrays, tuples and maps, such as `[(1,'a')]` and `{'k':[1,2]}`, a column at a time.

A level of all rows is cut at once: quotes and brackets are counted over the bytes of the column. A
step of recursion is a level of the type, not a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.casts.numbers import conversion_error, first_bad
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import escaped, spans, unescaped
from olapdb.lazy import LazyModule

if TYPE_CHECKING:
    from olapdb.functions.dynamic import casts as dynamic_casts
else:
    dynamic_casts = LazyModule("olapdb.functions.dynamic.casts")

Convert: TypeAlias = Callable[[pa.Array, types.DataType], pa.Array]
"""Converts texts without NULL to a type that is no container and not Nullable."""

_BLANKS = " \t\n\r"
_QUOTED = (
    types.String
    | types.FixedString
    | types.Enum
    | types.Date
    | types.Date32
    | types.UUID
    | types.IPv4
    | types.IPv6
    | types.Json
)
_QUOTES = r"(?s)^'([^'\\]|\\.|'')*'$"
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_FAILURES: dict[str, type[errors.DataError]] = {
    "[": errors.CannotReadArray,
    "(": errors.CannotParseInput,
    "{": errors.CannotParseInput,
}


_NO_NUMBER = (errors.CannotParse, errors.CannotParseNumber, errors.AttemptToReadAfterEof)
_Around: TypeAlias = tuple[Convert, str, int]
"""What is known of the container of values: `convert`, its opening bracket, how deep it lies."""


def is_container(data_type: types.DataType) -> bool:
    """Return whether values of the type are arrays, tuples or maps."""
    return isinstance(types.plain(data_type), types.Array | types.Tuple | types.Map)


def parse_nested(
    array: pa.Array, target: types.DataType, convert: Convert, depth: int = 0
) -> tuple[pa.Array, types.DataType]:
    """Return texts, none of them NULL, as arrays, tuples or maps, and the type that they have
    now; a map is an array of pairs. `convert` makes the innermost values.

    Raises CannotReadArray, CannotParseInput, CannotParseQuotedString and
    UnexpectedDataAfterValue, and the errors of `convert`, each with its row. NULL where the type
    has none becomes 0 or the empty text."""
    plain = types.plain(target)
    match plain:
        case types.Array():
            offsets, texts = _members(array, target, "[", depth)
            elements, kind = _elements(texts, plain.inner, offsets, (convert, "[", depth))
            return columns.lists_from(offsets, elements), types.Array(kind)
        case types.Map():
            offsets, texts = _members(array, target, "{", depth)
            pair = types.Tuple((plain.key, plain.value))
            # Keys and values alternate, so that a pair is two members.
            pairs, kind = _fields(texts, pair, offsets // 2, (convert, "{", depth))
            return columns.lists_from(offsets // 2, pairs), types.Array(kind)
        case types.Tuple():
            offsets, texts = _members(array, target, "(", depth)
            wrong = first_bad(np.diff(offsets) != len(plain.elements))
            if wrong is not None:
                why = f"it has {int(np.diff(offsets)[wrong])} values"
                raise conversion_error(errors.CannotParseInput, array, wrong, target, why)
            return _fields(texts, plain, np.arange(len(array) + 1), (convert, "(", depth))
        case _:
            raise errors.InternalError(f"No container: {target}.")


def _fields(
    texts: pa.Array, target: types.Tuple, offsets: np.ndarray, around: _Around
) -> tuple[pa.Array, types.DataType]:
    """Return tuples from texts that hold the elements of all tuples one after the other; `offsets` say which tuples
    a row has."""
    width = len(target.elements)
    rows = len(texts) // width if width else int(offsets[-1])
    fields, kinds = [], []
    for at, kind in enumerate(target.elements):
        own = texts.take(pa.array(np.arange(rows, dtype=np.int64) * width + at))
        field, read = _elements(own, kind, offsets, around)
        fields.append(field)
        kinds.append(read)
    read_type = types.Tuple(tuple(kinds), target.names)
    return columns.structs_from(fields, read_type.arrow, rows=rows), read_type


def _elements(
    texts: pa.Array, target: types.DataType, offsets: np.ndarray, around: _Around
) -> tuple[pa.Array, types.DataType]:
    """Return the texts of a container's elements as values; an error names the row of the container, not of the
    element."""
    try:
        return _values(texts, target, around)
    except errors.DataError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise


def _values(
    texts: pa.Array, target: types.DataType, around: _Around
) -> tuple[pa.Array, types.DataType]:
    """Return texts as values of one type, and the type that they have now: Nullable where the target is and a text
    is NULL."""
    convert, opening, depth = around
    null = pc.equal(pc.ascii_upper(texts), "NULL")
    any_null = pc.any(null, min_count=0).as_py()
    plain = types.plain(target)
    if any_null and not types.is_nullable(target) and not is_container(target):
        nothing = _default_text(plain)
        texts = pc.if_else(null, pa.scalar(nothing, pa.string()), texts)
        any_null = nothing is None
    if not any_null or (is_container(target) and not types.is_nullable(target)):
        return _present(texts, target, around)
    valid = np.asarray(pc.invert(null).to_numpy(zero_copy_only=False), bool)
    try:
        values, kind = _present(texts.filter(pa.array(valid)), target, (convert, opening, depth))
    except errors.DataError as error:
        if error.row is not None:
            error.row = int(np.flatnonzero(valid)[error.row])
        raise
    return columns.scatter(values, valid), types.make_nullable(kind)


def _present(
    texts: pa.Array, target: types.DataType, around: _Around
) -> tuple[pa.Array, types.DataType]:
    """Return texts, none of them NULL, as values of one type, and the type that they have now."""
    convert, opening, depth = around
    if is_container(target):
        return parse_nested(texts, target, convert, depth + 1)
    plain = types.plain(target)
    if isinstance(plain, types.Dynamic):
        return dynamic_casts.of_members(texts), plain
    failure = _FAILURES[opening]
    unquoted = _without_quotes(texts, plain, target, failure)
    if isinstance(plain, types.Integer):
        unquoted = pc.if_else(pc.equal(unquoted, ""), "0", unquoted)
    try:
        return convert(unquoted, plain), plain
    except _NO_NUMBER as error:
        if error.row is None or not isinstance(plain, types.Integer | types.Decimal):
            raise
        why = "something else follows, or stands in place of it"
        raise conversion_error(failure, texts, error.row, target, why) from error


def _default_text(data_type: types.DataType) -> str | None:
    """Return the text that stands for NULL where the type has none; None: NULL is refused."""
    if isinstance(data_type, types.String | types.FixedString):
        return "''"
    numeric = types.Integer | types.Float | types.Decimal | types.Boolean
    return "0" if isinstance(data_type, numeric) else None


def _without_quotes(
    texts: pa.Array,
    data_type: types.DataType,
    target: types.DataType,
    failure: type[errors.DataError],
) -> pa.Array:
    """Return texts without quotes and escapes; a number of seconds for a Time as `h:mm:ss`.

    Raises CannotParseQuotedString or CannotParseInput for a text without the quotes that its type requires,
    `failure` for a number in quotes."""
    quoted = pc.starts_with(texts, "'")
    kind = failure
    if isinstance(data_type, _QUOTED):
        bad = pc.invert(pc.match_substring_regex(texts, _QUOTES))
        is_text = isinstance(data_type, types.String | types.FixedString | types.Enum)
        kind = errors.CannotParseQuotedString if is_text else errors.CannotParseInput
    elif isinstance(data_type, types.DateTime | types.DateTime64):
        bad = pc.and_(quoted, pc.invert(pc.match_substring_regex(texts, _QUOTES)))
        kind = errors.CannotParseQuotedString
    elif isinstance(data_type, types.Time | types.Time64):
        bad = pc.invert(pc.match_substring_regex(texts, f"{_QUOTES}|^-?[0-9]{{1,18}}$"))
    else:
        bad = quoted
    at = pc.index(bad, True).as_py()
    if at >= 0:
        raise conversion_error(kind, texts, at, target, "quotes are missing, or wrong")
    if isinstance(data_type, types.Time | types.Time64):
        texts = pc.if_else(quoted, texts, _clock(texts, quoted))
    if not pc.any(quoted, min_count=0).as_py():
        return texts
    inner = pc.replace_substring(pc.utf8_slice_codeunits(texts, 1, -1), "''", "'")
    return pc.if_else(quoted, unescaped(inner), texts)


def _clock(texts: pa.Array, quoted: pa.Array) -> pa.Array:
    """Return texts of whole seconds as `[-]hh:mm:ss`; what is returned for a quoted text has no meaning."""
    seconds = pc.if_else(quoted, "0", texts)
    sign = pc.if_else(pc.starts_with(seconds, "-"), "-", "")
    count = np.abs(pc.cast(seconds, pa.int64()).to_numpy())
    fields = [
        pc.utf8_lpad(pa.array(values).cast(pa.string()), 2, "0")
        for values in (count // 3600, count // 60 % 60, count % 60)
    ]
    return pc.binary_join_element_wise(sign, pc.binary_join_element_wise(*fields, ":"), "")


def _members(
    array: pa.Array, target: types.DataType, opening: str, depth: int
) -> tuple[np.ndarray, pa.Array]:
    """Cut texts of containers into their members: return the members' offsets by row, and their texts without blanks
    around them."""
    closing = _BRACKETS[opening]
    failure = _FAILURES[opening]
    starts_well = pc.starts_with(array, opening)
    at = pc.index(starts_well, False).as_py()
    if at >= 0:
        why = f"it does not start with {opening}"
        raise conversion_error(failure, array, at, target, why)
    array = pc.ascii_rtrim_whitespace(array) if depth else array
    offsets, data = columns.bytes_of(array)
    rows = np.repeat(np.arange(len(array)), np.diff(offsets))
    quotes = data == ord("'")
    if (data == ord("\\")).any():
        quotes &= ~escaped(data)
    if (np.bincount(rows[quotes], minlength=len(array)) & 1).any():
        odd = int(np.flatnonzero(np.bincount(rows[quotes], minlength=len(array)) & 1)[0])
        raise conversion_error(failure, array, odd, target, "a quote is not closed")
    inside = np.bitwise_xor.accumulate(quotes) if len(data) else quotes
    opens, closes = ((_any_of(data, marks)) & ~inside for marks in ("[({", "])}"))
    level = np.cumsum(opens.astype(np.int64)) - np.cumsum(closes.astype(np.int64))
    _check_balance(array, target, failure, (opens, closes, level, rows), closing)
    marks = (level == 1) & ~inside & _any_of(data, ":," if opening == "{" else ",")
    # The members lie between the opening bracket, the marks and the closing bracket.
    edges = marks.copy()
    edges[offsets[:-1]] = True
    begins = np.flatnonzero(edges)
    edges[offsets[:-1]] = False
    edges[offsets[1:] - 1] = True
    ends = np.flatnonzero(edges)
    owner = rows[begins]
    texts = pc.ascii_trim(spans(data, begins + 1, ends), _BLANKS)
    if opening == "{":
        _check_pairs(array, target, (data[ends], texts), owner)
    # Nothing between the brackets is no member, and neither is what a last comma is followed by.
    is_last = np.append(owner[1:] != owner[:-1], True) if len(owner) else np.zeros(0, bool)
    drop = is_last & np.asarray(pc.equal(texts, "").to_numpy(zero_copy_only=False), bool)
    if opening == "(":
        counts = np.bincount(owner, minlength=len(array))
        drop &= counts[owner] <= len(getattr(types.plain(target), "elements", ())) + 1
    if drop.any():
        texts = texts.filter(pa.array(~drop))
        owner = owner[~drop]
    counts = np.bincount(owner, minlength=len(array))
    return columns.offsets_from_counts(counts), texts


def _any_of(data: np.ndarray, characters: str) -> np.ndarray:
    """Return a mask of the bytes that are any of the characters."""
    result = np.zeros(len(data), bool)
    for character in characters.encode():
        result |= data == character
    return result


def _check_balance(
    array: pa.Array,
    target: types.DataType,
    failure: type[errors.DataError],
    brackets: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    closing: str,
) -> None:
    """Raise an error for the first row whose text does not end at the bracket that closes its first one.

    CannotParseInput for a bracket that is not closed, UnexpectedDataAfterValue for text behind the closing one, else
    `failure`."""
    opens, closes, level, rows = brackets
    offsets = columns.offsets_of(array)
    last = offsets[1:] - offsets[0] - 1
    total = np.bincount(rows[opens], minlength=len(array)) - np.bincount(
        rows[closes], minlength=len(array)
    )
    unbalanced = first_bad(total != 0)
    if unbalanced is not None:
        is_open = bool(total[unbalanced] > 0)
        why = "a bracket is not closed" if is_open else "a bracket is not opened"
        kind = errors.CannotParseInput if is_open else failure
        raise conversion_error(kind, array, unbalanced, target, why)
    zero = np.flatnonzero(level <= 0)
    early = zero[zero != last[rows[zero]]]
    if len(early):
        kind = errors.UnexpectedDataAfterValue
        raise conversion_error(kind, array, int(rows[early[0]]), target, "something follows it")
    wrong = first_bad(columns.bytes_of(array)[1][last] != ord(closing))
    if wrong is not None:
        raise conversion_error(failure, array, wrong, target, f"it does not end with {closing}")


def _check_pairs(
    array: pa.Array, target: types.DataType, members: tuple[np.ndarray, pa.Array], owner: np.ndarray
) -> None:
    """Raise CannotParseInput for the first row in which keys and values do not alternate with colons and commas.

    `members` has the character that ends each member and the members' texts, `owner` each member's row."""
    marks, texts = members
    position = np.arange(len(owner))
    first = np.append(True, owner[1:] != owner[:-1])
    number = position - np.maximum.accumulate(np.where(first, position, 0))
    is_end = np.append(first[1:], True) & np.asarray(
        pc.equal(texts, "").to_numpy(zero_copy_only=False), bool
    )
    is_colon = marks == ord(":")
    bad = (is_colon != (number % 2 == 0)) & ~(is_end & ~is_colon)
    at = np.flatnonzero(bad)
    if len(at):
        row = int(owner[at[0]])
        raise conversion_error(errors.CannotParseInput, array, row, target, "a key has no value")
