"""The error for a model that a trigger cannot maintain."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError


def refuse(what: str, why: str, fix: str) -> CompilationError:
    """Return (do not raise) the error for a model that a trigger cannot maintain.

    The texts say what the model contains, why this cannot be kept correct, and how to fix it."""
    return CompilationError(f"incremental_mv: {what} {why} {fix}")
