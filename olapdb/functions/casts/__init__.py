"""Conversions between types: CAST, parsing of texts, and the functions toUInt8, toDate, …."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package."""
    # imported at the call: these modules import `olapdb.functions.registry`, which imports this one
    from olapdb.functions.casts import cast_functions, conversion

    return (*conversion.DEFINITIONS, *cast_functions.DEFINITIONS)
