"""Steps that change no row: merges, vacuum, renames."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from olapdb.dbapi.connection import Connection
from olapdb.maintenance.vacuum import vacuum
from tests.schedules.model import Model
from tests.schedules.operation import CATALOG, STORE, Answer, Operation
from tests.schedules.retention import EXPIRING, expire
from tests.schedules.shapes import TABLES


@dataclass(frozen=True)
class Optimize(Operation):
    """OPTIMIZE: merges whatever the engine chooses."""

    table: str
    final: bool
    weight: ClassVar[int] = 14
    piecemeal: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "merge.started",
        "merge.read",
        "stage.part_staged",
        "transaction.before_commit",
        "merge.committed",
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Optimize:
        stored = [key for key in sorted(model.names) if TABLES[key].stores]
        return cls(chance.choice(stored), chance.random() < 0.6)

    def sql(self, model: Model) -> str:
        return f"OPTIMIZE TABLE {model.names[self.table]}{' FINAL' if self.final else ''}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        if self.table == EXPIRING:  # in a commit of its own, before the merge
            expire(model)
            yield


@dataclass(frozen=True)
class Vacuum(Operation):
    """A vacuum that deletes unreferenced files at once."""

    weight: ClassVar[int] = 5
    stages: ClassVar[tuple[str, ...]] = (
        "vacuum.revoked",
        "vacuum.marked",
        "vacuum.forgotten",
        "vacuum.file_deleted",
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Vacuum:
        return cls()

    def sql(self, model: Model) -> str:
        return "-- vacuum"

    def perform(self, connection: Connection, text: str) -> Answer:
        """Vacuum with a part lifetime of 0."""
        vacuum(connection.database.services, lifetime_seconds=0)
        return Answer()

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield


def lone(model: Model) -> list[str]:
    """Return the tables whose name does not depend on another table's."""
    versioned = {v.shape.target for v in model.views.values() if v.standing} | {
        model.views[v.beside].shape.target for v in model.views.values() if v.standing
    }
    return sorted(model.names.keys() - versioned)


@dataclass(frozen=True)
class Rename(Operation):
    """RENAME TABLE: its readers and writers follow."""

    table: str
    name: str
    weight: ClassVar[int] = 4
    stages: ClassVar[tuple[str, ...]] = CATALOG

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Rename:
        table = chance.choice(lone(model))
        stem = table.replace("#", "_")  # of a version that a rebuild made
        free = [n for n in (f"{stem}0", f"{stem}1") if n not in model.names.values()]
        return cls(table, chance.choice(free))

    def sql(self, model: Model) -> str:
        if self.name in model.names.values():
            raise KeyError(self.name)
        return f"RENAME TABLE {model.names[self.table]} TO {self.name}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.names[self.table] = self.name


@dataclass(frozen=True)
class Exchange(Operation):
    """EXCHANGE TABLES: two tables swap their names; identities stay."""

    left: str
    right: str
    weight: ClassVar[int] = 3
    stages: ClassVar[tuple[str, ...]] = CATALOG

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Exchange | None:
        found = [key for key in lone(model) if key != "d"]
        return cls(*chance.sample(found, 2)) if len(found) > 1 else None

    def sql(self, model: Model) -> str:
        return f"EXCHANGE TABLES {model.names[self.left]} AND {model.names[self.right]}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        names = model.names
        names[self.left], names[self.right] = names[self.right], names[self.left]
