"""Steps that change rows or definitions in place: UPDATE, MODIFY QUERY, whole partitions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from tests.schedules.model import Model, Piece
from tests.schedules.operation import CATALOG, STORE, Answer, Operation, Untrue
from tests.schedules.rows import plain_bases
from tests.schedules.shapes import PARTITIONS, VARIANTS, VIEWS

PART_STAGES = (*CATALOG, "delete.before_commit")


@dataclass(frozen=True)
class Update(Operation):
    """An UPDATE of the value column of a source's rows."""

    table: str
    user: int
    weight: ClassVar[int] = 6
    stages: ClassVar[tuple[str, ...]] = (*STORE, *CATALOG, "update.part_rewritten")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Update:
        return cls(chance.choice(plain_bases(model)), chance.randint(1, 4))

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[self.table]} UPDATE n = n + 1 WHERE u = {self.user}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.blame("UPDATE")
        pieces = model.pieces[self.table]
        for number, piece in list(pieces.items()):
            rows = tuple((*r[:3], r[3] + (r[2] == self.user)) for r in piece.rows)
            pieces[number] = replace(piece, rows=rows)


@dataclass(frozen=True)
class ModifyQuery(Operation):
    """MODIFY QUERY to the other definition of the view, and back."""

    view: str
    weight: ClassVar[int] = 6
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "modify.before_commit")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> ModifyQuery | None:
        found = [
            key
            for key, view in model.views.items()
            if key in VARIANTS and not {view.shape.source, view.shape.target} & model.absent.keys()
        ]
        return cls(chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        now = model.views[self.view].shape
        shape = VIEWS[self.view] if now.mark else VARIANTS[self.view]
        if shape.mark and {shape.source, model.views[self.view].shape.target} & model.absent.keys():
            raise KeyError(f"columns that {self.view} needs")
        dimension = model.names[shape.dimension] if shape.dimension else ""
        query = shape.query.format(
            source=model.names[now.source],
            dimension=dimension,
            n=model.column(shape.source, "n"),
            x=model.column(shape.source, "x"),
        )
        return f"ALTER TABLE {self.view} MODIFY QUERY {query}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.blame("MODIFY QUERY")
        view = model.views[self.view]
        # A second copy of the statement changes nothing.
        told = (
            VARIANTS[self.view] if VARIANTS[self.view].mark in model.statement else VIEWS[self.view]
        )
        shape = replace(told, source=view.shape.source, target=view.shape.target)
        model.views[self.view] = replace(view, shape=shape)


@dataclass(frozen=True)
class DetachPartition(Operation):
    """DETACH PARTITION: the rows are kept beside the table."""

    table: str
    at: int
    weight: ClassVar[int] = 3
    stages: ClassVar[tuple[str, ...]] = PART_STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> DetachPartition:
        return cls(chance.choice(plain_bases(model)), chance.choice(PARTITIONS))

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[self.table]} DETACH PARTITION {self.at}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.blame("DETACH PARTITION")
        kept = model.detached.setdefault(self.table, [])
        kept += leave(model, self.table, self.at)


@dataclass(frozen=True)
class AttachPartition(Operation):
    """ATTACH PARTITION: detached rows come back as blocks that no view has seen."""

    table: str
    at: int
    weight: ClassVar[int] = 5
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "attach.part_staged")
    refusals: ClassVar[tuple[str, ...]] = (
        "BAD_ARGUMENTS",
        "NO_SUCH_DATA_PART",
        "BAD_DATA_PART_NAME",
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> AttachPartition | None:
        found = [cls(t, int(p.slice)) for t, pieces in model.detached.items() for p in pieces]
        return chance.choice(found) if found else None

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[self.table]} ATTACH PARTITION {self.at}"

    def after(self, model: Model, answer: Answer) -> Model:
        if answer.error and self._waiting(model):
            raise Untrue(f"does not find the detached parts: {answer.message}")
        return super().after(model, answer)

    def _waiting(self, model: Model) -> list[Piece]:
        return [p for p in model.detached.get(self.table, ()) if p.slice == str(self.at)]

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        come(model, self.table, self._waiting(model))
        rest = [p for p in model.detached.get(self.table, ()) if p.slice != str(self.at)]
        model.detached[self.table] = rest


@dataclass(frozen=True)
class TakePartition(Operation):
    """ATTACH or REPLACE PARTITION … FROM the other source, or MOVE PARTITION … TO TABLE."""

    how: str
    table: str
    other: str
    at: int
    weight: ClassVar[int] = 7
    stages: ClassVar[tuple[str, ...]] = (*PART_STAGES, "attach.part_staged", "move.committed")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> TakePartition | None:
        found = plain_bases(model)
        if len(found) < 2 or sum(len(model.rows(t)) for t in found) > 60:
            return None
        table, other = chance.sample(found, 2)
        at = chance.choice(PARTITIONS)
        if not any(p.slice == str(at) for p in model.pieces[other].values()):
            return None
        return cls(chance.choice(("ATTACH", "REPLACE", "MOVE")), table, other, at)

    def sql(self, model: Model) -> str:
        table, other = model.names[self.table], model.names[self.other]
        if self.how == "MOVE":
            return f"ALTER TABLE {other} MOVE PARTITION {self.at} TO TABLE {table}"
        return f"ALTER TABLE {table} {self.how} PARTITION {self.at} FROM {other}"

    def after(self, model: Model, answer: Answer) -> Model:
        taken = any(p.slice == str(self.at) for p in model.pieces[self.other].values())
        if answer.error and not taken:
            return model.copy()  # there was nothing to take
        return super().after(model, answer)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.blame(f"{self.how} PARTITION")
        taken = [p for p in model.pieces[self.other].values() if p.slice == str(self.at)]
        if self.how == "MOVE":
            leave(model, self.other, self.at)
        if self.how == "REPLACE":
            leave(model, self.table, self.at)
        come(model, self.table, taken)


def leave(model: Model, table: str, at: int) -> list[Piece]:
    """Remove the pieces of a partition and return them."""
    gone = {n: p for n, p in model.pieces[table].items() if p.slice == str(at)}
    for number in gone:
        del model.pieces[table][number]
    return list(gone.values())


def come(model: Model, table: str, pieces: list[Piece]) -> None:
    """Add pieces as new blocks, which fire nothing: a gap of every view."""
    for piece in pieces:
        model.number += 1
        model.pieces[table][model.number] = replace(piece, maker=None)
