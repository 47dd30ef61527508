"""Draws a schedule from a seed, runs it step by step, and shrinks a failing one."""

from __future__ import annotations

import random
import re
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from olapdb.maintenance.vacuum import vacuum
from tests.protocol.planted import Fault
from tests.schedules import (
    changes,
    checks,
    columns,
    jobs,
    retention,
    rows,
    targets,
    upkeep,
    versions,
    views,
)
from tests.schedules.meeting import Crash, Meeting, Plain, Reopen, Step, Warehouse
from tests.schedules.model import OPEN_BITS_MAX, Model, tables_of
from tests.schedules.operation import CATALOG, Operation
from tests.schedules.shapes import BAD_USER, TABLES, VIEWS
from tests.schedules.truth import Observation, frosted, observe, settled, untruths

OPERATIONS: tuple[type[Operation], ...] = (
    rows.Insert,
    rows.Deliver,
    rows.Copy,
    rows.WriteByHand,
    rows.FillByHand,
    rows.ChangeDimension,
    rows.Delete,
    rows.DropPartition,
    rows.Truncate,
    views.CreateView,
    views.DropView,
    views.Attach,
    views.Backfill,
    views.Replay,
    checks.Reconcile,
    checks.CheckLedger,
    checks.Adopt,
    jobs.StagedBackfill,
    changes.Update,
    changes.ModifyQuery,
    changes.DetachPartition,
    changes.AttachPartition,
    changes.TakePartition,
    targets.DeleteFromTarget,
    targets.DropTargetPartition,
    retention.Expire,
    retention.Retire,
    retention.RetireTarget,
    versions.Rebuild,
    versions.Rollback,
    versions.CancelRebuild,
    columns.AddColumn,
    columns.DropColumn,
    columns.RenameColumn,
    upkeep.Optimize,
    upkeep.Vacuum,
    upkeep.Rename,
    upkeep.Exchange,
)
"""Every kind of step; add a new one here."""

ALONE = (upkeep.Rename, upkeep.Exchange, upkeep.Vacuum, rows.Copy, columns.RenameColumn)
"""Operations that no Meeting combines: a statement names its tables as they were when it was
sent."""
MODELS_MAX = 8
MENDS_MAX = 30


