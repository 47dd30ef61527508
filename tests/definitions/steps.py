"""The steps of a script: SQL, INSERTs of Arrow data, merges by hand, mending.

A script is plain data. It is drawn without an engine, so the same seed always gives the same
statements, and a shrunk script can be stored as text and read again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

ARROW = re.compile(r"-- arrow (\w+) (.*)", re.DOTALL)
HANDLE = re.compile(r"-- handle (\w+)\.(\w+) (.*)", re.DOTALL)
MERGE = re.compile(r"-- merge (\w+)")
MEND = "-- mend"
RERUN = "-- reopen"


@dataclass(frozen=True)
class Step:
    """A statement, or one of the directives `-- arrow TABLE {column: values}`, `-- handle VIEW.METHOD
    {argument: value}` (a call of the view's Python handle), `-- merge TABLE` (the best single background merge) and `-- mend` (run the mends of `system.views` until none is
    left)."""

    text: str

    @property
    def is_insert(self) -> bool:
        """Return whether the step inserts rows, by SQL or as Arrow data."""
        return self.text.startswith("INSERT INTO") or ARROW.match(self.text) is not None


@dataclass(frozen=True)
class Script:
    """A list of steps. `seed` is the one from which they were drawn, -1 if they were not drawn."""

    steps: tuple[Step, ...]
    seed: int = -1

    def without(self, start: int, count: int) -> Script:
        """Return the script without `count` steps from `start`."""
        return Script(self.steps[:start] + self.steps[start + count :], self.seed)

    def with_step(self, at: int, text: str) -> Script:
        """Return the script with the step `at` replaced."""
        return Script((*self.steps[:at], Step(text), *self.steps[at + 1 :]), self.seed)

    def __str__(self) -> str:
        return "\n".join(f"{step.text};" for step in self.steps) + "\n"

    @property
    def size(self) -> int:
        """Return the number of characters of all steps."""
        return sum(len(step.text) for step in self.steps)


def script_of(texts: Iterable[str], seed: int = -1) -> Script:
    """Return the script of these statements."""
    return Script(tuple(Step(text) for text in texts), seed)


def read_script(text: str) -> Script:
    """Return the script that `str` wrote. Lines that begin with `--#` are comments."""
    lines = [line for line in text.splitlines() if not line.startswith("--#")]
    found = (one.strip() for one in "\n".join(lines).split(";\n"))
    return script_of(one for one in (f.removesuffix(";") for f in found) if one)


def arrow_step(table: str, columns: dict[str, list[object]]) -> str:
    return f"-- arrow {table} {columns!r}"


def arrow_data(text: str) -> tuple[str, dict[str, list[object]]] | None:
    """Return the table and columns of an `-- arrow` directive, else None."""
    found = ARROW.fullmatch(text)
    if found is None:
        return None
    return found[1], ast.literal_eval(found[2])


def handle_step(view: str, method: str, arguments: dict[str, object]) -> str:
    return f"-- handle {view}.{method} {arguments!r}"


def handle_call(text: str) -> tuple[str, str, dict[str, object]] | None:
    """Return the view, method and arguments of a `-- handle` directive, else None."""
    found = HANDLE.fullmatch(text)
    return None if found is None else (found[1], found[2], ast.literal_eval(found[3]))


def recut(script: Script) -> Script:
    """Return the same rows in other blocks: each INSERT of rows becomes blocks of one row."""
    return script_of((_one_row_blocks(step.text) for step in script.steps), script.seed)


def _one_row_blocks(text: str) -> str:
    if not text.startswith("INSERT INTO") or "VALUES" not in text:
        return text
    head, _, rows = text.partition(" VALUES ")
    head = re.sub(r" SETTINGS max_insert_block_size = \d+", "", head)
    return f"{head} SETTINGS max_insert_block_size = 1 VALUES {rows}"
