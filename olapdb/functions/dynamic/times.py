"""Texts of JSON that are dates and times: which ones, and their values.

2020-01-31 and 2020/1/31 are dates, with a clock behind them times: 2020-01-31 10:00, 2020-01-31T10:00:00.5Z. A day that
a Date does not have, and a time that a DateTime does not have, is a DateTime64(9)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.base import Environment
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns, regexes

FINE_TIME = types.DateTime64(9, None)
TIME = types.DateTime(None)
_DAY = r"(?P<year>[0-9]{4})[-/](?P<month>0?[1-9]|1[0-2])[-/](?P<day>0?[1-9]|[12][0-9]|3[01])"
_CLOCK = (
    r"(?:[ T](?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5]?[0-9])(?::(?P<second>[0-5]?[0-9])"
    r"(?P<fraction>\.[0-9]*)?)?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_PATTERN = f"^{_DAY}{_CLOCK}$"
_YEAR_FIRST, _YEAR_END = 1900, 2262
_SECONDS_END = 1 << 32
_DAYS_END = 1 << 16
_NANOSECONDS = 1_000_000_000
_DAY_SECONDS = 86_400


def days_and_times(
    texts: pa.Array, environment: Environment
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three masks of the texts: those that are a Date, a DateTime, and a DateTime64(9)."""
    nothing = np.zeros(len(texts), bool)
    plausible = columns.numpy_values(
        pc.match_substring_regex(columns.binary(texts), _PATTERN)
    ).astype(bool)
    if not plausible.any():
        return nothing, nothing, nothing
    seconds, valid, clocked, fine = (
        _filled(part, plausible) for part in _parts(texts.filter(pa.array(plausible)), environment)
    )
    is_day = valid & ~clocked & (seconds >= 0) & (seconds < _DAYS_END * _DAY_SECONDS)
    is_time = valid & clocked & ~fine & (seconds >= 0) & (seconds < _SECONDS_END)
    return is_day, is_time, valid & ~is_day & ~is_time


def _filled(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the values at the chosen rows, 0 at all others."""
    result = np.zeros(len(chosen), values.dtype)
    result[chosen] = values
    return result


def _parts(
    texts: pa.Array, environment: Environment
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return of texts that look like days or times: seconds since 1970, and masks of those that exist, that have a
    clock, and whose clock has a fraction."""
    ticks, valid, clocked, fine = _ticks(texts, environment)
    return ticks // _NANOSECONDS, valid, clocked, fine


def _ticks(
    texts: pa.Array, environment: Environment
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return nanoseconds since 1970, and the masks that `_parts` returns. Days have no zone; a clock without one is
    in the warehouse's zone."""
    fields = dict(
        zip(_names(), columns.struct_fields(regexes.extracted(texts, _PATTERN)), strict=True)
    )
    clocked = _given(fields["hour"])
    zoned = _given(fields["zone"])
    padded = {n: pc.utf8_lpad(fields[n], width=2, padding="0") for n in _names()[1:6]}
    day = pc.binary_join_element_wise(fields["year"], padded["month"], padded["day"], "-")
    clock = pc.binary_join_element_wise(padded["hour"], padded["minute"], padded["second"], ":")
    fraction = regexes.replaced(fields["fraction"], r"^\.$|^$", "")
    written = pc.binary_join_element_wise(
        pc.binary_join_element_wise(day, clock, " "), fraction, ""
    )
    years = columns.numpy_values(fields["year"].cast(pa.int64()))
    valid = (years >= _YEAR_FIRST) & (years < _YEAR_END)
    written = pc.if_else(pa.array(valid), written, pa.scalar(None, pa.string()))
    local = clocked & ~zoned
    ticks = np.zeros(len(texts), np.int64)
    for rows, zone in ((~local, "UTC"), (local, environment.zone)):
        chosen = np.flatnonzero(rows)
        if len(chosen):
            read = _parsed(written.take(pa.array(chosen)), zone)
            valid[chosen] &= np.asarray(read.is_valid())
            ticks[chosen] = columns.numpy_values(read.cast(pa.int64()).fill_null(0))
    ticks -= _offsets(fields["zone"]) * _NANOSECONDS
    return ticks, valid, clocked, _given(fields["fraction"])


def _names() -> tuple[str, ...]:
    """Return the names of the regular expression's groups, the parts of a time."""
    return ("year", "month", "day", "hour", "minute", "second", "fraction", "zone")


def _given(field: pa.Array) -> np.ndarray:
    """Return a mask of the texts that are neither empty nor NULL."""
    return np.asarray(pc.fill_null(pc.not_equal(field, ""), False))


def _parsed(texts: pa.Array, zone: str) -> pa.Array:
    """Return times in a zone as timestamps of nanoseconds, NULL for a text that is no time."""
    parsed = cast.cast_or_null(
        texts, types.Nullable(types.STRING), types.DateTime64(9, zone), Environment(zone=zone)
    )
    days = pc.utf8_slice_codeunits(texts, 0, 10)
    shown = pc.strftime(parsed, format="%Y-%m-%d")
    exists = pc.fill_null(pc.equal(days, shown), False)
    return pc.if_else(exists, parsed, pa.scalar(None, parsed.type))


def _offsets(zones: pa.Array) -> np.ndarray:
    """Return the seconds by which the zones, such as +02:00, are ahead of UTC; 0 for an empty text."""
    if not _given(zones).any():
        return np.zeros(len(zones), np.int64)
    digits = regexes.replaced(zones, r"[^0-9]", "")
    numbers = pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64())
    values = columns.numpy_values(numbers)
    seconds = (values // 100) * 3600 + (values % 100) * 60
    return np.asarray(np.where(np.asarray(pc.starts_with(zones, "-")), -seconds, seconds))


def read_times(texts: pa.Array, data_type: types.DataType, environment: Environment) -> pa.Array:
    """Return texts that are days or times as values of Date, DateTime or DateTime64(9)."""
    ticks, _, _, _ = _ticks(texts, environment)
    match data_type:
        case types.Date():
            days = ticks // (_DAY_SECONDS * _NANOSECONDS)
            return columns.from_values(days.astype(np.int32), data_type.arrow)
        case types.DateTime():
            return columns.from_values(ticks // _NANOSECONDS, data_type.arrow)
        case _:
            return columns.from_values(ticks, data_type.arrow)
