"""Functions of JSON texts, on an index of all the tokens of a column."""

from __future__ import annotations

MODULES = ("extract", "write", "sql_json", "merge")
"""The modules with `DEFINITIONS`, in their order."""
