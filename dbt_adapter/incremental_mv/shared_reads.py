"""What the models of one run read of system tables, shared between them while nothing is committed.

In a run that changes nothing each model would ask the same two questions about itself. So after a few
of them one query asks for all models. An answer belongs to the number of the newest commit: after the
next commit, of this run or of any other process, each model asks for itself again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Name = tuple[str, str]
"""A database, and a name in it."""
Rows = Mapping[Name, Mapping[str, Any]]
"""Rows of a system table, by the name of what they are about."""
Fetch = Callable[[Iterable[Name]], Rows]
"""Reads the rows of these names; one that is missing has none."""

SINGLE_READS = 2
"""How many models ask for themselves at one commit before one query asks for all."""


class SharedReads:
    """The rows that describe tables or triggers, by name, at one commit. The threads of a run share
    them."""

    def __init__(self, all_names: Callable[[], Iterable[Name]]) -> None:
        """Begin without answers; `all_names` are those that models of this project may ask for."""
        self._all_names = all_names
        self._lock = threading.Lock()
        self._commit = -1
        self._reads = 0
        self._rows: dict[Name, Mapping[str, Any] | None] = {}

    def rows(self, names: Iterable[Name], newest: Callable[[], int], fetch: Fetch) -> Rows:
        """Return the rows of the names as of a commit that was the newest during this call; names
        without a row are left out.

        `newest` returns the number of the newest commit, `fetch` the rows of names that are not
        known yet."""
        wanted = sorted(set(names))
        with self._lock:
            commit = newest()
            if commit != self._commit:
                self._commit, self._reads, self._rows = commit, 0, {}
            missing = [name for name in wanted if name not in self._rows]
            if not missing:
                return _present(wanted, self._rows)
            self._reads += 1
            asked = set(wanted)
            if self._reads > SINGLE_READS:
                asked |= set(self._all_names())
            fetched = fetch(sorted(asked))
            if newest() == commit:  # else a commit between may be in the rows
                self._rows |= {name: fetched.get(name) for name in asked}
            return _present(wanted, fetched)


def _present(names: Iterable[Name], rows: Mapping[Name, Mapping[str, Any] | None]) -> Rows:
    """Return the rows of these names, without those that have none."""
    pairs = ((name, rows.get(name)) for name in names)
    return {name: row for name, row in pairs if row is not None}


class UnchangedTables:
    """Rows of system.tables of the tables that no commit has changed since they were read.

    Commits that change other things leave them: in a first run each model commits several times, and
    many models read one source. Views are not kept, since a change of what they read may change
    their rows."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._rows: dict[Name, tuple[object, Mapping[str, Any]]] = {}

    def rows(self, objects: Mapping[Name, object]) -> Rows:
        """Return the rows that are known of these objects of the catalog."""
        kept = ((name, self._rows.get(name), item) for name, item in objects.items())
        return {name: row[1] for name, row, item in kept if row is not None and row[0] is item}

    def keep(self, objects: Mapping[Name, object], rows: Rows) -> None:
        """Keep the rows of the tables among these objects; the rows were read after the objects."""
        for name, row in rows.items():
            if row["engine"] not in ("View", "MaterializedView") and name in objects:
                self._rows[name] = (objects[name], row)


@dataclass(frozen=True)
class RunReads:
    """The shared reads of a run: rows of system.tables, and of system.views."""

    tables: SharedReads
    views: SharedReads
    unchanged: UnchangedTables = field(default_factory=UnchangedTables)
