"""Named collections, stored in the catalog: frozen facts."""

from __future__ import annotations

from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class CollectionEntry:
    """An entry of a named collection. `overridable` is None where the statement did not say it."""

    key: str
    value: str
    overridable: bool | None = None


@dataclass(frozen=True, slots=True)
class NamedCollection:
    """Arguments under a name, which belongs to no database. The entries are sorted by their keys."""

    id: str
    name: str
    entries: tuple[CollectionEntry, ...]
