"""Steps that create another version of a view beside the old one, and exchange their names."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from tests.schedules.model import Model, ViewState
from tests.schedules.operation import (
    CATALOG,
    DEPENDED_ON,
    STORE,
    UNREADABLE,
    Answer,
    Operation,
    Untrue,
)
from tests.schedules.views import INCOMPLETE, any_view, filled


def version_of(model: Model, key: str, standing: str) -> ViewState | None:
    """Return the view's candidate, or its previous version."""
    return next(
        (v for v in model.views.values() if (v.beside, v.standing) == (key, standing)), None
    )


def start(model: Model, key: str) -> None:
    """Add a candidate with a target of its own, which INSERTs fire from now on."""
    if version_of(model, key, "candidate"):
        return
    view = model.views[key]
    kin = [one.generation for one in model.views.values() if key in (one.shape.key, one.beside)]
    model.number += 1
    generation, number = max(kin) + 1, model.number
    target = f"{view.shape.target.partition('#')[0]}#{number}"
    model.names[target] = f"{model.names[view.shape.target]}__v{generation}"
    model.pieces[target] = {}
    if view.shape.target in model.absent:
        model.absent[target] = True
    model.defaults[target] = 0
    name = f"{key}__v{generation}"
    shape = replace(view.shape, key=name, target=target)
    model.views[name] = ViewState(
        number, shape, generation=generation, standing="candidate", beside=key
    )


def swap(model: Model, key: str, standing: str) -> None:
    """Give the version the names of the view and its target; the old view becomes the previous
    version."""
    new, old = version_of(model, key, standing), model.views[key]
    assert new is not None
    if standing == "candidate":
        for version in superseded(model, key):
            model.drop_view(version.shape.key)
    follow(model, old.shape.target, new.shape.target)
    table = model.names[old.shape.target]
    model.names[new.shape.target] = table
    model.names[old.shape.target] = f"{table}__v{old.generation}"
    del model.views[new.shape.key]
    name = f"{key}__v{old.generation}"
    model.views[key] = replace(new, shape=replace(new.shape, key=key), standing="", beside="")
    model.views[name] = replace(
        old, shape=replace(old.shape, key=name), standing="previous", beside=key
    )


def superseded(model: Model, key: str) -> list[ViewState]:
    """Return the versions that the next swap of the view drops: the previous one, and previous
    versions of other views that read its target."""
    previous = version_of(model, key, "previous")
    found = [] if previous is None else [previous]
    for version in found:
        found += [
            reader
            for reader in model.views_on(version.shape.target)
            if reader.standing == "previous" and reader not in found
        ]
    return found


def follow(model: Model, old: str, new: str) -> None:
    """Let the views that read the table `old` read `new`. All their rows are stale, and all rows
    of `new` count as seen, for a replay to read. A view with retained rows stays."""
    frozen = {leave[0] for leave in model.retained}
    for key, reader in list(model.views.items()):
        if reader.shape.source == old and reader.id not in frozen:
            model.blame("UPSTREAM REBUILD")
            model.unsettled.pop(key, None)
            shape = replace(reader.shape, source=new)
            model.views[key] = replace(reader, shape=shape, seen=frozenset(model.pieces[new]))


BY_HAND = frozenset(("BYPASS_ROWS", "VIEW_DIFFERS"))
"""Errors that bypass rows cause: a merge may have joined them with the view's rows."""


def _impossible(model: Model, key: str, beside: Collection[str] = ("candidate",)) -> set[str]:
    """Return the errors that the state of the view, or of these versions of it, justifies. The
    previous version does not hinder a rebuild: it is dropped with its target."""
    found: set[str] = set()
    view, candidate = model.views[key], version_of(model, key, "candidate")
    several = [view, *(v for v in model.views.values() if v.beside == key and v.standing in beside)]
    if not view.attached and candidate is None:
        found.add("BAD_ARGUMENTS")
    if not model.keeps(view):
        found.add(UNREADABLE)
    dropped = superseded(model, key) if "candidate" in beside and "previous" not in beside else []
    if any(len(model.views_into(one.shape.target)) > 1 for one in several) or any(
        reader not in dropped for one in dropped for reader in model.views_on(one.shape.target)
    ):
        found.add(DEPENDED_ON)
    if any(model.bypass(one.shape.target) for one in several):
        found |= BY_HAND
    ids = {one.id for one in several}
    if any(leave[0] in ids and leave[1] == "source" for leave in model.retained):
        found.add("RETAINED_ROWS")
    return found


