"""How a model that cannot be maintained by a trigger is refused."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError


def refuse(what: str, why: str, fix: str) -> CompilationError:
    """An error to raise: what the model has, why a trigger cannot keep it right, what to do."""
    return CompilationError(f"incremental_mv: {what} {why} {fix}")
