"""Functions of dates, times and time zones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package."""
    # imported at the call: these modules import `olapdb.functions.registry`, which imports this one
    from olapdb.functions.datetime import (
        addition,
        best_effort_functions,
        changing,
        components,
        construction,
        difference,
        formatting,
        from_numbers,
        interval_rounding,
        interval_tuples,
        joda_format,
        julian_days,
        parse_format,
        rounding,
        time_windows,
        zone_functions,
    )

    modules = (
        components,
        construction,
        best_effort_functions,
        formatting,
        joda_format,
        parse_format,
        rounding,
        addition,
        difference,
        changing,
        from_numbers,
        interval_rounding,
        interval_tuples,
        julian_days,
        time_windows,
        zone_functions,
    )
    return tuple(definition for module in modules for definition in module.DEFINITIONS)
