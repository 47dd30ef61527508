"""parseISO8601Duration: the seconds in a duration of ISO 8601; see `by_value`."""

from __future__ import annotations

import re

from olapdb.errors import BadArguments
from olapdb.functions.kernels.by_value import define_by_value, text_of
from olapdb.functions.scalar import ScalarDefinition, fixed_rule
from olapdb.types import FLOAT64, String

_UNITS = {"W": 604_800.0, "D": 86_400.0, "H": 3_600.0, "M": 60.0, "S": 1.0}
_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)


def _seconds(duration: bytes) -> float:
    """Return the seconds of one duration.

    Raises BadArguments unless it is weeks, days, hours, minutes and seconds in this order, with at
    least one of them, after P and T."""
    text = text_of(duration)
    match = _DURATION.fullmatch(text)
    if match is None or text == "P":
        raise BadArguments(
            f"{text!r} is not a duration of ISO 8601.",
            hint="Write P, then weeks (W) and days (D), then T with hours (H), minutes (M) and"
            " seconds (S); months and years have no fixed length.",
        )
    total = 0.0
    for digits, seconds in zip(match.groups(), _UNITS.values(), strict=True):
        if digits is not None:
            total += float(digits) * seconds
    return total


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("parseISO8601Duration", fixed_rule(FLOAT64, (String,), "a String"), _seconds),
)
