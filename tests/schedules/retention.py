"""Steps by which rows leave for good: TTL, and partitions that are dropped with `retain = 1`.

The output of views for such rows stays.  From then on the keys that the rows had reached are
frozen: neither compared nor replaced, until a statement discards them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from tests.schedules.frozen import Frozen, bounds
from tests.schedules.model import Model, Piece, split
from tests.schedules.operation import CATALOG, STORE, Answer, Operation
from tests.schedules.rows import stored_bases, targets
from tests.schedules.shapes import EXPIRED_USER, PARTITIONS, TABLES, Fails, Row
from tests.schedules.targets import MADE_OTHERWISE

EXPIRING = "h"
"""The source with a TTL."""


@dataclass(frozen=True)
class Expire(Operation):
    """MATERIALIZE TTL: expired rows leave now."""

    weight: ClassVar[int] = 10
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "delete.part_rewritten",
        "delete.before_commit",
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Expire | None:
        return cls() if EXPIRING in model.names else None

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[EXPIRING]} MATERIALIZE TTL"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        expire(model)


def expire(model: Model) -> None:
    """Remove the expired rows of `h` by retention."""
    retire(model, EXPIRING, lambda row: row[2] == EXPIRED_USER)


@dataclass(frozen=True)
class Retire(Operation):
    """DROP PARTITION of a source with `retain = 1`: the output of its views stays."""

    table: str
    at: int
    weight: ClassVar[int] = 6
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "delete.before_commit")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Retire:
        return cls(chance.choice(stored_bases(model)), chance.choice(PARTITIONS))

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[self.table]} DROP PARTITION {self.at} SETTINGS retain = 1"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        retire(model, self.table, lambda row: row[0] == self.at)


@dataclass(frozen=True)
class RetireTarget(Operation):
    """DROP PARTITION of a target with `retain = 1`: its rows must not come back; views below
    keep their output."""

    table: str
    slice: str
    weight: ClassVar[int] = 4
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "delete.before_commit")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> RetireTarget | None:
        found = [(key, p.slice) for key in targets(model) for p in model.pieces[key].values()]
        return cls(*chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        name = model.names[self.table]
        return f"ALTER TABLE {name} DROP PARTITION ID '{self.slice}' SETTINGS retain = 1"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        shape = TABLES[self.table]
        gone = [p for p in model.pieces[self.table].values() if p.slice == self.slice]
        box = bounds(shape, [row for piece in gone for row in piece.rows])
        for view in model.views_into(self.table):
            own = [piece for piece in gone if piece.maker == view.id]
            if own:
                rows = sum(len(piece.rows) for piece in own)
                model.freeze((view.id, "target", self.slice), rows, {self.slice: box})
        retire(model, self.table, lambda row: shape.slice_of(row) == self.slice)


def retire(model: Model, table: str, leaves: Callable[[Row], bool]) -> None:
    """Remove rows of a source, and freeze the keys that they reached in its views' targets."""
    for view in model.views_on(table):
        gone: dict[str, list[Row]] = {}
        for piece in model.seen_pieces(view):
            some = [row for row in piece.rows if leaves(row)]
            if some:
                gone.setdefault(piece.slice, []).extend(some)
        for slice_, rows in gone.items():
            key = view.id, "source", slice_
            shape = TABLES[view.shape.target]
            try:
                made = model.made_of(view, [Piece(slice_, tuple(rows))])
            except Fails:
                model.freeze(key, len(rows), {None: None})
                continue
            reached: Frozen = {one: bounds(shape, some) for one, some in split(shape, made).items()}
            model.freeze(key, len(rows), reached)
            if model.caused(MADE_OTHERWISE):
                model.open_frost |= {key}
    model.remove_rows(table, leaves)
