"""Dates and times as text: formatDateTime, dateName, monthName."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.datetime import fixed_format
from olapdb.functions.datetime.components import DATES, date_rule, iso_week, seconds_of
from olapdb.functions.datetime.row_zones import by_row_zone
from olapdb.functions.kernels import calendar, columns
from olapdb.types import STRING, DataType, Date, DateTime, DateTime64, plain

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
    "c": "%m",
    "k": "%H",
    "l": "%I",
    "n": "%n",
    "t": "%t",
    "%": "%%",
}


def _format_datetime(
    changed: frozenset[str], name: str, arguments: Sequence[Argument]
) -> ScalarCall:
    """Resolve formatDateTime(t, format[, zone]) of a date or time; the result is a String.

    The letters are MySQL's: %M is the month's name, %i the minute. `changed` are the settings that
    are not at their defaults. Raises BadArguments for an unknown letter, IllegalColumn or
    IllegalTypeOfArgument unless the format is a constant text.
    """
    template = scalar.constant_text(name, arguments, 1, "the format")
    if "formatdatetime_parsedatetime_m_is_month_name" in changed:
        template = minutes_for_months(template)
    bare = "formatdatetime_format_without_leading_zeros" in changed
    pieces = _pieces(name, template, (*_COMPUTED, *(_BARE if bare else ())))
    layout = fixed_format.layout_of(template)
    zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Format the times, by the fast writer if the layout is fixed, else by strftime pieces."""
        data_type = call.types[0]
        seconds = calendar.local_seconds(arrays[0], data_type, call.environment.zone, zone)
        written = fixed_format.write(seconds, layout) if layout is not None else None
        if written is not None:
            return written
        wall = columns.from_values(seconds, pa.timestamp("s"))
        shown: list[Column] = []
        for piece in pieces:
            if piece == "%f":
                shown.append(_fraction_text(arrays[0], data_type, changed))
            elif piece == "%e":
                width = 2 if "formatdatetime_e_with_space_padding" in changed else 1
                shown.append(pc.utf8_lpad(pc.day(wall).cast(pa.string()), width=width))
            elif bare and piece in _BARE:
                shown.append(_bare_number(piece, wall, data_type))
            elif piece == "%Q":
                shown.append(pc.quarter(wall).cast(pa.string()))
            elif piece in _TWO_DIGITS:
                shown.append(_two_digits(_TWO_DIGITS[piece](seconds // calendar.DAY)))
            elif piece == "%z":
                own_zone = zone or calendar.zone_of(data_type, call.environment.zone)
                shown.append(_offset_text(seconds, arrays[0], data_type, own_zone))
            elif piece:
                shown.append(pc.strftime(wall, format=piece))
        if not shown:
            return pa.array([""] * len(wall), pa.string())
        return pc.binary_join_element_wise(*shown, "") if len(shown) > 1 else shown[0]

    return scalar.standard_call(name, arguments, date_rule(STRING), kernel)


def minutes_for_months(template: str) -> str:
    """Replace %M by %i in a format, for the setting under which %M means the minute."""
    return re.sub("%.", lambda m: "%i" if m[0] == "%M" else m[0], template, flags=re.DOTALL)


_BARE = {"%c": "%m", "%k": "%H", "%l": "%I"}
"""The letters that a setting writes without leading zeros, and strftime's."""


def _bare_number(piece: str, wall: pa.Array, data_type: DataType) -> pa.Array:
    """Return one part of the times without a leading zero; the hour of a date stays 00."""
    text = pc.strftime(wall, format=_BARE[piece])
    if piece == "%k" and not isinstance(data_type, DateTime | DateTime64):
        return text
    return text.cast(pa.int64()).cast(pa.string())


_NOT_THERE = ("%U", "%v", "%x", "%X")
"""Letters of MySQL, of weeks and their years, that ClickHouse knows and refuses."""


def _pieces(name: str, template: str, computed: Collection[str]) -> list[str]:
    """Split the format into pieces and translate it to strftime's letters; each letter in `computed` is a piece of
    its own. Raises BadArguments for an unknown letter and for a lone % at the end, NotSupportedError for a letter
    of `_NOT_THERE`."""
    pieces = [""]
    for token in re.findall("%.|[^%]+|%", template, re.DOTALL):
        if token == "%":
            raise BadArguments(
                f"'%' must not be the last character in the format string of {name}.",
                hint="Write '%%' for a percent sign.",
            )
        if token in computed:
            pieces += [token, ""]
        elif not token.startswith("%"):
            pieces[-1] += token
        elif token[1] in _FORMATS:
            pieces[-1] += _FORMATS[token[1]]
        else:
            error = NotSupportedError if token in _NOT_THERE else BadArguments
            raise error(f"{name} does not know the format {token}.")
    return pieces


_TWO_DIGITS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "%C": lambda days: calendar.civil_from_days(days)[0] // 100,
    "%g": lambda days: iso_week(days)[0] % 100,
}
"""The letters that strftime of Arrow lacks: century and year of the ISO week, from days."""
_COMPUTED = ("%e", "%f", "%Q", "%z", *_TWO_DIGITS)
"""The letters that strftime does not write, or not so."""


def _two_digits(numbers: np.ndarray) -> pa.Array:
    """Return numbers as texts of two digits, zero padded."""
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=2, padding="0")


def _offset_text(seconds: np.ndarray, array: pa.Array, data_type: DataType, zone: str) -> pa.Array:
    """Return the UTC offset of each time as text +hhmm. `seconds` are its wall clock seconds, `array` the time
    itself."""
    if isinstance(data_type, DateTime | DateTime64):
        utc = columns.numpy_values(array) // calendar.ticks_per_second(data_type)
    else:
        utc = calendar.utc_from_local(seconds, zone)
    minutes = (seconds - utc) // 60
    sign = pa.array(np.where(minutes < 0, "-", "+"))
    hours, rest = np.divmod(np.abs(minutes), 60)
    return pc.binary_join_element_wise(sign, _two_digits(hours), _two_digits(rest), "")


def _fraction_text(array: pa.Array, data_type: DataType, changed: frozenset[str]) -> pa.Array:
    """Return the fraction of the second of each time: six digits padded with zeros on the right, or the type's own
    digits if a setting says so."""
    single = "formatdatetime_f_prints_single_zero" in changed
    scaled = single or "formatdatetime_f_prints_scale_number_of_digits" in changed
    if not isinstance(data_type, DateTime64) or data_type.precision == 0:
        return pa.array(["0" if single else "000000"] * len(array), pa.string())
    ticks = calendar.ticks_per_second(data_type)
    digits = len(str(ticks)) - 1
    text = pa.array(columns.numpy_values(array) % ticks).cast(pa.string())
    padded = pc.utf8_lpad(text, width=digits, padding="0")
    if scaled:
        return pc.utf8_slice_codeunits(padded, 0, data_type.precision)
    return pc.utf8_rpad(
        pc.utf8_slice_codeunits(padded, 0, min(data_type.precision, 6)), width=6, padding="0"
    )


_NUMBERS: Mapping[str, Callable[[pa.Array], pa.Array]] = MappingProxyType(
    {
        "year": pc.year,
        "quarter": pc.quarter,
        "dayofyear": pc.day_of_year,
        "day": pc.day,
        "week": pc.iso_week,
        "hour": pc.hour,
        "minute": pc.minute,
        "second": pc.second,
    }
)
"""The parts of a time that dateName shows as numbers."""
_OF_THE_DAY = frozenset({"hour", "minute", "second"})
"""Those that a date does not have."""
_MONTHS = "January February March April May June July August September October November December"
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_NAMES = MappingProxyType({"month": tuple(_MONTHS.split()), "weekday": tuple(_WEEKDAYS.split())})
"""The parts that it shows by their English names."""


def _named(wall: pa.Array, part: str) -> pa.Array:
    """Return the English name of each time's month or weekday, as `part` says."""
    numbers = pc.subtract(pc.month(wall), 1) if part == "month" else pc.day_of_week(wall)
    return pa.array(_NAMES[part], pa.string()).take(numbers)


def _date_name(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve dateName(part, t[, zone]): the part as text, months and weekdays by name.

    Raises BadArguments."""
    zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None
    part = scalar.constant_text(name, arguments, 0, "the part").lower()
    if part not in _NAMES and part not in _NUMBERS:
        raise BadArguments(f"{name} does not know the part {part!r}.")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the part as text, without a leading zero for days and times."""
        seconds = calendar.local_seconds(arrays[1], call.types[1], call.environment.zone, zone)
        wall = columns.from_values(seconds, pa.timestamp("s"))
        if part in _NAMES:
            return _named(wall, part)
        return _NUMBERS[part](wall).cast(pa.string())

    kinds = (DateTime, DateTime64) if part in _OF_THE_DAY else DATES
    scalar.require(name, [plain(arguments[1].type)], kinds, "a Date or DateTime")
    return scalar.standard_call(name, arguments, STRING, kernel)


def _month_name(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the English name of each month: the kernel of monthName."""
    wall = columns.from_values(seconds_of(arrays[0], call), pa.timestamp("s"))
    return _named(wall, "month")


def _resolver(changed: frozenset[str]) -> scalar.Resolver:
    """Return the resolver of formatDateTime under the settings `changed`, which are not at their defaults."""
    return by_row_zone(partial(_format_datetime, changed), 2)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    replace(
        scalar.custom(
            "formatDateTime",
            _resolver(frozenset()),
            count=(2, 3),
            aliases=("DATE_FORMAT",),
            insensitive=True,
        ),
        by_settings=_resolver,
    ),
    scalar.custom("dateName", _date_name, count=(2, 3), insensitive=True),
    scalar.define(
        "monthName",
        scalar.fixed_rule(STRING, (Date, DateTime, DateTime64), "a Date or DateTime"),
        _month_name,
        insensitive=True,
    ),
)
