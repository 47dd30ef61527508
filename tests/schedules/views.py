"""Steps about views: CREATE, DROP, DETACH, BACKFILL, REPLAY."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import ClassVar

from tests.schedules.model import Model, Piece, ViewState
from tests.schedules.operation import (
    CATALOG,
    DEPENDED_ON,
    STORE,
    UNREADABLE,
    Answer,
    Operation,
    Untrue,
)
from tests.schedules.shapes import KINDS, PARTITIONS, TABLES, VIEWS, Fails


def any_view(model: Model, chance: random.Random) -> ViewState | None:
    """Draw a view that is no version of another one."""
    found = [view for view in model.views.values() if not view.standing]
    return chance.choice(found) if found else None


@dataclass(frozen=True)
class CreateView(Operation):
    """CREATE MATERIALIZED VIEW over existing tables; POPULATE fills the past."""

    view: str
    populate: bool
    order: tuple[str, ...] = ()
    weight: ClassVar[int] = 14
    settles: ClassVar[bool] = True
    piecemeal: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "backfill.planned", "backfill.before_commit")
    refusals: ClassVar[tuple[str, ...]] = (UNREADABLE,)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> CreateView | None:
        found = [
            key
            for key, shape in VIEWS.items()
            if key not in model.views
            and {model.present(shape.source), model.present(shape.target)} <= model.names.keys()
            and (shape.dimension is None or shape.dimension in model.names)
        ]
        return cls(chance.choice(found), chance.random() < 0.2) if found else None

    def sql(self, model: Model) -> str:
        shape = model.defined(VIEWS[self.view])
        if self.view in model.views:
            raise KeyError(self.view)
        dimension = model.names[shape.dimension] if shape.dimension else ""
        query = shape.query.format(
            source=model.names[shape.source],
            dimension=dimension,
            n=model.column(shape.source, "n"),
            x=model.column(shape.source, "x"),
        )
        how = "POPULATE " if self.populate else ""
        return (
            f"CREATE MATERIALIZED VIEW {self.view} TO {model.names[shape.target]} {how}AS {query}"
        )

    def after(self, model: Model, answer: Answer) -> Model:
        kept = TABLES[VIEWS[self.view].source].stores
        if (answer.error == UNREADABLE) != (self.populate and not kept):
            raise Untrue(f"source kept {kept}, populate {self.populate}: {answer.message}")
        if answer.error != INCOMPLETE:
            return super().after(model, answer)
        changed = model.copy()
        changed.create_view(self.view)
        fill_but_failed(changed, self.view, sorted(changed.gap(changed.views[self.view])), answer)
        return changed

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.create_view(self.view)
        if self.populate:
            for slice_ in in_order(model.gap(model.views[self.view]), self.order):
                yield
                model.fill(self.view, slice_)

    def orders(self, model: Model) -> Iterator[Operation]:
        source = model.present(VIEWS[self.view].source)
        slices = sorted({piece.slice for piece in model.pieces[source].values()})
        for order in permutations(slices if self.populate else ()):
            yield replace(self, order=order)

    def prefixes(self, model: Model) -> Iterator[Model]:
        """Yield the models after CREATE with any subset of the chunks, see Backfill."""
        yield model.copy()
        made = model.copy()
        made.create_view(self.view)
        yield from filled(
            made, self.view, sorted(made.gap(made.views[self.view])) if self.populate else []
        )


@dataclass(frozen=True)
class DropView(Operation):
    """DROP VIEW: its target stays, and holds rows of no view. The versions of a rebuild are dropped
    with their targets; a view that reads one of these prevents it."""

    view: str
    weight: ClassVar[int] = 3
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = CATALOG
    refusals: ClassVar[tuple[str, ...]] = (DEPENDED_ON,)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> DropView | None:
        found = list(model.views)
        return cls(chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        return f"DROP VIEW {model.views[self.view].shape.key}"

    def after(self, model: Model, answer: Answer) -> Model:
        if (answer.error == DEPENDED_ON) != self._is_read(model):
            raise Untrue(f"a dropped target is read {self._is_read(model)}: {answer.message}")
        return super().after(model, answer)

    def _is_read(self, model: Model) -> bool:
        dropped = [
            view for view in model.views.values() if self.view in (view.shape.key, view.beside)
        ]
        return any(
            reader not in dropped
            for view in dropped
            if view.standing
            for reader in model.views_on(view.shape.target)
        )

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        if not self._is_read(model):
            model.drop_view(self.view)


@dataclass(frozen=True)
class Attach(Operation):
    """DETACH or ATTACH, or their SYSTEM forms."""

    view: str
    attached: bool
    as_system: bool
    weight: ClassVar[int] = 12
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = CATALOG

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Attach | None:
        view = any_view(model, chance)
        return cls(view.shape.key, not view.attached, chance.random() < 0.5) if view else None

    def sql(self, model: Model) -> str:
        model.views[self.view]
        words = ("SYSTEM START", "SYSTEM STOP") if self.as_system else ("ATTACH", "DETACH")
        return f"{words[0] if self.attached else words[1]} VIEW {self.view}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.attach(self.view, self.attached)


INCOMPLETE = "BACKFILL_INCOMPLETE"


def in_order(slices: Iterable[str], order: tuple[str, ...]) -> list[str]:
    """Return the slices in an order in which chunks may be published: several are computed at a
    time, and any may be the first."""
    return sorted(slices, key=lambda one: (order.index(one) if one in order else -1, one))


def fillable(model: Model, view: str, slices: list[str]) -> list[str]:
    """Return the chunks on which the view does not fail."""
    found: list[str] = []
    for slice_ in slices:
        try:
            model.copy().fill(view, slice_)
        except Fails:
            continue
        found.append(slice_)
    return found


def fill_but_failed(model: Model, view: str, slices: list[str], answer: Answer) -> None:
    """Apply a backfill that ended with BACKFILL_INCOMPLETE; raise Untrue where its rows are
    wrong."""
    good = fillable(model, view, slices)
    told = {
        what: sorted({row["partition"] for row in answer.rows if row["status"] == what})
        for what in ("published", "failed")
    }
    failed = [one for one in slices if one not in good]
    if not failed or told != {"published": good, "failed": failed}:
        raise Untrue(f"filled {told}, should be {good}, and {failed} fail")
    for slice_ in good:
        model.fill(view, slice_)


def filled(model: Model, view: str, slices: list[str]) -> Iterator[Model]:
    """Yield the model with each subset of the chunks filled: several are computed at a time, and
    any may be the first."""
    slices = fillable(model, view, slices)
    for count in range(len(slices) + 1):
        for chosen in combinations(slices, count):
            some = model.copy()
            for slice_ in chosen:
                some.fill(view, slice_)
            yield some


def readable_only(model: Model, view: str, answer: Answer) -> None:
    """Require that a statement which reads the source again is refused exactly where that is a
    Null table."""
    if (answer.error == UNREADABLE) == model.keeps(model.views[view]):
        raise Untrue(f"source kept {model.keeps(model.views[view])}: {answer.message}")


@dataclass(frozen=True)
class Backfill(Operation):
    """SYSTEM BACKFILL of the whole gap, or of one source partition."""

    view: str
    partition: str | None
    order: tuple[str, ...] = ()
    planned: bool = False
    weight: ClassVar[int] = 18
    settles: ClassVar[bool] = True
    piecemeal: ClassVar[bool] = True
    plans: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "backfill.planned",
        "backfill.chunk_computed",
        "insert.view_fired",
        "backfill.before_commit",
        "backfill.chunk_published",
    )
    refusals: ClassVar[tuple[str, ...]] = ("BAD_ARGUMENTS", UNREADABLE)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Backfill | None:
        view = any_view(model, chance)
        if view is None:
            return None
        known = sorted({p.slice for p in model.pieces[view.shape.source].values()})
        only = chance.choice(known) if known and chance.random() < 0.4 else None
        return cls(view.shape.key, only)

    def sql(self, model: Model) -> str:
        model.views[self.view]
        only = f" PARTITION ID '{self.partition}'" if self.partition is not None else ""
        return f"SYSTEM BACKFILL VIEW {self.view}{only} SETTINGS inline_bytes_max = 0"

    def after(self, model: Model, answer: Answer) -> Model:
        source = model.views[self.view].shape.source
        known = {p.slice for p in model.pieces[source].values()}
        if answer.error == "BAD_ARGUMENTS" and self.partition in known:
            raise Untrue(f"does not know the partition: {answer.message}")
        readable_only(model, self.view, answer)
        if answer.error != INCOMPLETE:
            return super().after(model, answer)
        changed = model.copy()
        self.fill_some(changed, answer)
        return changed

    def fill_some(self, model: Model, answer: Answer) -> None:
        """Apply the chunks of a backfill that ended with BACKFILL_INCOMPLETE."""
        fill_but_failed(model, self.view, self.slices(model), answer)

    def slices(self, model: Model) -> list[str]:
        """Return the source partitions to fill, in the order of publication."""
        gap = in_order(model.gap(model.views[self.view]), self.order)
        return [one for one in gap if self.partition in (None, one)]

    def orders(self, model: Model) -> Iterator[Operation]:
        for order in permutations(self.slices(model)):
            yield replace(self, order=order, planned=True)
            yield replace(self, order=order)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        wanted = self.slices(model)
        plan = self.plan(model)
        if answer is not None:
            done = sorted({r["partition"] for r in answer.rows if r["status"] == "published"})
            if done != sorted(wanted) or any(r["status"] == "failed" for r in answer.rows):
                raise Untrue(f"filled {answer.rows}, the gap is {wanted}")
        for slice_ in wanted:
            yield
            model.fill(self.view, slice_, plan.get(slice_))

    def plan(self, model: Model) -> dict[str, frozenset[int]]:
        """Return the planned pieces by partition; nothing where the backfill fills the gap of
        the moment."""
        if not self.planned:
            return {}
        return {one: frozenset(some) for one, some in model.gap(model.views[self.view]).items()}

    def prefixes(self, model: Model) -> Iterator[Model]:
        yield from filled(model, self.view, self.slices(model))


@dataclass(frozen=True)
class Replay(Operation):
    """SYSTEM REPLAY. `which`: "" (all), "STALE", a partition's id, or a condition on the key."""

    view: str
    which: str
    discard: bool
    give_up: bool = False
    weight: ClassVar[int] = 16
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "replay.chunk_computed",
        "replay.before_commit",
        "replay.committed",
    )
    refusals: ClassVar[tuple[str, ...]] = (
        "BYPASS_ROWS",
        "RETAINED_ROWS",
        "BAD_ARGUMENTS",
        UNREADABLE,
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Replay | None:
        view = any_view(model, chance)
        if view is None:
            return None
        shape = TABLES[view.shape.target]
        known = sorted({p.slice for p in model.pieces[shape.key].values()})
        choices = ["", "STALE", "STALE"]
        if known:
            choices.append(f"PARTITION ID '{chance.choice(known)}'")
        if shape.joins and "k" in shape.fields[: shape.keys]:
            choices.append(f"WHERE k = '{chance.choice(KINDS)}'")
        if shape.fields[0] == "p":
            choices.append(f"WHERE p >= {chance.choice(PARTITIONS)}")
        which = chance.choice(choices)
        told = which == "" or which.startswith("PARTITION")
        return cls(view.shape.key, which, chance.random() < 0.15, told and chance.random() < 0.25)

    def sql(self, model: Model) -> str:
        model.views[self.view]
        words = (f"SYSTEM REPLAY VIEW {self.view}", self.which, "DISCARD BYPASS" * self.discard)
        more = ", discard_retained = 1" * self.give_up
        return " ".join(w for w in words if w) + " SETTINGS inline_bytes_max = 0" + more

    def after(self, model: Model, answer: Answer) -> Model:
        if answer.error == "BYPASS_ROWS" and not self.named() & {
            p.slice for p in self._by_hand(model)
        }:
            raise Untrue(f"refused without need: {answer.message}")
        frozen = model.frozen(self._target(model))
        if answer.error == "RETAINED_ROWS" and not any(
            None in one or self.named() & one.keys() for one in frozen
        ):
            raise Untrue(f"nothing is frozen: {answer.message}")
        unknown = self.give_up and bool(self.named()) and any(None in one for one in frozen)
        if unknown != (answer.error == "BAD_ARGUMENTS") and answer.error not in self.refusals:
            raise Untrue(f"any slice may be frozen: {unknown}, {answer.message}")
        if (answer.error or answer.rows) and answer.error not in ("RETAINED_ROWS", "BAD_ARGUMENTS"):
            readable_only(model, self.view, answer)
        return super().after(model, answer)

    def fails(self, model: Model) -> bool:
        for view in model.views_into(self._target(model)):
            try:
                model.due(view)
            except Fails:
                return True
        return False

    @property
    def asks(self) -> bool:
        """Whether only the engine's answer gives the stale or matching slices."""
        return self.which != "" and not self.named()

    def _by_hand(self, model: Model) -> list[Piece]:
        return list(model.bypass(model.views[self.view].shape.target).values())

    def named(self) -> set[str]:
        """Return the partition that the statement names by its id, as a set."""
        found = self.which.startswith("PARTITION ID")
        return {self.which.split("'")[1]} if found else set()

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        if not model.keeps(model.views[self.view]):
            return  # there was nothing to replay
        model.blame("UPSTREAM REPLAY")
        chosen = self._chosen(model, answer)
        if answer is not None:
            differing = {
                d for v in model.views_into(self._target(model)) for d in model.differing(v)
            }
            missing = differing - {r["partition"] for r in answer.rows}
            if missing and self.which in ("", "STALE"):
                raise Untrue(f"left out {missing}")
        if self.give_up:
            model.release(self._target(model), next(iter(self.named()), None))
        model.replay(self.view, chosen, discard=self.discard)

    def _target(self, model: Model) -> str:
        return model.views[self.view].shape.target

    def _chosen(self, model: Model, answer: Answer | None) -> Callable[[str], bool]:
        """Return the test for replayed slices; a replay of stale slices lists them in its
        answer."""
        if answer is None or self.which == "":
            assert not self.asks, "such a replay is not killed"
            return lambda slice_: not self.named() or slice_ in self.named()
        done = {row["partition"] for row in answer.rows}
        return lambda slice_: slice_ in done
