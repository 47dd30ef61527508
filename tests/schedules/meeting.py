"""Composite steps: a statement that is killed, one that another statement interrupts, closing
and opening."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit, Committed
from tests.protocol.planted import Fault
from tests.schedules.crash import run_and_die
from tests.schedules.model import OPEN_BITS_MAX, Model
from tests.schedules.operation import Answer, Operation, Untrue
from tests.schedules.shapes import Fails


class Warehouse:
    """A folder, its connection, and the statements sent to it. A `fault` is planted in the
    engine of this process while the connection is open."""

    def __init__(self, folder: str, fault: Fault | None = None) -> None:
        self.folder, self.fault = folder, fault
        self._planted = ExitStack()
        self.said: list[str] = []
        self.kills = 0
        self.meetings = 0
        self.open()

    def open(self) -> None:
        """Open a connection without background merges, and plant the fault."""
        self.connection: Connection = olapdb.connect(self.folder)
        self.connection.execute("SYSTEM STOP MERGES")
        if self.fault is not None:
            catalog = self.connection.database.services.catalog
            self._planted.enter_context(self.fault.planted(catalog))

    def close(self) -> None:
        """Remove the fault and close the connection."""
        self._planted.close()
        self.connection.close()

    def problems(self) -> list[str]:
        """Return the problems that check_database finds."""
        services = self.connection.database.services
        return check_database(services.catalog, services.store)


class Outcome:
    """The models that fit an answer, and the reasons against the others."""

    def __init__(self) -> None:
        self.models: list[Model] = []
        self.reasons: list[str] = []

    def add(self, text: str, make: Callable[[], Model | list[Model]]) -> None:
        """Add the models that `make` returns, or the reason why it cannot."""
        try:
            made = make()
        except Untrue as reason:
            self.reasons.append(f"{text}: {reason}")
            return
        except KeyError as name:
            self.reasons.append(f"{text}: there is no {name}")
            return
        self.models += made if isinstance(made, list) else [made]


def told(model: Model, text: str) -> Model:
    """Return a copy of the model with this present statement."""
    changed = model.copy()
    changed.statement = text
    return changed


@dataclass(frozen=True)
class Plain:
    """A step of one statement."""

    operation: Operation

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
        """Execute the statement, and keep the models that fit its answer."""
        text = self.operation.sql(models[0])
        warehouse.said.append(text)
        answer = self.operation.perform(warehouse.connection, text)
        outcome = Outcome()
        for model in models:
            outcome.add(text, lambda m=model: self.operation.outcomes(told(m, text), answer))
        return outcome


@dataclass(frozen=True)
class Reopen:
    """A step that closes the last connection and opens another one."""

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
        """Reopen; the models stay."""
        warehouse.said.append("-- close, open")
        warehouse.close()
        warehouse.open()
        outcome = Outcome()
        outcome.models = models
        return outcome


@dataclass(frozen=True)
class Crash:
    """A step in which another process runs the statement and is killed. With `closed` no other
    process has the warehouse open. With `cleaned` a vacuum runs first of all afterwards; then no
    file may be unreferenced."""

    operation: Operation
    stage: str
    count: int
    closed: bool
    cleaned: bool

    @classmethod
    def of(cls, operation: Operation, chance: random.Random) -> Crash:
        """Draw the stage and the conditions of the kill."""
        return cls(
            operation,
            chance.choice(operation.stages),
            chance.choice((1, 1, 2, 3)),
            chance.random() < 0.5,
            chance.random() < 0.5,
        )

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
        """Run and kill the statement, and keep the models that it may have left."""
        text = self.operation.sql(models[0])
        if self.closed:
            warehouse.close()
        answer = run_and_die(warehouse.folder, self.operation, text, self.stage, self.count)
        if self.closed:
            warehouse.open()
        died = f"killed at {self.stage}, time {self.count}"
        warehouse.said.append(f"{text}  -- {died if answer is None else 'not reached: ' + died}")
        warehouse.kills += answer is None
        outcome = Outcome()
        for model in models:
            if answer is None:
                outcome.add(text, lambda m=model: list(self.operation.prefixes(told(m, text))))
            else:
                outcome.add(text, lambda m=model: self.operation.outcomes(told(m, text), answer))
        if self.cleaned:
            vacuum(warehouse.connection.database.services, lifetime_seconds=0)
            problems = warehouse.problems()
            if problems:
                outcome.reasons += problems
                outcome.models.clear()
        return outcome


def _commits(operation: Operation, model: Model) -> int:
    """Return how many commits the operation makes alone, up to one whose view fails."""
    made = 0
    try:
        for _ in operation.change(model, None):
            made += 1
    except Fails:
        pass
    return made


@dataclass(frozen=True)
class Meeting:
    """A step in which `second` runs whole, on another connection, just before the `commit`-th
    commit of `first`. The result must equal that of running both one after the other, in one of
    the two orders."""

    first: Operation
    second: Operation
    commit: int
    weight: ClassVar[int] = 1

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
        """Execute both, and keep the models that fit both answers."""
        texts = self.first.sql(models[0]), self.second.sql(models[0])
        answers = self._perform(warehouse, *texts)
        warehouse.said.append(f"{texts[0]}  -- and before its commit {self.commit}: {texts[1]}")
        both = list(zip((self.first, self.second), texts, answers, strict=True))
        outcome = Outcome()
        if self.first.piecemeal and answers[0].error:
            for model in models:
                outcome.add(texts[0], lambda m=model: self._broken_off(m, *texts, *answers))
        comes_between = self.first.piecemeal or self.first.plans
        if comes_between and not any(answer.error for answer in answers):
            for model in models:
                outcome.add(texts[0], lambda m=model: self._between(m, *texts, answers[1]))
        for order in (both[::-1], both):
            for model in models:
                outcome.add(
                    " then ".join(o[1] for o in order), lambda m=model, o=order: _after(m, o)
                )
        return outcome

    def _between(self, model: Model, text: str, other: str, answer: Answer) -> list[Model]:
        """Return the models in which `second` comes after one of the commits of `first`; before
        all of them where `first` does what it planned earlier."""
        found: list[Model] = []
        reasons: list[str] = []
        commits = _commits(self.first, told(model, text))
        if not self.first.piecemeal:
            commits = min(commits, 1)
        for first, after, choice in product(
            self.first.orders(model), range(commits), range(1 << OPEN_BITS_MAX)
        ):
            if after == 0 and not first.planned:
                continue
            changed, choices = told(model, text), 1
            try:
                for number, _ in enumerate(first.change(changed, None)):
                    if number == after:
                        changed.statement = other
                        for _ in self.second.change(changed, answer):
                            pass
                        if self.first.settles:
                            choices = changed.choices()
                            changed.choose(choice)
                        changed.statement = text
            except Untrue as reason:
                reasons.append(f"after {after}: {reason}")
            except Fails as row:  # in this order a view fails, but the engine reported no failure
                reasons.append(f"after {after}: a view fails on {row}")
            else:
                if choice < choices and changed not in found:
                    found.append(changed)
        if reasons and not found:
            raise Untrue("; ".join(reasons))
        return found

    def _broken_off(
        self, model: Model, text: str, other: str, broken: Answer, answer: Answer
    ) -> list[Model]:
        """Return the models in which `second` comes after some commits of `first`, and makes the
        rest impossible or refused."""
        found: list[Model] = []
        for some in self.first.prefixes(told(model, text)):
            try:
                changed = self.second.after(told(some, other), answer)
            except Untrue:
                continue  # it came after another prefix
            try:
                self.first.sql(changed)
                found += self.first.outcomes(told(changed, text), broken)
            except KeyError:
                found.append(changed)
            except Untrue:
                continue
        return found

    def _perform(self, warehouse: Warehouse, text: str, other: str) -> tuple[Answer, Answer]:
        """Run `second` just before the chosen commit of `first`; afterwards if that commit does
        not come."""
        catalog = warehouse.connection.database.services.catalog
        apply, answers, commits = catalog.apply, list[Answer](), [0]

        def meddled(commit: Commit) -> Committed:
            commits[0] += 1
            if commits[0] == self.commit and not answers:
                answers.append(Answer(error="UNFINISHED"))
                with olapdb.connect(warehouse.folder) as second:
                    answers[0] = self.second.perform(second, other)
            return apply(commit)

        catalog.apply = meddled  # type: ignore[method-assign]
        try:
            first = self.first.perform(warehouse.connection, text)
        finally:
            catalog.apply = apply  # type: ignore[method-assign]
        if answers:
            warehouse.meetings += 1
            return first, answers[0]
        return first, self.second.perform(warehouse.connection, other)


def _after(model: Model, order: list[tuple[Operation, str, Answer]]) -> list[Model]:
    """Return the models after both in this order; try every settlement of open questions before
    an operation that depends on them."""
    models = [model]
    for operation, text, answer in order:
        found: list[Model] = []
        reasons: list[str] = []
        for one in (some for m in models for some in _chosen(m, operation.settles)):
            try:
                operation.sql(one)
            except KeyError as name:
                if not answer.error:
                    raise Untrue(f"{text} was done, and there is no {name}") from None
                found.append(one)  # it came too late, and said so
                continue
            try:
                found += operation.outcomes(told(one, text), answer)
            except Untrue as reason:
                reasons.append(str(reason))
        if not found:
            raise Untrue("; ".join(dict.fromkeys(reasons)))
        models = found
    return models


def _chosen(model: Model, settles: bool) -> Iterator[Model]:
    """Yield the model, with its open questions settled in each way if the operation depends on
    them."""
    if not settles:
        yield model
        return
    for choice in range(model.choices()):
        changed = model.copy()
        changed.choose(choice)
        yield changed


Step = Plain | Reopen | Crash | Meeting
