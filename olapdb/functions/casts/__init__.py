"""Conversions between types: CAST, parsing of texts, and the functions toUInt8, toDate, …."""

from __future__ import annotations

MODULES = ("conversion", "cast_functions")
"""The modules with `DEFINITIONS`, in their order."""
