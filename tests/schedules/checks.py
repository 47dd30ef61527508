"""Steps that compare a target with its source: RECONCILE, ADOPT."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tests.schedules.model import Model
from tests.schedules.operation import CATALOG, STORE, THROWN, UNREADABLE, Answer, Operation, Untrue
from tests.schedules.shapes import TABLES
from tests.schedules.views import any_view, readable_only


@dataclass(frozen=True)
class Reconcile(Operation):
    """SYSTEM RECONCILE: its verdicts must be the model's."""

    view: str
    weight: ClassVar[int] = 10
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = CATALOG

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Reconcile | None:
        view = any_view(model, chance)
        return cls(view.shape.key) if view else None

    def sql(self, model: Model) -> str:
        return f"SYSTEM RECONCILE VIEW {model.views[self.view].shape.key}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        if answer is None:
            return
        if not model.keeps(model.views[self.view]):
            if {row["verdict"] for row in answer.rows} != {"unverifiable"}:
                raise Untrue(f"compared with what nobody keeps: {answer.rows}")
            return
        table = model.views[self.view].shape.target
        there = model.holds(table, lambda piece: True)
        rows = [
            row
            for view in model.views_into(table)
            for row in model.made_of(view, model.seen_pieces(view))
        ]
        due = model._by_slice(TABLES[table], model.outside(table, rows))
        for row in answer.rows:
            slice_ = row["partition"]
            equal = there.get(slice_, {}) == due.get(slice_, {})
            if (
                row["verdict"] == "retained"
                and model.frozen(table)
                and not {slice_} & {*there, *due}
            ):
                continue
            if (row["verdict"] == "equal") != equal:
                raise Untrue(f"slice {slice_} is called {row['verdict']}: {row}")
        left = {*there, *due} - {row["partition"] for row in answer.rows}
        if left:
            raise Untrue(f"slices {left} were not compared")


@dataclass(frozen=True)
class CheckLedger(Operation):
    """RECONCILE … METADATA: the ledger must always agree with itself."""

    view: str
    weight: ClassVar[int] = 6
    settles: ClassVar[bool] = True
    refusals: ClassVar[tuple[str, ...]] = (UNREADABLE,)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> CheckLedger | None:
        view = any_view(model, chance)
        return cls(view.shape.key) if view else None

    def sql(self, model: Model) -> str:
        return f"SYSTEM RECONCILE VIEW {model.views[self.view].shape.key} METADATA"

    def after(self, model: Model, answer: Answer) -> Model:
        readable_only(model, self.view, answer)
        return super().after(model, answer)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        broken = [row for row in (answer.rows if answer else ()) if row["verdict"] == "broken"]
        if broken:
            raise Untrue(f"the ledger is broken: {broken}")


@dataclass(frozen=True)
class Adopt(Operation):
    """SYSTEM ADOPT: succeeds exactly where the target equals a recomputation of everything."""

    view: str
    weight: ClassVar[int] = 6
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (*STORE, *CATALOG, "adopt.before_commit", "adopt.committed")
    refusals: ClassVar[tuple[str, ...]] = ("BYPASS_ROWS", "RETAINED_ROWS", UNREADABLE)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Adopt | None:
        found = [v.shape.key for v in model.views.values() if model.bypass(v.shape.target)]
        return cls(chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        return f"SYSTEM ADOPT VIEW {model.views[self.view].shape.key}"

    def after(self, model: Model, answer: Answer) -> Model:
        if answer.error != THROWN:
            readable_only(model, self.view, answer)
        if answer.error == "RETAINED_ROWS" and not model.frozen(
            model.views[self.view].shape.target
        ):
            raise Untrue(f"nothing is frozen: {answer.message}")
        if answer.error == "BYPASS_ROWS" and model.all_equal_recomputed(self.view):
            raise Untrue(f"refused what is equal: {answer.message}")
        return super().after(model, answer)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        if not model.bypass(model.views[self.view].shape.target) or not model.keeps(
            model.views[self.view]
        ):
            return
        if model.all_equal_recomputed(self.view):
            model.adopt(self.view)
        elif answer is not None:
            raise Untrue("adopted what is not equal")
