"""prettyPrintJSON and JSONMergePatch: JSON texts that are parsed whole and written again.

They write as RapidJSON does, by which ClickHouse has them: members keep their order and may repeat,
numbers are integers of 64 bits or else the nearly nearest Float64 that RapidJSON computes.
Python is called once for each distinct row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeAlias

from olapdb.errors import BadArguments, IllegalColumn
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import bytes_of_text, define_by_value, text_of
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.types import STRING, DataType, Integer


class _Members(list["tuple[str, _Value]"]):
    """The members of a JSON object in order: pairs of key and value."""


_Value: TypeAlias = "_Members | list[_Value] | str | int | float | bool | None"
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_MOST_INDENT = 32


def _parsed(text: bytes, complaint: str) -> _Value:
    """Return the value of a JSON text; raise BadArguments with the text `complaint` if it is not JSON."""
    try:
        value: _Value = json.loads(
            text_of(text),
            object_pairs_hook=_Members,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"{complaint}: {error}.") from None
    return value


def _refuse_constant(name: str) -> _Value:
    """Raise ValueError for NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{name} is no value of JSON")


def _number(text: str) -> int | float:
    """Return the number that RapidJSON reads from a text: it rounds after each digit beyond 64 bits."""
    match = _NUMBER.fullmatch(text)
    assert match is not None
    sign, whole, fraction, exponent = match.groups()
    number = int(whole)
    if fraction is None and exponent is None and number < ((1 << 63) + 1 if sign else 1 << 64):
        return -number if sign else number
    value, power = _significand(whole, fraction or "", bool(sign))
    value = _scaled(value, power + min(max(int(exponent or 0), -100_000), 100_000))
    if value == float("inf"):
        raise ValueError("a number is too big to be stored in double")
    return -value if sign else value


def _significand(whole: str, fraction: str, negative: bool) -> tuple[float, int]:
    """Return the digits as a number, rounded as RapidJSON does, and the power of ten by which to multiply it."""
    bound, last = (0x0CCCCCCCCCCCCCCC, "8") if negative else (0x1999999999999999, "5")
    number, at = 0, 0
    while at < len(whole) and (number < bound or (number == bound and whole[at] <= last)):
        number, at = number * 10 + int(whole[at]), at + 1
    digits = at - 1
    power = 0
    value = float(number)
    for digit in whole[at:]:
        value = value * 10.0 + int(digit)
    used = 0
    if at == len(whole):
        while used < len(fraction) and number < 1 << 53:
            number, power = number * 10 + int(fraction[used]), power - 1
            digits += number != 0
            used += 1
        value = float(number)
    for digit in fraction[used:]:
        if digits < 17:
            value, power = value * 10.0 + int(digit), power - 1
            digits += value > 0
    return value, power


def _scaled(value: float, power: int) -> float:
    """Return a value times 10 ** power, rounded as RapidJSON rounds."""
    if value == 0 or power < -616:
        return 0.0
    if power < -308:
        return _scaled(value / 1e308, power + 308)
    if power > 308:
        return float("inf")
    return value * float(f"1e{power}") if power >= 0 else value / float(f"1e{-power}")


def _float_text(value: float) -> str:
    """Return a float's shortest digits, with the point and exponent where RapidJSON writes them."""
    mantissa, _, power = f"{value!r}".lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if value == 0:
        return sign + "0.0"
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}.0"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1}"


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str) -> str:
    """Return a text as a JSON string, in quotes and escaped."""
    escaped = re.sub(r'["\\\x00-\x1f]', lambda m: _SHORT.get(m[0], f"\\u{ord(m[0]):04X}"), text)
    return f'"{escaped}"'


def _written(value: _Value, indent: int | None, level: int = 1) -> str:
    """Return a value as JSON text; with `indent` each element is on a line of its own, indented by that many blanks
    a level."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, _Members):
        opening, closing = "{", "}"
        colon = ":" if indent is None else ": "
        items = [f"{_quoted(k)}{colon}{_written(v, indent, level + 1)}" for k, v in value]
    else:
        opening, closing = "[", "]"
        items = [_written(item, indent, level + 1) for item in value]
    if indent is None or not items:
        return f"{opening}{','.join(items)}{closing}"
    line, end = "\n" + " " * indent * level, "\n" + " " * indent * (level - 1)
    return f"{opening}{line}{(',' + line).join(items)}{end}{closing}"


def _pretty(text: bytes, indent: int = 4) -> bytes:
    """Return a JSON text with each element on a line of its own, indented by `indent` blanks a level; raise
    BadArguments for a text that is not JSON."""
    value = _parsed(text, "Invalid JSON string in function prettyPrintJSON")
    return _encoded(_written(value, indent))


def _encoded(text: str) -> bytes:
    """Return the UTF-8 bytes of a text; raise BadArguments for half of a surrogate pair."""
    try:
        return bytes_of_text(text)
    except UnicodeEncodeError:
        raise BadArguments("A JSON string has half of a surrogate pair.") from None


def _merged(target: _Members, patch: _Members) -> None:
    """Merge the members of `patch` into `target` in place: an object into an object of its key; any other value,
    null included, replaces."""
    for key, value in patch:
        at = next((i for i, (name, _) in enumerate(target) if name == key), None)
        if at is None:
            target.append((key, value))
            continue
        before = target[at][1]
        if isinstance(before, _Members) and isinstance(value, _Members):
            _merged(before, value)
        else:
            target[at] = (key, value)


def _merge(*texts: bytes) -> bytes:
    """Return the JSON objects of the texts merged one after the other, as `_merged` does; raise BadArguments for a
    text that is no object."""
    objects = [_parsed(text, "Wrong JSON string to merge") for text in texts]
    members = [value for value in objects if isinstance(value, _Members)]
    if len(members) < len(objects):
        raise BadArguments("Wrong JSON string to merge. Expected JSON object.")
    for patch in members[1:]:
        _merged(members[0], patch)
    return _encoded(_written(members[0], None))


def _pretty_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise an error unless a text, then a constant indent of 0 to 32."""
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    if len(types) > 1:
        if not isinstance(types[1], Integer) or types[1].signed:
            raise scalar.illegal(name, types[1], "a constant unsigned integer")
        if arguments[1].constant is None:
            raise IllegalColumn(f"The indent of {name} must be a constant.")
        indent = arguments[1].constant.as_py()
        if indent > _MOST_INDENT:
            raise BadArguments(f"The indent of {name} is 0 to {_MOST_INDENT}, not {indent}.")
    return STRING


def _merge_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless all arguments are texts."""
    scalar.require(name, types, TEXT_TYPES, "a String")
    return STRING


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("prettyPrintJSON", _pretty_rule, _pretty, count=(1, 2)),
    define_by_value(
        "JSONMergePatch", _merge_rule, _merge, count=(1, None), aliases=("jsonMergePatch",)
    ),
)
