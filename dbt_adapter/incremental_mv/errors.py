"""The error for a model that a trigger cannot maintain."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_common.exceptions import CompilationError

from olapdb.errors import Error

from ..error_text import with_line


def refuse(what: str, why: str, fix: str) -> CompilationError:
    """Return (do not raise) the error for a model that a trigger cannot maintain.

    The texts say what the model contains, why this cannot be kept correct, and how to fix it."""
    return CompilationError(f"incremental_mv: {what} {why} {fix}")


def refuse_all(errors: Sequence[CompilationError]) -> CompilationError:
    """Return (do not raise) one error for all reasons why a trigger cannot maintain a model."""
    if len(errors) == 1:
        return errors[0]
    listed = "\n".join(f"  {number}. {error.msg}" for number, error in enumerate(errors, 1))
    return CompilationError(f"There are {len(errors)} things that a trigger cannot keep:\n{listed}")


def refuse_sql(sql: str, error: Error) -> CompilationError:
    """Return (do not raise) the error for SQL that does not parse, with the line and a caret."""
    return CompilationError(f"the SQL does not parse: {with_line(error, sql)}")
