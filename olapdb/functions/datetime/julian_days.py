"""Modified Julian days: days since 1858-11-17, from and to texts of dates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotFormatDateTime, CannotParseDate, CannotParseInput, DataError
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import calendar, columns, regexes
from olapdb.types import INT32, STRING, FixedString, Integer, String, make_nullable

_EPOCH = 40_587
"""The modified Julian day of 1970-01-01."""
_RANGE = (-678_941, 2_973_483)
"""The modified Julian days of 0000-01-01 and 9999-12-31."""
_DATE = r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})$"


def _refuse(bad: np.ndarray, error: type[DataError], message: str) -> None:
    """Raise `error` with the row of the first True in `bad`; do nothing if there is none."""
    if bad.any():
        raise error(message).at_row(int(np.argmax(bad)))


def _to_days(*, or_null: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of toModifiedJulianDay(text); `or_null`: NULL for a text that is no date."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Parse texts YYYY-MM-DD and count days."""
        matches = regexes.extracted(columns.unpadded(arrays[0]), _DATE)
        formed = np.asarray(matches.is_valid())
        parts = [
            columns.numpy_values(pc.fill_null(pc.struct_field(matches, part).cast(pa.int64()), 1))
            for part in ("year", "month", "day")
        ]
        days = calendar.days_from_civil(parts[0], np.clip(parts[1], 1, 12), parts[2])
        year, month, day = calendar.civil_from_days(days)
        exists = (year == parts[0]) & (month == parts[1]) & (day == parts[2])
        if not or_null:
            _refuse(~formed, CannotParseInput, "The text is no date of the form YYYY-MM-DD.")
            _refuse(~exists, CannotParseDate, "The text is no date that exists.")
        return columns.from_values(days + _EPOCH, pa.int32(), formed & exists)

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for a String or FixedString; Int32, Nullable with `or_null`."""
        result = make_nullable(INT32) if or_null else INT32
        rule = scalar.fixed_rule(result, (String, FixedString), "a String or FixedString")
        return scalar.standard_call(name, arguments, rule, kernel)

    return resolve


def _from_days(*, or_null: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of fromModifiedJulianDay(n); `or_null`: NULL for a day out of range."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Write the dates of day numbers as YYYY-MM-DD."""
        days = columns.numpy_values(arrays[0])
        fits = (days >= _RANGE[0]) & (days <= _RANGE[1])
        if not or_null:
            _refuse(~fits, CannotFormatDateTime, "The day is not in the years 0000 to 9999.")
        safe = np.where(fits, days, 0).astype(np.int64) - _EPOCH
        texts = np.datetime_as_string(safe.astype("datetime64[D]"))
        return pa.array(texts.astype(object), pa.string(), mask=~fits)

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call of an integer."""
        result = make_nullable(STRING) if or_null else STRING
        rule = scalar.fixed_rule(result, (Integer,), "an integer")
        return scalar.standard_call(name, arguments, rule, kernel)

    return resolve


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("toModifiedJulianDay", _to_days(or_null=False)),
    scalar.custom("toModifiedJulianDayOrNull", _to_days(or_null=True)),
    scalar.custom("fromModifiedJulianDay", _from_days(or_null=False)),
    scalar.custom("fromModifiedJulianDayOrNull", _from_days(or_null=True)),
)