@dataclass(frozen=True)
class Rebuild(Operation):
    """SYSTEM REBUILD: the same definition into a fresh target; or the rest of an interrupted
    rebuild. Views that read the old target read the new one afterwards."""

    view: str
    weight: ClassVar[int] = 7
    settles: ClassVar[bool] = True
    piecemeal: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "rebuild.before_start",
        "rebuild.started",
        "backfill.chunk_published",
        "rebuild.backfilled",
        "rebuild.reconciled",
        "rebuild.before_swap",
        "rebuild.swapped",
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Rebuild | None:
        view = any_view(model, chance)
        return None if view is None else cls(view.shape.key)

    def sql(self, model: Model) -> str:
        model.views[self.view]
        return f"SYSTEM REBUILD VIEW {self.view}"

    def outcomes(self, model: Model, answer: Answer) -> list[Model]:
        reasons = _impossible(model, self.view)
        if not answer.error:
            if reasons:
                raise Untrue(f"rebuilt, though {reasons}")
            return [self.after(model, answer)]
        if answer.error == INCOMPLETE:
            return [m for m in self.prefixes(model) if self._failing(m)] or [self._refuse(answer)]
        if answer.error not in reasons:
            self._refuse(answer)
        begun = "stopped" in answer.message  # it began before the reason arose
        return [
            m
            for m in self._prefixes(model, begun=begun)
            if m.views[self.view].id == model.views[self.view].id
        ]

    def _failing(self, model: Model) -> bool:
        candidate = version_of(model, self.view, "candidate")
        return candidate is not None and bool(model.gap(candidate))

    def _refuse(self, answer: Answer) -> Model:
        raise Untrue(f"refused: {answer.message}")

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        start(model, self.view)
        candidate = version_of(model, self.view, "candidate")
        assert candidate is not None
        yield
        self._finish(model)

    def _finish(self, model: Model) -> None:
        candidate = version_of(model, self.view, "candidate")
        assert candidate is not None
        for slice_ in model.gap(candidate):
            model.fill(candidate.shape.key, slice_)
        model.blame("UPSTREAM REPLAY")
        model.replay(candidate.shape.key, lambda slice_: True, discard=False)
        swap(model, self.view, "candidate")

    def prefixes(self, model: Model) -> Iterator[Model]:
        return self._prefixes(model, begun=False)

    def _prefixes(self, model: Model, *, begun: bool) -> Iterator[Model]:
        yield model.copy()
        reasons = _impossible(model, self.view)
        if not begun and (
            reasons - {*BY_HAND, DEPENDED_ON}
            or (reasons and version_of(model, self.view, "candidate") is None)
        ):
            return
        started = model.copy()
        start(started, self.view)
        candidate = version_of(started, self.view, "candidate")
        assert candidate is not None
        key = candidate.shape.key
        for some in filled(started, key, sorted(started.gap(candidate))):
            yield some
            if started.differing(candidate):
                again = some.copy()
                again.replay(key, lambda slice_: True, discard=False)
                yield again
        if (
            not started.gap(candidate).keys()
            - {p for p in started.gap(candidate) if self._fills(started, key, p)}
            and not reasons
        ):
            done = started.copy()
            self._finish(done)
            yield done

    def _fills(self, model: Model, key: str, slice_: str) -> bool:
        return any(m.gap(m.views[key]).get(slice_) is None for m in filled(model, key, [slice_]))


@dataclass(frozen=True)
class Rollback(Operation):
    """SYSTEM ROLLBACK: the name goes back to the replaced version."""

    view: str
    weight: ClassVar[int] = 4
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "rollback.before_commit")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Rollback | None:
        found = [v.beside for v in model.views.values() if v.standing == "previous"]
        return cls(chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        model.views[self.view]
        if version_of(model, self.view, "previous") is None:
            raise KeyError(f"previous version of {self.view}")
        return f"SYSTEM ROLLBACK VIEW {self.view}"

    def outcomes(self, model: Model, answer: Answer) -> list[Model]:
        reasons = _impossible(model, self.view, ("candidate", "previous"))
        if version_of(model, self.view, "candidate"):
            reasons.add("BAD_ARGUMENTS")
        if answer.error:
            if answer.error not in reasons:
                raise Untrue(f"refused: {answer.message}")
            return [model.copy()]
        return [self.after(model, answer)]

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        if version_of(model, self.view, "previous") is None:
            raise Untrue("there is no previous version")
        swap(model, self.view, "previous")


@dataclass(frozen=True)
class CancelRebuild(Operation):
    """SYSTEM CANCEL REBUILD: drops the candidate with its target."""

    view: str
    weight: ClassVar[int] = 4
    settles: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = CATALOG

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> CancelRebuild | None:
        found = [v.beside for v in model.views.values() if v.standing == "candidate"]
        return cls(chance.choice(found)) if found else None

    def sql(self, model: Model) -> str:
        if version_of(model, self.view, "candidate") is None:
            raise KeyError(f"candidate of {self.view}")
        return f"SYSTEM CANCEL REBUILD VIEW {self.view}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        candidate = version_of(model, self.view, "candidate")
        if candidate is None:
            raise Untrue("there is no candidate")
        model.drop_view(candidate.shape.key)
