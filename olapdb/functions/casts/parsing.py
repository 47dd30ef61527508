"""Parsing of texts as numbers, Bool, UUID, FixedString and arrays, a column at a time."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.casts.numbers import conversion_error, first_bad, narrowed
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.supertypes import DECIMAL_DIGITS
from olapdb.types.arrow_values import to_numpy

_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))$"
_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_MANTISSA_AND_EXPONENT = r"^([+-]?)([0-9]*)\.?([0-9]*)[eE]?([+-]?[0-9]*)$"
_TRUE = ("1", "true", "t", "yes", "y", "on", "enable", "enabled")
_FALSE = ("0", "false", "f", "no", "n", "off", "disable", "disabled")
_NUMBER_THAT_ENDS = {
    types.Integer: re.compile(r"[+-](?![0-9])|-"),
    types.Float: re.compile(r"[^0-9]|$"),
    types.Decimal: re.compile(r"[+-]?[0-9]*\.?[0-9]*[eE]$"),
}
"""Texts for which ClickHouse raises CANNOT_PARSE_NUMBER instead of CANNOT_PARSE_TEXT."""
_CHUNK = 18  # decimal digits that surely fit in 64 bits


def may_parse(array: pa.Array, target: types.DataType) -> np.ndarray:
    """Return a mask that is False for texts that surely are no value of the type; others may still not be one."""
    match target:
        case types.Integer():
            plausible = to_numpy(pc.match_substring_regex(array, _INTEGER))
            short = plausible & to_numpy(pc.less_equal(pc.binary_length(array), _CHUNK))
            small = pc.if_else(pa.array(short), array, "0")
            values = columns.numpy_values(parse_integers(small, types.INT64))
            return np.asarray(plausible & (values >= target.minimum) & (values <= target.maximum))
        case types.Float():
            return to_numpy(pc.match_substring_regex(array, _FLOAT))
        case types.WideNumber():
            return to_numpy(pc.match_substring_regex(array, _INTEGER))
        case types.Decimal():
            return to_numpy(pc.match_substring_regex(array, _DECIMAL))
        case types.UUID():
            return to_numpy(pc.match_substring_regex(array, "^[0-9a-fA-F]{8}"))
        case _:
            return np.ones(len(array), bool)


def _check(array: pa.Array, pattern: str, target: types.DataType) -> None:
    """Raise a DataError about the first text, if any, that does not match `pattern`."""
    bad = first_bad(~to_numpy(pc.match_substring_regex(array, pattern)))
    if bad is not None:
        raise _unparsable(array, bad, target)


def _unparsable(array: pa.Array, row: int, target: types.DataType) -> errors.DataError:
    """Return the error about a text that does not parse, of the class that ClickHouse uses."""
    value = columns.binary(array)[row].as_py().decode("utf-8", "replace")
    if not value and not isinstance(target, types.Float):
        return errors.AttemptToReadAfterEof(
            f"Cannot parse '' as {target}: the text is empty."
        ).at_row(row)
    kind = (
        errors.CannotParseNumber
        if _NUMBER_THAT_ENDS[type(target)].match(value)
        else errors.CannotParse
    )
    return kind(f"Cannot parse {value!r} as {target}.").at_row(row)


def _digits_as_integers(array: pa.Array, target: types.Integer) -> pa.Array | None:
    """Parse texts of only digits and `-` by Arrow; return None if any fails or has other characters.

    Arrow would accept more than ClickHouse, such as `0x10` and blanks."""
    _, data = columns.bytes_of(array)
    if not data.size or int(data.max()) > ord("9") or int(data.min()) < ord("-"):
        return None
    try:
        return array.cast(target.arrow)
    except pa.ArrowInvalid:
        return None


def parse_integers(array: pa.Array, target: types.Integer, *, wrap: bool = True) -> pa.Array:
    """Parse texts of digits, with or without a sign, as integers; no text may be NULL.

    Values out of range wrap, or raise CannotParseNumber if not `wrap`. Other texts, and a minus
    where `target` is unsigned, raise CannotParse, CannotParseNumber or AttemptToReadAfterEof.
    """
    plain_digits = _digits_as_integers(array, target)
    if plain_digits is not None:
        return plain_digits
    _check(array, _INTEGER if target.signed else r"^\+?[0-9]+$", target)
    digits = pc.utf8_ltrim(array, "+-")
    negative = to_numpy(pc.starts_with(array, "-"))
    longest = pc.max(pc.binary_length(digits)).as_py() or 0
    total = np.zeros(len(array), np.uint64)
    step = np.uint64(10**_CHUNK)
    padded = pc.utf8_lpad(digits, width=-(-max(longest, 1) // _CHUNK) * _CHUNK, padding="0")
    for start in range(0, max(longest, 1), _CHUNK):
        piece = pc.utf8_slice_codeunits(padded, start, start + _CHUNK).cast(pa.uint64())
        with np.errstate(over="ignore"):
            total = total * step + columns.numpy_values(piece)
    if not wrap:
        _check_range(array, digits, total, negative, target)
    values = np.where(negative, (~total) + np.uint64(1), total)
    return columns.from_values(values.view(np.int64) if target.signed else values, target.arrow)


def _check_range(
    array: pa.Array,
    digits: pa.Array,
    total: np.ndarray,
    negative: np.ndarray,
    target: types.Integer,
) -> None:
    """Raise CannotParseNumber if any number is out of range; `total` is its size modulo 2^64.

    `digits` are the texts without sign.
    """
    significant = pc.utf8_ltrim(digits, "0")
    lengths = to_numpy(pc.binary_length(significant))
    limit = np.where(negative, np.uint64(-target.minimum), np.uint64(target.maximum))
    overflowed = (lengths > 20) | (
        (lengths == 20) & to_numpy(pc.greater(significant, "18446744073709551615"))
    )
    bad = first_bad(overflowed | (total > limit))
    if bad is not None:
        raise conversion_error(errors.CannotParseNumber, array, bad, target, "it is out of range")


def parse_floats(array: pa.Array, target: types.Float) -> pa.Array:
    """Parse texts as floats; accepts inf, infinity and nan.

    Raises CannotParse or CannotParseNumber for other texts.
    """
    _check(array, _FLOAT, target)
    unsigned = pc.utf8_ltrim(array, "+")
    return unsigned.cast(target.arrow)


def parse_decimals(array: pa.Array, target: types.Decimal) -> pa.Array:
    """Parse decimals; digits beyond the scale are cut off.

    Raises ValueOutOfBound beyond the precision.
    """
    plain_digits = _digits_as_decimals(array, target)
    if plain_digits is not None:
        return plain_digits
    _check(array, _DECIMAL, target)
    exponents = to_numpy(pc.match_substring_regex(array, "[eE]"))
    without_powers = without_exponents(array) if exponents.any() else array
    pattern = r"^([+-]?[0-9]*)\.?([0-9]{0," + str(target.scale) + r"})[0-9]*$"
    signs = regexes.replaced(without_powers, r"^([+-]?).*$", r"\1")
    whole = pc.utf8_ltrim(regexes.replaced(without_powers, pattern, r"\1"), "+-")
    whole = pc.binary_join_element_wise(
        pc.if_else(pc.equal(signs, "-"), "-", ""),
        pc.utf8_lpad(pc.utf8_ltrim(whole, "0"), 1, "0"),
        "",
    )
    fraction = pc.utf8_rpad(
        regexes.replaced(without_powers, pattern, r"\2"), width=target.scale, padding="0"
    )
    unscaled = pc.binary_join_element_wise(whole, fraction, "")
    too_long = first_bad(to_numpy(pc.binary_length(pc.utf8_ltrim(unscaled, "-0"))) > 76)
    if too_long is not None:
        raise conversion_error(
            errors.ValueOutOfBound, array, too_long, target, "it has too many digits"
        )
    wide = unscaled.cast(pa.decimal256(76, 0))
    return narrowed(
        columns.view(wide, pa.decimal256(76, target.scale)), target, array, errors.ValueOutOfBound
    )


def _digits_as_decimals(array: pa.Array, target: types.Decimal) -> pa.Array | None:
    """Parse texts of digits, `-` and a point by Arrow; return None if any has other characters.

    Also None if a text has more places than the type, or if Arrow's multiplication could wrap."""
    offsets, data = columns.bytes_of(array)
    if not data.size or int(data.max()) > ord("9") or int(data.min()) < ord("-"):
        return None
    room = DECIMAL_DIGITS[-2] if target.precision <= DECIMAL_DIGITS[-2] else DECIMAL_DIGITS[-1]
    if int(np.diff(offsets).max()) + target.scale > room:
        return None
    try:
        return array.cast(target.arrow)
    except pa.ArrowInvalid:
        return None


