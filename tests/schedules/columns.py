"""Steps that change columns of a source `w` and of the target `wide` of its view."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from tests.schedules.model import Model, Piece
from tests.schedules.operation import CATALOG, Answer, Operation, Untrue
from tests.schedules.shapes import TABLES

NEEDED = "ALTER_OF_COLUMN_IS_FORBIDDEN"
STAGES = (*CATALOG, "alter.before_commit")


def altered(model: Model) -> list[str]:
    """Return the tables that have an optional column."""
    return sorted(key for key in model.names if TABLES[key].optional)


def fill(model: Model, table: str, value: int) -> None:
    """Set the optional column, which is the last, to this value in every row, detached ones
    included."""

    def filled(piece: Piece) -> Piece:
        return replace(piece, rows=tuple((*row[:-1], value) for row in piece.rows))

    model.pieces[table] = {n: filled(piece) for n, piece in model.pieces[table].items()}
    if table in model.detached:
        model.detached[table] = [filled(piece) for piece in model.detached[table]]


@dataclass(frozen=True)
class AddColumn(Operation):
    """ADD COLUMN with a default, which older rows have too; a dropped column does not come back."""

    table: str
    default: int
    weight: ClassVar[int] = 7
    stages: ClassVar[tuple[str, ...]] = STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> AddColumn | None:
        found = [key for key in altered(model) if key in model.absent]
        if not found:
            return None
        table = chance.choice(found)
        return cls(table, chance.randint(1, 9) if table == "w" else 0)

    def sql(self, model: Model) -> str:
        if self.table not in model.absent:
            raise KeyError(f"absence of a column of {self.table}")
        column = model.column(self.table, TABLES[self.table].fields[-1])
        return f"ALTER TABLE {model.names[self.table]} ADD COLUMN {column} Int64 DEFAULT {self.default}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        del model.absent[self.table]
        model.defaults[self.table] = self.default
        fill(model, self.table, self.default)


@dataclass(frozen=True)
class DropColumn(Operation):
    """DROP COLUMN, refused exactly where a view reads or writes the column."""

    table: str
    weight: ClassVar[int] = 4
    stages: ClassVar[tuple[str, ...]] = STAGES
    refusals: ClassVar[tuple[str, ...]] = (NEEDED,)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> DropColumn | None:
        found = [key for key in altered(model) if key not in model.absent]
        return cls(chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        if self.table in model.absent:
            raise KeyError(f"column of {self.table}")
        column = model.column(self.table, TABLES[self.table].fields[-1])
        return f"ALTER TABLE {model.names[self.table]} DROP COLUMN {column}"

    def after(self, model: Model, answer: Answer) -> Model:
        needed = any(
            view.shape.mark and self.table in (view.shape.source, view.shape.target)
            for view in model.views.values()
        )
        if needed != (answer.error == NEEDED):
            raise Untrue(f"needed by a view: {needed}, {answer.message}")
        return super().after(model, answer)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.absent[self.table] = True
        model.defaults[self.table] = 0
        fill(model, self.table, 0)

    def prefixes(self, model: Model) -> Iterator[Model]:
        yield model.copy()
        if not any(
            v.shape.mark and self.table in (v.shape.source, v.shape.target)
            for v in model.views.values()
        ):
            yield from list(super().prefixes(model))[1:]


@dataclass(frozen=True)
class RenameColumn(Operation):
    """RENAME COLUMN of the source: views follow, and nothing is stale."""

    field: str
    weight: ClassVar[int] = 4
    stages: ClassVar[tuple[str, ...]] = STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> RenameColumn | None:
        if "w" not in model.names:
            return None
        return cls(chance.choice(("n",) if "w" in model.absent else ("n", "x")))

    def sql(self, model: Model) -> str:
        if self.field == "x" and "w" in model.absent:
            raise KeyError("column x of w")
        name = model.column("w", self.field)
        return f"ALTER TABLE {model.names['w']} RENAME COLUMN {name} TO {self._other(name)}"

    def _other(self, name: str) -> str:
        return self.field if name != self.field else f"{self.field}_too"

    def after(self, model: Model, answer: Answer) -> Model:
        """Check the answer: after a kill the rename may have happened already, and the old name
        is gone."""
        before = self.sql(model) != model.statement
        if before != (answer.error == "NOT_FOUND_COLUMN_IN_BLOCK"):
            raise Untrue(f"renamed before: {before}, {answer.message}")
        return model.copy() if before else super().after(model, answer)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.columns["w", self.field] = self._other(model.column("w", self.field))
