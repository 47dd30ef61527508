"""The types of columns that are known as texts only: which type all values of a column have."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.config import Settings
from olapdb.functions.kernels import regexes
from olapdb.records import dataclass

_INTEGER = r"^[+-]?[0-9]{1,18}$"
_LONG_INTEGER = r"^[+-]?[0-9]+$"
_PLAIN_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$|^[+-]?(inf|nan)$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(inf|nan)$"
_BOOL = r"^(true|false|True|False|TRUE|FALSE)$"
_MONTH, _DAY = r"(0?[1-9]|1[0-2])", r"(0?[1-9]|[12][0-9]|3[01])"
_DATE = rf"^[0-9]{{4}}(-{_MONTH}-|/{_MONTH}/){_DAY}$"
_TIME = rf"{_DATE[:-1]}[ T]([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})?$"
_BASIC_TIME = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_FINEST = types.DateTime64(9, None)
_PADDED = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PADDINGS = (
    (r"^([0-9]{4})[-/]([0-9])[-/]", r"\1-0\2-"),
    (r"^([0-9]{4})/([0-9]{2})/", r"\1-\2-"),
    (r"^([0-9]{4}-[0-9]{2}-)([0-9])($|[^0-9])", r"\10\2\3"),
)
"""What a date becomes YYYY-MM-DD by: patterns, and what replaces them."""
_DAYS: dict[type[types.DataType], tuple[str, str]] = {
    types.Date: ("1970-01-01", "2149-06-06"),
    types.DateTime: ("1970-01-01", "2106-02-06"),
    types.DateTime64: ("1677-09-22", "2262-04-10"),
}
"""The first and the last whole day of a type; of DateTime64, one with nanoseconds."""


@dataclass(frozen=True)
class Guess:
    """Which types are inferred, by the settings input_format_try_infer_…. `exponents`: 1e5 is a number.
    `long_numbers`: integers beyond UInt64 are Float64. `numbers`: quoted texts may be numbers. `named_tuples`: JSON
    objects are tuples, else with `object_texts` texts, else maps. `mixed_arrays`: JSON arrays stay arrays even if their
    elements have no common type, else they are tuples. `finest_times`: all times are DateTime64. `any_forms`: times are read in all forms in which the year
    comes first, else only as YYYY-MM-DD hh:mm:ss."""

    integers: bool = True
    dates: bool = True
    times: bool = True
    exponents: bool = False
    long_numbers: bool = True
    numbers: bool = False
    named_tuples: bool = True
    object_texts: bool = True
    mixed_arrays: bool = True
    finest_times: bool = False
    any_forms: bool = True

    @classmethod
    def of(cls, settings: Settings, *, json: bool = False) -> Guess:
        """Return the guess that the settings give; with `json` for JSON formats."""
        prefix = "input_format_try_infer_"
        return cls(
            integers=settings.boolean(f"{prefix}integers"),
            dates=settings.boolean(f"{prefix}dates"),
            times=settings.boolean(f"{prefix}datetimes"),
            exponents=json or settings.boolean(f"{prefix}exponent_floats"),
            long_numbers=not json,
            numbers=json and settings.boolean("input_format_json_try_infer_numbers_from_strings"),
            finest_times=settings.boolean("input_format_try_infer_datetimes_only_datetime64"),
            any_forms=settings["date_time_input_format"] != "basic",
            mixed_arrays=settings.boolean(
                "input_format_json_infer_array_of_dynamic_from_array_of_different_types"
            ),
            object_texts=settings.boolean("input_format_json_read_objects_as_strings"),
            named_tuples=settings.boolean("input_format_json_try_infer_named_tuples_from_objects"),
        )


ANY = Guess()


def all_match(texts: pa.Array, pattern: str) -> bool:
    """Return whether every text matches the pattern; NULL counts as a match."""
    return pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py() is not False


def type_of_texts(
    texts: pa.Array, *, numbers: bool = True, guess: Guess = ANY
) -> types.DataType | None:
    """Return the type that all the texts have, not Nullable; None if all are NULL. With `numbers`, texts of numbers
    and Bools have these types (TabSeparated, unquoted CSV); strings of JSON do not."""
    if texts.null_count == len(texts):
        return None
    data_type = _number_type(texts, guess) if numbers else None
    if data_type is None:
        data_type = _day_type(texts, guess)
    return data_type or types.STRING


def _number_type(texts: pa.Array, guess: Guess) -> types.DataType | None:
    """Return the number type, or Bool, that all texts have; None if any is something else. In JSON, integers beyond
    64 bits are String."""
    if all_match(texts, _BOOL):
        return types.BOOL
    if guess.integers and all_match(texts, _INTEGER):
        return types.INT64
    if guess.integers and all_match(texts, _LONG_INTEGER):
        data_type = _long_integer(texts)
        return data_type if data_type != types.FLOAT64 or guess.long_numbers else types.STRING
    return types.FLOAT64 if all_match(texts, _FLOAT if guess.exponents else _PLAIN_FLOAT) else None


def _day_type(texts: pa.Array, guess: Guess) -> types.DataType | None:
    """Return the date or time type that all texts have; None if any is something else."""
    if guess.dates and all_match(texts, _DATE):
        return _of_days(texts, types.DATE)
    time, zone = (_TIME, _ZONE) if guess.any_forms else (_BASIC_TIME, "$")
    whole, exact = time + zone, rf"{time}(\.[0-9]{{1,9}})?{zone}"
    if not guess.times or not all_match(texts, rf"{_DATE}|{exact}"):
        return None
    is_whole = not guess.finest_times and all_match(texts, rf"{_DATE}|{whole}")
    return _of_days(texts, types.DateTime(None) if is_whole else _FINEST)


def _of_days(texts: pa.Array, data_type: types.DataType) -> types.DataType | None:
    """Return the type of dates or times if it has all of their days, else the DateTime64 that has them; None if that
    has not."""
    days = texts
    for pattern, padded in () if all_match(texts, _PADDED) else _PADDINGS:
        days = regexes.replaced(days, pattern, padded)
    low, high = pc.min_max(pc.utf8_slice_codeunits(days, 0, 10)).values()
    for candidate in (data_type, _FINEST):
        first, last = _DAYS[type(candidate)]
        if first <= low.as_py() and high.as_py() <= last:
            return candidate
    return None


def _long_integer(texts: pa.Array) -> types.DataType:
    """Return the type of integer texts of which some have more than 18 digits."""
    for candidate in (types.INT64, types.UINT64):
        try:
            pc.utf8_ltrim(texts, "+").cast(candidate.arrow)
        except pa.ArrowInvalid:
            continue
        return candidate
    return types.FLOAT64