def without_exponents(array: pa.Array) -> pa.Array:
    """Return texts of the same numbers without exponents: 1.25e1 becomes 12.5.

    Exponents are clipped, so that a number too large for any decimal stays too large and a tiny one becomes 0."""
    parts = {
        name: regexes.replaced(array, _MANTISSA_AND_EXPONENT, group)
        for name, group in (
            ("sign", r"\1"),
            ("whole", r"\2"),
            ("fraction", r"\3"),
            ("power", r"\4"),
        )
    }
    mantissa = pc.add(pc.binary_length(parts["whole"]), pc.binary_length(parts["fraction"]))
    bound = (pc.max(mantissa).as_py() or 0) + 2 * DECIMAL_DIGITS[-1]
    zeros = to_numpy(pc.match_substring_regex(array, r"^[^1-9eE]*([eE]|$)"))
    powers = np.where(zeros, 0, _clipped(parts["power"], bound))
    pieces, rows = [], []
    for power in np.unique(powers):
        at = np.flatnonzero(powers == power)
        selected = {name: part.take(pa.array(at)) for name, part in parts.items()}
        pieces.append(
            _shifted(selected["sign"], selected["whole"], selected["fraction"], int(power))
        )
        rows.append(at)
    inverse = np.argsort(np.concatenate(rows), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(inverse))


