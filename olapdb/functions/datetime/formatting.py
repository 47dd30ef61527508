"""Dates and times as text: formatDateTime, dateName, monthName."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.datetime import fixed_format
from olapdb.functions.datetime.components import CLOCKS, DATES, seconds_of
from olapdb.functions.kernels import calendar, columns
from olapdb.types import STRING, DataType, DateTime64, known_zone, plain

_FORMATS = {
    "Y": "%Y",
    "m": "%m",
    "d": "%d",
    "H": "%H",
    "j": "%j",
    "a": "%a",
    "b": "%b",
    "y": "%y",
    "p": "%p",
    "I": "%I",
    "h": "%I",
    "F": "%Y-%m-%d",
    "T": "%H:%M:%S",
    "D": "%m/%d/%y",
    "i": "%M",
    "M": "%B",
    "W": "%A",
    "R": "%H:%M",
    "S": "%S",
    "s": "%S",
    "u": "%u",
    "w": "%w",
    "V": "%V",
    "G": "%G",
    "r": "%I:%M %p",
    "n": "%n",
    "t": "%t",
    "%": "%%",
}


def _format_datetime(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """formatDateTime(t, format[, zone]); MySQL's letters: %M is the month's name, %i the minute."""
    template = scalar.constant_text(name, arguments, 1, "the format")
    pieces = [_translated(name, p) for p in re.split(r"(%[efQ])", template)]
    layout = fixed_format.layout_of(template)

    def rule(spelt: str, types: tuple[DataType, ...], given: Sequence[Argument]) -> DataType:
        scalar.require(spelt, types[:1], DATES, "a Date or DateTime")
        return STRING

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        zone = call.constant(2)
        data_type = call.types[0]
        seconds = (
            calendar.local_from_utc(
                columns.numpy_values(arrays[0]) // calendar.ticks_per_second(data_type),
                known_zone(zone),
            )
            if isinstance(zone, str) and isinstance(data_type, CLOCKS)
            else calendar.local_seconds(arrays[0], data_type, call.environment.zone)
        )
        written = fixed_format.write(seconds, layout) if layout is not None else None
        if written is not None:
            return written
        wall = columns.from_values(seconds, pa.timestamp("s"))
        shown: list[Column] = []
        for piece in pieces:
            if piece == "%f":
                shown.append(_fraction_text(arrays[0], data_type))
            elif piece == "%e":
                shown.append(pc.day(wall).cast(pa.string()))
            elif piece == "%Q":
                shown.append(pc.quarter(wall).cast(pa.string()))
            elif piece:
                shown.append(pc.strftime(wall, format=piece))
        if not shown:
            return pa.array([""] * len(wall), pa.string())
        return pc.binary_join_element_wise(*shown, "") if len(shown) > 1 else shown[0]

    return scalar.usual(name, arguments, rule, kernel)


def _translated(name: str, piece: str) -> str:
    if piece in ("%e", "%f", "%Q"):
        return piece

    def one(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter not in _FORMATS:
            raise BadArguments(f"{name} does not know the format %{letter}.")
        return _FORMATS[letter]

    return re.sub(r"%(.)", one, piece)


def _fraction_text(array: pa.Array, data_type: DataType) -> pa.Array:
    if not isinstance(data_type, DateTime64) or data_type.precision == 0:
        return pa.array(["000000"] * len(array), pa.string())
    ticks = calendar.ticks_per_second(data_type)
    digits = len(str(ticks)) - 1
    text = pa.array(columns.numpy_values(array) % ticks).cast(pa.string())
    padded = pc.utf8_lpad(text, width=digits, padding="0")
    return pc.utf8_rpad(
        pc.utf8_slice_codeunits(padded, 0, data_type.precision), width=6, padding="0"
    )


_NAMES = {
    "year": "%Y",
    "month": "%B",
    "day": "%d",
    "hour": "%H",
    "minute": "%M",
    "second": "%S",
    "weekday": "%A",
}


def _date_name(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    part = scalar.constant_text(name, arguments, 0, "the part").lower()
    if part not in (*_NAMES, "quarter", "dayofyear", "week"):
        raise BadArguments(f"{name} does not know the part {part!r}.")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        seconds = calendar.local_seconds(arrays[1], call.types[1], call.environment.zone)
        wall = columns.from_values(seconds, pa.timestamp("s"))
        if part == "quarter":
            return pc.quarter(wall).cast(pa.string())
        if part == "dayofyear":
            return pc.day_of_year(wall).cast(pa.string())
        if part == "week":
            return pc.iso_week(wall).cast(pa.string())
        shown = pc.strftime(wall, format=_NAMES[part])
        trimmed = (
            pc.utf8_ltrim(shown, "0") if part in ("day", "hour", "minute", "second") else shown
        )
        return pc.if_else(pc.equal(trimmed, ""), "0", trimmed)

    scalar.require(name, [plain(arguments[1].type)], DATES, "a Date or DateTime")
    return scalar.usual(name, arguments, STRING, kernel)


def _month_name(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    wall = columns.from_values(seconds_of(arrays[0], call), pa.timestamp("s"))
    return pc.strftime(wall, format="%B")


def _date_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        scalar.require(name, types[:1], DATES, "a Date or DateTime")
        return result

    return rule


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom(
        "formatDateTime", _format_datetime, count=(2, 3), aliases=("DATE_FORMAT",), insensitive=True
    ),
    scalar.custom("dateName", _date_name, count=(2, 3), insensitive=True),
    scalar.define("monthName", _date_rule(STRING), _month_name, insensitive=True),
)
