"""Texts of the engine's errors for dbt's log: the line of the statement that an error is about, with a caret."""

from __future__ import annotations

import re

from olapdb.errors import Error

_OTHER_BLANKS = re.compile(r"[^\S ]")
"""Tabs, and blanks that would end the line."""
_WIDTH_MAX = 120
"""Characters of a line that are shown: lines of generated SQL may have thousands."""


def with_line(error: Error, sql: str, lines_above: int = 0) -> str:
    """Return the error's text, and below it the line of `sql` at which it is with a caret; the text alone if the error
    has no place in `sql`.

    `lines_above` is the number of lines that dbt has put above the statement: lines are counted without them, as in the
    file below target/run."""
    text, position = str(error), error.position
    lines = sql.split("\n")  # as positions count them: splitlines() knows other ends of lines
    if position is None or not lines_above < position.line <= len(lines):
        return text
    number = position.line - lines_above
    text = text.replace(f"(at {position})", f"(at line {number}, column {position.column})", 1)
    line = _OTHER_BLANKS.sub(" ", lines[position.line - 1].rstrip("\r"))
    hidden = max(position.column - _WIDTH_MAX // 2, 0) if len(line) > _WIDTH_MAX else 0
    place = f"line {number} | "
    caret = " " * (len(place) + position.column - 1 - hidden) + "^"
    return f"{text}\n{place}{line[hidden : hidden + _WIDTH_MAX]}\n{caret}"