def _clipped(powers: pa.Array, bound: int) -> np.ndarray:
    """Parse texts of exponents ("" is 0) as numbers clipped to -bound … bound."""
    digits = pc.utf8_ltrim(pc.utf8_ltrim(powers, "+-"), "0")
    long = pc.greater(pc.binary_length(digits), _CHUNK)
    sizes = pc.if_else(long, str(bound), pc.utf8_lpad(digits, 1, "0")).cast(pa.int64())
    sizes = np.minimum(columns.numpy_values(sizes), bound)
    return np.asarray(np.where(to_numpy(pc.starts_with(powers, "-")), -sizes, sizes))


def _shifted(sign: pa.Array, whole: pa.Array, fraction: pa.Array, power: int) -> pa.Array:
    """Return texts of the numbers (sign)(whole.fraction) times 10^power, without exponents."""
    if power >= 0:
        padded = pc.utf8_rpad(fraction, width=power, padding="0")
        moved = pc.utf8_slice_codeunits(padded, 0, power)
        whole = pc.binary_join_element_wise(whole, moved, "")
        fraction = pc.utf8_slice_codeunits(padded, power)
    else:
        padded = pc.utf8_lpad(whole, width=-power, padding="0")
        moved = pc.utf8_slice_codeunits(padded, power)
        whole = pc.utf8_slice_codeunits(padded, 0, power)
        fraction = pc.binary_join_element_wise(moved, fraction, "")
    return pc.binary_join_element_wise(sign, whole, ".", fraction, "")


def parse_bools(array: pa.Array) -> pa.Array:
    """Parse 1, true, t, yes, y, on, enable, enabled and their opposites, in any case, as Arrow booleans; the texts
    have no NULL. Raises CannotParseBool for other texts."""
    lowered = pc.ascii_lower(array)
    true = pc.is_in(lowered, pa.array(_TRUE))
    bad = first_bad(~to_numpy(pc.or_(true, pc.is_in(lowered, pa.array(_FALSE)))))
    if bad is not None:
        raise conversion_error(
            errors.CannotParseBool, array, bad, types.Boolean(), "it is neither true nor false"
        )
    return true


def parse_uuids(array: pa.Array, target: types.DataType) -> pa.Array:
    """Parse UUIDs of 36 characters with dashes, or of 32 digits; raise CannotParseUUID for any
    other text.
    """
    pattern = r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
    bad = first_bad(~to_numpy(pc.match_substring_regex(array, pattern)))
    if bad is not None:
        raise conversion_error(errors.CannotParseUUID, array, bad, target, "it is no UUID")
    _, data = columns.bytes_of(pc.replace_substring(array, "-", ""))
    return pa.Array.from_buffers(target.arrow, len(array), [None, pa.py_buffer(unhexed(data))])


_HEX_VALUES = np.full(256, 255, np.uint8)
"""The value of each character as a hexadecimal digit."""
_HEX_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX_VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def unhexed(data: np.ndarray) -> np.ndarray:
    """Return the bytes that pairs of hexadecimal digits, given as character codes, denote: half as many.

    Any other character counts as the digit 255."""
    values = _HEX_VALUES[data]
    return np.ascontiguousarray((values[0::2] << 4) + values[1::2])


def pad_to_fixed(array: pa.Array, target: types.FixedString) -> pa.Array:
    """Return texts padded with zero bytes; raise TooLargeStringSize for a longer one."""
    offsets, data = columns.bytes_of(columns.binary(array))
    lengths = np.diff(offsets)
    bad = first_bad(lengths > target.length)
    if bad is not None:
        raise conversion_error(errors.TooLargeStringSize, array, bad, target, "it is too long")
    out = np.zeros((len(array), target.length), np.uint8)
    inside = np.arange(target.length)[None, :] < lengths[:, None]
    out[inside] = data
    return pa.Array.from_buffers(target.arrow, len(array), [None, pa.py_buffer(out.tobytes())])
