"""Steps that take rows out of a view's target.

Where nothing that the view made is left in a partition, the source's rows that had reached just
that partition are its gap; else the slice is stale.  The engine tells for whole parts of the
source, which a model does not know: what may be a gap is left open, until it is seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from tests.schedules.model import Model, Piece, ViewState, split
from tests.schedules.operation import CATALOG, STORE, Answer, Operation
from tests.schedules.rows import targets
from tests.schedules.shapes import TABLES, Fails, Row

MADE_OTHERWISE = frozenset(("DIMENSION CHANGE", "MODIFY QUERY", "UPDATE"))
"""After these what a source row had reached cannot be told by running the view on it."""


@dataclass(frozen=True)
class DeleteFromTarget(Operation):
    """Rows of a key, whoever made them."""

    table: str
    column: int
    value: int | str
    weight: ClassVar[int] = 5
    stages: ClassVar[tuple[str, ...]] = (*STORE, *CATALOG, "delete.part_rewritten", "delete.before_commit")  # fmt: skip

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> DeleteFromTarget | None:
        found = [key for key in targets(model) if model.rows(key)]
        if not found:
            return None
        table = chance.choice(found)
        column = chance.randrange(TABLES[table].keys)
        return cls(table, column, chance.choice(model.rows(table))[column])

    def sql(self, model: Model) -> str:
        name = TABLES[self.table].fields[self.column]
        return f"DELETE FROM {model.names[self.table]} WHERE {name} = {self.value!r}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        take_out(model, self.table, "DELETE", lambda row: row[self.column] == self.value)


@dataclass(frozen=True)
class DropTargetPartition(Operation):
    """DROP or DETACH PARTITION, by its id."""

    table: str
    slice: str
    how: str
    weight: ClassVar[int] = 5
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "delete.before_commit")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> DropTargetPartition | None:
        found = [(key, p.slice) for key in targets(model) for p in model.pieces[key].values()]
        if not found:
            return None
        table, slice_ = chance.choice(found)
        numbered = TABLES[table].fields[0] == "p"  # as AttachPartition names it
        return cls(table, slice_, chance.choice(("DROP", "DETACH")) if numbered else "DROP")

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[self.table]} {self.how} PARTITION ID '{self.slice}'"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        gone = [p for p in model.pieces[self.table].values() if p.slice == self.slice]
        shape = TABLES[self.table]
        take_out(model, self.table, f"{self.how} PARTITION",
                 lambda row: shape.slice_of(row) == self.slice)  # fmt: skip
        if self.how == "DETACH" and gone:
            model.detached.setdefault(self.table, []).extend(gone)


def take_out(model: Model, table: str, cause: str, leaves: Callable[[Row], bool]) -> None:
    """Rows leave a table that views write; views that read it learn it as of any source."""
    before = {view.shape.key: _slices_of(model, view) for view in model.views_into(table)}
    left = {
        piece.maker: set[str]() for piece in model.pieces[table].values()
    }  # slices that rows of a maker leave
    for piece in model.pieces[table].values():
        if any(leaves(row) for row in piece.rows):
            left[piece.maker].add(piece.slice)
    model.remove_rows(table, leaves)
    if model.views_on(table):
        model.blame(cause)
    for view in model.views_into(table):
        touched = left.get(view.id, set())
        emptied = touched - _slices_of(model, view)
        if not touched or not model.keeps(view):
            continue
        assert touched <= before[view.shape.key]
        if not _surely_a_gap(model, view, touched, emptied):
            model.blame("TARGET CHANGED")
        if emptied:
            model.unsettle(view, _may_be_a_gap(model, view, emptied))


def _slices_of(model: Model, view: ViewState) -> set[str]:
    """In which the view has rows."""
    return {p.slice for p in model.pieces[view.shape.target].values() if p.maker == view.id}


def _reached(model: Model, view: ViewState, pieces: Iterable[Piece]) -> set[str] | None:
    """Slices; None where it cannot be told, since the view fails."""
    try:
        return set(split(TABLES[view.shape.target], model.made_of(view, pieces)))
    except Fails:
        return None


def _may_be_a_gap(model: Model, view: ViewState, emptied: set[str]) -> frozenset[int]:
    """The pieces that reach nothing else now; or that had, before something changed."""
    otherwise = model.caused(MADE_OTHERWISE)
    found = set[int]()
    for number, piece in model.pieces[view.shape.source].items():
        if number in view.seen:
            reached = _reached(model, view, [piece])
            if otherwise or reached is None or reached <= emptied:
                found.add(number)
    return frozenset(found)


def _surely_a_gap(model: Model, view: ViewState, touched: set[str], emptied: set[str]) -> bool:
    """Whether nothing can be stale: whole partitions went, and whatever parts the source's rows lie
    in, these reach them and nothing else, or something else and not them."""
    if touched != emptied or model.caused(MADE_OTHERWISE):
        return False
    by_slice: dict[str, list[Piece]] = {}
    for piece in model.seen_pieces(view):
        by_slice.setdefault(piece.slice, []).append(piece)
    for pieces in by_slice.values():
        reached = _reached(model, view, pieces)
        if reached is None or (reached & emptied and reached - emptied):
            return False
    return True
