"""Steps that remove rows from a view's target.

Where no row of the view remains in a partition, the source rows that reached just that partition
become its gap; else the slice is stale.  The engine decides this for whole source parts, which a
model does not have. So possible gaps stay open until the engine shows them.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from tests.schedules.model import Model, Piece, ViewState, split
from tests.schedules.operation import CATALOG, STORE, Answer, Operation, Untrue
from tests.schedules.rows import targets
from tests.schedules.shapes import TABLES, Fails, Row

MADE_OTHERWISE = frozenset(("DIMENSION CHANGE", "MODIFY QUERY", "UPDATE"))
"""Causes after which running the view on a source row does not show the slices that it reached."""


RETAINED = "RETAINED_ROWS"


class Removal(Operation):
    """A removal that is refused exactly where it would remove a frozen row of a view."""

    table: str
    refusals: ClassVar[tuple[str, ...]] = (RETAINED,)

    @abstractmethod
    def leaves(self, row: Row) -> bool:
        """Return whether the row is removed."""

    def after(self, model: Model, answer: Answer) -> Model:
        frozen = any(
            self.leaves(row) and model.is_frozen(self.table, row)
            for piece in model.pieces[self.table].values()
            if piece.maker is not None
            for row in piece.rows
        )
        if frozen != (answer.error == RETAINED):
            raise Untrue(f"takes frozen rows: {frozen}, {answer.message}")
        return super().after(model, answer)


@dataclass(frozen=True)
class DeleteFromTarget(Removal):
    """A DELETE of rows of a key, of any maker."""

    table: str
    column: int
    value: int | str
    weight: ClassVar[int] = 5
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "delete.part_rewritten",
        "delete.before_commit",
    )

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
        take_out(model, self.table, "DELETE", self.leaves)

    def leaves(self, row: Row) -> bool:
        return bool(row[self.column] == self.value)


@dataclass(frozen=True)
class DropTargetPartition(Removal):
    """DROP or DETACH PARTITION, by its id."""

    table: str
    slice: str
    how: str
    weight: ClassVar[int] = 5
    settles: ClassVar[bool] = True
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
        take_out(model, self.table, f"{self.how} PARTITION", self.leaves)
        if self.how == "DETACH" and gone:
            model.detached.setdefault(self.table, []).extend(gone)

    def leaves(self, row: Row) -> bool:
        return TABLES[self.table].slice_of(row) == self.slice


def take_out(model: Model, table: str, cause: str, leaves: Callable[[Row], bool]) -> None:
    """Remove rows of a table that views write; views that read it become stale as with any
    source."""
    left: dict[int | None, set[str]] = {}
    again = model.caused(frozenset(("TARGET CHANGED",)))
    for piece in model.pieces[table].values():
        if any(leaves(row) for row in piece.rows):
            left.setdefault(piece.maker, set()).add(piece.slice)
    model.remove_rows(table, leaves)
    if model.views_on(table):
        model.blame(cause)
    for view in model.views_into(table):
        touched = left.get(view.id, set())
        emptied = touched - _slices_of(model, view)
        if not touched or not model.keeps(view):
            continue
        if not _surely_a_gap(model, view, touched, emptied):
            model.blame("TARGET CHANGED")
        if emptied:
            model.unsettle(view, _may_be_a_gap(model, view, again))


def _slices_of(model: Model, view: ViewState) -> set[str]:
    """Return the slices in which the view has rows."""
    return {p.slice for p in model.pieces[view.shape.target].values() if p.maker == view.id}


def _reached(model: Model, view: ViewState, pieces: Iterable[Piece]) -> set[str] | None:
    """Return the slices that the pieces reach; None where the view fails on them."""
    try:
        return set(split(TABLES[view.shape.target], model.made_of(view, pieces)))
    except Fails:
        return None


def _may_be_a_gap(model: Model, view: ViewState, again: bool) -> frozenset[int]:
    """Return the seen pieces that may be a gap: they reach no remaining slice now, or may have
    reached others before a change. Exclude pieces that would bring back rows that left by
    retention. `again`: an earlier removal may have left only other views' rows in a slice."""
    otherwise = model.caused(MADE_OTHERWISE)
    there = set() if again else _slices_of(model, view)
    retired = _retired(model, view)
    found = set[int]()
    for number, piece in model.pieces[view.shape.source].items():
        if number not in view.seen:
            continue
        reached = _reached(model, view, [piece])
        if otherwise or reached is None or not reached & (there | retired):
            found.add(number)
    return frozenset(found)


def _retired(model: Model, view: ViewState) -> set[str]:
    """Return the slices whose rows left by the target's own retention."""
    return {
        slice_
        for (view_id, side, slice_) in model.retained
        if (view_id, side) == (view.id, "target")
    }


def _surely_a_gap(model: Model, view: ViewState, touched: set[str], emptied: set[str]) -> bool:
    """Return whether no slice can be stale: whole partitions went, and for any cut into parts
    the source rows reach only these partitions, or only others."""
    if touched != emptied or model.caused(MADE_OTHERWISE):
        return False
    by_slice: dict[str, list[Piece]] = {}
    for piece in model.seen_pieces(view):
        by_slice.setdefault(piece.slice, []).append(piece)
    stay = _retired(model, view)
    for pieces in by_slice.values():
        reached = _reached(model, view, pieces)
        if reached is None or (reached & emptied and (reached - emptied or reached & stay)):
            return False
    return True
