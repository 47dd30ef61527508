"""Functions of dates, times and time zones."""

from __future__ import annotations

MODULES = (
    "components",
    "construction",
    "best_effort_functions",
    "formatting",
    "joda_format",
    "parse_format",
    "rounding",
    "addition",
    "difference",
    "changing",
    "from_numbers",
    "interval_rounding",
    "interval_tuples",
    "julian_days",
    "time_grids",
    "time_windows",
    "zone_functions",
)
"""The modules with `DEFINITIONS`, in their order."""
