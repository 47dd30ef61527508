"""Steps made of others: one that dies, one that another comes between, closing and opening."""

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
    """A folder, its connection, and what was said to it. A `fault` is planted in the engine of
    this process while the connection is open."""

    def __init__(self, folder: str, fault: Fault | None = None) -> None:
        self.folder, self.fault = folder, fault
        self._planted = ExitStack()
        self.said: list[str] = []
        self.kills = 0
        self.meetings = 0
        self.open()

    def open(self) -> None:
        self.connection: Connection = olapdb.connect(self.folder)
        self.connection.execute("SYSTEM STOP MERGES")
        if self.fault is not None:
            catalog = self.connection.database.services.catalog
            self._planted.enter_context(self.fault.planted(catalog))

    def close(self) -> None:
        self._planted.close()
        self.connection.close()

    def problems(self) -> list[str]:
        services = self.connection.database.services
        return check_database(services.catalog, services.store)


class Outcome:
    """The models that an answer may have led to, and why others were ruled out."""

    def __init__(self) -> None:
        self.models: list[Model] = []
        self.reasons: list[str] = []

    def add(self, text: str, make: Callable[[], Model | list[Model]]) -> None:
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
    changed = model.copy()
    changed.statement = text
    return changed


@dataclass(frozen=True)
class Plain:
    """One statement."""

    operation: Operation

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
        text = self.operation.sql(models[0])
        warehouse.said.append(text)
        answer = self.operation.perform(warehouse.connection, text)
        outcome = Outcome()
        for model in models:
            outcome.add(text, lambda m=model: self.operation.outcomes(told(m, text), answer))
        return outcome


@dataclass(frozen=True)
class Reopen:
    """The last connection is closed, and another one opened."""

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
        warehouse.said.append("-- close, open")
        warehouse.close()
        warehouse.open()
        outcome = Outcome()
        outcome.models = models
        return outcome


@dataclass(frozen=True)
class Crash:
    """Another process runs the statement and is killed; `closed`: there is no other one then;
    `cleaned`: a vacuum comes first of all, and then every file is somebody's."""

    operation: Operation
    stage: str
    count: int
    closed: bool
    cleaned: bool

    @classmethod
    def of(cls, operation: Operation, chance: random.Random) -> Crash:
        return cls(
            operation,
            chance.choice(operation.stages),
            chance.choice((1, 1, 2, 3)),
            chance.random() < 0.5,
            chance.random() < 0.5,
        )

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
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
    """How many it makes on its own, up to one whose view fails."""
    made = 0
    try:
        for _ in operation.change(model, None):
            made += 1
    except Fails:
        pass
    return made


@dataclass(frozen=True)
class Meeting:
    """`second` runs whole, on another connection, just before the `commit`-th commit of `first`.
    What both leave must be what they leave one after the other, in one of the two orders."""

    first: Operation
    second: Operation
    commit: int
    weight: ClassVar[int] = 1

    def take(self, warehouse: Warehouse, models: list[Model]) -> Outcome:
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
        """The second after the first commit of several of the first, or after the second, …; before
        all of them where they do what was planned before that."""
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
            except Fails as row:  # a view would have, in this order; the engine said nothing of it
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
        """Some of what the first does, and then the second makes the rest impossible, or refused."""
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
    """What the first leaves open may be so or so for the second."""
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
    if not settles:
        yield model
        return
    for choice in range(model.choices()):
        changed = model.copy()
        changed.choose(choice)
        yield changed


Step = Plain | Reopen | Crash | Meeting
