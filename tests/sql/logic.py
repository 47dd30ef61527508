"""The reader and writer of `*.slt` files, after SQLite's sqllogictest.

    # a comment
    statement ok
    CREATE TABLE t (k UInt8, s Nullable(String)) ENGINE = MergeTree ORDER BY k

    query
    SELECT k, s FROM t ORDER BY k
    ----
    k       s
    UInt8   Nullable(String)
    1       \\N

    query rowsort
    SELECT k FROM t
    ----
    …

    skipif merge
    error UNKNOWN_TABLE
    SELECT * FROM nothing

A record ends with an empty line.  The answer is ClickHouse's TabSeparatedWithNamesAndTypes: names,
types, rows; NULL is `\\N` and an empty string at the end or alone on its line is `(empty)`.
`rowsort` compares rows in any order.  `skipif NAME` leaves the record out under a configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["statement", "query", "error"]
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}


@dataclass(frozen=True)
class Record:
    """One statement. `expected` is the answer's lines, or the error's name alone; `line` is where
    the record begins in its file, `comments` what stands above it."""

    kind: Kind
    sql: str
    expected: tuple[str, ...] = ()
    rowsort: bool = False
    skipped: frozenset[str] = frozenset()
    comments: tuple[str, ...] = ()
    line: int = 0

    def text(self) -> str:
        """Write the record as it stands in a file, with its empty line."""
        head = {"statement": "statement ok", "error": f"error {''.join(self.expected)}"}.get(
            self.kind, "query rowsort" if self.rowsort else "query"
        )
        skipped = [f"skipif {name}" for name in sorted(self.skipped)]
        lines = [*self.comments, *skipped, head, self.sql]
        if self.kind == "query":
            lines += ["----", *self.expected]
        return "\n".join(lines) + "\n\n"


def read_records(path: Path) -> Iterator[Record]:
    """Read a file. Raises ValueError for a head that is none."""
    paragraph: list[str] = []
    for number, line in enumerate([*path.read_text().split("\n"), ""], 1):
        if line:
            paragraph.append(line)
        elif paragraph:
            yield from _record(paragraph, number - len(paragraph), path)
            paragraph = []


def _record(lines: list[str], number: int, path: Path) -> Iterator[Record]:
    comments = tuple(line for line in lines if line.startswith("# ") or line == "#")
    rest = [line for line in lines if line not in comments]
    skipped = frozenset(line.removeprefix("skipif ") for line in rest if line.startswith("skipif "))
    rest = [line for line in rest if not line.startswith("skipif ")]
    if not rest:
        return
    head, *body = rest
    record = Record("statement", "\n".join(body), (), False, skipped, comments, number)
    if head == "statement ok":
        yield record
    elif head.startswith("error"):
        yield replace(record, kind="error", expected=tuple(head.split()[1:]))
    elif head in ("query", "query rowsort"):
        at = body.index("----") if "----" in body else len(body)
        yield replace(
            record,
            kind="query",
            sql="\n".join(body[:at]),
            expected=tuple(body[at + 1 :]),
            rowsort=head.endswith("rowsort"),
        )
    else:
        raise ValueError(f"{path.name}:{number}: a record begins with statement, query or error.")


def answer_lines(
    names: tuple[str, ...], types: tuple[str, ...], rows: list[tuple[str | None, ...]]
) -> tuple[str, ...]:
    """Return an answer as the lines of a record."""
    return tuple("\t".join(map(_field, row)) or "(empty)" for row in (names, types, *rows))


def _field(value: str | None) -> str:
    if value is None:
        return "\\N"
    if value == "":
        return "(empty)"
    return "".join(_ESCAPES.get(character, character) for character in value)


def sorted_rows(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines with the rows, which follow names and types, sorted."""
    return (*lines[:2], *sorted(lines[2:]))