@dataclass
class Totals:
    """Counts over schedules."""

    schedules: int = 0
    steps: int = 0
    kills: int = 0
    meetings: int = 0
    views_checked: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)

    def add(self, other: Totals) -> None:
        """Add the counts of another."""
        for name in ("schedules", "steps", "kills", "meetings", "views_checked"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for verdict, number in other.verdicts.items():
            self.verdicts[verdict] = self.verdicts.get(verdict, 0) + number

    def __str__(self) -> str:
        verdicts = ", ".join(f"{n} {v}" for v, n in sorted(self.verdicts.items()))
        return (
            f"{self.schedules} schedules, {self.steps} steps, {self.kills} kills,"
            f" {self.meetings} meetings, {self.views_checked} views checked: {verdicts}"
        )


class Failed(AssertionError):
    """The failure of a schedule. `steps` are those so far; the message has their SQL (`said`)
    and the problems."""

    def __init__(self, problems: Sequence[str], steps: Sequence[Step], said: Sequence[str]) -> None:
        super().__init__("\n".join(("", *(f"{line};" for line in said), *problems)))
        self.problems, self.steps = problems, tuple(steps)


class Schedule:
    """A warehouse with these views' tables, and the models that it may be in. There is one
    model, until the outcome of a killed statement stays open."""

    def __init__(self, folder: str, cast: Sequence[str], fault: Fault | None = None) -> None:
        self.warehouse = Warehouse(folder, fault)
        self.totals = Totals(schedules=1)
        self.steps: list[Step] = []
        self.models = [Model.of(tables_of(cast))]
        self.seen: Observation | None = None
        for key in self.models[0].names:
            text = f"CREATE TABLE {key} {TABLES[key].ddl}"
            self.warehouse.said.append(text)
            self.warehouse.connection.execute(text)
        snapshot = self.warehouse.connection.database.services.catalog.snapshot()
        self.models[0].ids = {item.name: item.id for item in snapshot.objects("default")}

    def take(self, step: Step) -> None:
        """Run a step; raise Failed where the engine's state then fits no model."""
        try:
            outcome = step.take(self.warehouse, self.models)
        except KeyError:
            return  # it names something that a left-out step would have created
        except Exception as error:  # an engine that breaks is a finding as well
            said = [*self.warehouse.said, "-- breaks"]
            where = "".join(traceback.format_exception(error)[-8:])
            raise Failed([where], [*self.steps, step], said) from error
        self.steps.append(step)
        self.totals.steps += 1
        seen = self.seen = observe(self.warehouse.connection, self.seen)
        reasons = list(outcome.reasons)
        found: list[Model] = []
        whole = [
            s for m in outcome.models for s in settled(frosted(m, seen), self.warehouse.connection)
        ]
        if outcome.models and not whole:
            reasons.append("the rows of the gap are not what can be")
        for model in whole:
            wrong = list(untruths(model, seen))
            reasons += wrong
            if not wrong and model not in found:
                found.append(model)
        if not found:
            raise Failed(reasons, self.steps, self.warehouse.said)
        self.models = found[:MODELS_MAX]
        self.totals.views_checked += len(seen.status)
        for status in seen.status.values():
            verdict = status["verdict"]
            self.totals.verdicts[verdict] = self.totals.verdicts.get(verdict, 0) + 1

    def mend(self) -> None:
        """Run the statements that system.views suggests until every view is covered; then
        require that each is proven."""
        self.seen = None  # read everything again
        for key in [v.beside for v in self.models[0].views.values() if v.standing == "candidate"]:
            self.take(Plain(versions.CancelRebuild(key)))
        if "risky_mv" in self.models[0].views:  # rows on which the view fails cannot be mended
            self.take(Plain(rows.Delete("s", 2, BAD_USER)))
        for _ in range(MENDS_MAX):
            seen = self.seen or observe(self.warehouse.connection)
            ill = {
                key: one["mend"]
                for key, one in seen.status.items()
                if one["verdict"] not in ("covered", "proven", "unproven", "retained")
            }
            if not ill:
                break
            key, mend = next(iter(ill.items()))
            self.take(Plain(_mending(key, mend)))
            if "ADOPT" in mend and self.models[0].bypass(self.models[0].views[key].shape.target):
                self.take(Plain(views.Replay(key, "", True)))
        else:
            raise Failed(["views cannot be mended"], self.steps, self.warehouse.said)
        for key in self.models[0].views:
            self.take(Plain(checks.Reconcile(key)))
            assert self.seen is not None
            status = self.seen.status[key]
            wanted = "proven" if self.models[0].keeps(self.models[0].views[key]) else "unproven"
            retained = status["verdict"] == "retained" and status["reason"].endswith("is proven.")
            if status["verdict"] != wanted and not retained:
                raise Failed([f"{key} is not proven"], self.steps, self.warehouse.said)

    def finish(self) -> Totals:
        """Mend, vacuum, check the database and close; return the totals."""
        try:
            self.mend()
            vacuum(self.warehouse.connection.database.services, lifetime_seconds=0)
            problems = self.warehouse.problems()
            if problems:
                raise Failed(problems, self.steps, self.warehouse.said)
        finally:
            self.close()
        return self.totals

    def close(self) -> None:
        """Close the warehouse and take over its counts."""
        self.totals.kills, self.totals.meetings = self.warehouse.kills, self.warehouse.meetings
        self.warehouse.close()


def _mending(key: str, statement: str) -> Operation:
    """Return the operation of a statement that system.views suggests."""
    match = re.fullmatch(r"SYSTEM (BACKFILL|REPLAY|ADOPT) VIEW \S+(.*)", statement)
    assert match is not None, f"{key} is mended by {statement!r}"
    action, rest = match.group(1), match.group(2).strip()
    if action == "BACKFILL" and rest == "DISCARD BYPASS":
        return views.Replay(
            key, "", True
        )  # the first half; system.views suggests the backfill next
    if action == "BACKFILL":
        return views.Backfill(key, None)
    if action == "ADOPT":
        return checks.Adopt(key)
    return views.Replay(key, "STALE" if rest == "STALE" else "", rest == "DISCARD BYPASS")


# --- drawing -------------------------------------------------------------------------------------


def draw_cast(chance: random.Random) -> list[str]:
    """Draw a few connected views: for each chained one also the views that write its source."""
    cast = chance.sample(sorted(VIEWS), chance.randint(1, 4))
    for key in cast:
        cast += [k for k, v in VIEWS.items() if v.target == VIEWS[key].source and k not in cast]
    return cast


def draw_operation(model: Model, chance: random.Random) -> Operation:
    """Draw an operation that makes sense in the model."""
    weights = [one.weight for one in OPERATIONS]
    while True:
        found = chance.choices(OPERATIONS, weights)[0].draw(model, chance)
        if found is not None:
            return found


def draw_step(model: Model, chance: random.Random) -> Step:
    """Draw a step: an operation alone, killed, or met by another one; or a reopening."""
    if chance.random() < 0.05:
        return Reopen()
    operation = draw_operation(model, chance)
    lot = chance.random()
    if lot < 0.12 and operation.stages and not operation.asks:
        return Crash.of(operation, chance)
    if lot < 0.4 and set(operation.stages) - set(CATALOG) and not isinstance(operation, ALONE):
        other = draw_operation(model, chance)
        if not isinstance(other, ALONE) and _may_meet(model, operation, other):
            return Meeting(operation, other, chance.choice((1, 1, 1, 2)))
    return Plain(operation)


LEAVING_OPEN = (
    targets.Removal,
    retention.Expire,
    retention.Retire,
    retention.RetireTarget,
    upkeep.Optimize,
)
"""Operations whose outcome depends on the engine's parts."""
EXCHANGING = (versions.Rebuild, versions.Rollback, versions.CancelRebuild)
"""Operations after which names have another meaning."""


def _may_meet(model: Model, *both: Operation) -> bool:
    """Return whether the operations may meet. Two are excluded where one leaves too many open
    questions for the other, or exchanges names that the other uses."""
    for one, other in (both, both[::-1]):
        if (
            isinstance(one, LEAVING_OPEN)
            and other.settles
            and any(found.open_bits() > OPEN_BITS_MAX for found in one.prefixes(model))
        ):
            return False
        if isinstance(one, EXCHANGING):
            several = [v for v in model.views.values() if one.view in (v.shape.key, v.beside)]
            exchanged = {name for v in several for name in (v.shape.key, v.shape.target)}
            named = {getattr(other, "view", ""), getattr(other, "table", "")}
            if isinstance(other, views.CreateView):
                shape = model.defined(VIEWS[other.view])
                named |= {shape.source, shape.target}
            if isinstance(other, changes.ModifyQuery):
                named.add(model.views[other.view].shape.source)
            if exchanged & named:
                return False
    return True


# --- running -------------------------------------------------------------------------------------


def run_seed(seed: int, fault: Fault | None = None) -> Totals:
    """Run the whole schedule of a seed; raise Failed with the shortest failing schedule (with a
    fault: without shrinking)."""
    chance = random.Random(seed)
    cast = draw_cast(chance)
    with tempfile.TemporaryDirectory() as folder:
        schedule = Schedule(f"{folder}/warehouse", cast, fault)
        try:
            for key in tables_first(cast):
                if chance.random() < 0.5:
                    schedule.take(Plain(views.CreateView(key, False)))
            for _ in range(chance.randint(5, 16)):
                schedule.take(draw_step(schedule.models[0], chance))
            return schedule.finish()
        except Failed as failure:
            schedule.close()
            if fault is not None:
                raise
            print(f"seed {seed} fails after {len(failure.steps)} steps; shrinking", flush=True)
            raise shrunk(cast, failure) from None


def tables_first(cast: Sequence[str]) -> list[str]:
    """Return the views of the cast in an order in which they can be created."""
    return [key for key in VIEWS if key in cast]


def run_steps(cast: Sequence[str], steps: Sequence[Step]) -> Failed | None:
    """Run these steps and the mending; return their failure, None for success."""
    with tempfile.TemporaryDirectory() as folder:
        schedule = Schedule(f"{folder}/warehouse", cast)
        try:
            for step in steps:
                schedule.take(step)
            schedule.finish()
        except Failed as failure:
            schedule.close()
            return failure
    return None


def shrunk(cast: Sequence[str], failure: Failed) -> Failed:
    """Leave out and simplify steps as long as the schedule still fails; return the shortest
    failure."""
    again = run_steps(cast, failure.steps)
    if again is None:
        return failure  # the failure is not deterministic
    best = again
    for _ in count():
        for steps in _shorter(best.steps):
            found = run_steps(cast, steps)
            if found is not None and len(found.steps) <= len(steps):
                best = found
                break
        else:
            return best
    raise AssertionError


def _shorter(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield shorter or simpler schedules."""
    for size in (8, 4, 2, 1):
        for at in range(len(steps) - size, -1, -1):
            yield [*steps[:at], *steps[at + size :]]
    for at, step in enumerate(steps):
        if isinstance(step, Meeting):
            yield [*steps[:at], Plain(step.first), Plain(step.second), *steps[at + 1 :]]
            yield [*steps[:at], Plain(step.first), *steps[at + 1 :]]
            yield [*steps[:at], Plain(step.second), *steps[at + 1 :]]
        elif isinstance(step, Crash):
            yield [*steps[:at], Plain(step.operation), *steps[at + 1 :]]
