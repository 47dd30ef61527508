"""Runs a script and checks after each step that what `system.views` says is true.

A statement that olapdb refuses with an Error counts as refused. Any other exception, a false
verdict, and a mend that fails or does not end are findings."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.dbapi.views import ViewHandle
from olapdb.errors import Error, InternalError
from olapdb.maintenance.merge_planner import merge_worthwhile
from olapdb.model.schema import Table
from tests.definitions.steps import MEND, MERGE, Script, Step, arrow_data, handle_call
from tests.definitions.truth import (
    CONTENT,
    TRUSTED,
    Status,
    Untruth,
    fingerprint,
    statuses,
    untruths,
)

MENDS_MAX = 3
STATEMENTS_MAX = 8
PASSES_MAX = 4


@dataclass(frozen=True)
class Finding:
    """A failure: its kind, the index of the step that showed it, and the statements run until
    then."""

    kind: str
    detail: str
    step: int
    said: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*(f"{text};" for text in self.said), f"-- {self.kind}: {self.detail}"])


@dataclass
class Totals:
    """Counters of runs. `verdicts` counts views after steps; `definitions` counts CREATE
    MATERIALIZED VIEW by outcome."""

    scripts: int = 0
    steps: int = 0
    refused: int = 0
    compared: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    definitions: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, other: Totals) -> None:
        self.scripts += other.scripts
        self.steps += other.steps
        self.refused += other.refused
        self.compared += other.compared
        for name in ("errors", "definitions", "verdicts", "counts", "kinds"):
            getattr(self, name).update(getattr(other, name))

    def __str__(self) -> str:
        total = sum(self.definitions.values()) or 1
        shares = ", ".join(f"{n * 100 // total}% {k}" for k, n in self.definitions.most_common())
        return (
            f"{self.scripts} scripts, {self.steps} steps ({self.refused} refused), {total} views"
            f" ({shares}), {self.counts['compared']} comparisons of targets"
            f" ({self.counts['not comparable']} not comparable), {self.counts['mended']} views mended;"
            f" verdicts: {dict(self.verdicts.most_common())}"
        )


class Run:
    """A run on one warehouse in memory; it adds to `totals`."""

    def __init__(self, totals: Totals | None = None) -> None:
        self.totals = totals or Totals()
        self.connection: Connection = olapdb.connect()
        self.connection.execute("SYSTEM STOP MERGES")
        self.said: list[str] = []
        self.seen: object = None
        self.at = 0
        self.unprovable: set[str] = set()
        self.handles: dict[str, ViewHandle] = {}

    def close(self) -> None:
        self.connection.close()

    def take(self, step: Step) -> Finding | None:
        """Run the step and check; return the finding, if any."""
        self.totals.steps += 1
        finding = self._do(step)
        finding = finding or self.check()
        self.at += 1
        return finding

    def _found(self, kind: str, detail: str) -> Finding:
        return Finding(kind, detail, self.at, tuple(self.said))

    def _do(self, step: Step) -> Finding | None:
        if step.text == MEND:
            return self.mend()
        merged, arrow = MERGE.fullmatch(step.text), arrow_data(step.text)
        called = handle_call(step.text)
        if called is not None:
            return self._guarded(step.text, lambda: self._call(*called))
        if merged is not None:
            return self._guarded(step.text, lambda: self._merge(merged[1]))
        if arrow is not None:
            return self._guarded(step.text, lambda: self.connection.insert(*arrow))
        return self._guarded(step.text, lambda: self.connection.execute(step.text))

    def _call(self, view: str, method: str, arguments: dict[str, object]) -> None:
        """Call a method of the view's handle, the one of earlier calls if there is one."""
        if view not in self.handles:
            if view not in self.connection.views:
                return
            self.handles[view] = self.connection.views[view]
        getattr(self.handles[view], method)(**arguments)

    def _merge(self, name: str) -> None:
        services = self.connection.database.services
        table = {o.name: o for o in services.catalog.snapshot().objects("default")}.get(name)
        if isinstance(table, Table):
            merge_worthwhile(services, table.id)

    def _guarded(self, text: str, action: Callable[[], object]) -> Finding | None:
        created = text.startswith("CREATE MATERIALIZED VIEW")
        self.said.append(text)
        try:
            action()
        except InternalError as error:
            return self._found(f"InternalError {_place(error)}", str(error)[:600])
        except Error as error:
            self.totals.refused += 1
            self.totals.errors[f"{text.split()[0]} {error.name}"] += 1
            self.said[-1] = f"-- refused ({error.name}): {text}"
            if created:
                self.totals.definitions["refused"] += 1
            return None
        except Exception as error:  # noqa: BLE001  (whatever is not of olapdb's tree is a finding)
            return self._found(f"{type(error).__name__} {_place(error)}", str(error)[:600])
        if created:
            name = text.split()[3]
            status = self._statuses().get(name)  # none of a view that is refreshed
            if status is not None:
                kind = "unproven" if status.verdict == "unproven" else "provable"
                self.totals.definitions[kind] += 1
        return None

    def _statuses(self) -> dict[str, Status]:
        return statuses(self.connection)

    def check(self) -> Finding | None:
        """Compare trusted views with their sources, unless nothing changed since the last check."""
        try:
            seen = self._statuses()
            now = fingerprint(self.connection, seen)
            if now == self.seen:
                return None
            self.seen = now
            for status in seen.values():
                self.totals.verdicts[status.verdict] += 1
            for found in untruths(self.connection, seen, self.totals.counts):
                return self._untrue(found)
        except InternalError as error:
            return self._found(f"InternalError {_place(error)}", f"while checking: {error}"[:600])
        except Error as error:
            return self._found(f"check fails ({error.name})", str(error)[:600])
        except Exception as error:  # noqa: BLE001
            where = "".join(traceback.format_exception(error)[-4:])
            return self._found(
                f"{type(error).__name__} {_place(error)}", f"while checking: {where}"
            )
        return None

    def _untrue(self, found: Untruth) -> Finding:
        return self._found(found.kind, f"{found.view}: {found.detail}")

    # --- mending

    def mend(self) -> Finding | None:
        """Run the mends that `system.views` names, one view at a time, until every view is settled.

        A view must settle within `MENDS_MAX` statements. Mending one may unsettle another."""
        self.totals.counts["mended"] += 1
        for _ in range(PASSES_MAX * max(len(self._statuses()), 1)):
            ill = sorted(name for name, status in self._statuses().items() if not _rests(status))
            if not ill:
                return None
            finding = self._mend_one(ill[0])
            if isinstance(finding, Finding):
                return finding
            if not finding:
                return None  # the views above cannot be mended either
        status = next(s for s in self._statuses().values() if not _rests(s))
        return self._restless("mend of one view wakes another for ever", status)

    def _mend_one(self, name: str) -> Finding | bool:
        """Mend one view. Return whether it settled, False if it fails on its rows, or a finding."""
        done = 0
        while name in self._statuses():
            status = self._statuses()[name]
            if _rests(status):
                break
            if not status.mend:
                return self._restless("no mend", status)
            if done == STATEMENTS_MAX:
                return self._restless("mend does not end", status)
            done += 1
            finding = self._obey(status)
            if isinstance(finding, Finding) or not finding:
                return finding
        if done > MENDS_MAX:
            return self._found("mend takes more than three statements", f"{name} took {done}")
        return True

    def _obey(self, status: Status) -> Finding | bool:
        """Run the view's mend. Return False if the view fails on its rows, or a finding."""
        self.said.append(status.mend)
        try:
            self.connection.execute(status.mend)
        except InternalError as error:
            return self._found(f"InternalError {_place(error)}", f"in mend: {error}"[:600])
        except Error as error:
            if not _is_answer(status, error):
                told = f"{status.name} ({status.verdict}: {status.reason}): {status.mend}: {error}"
                return self._found(f"mend fails ({error.name})", told[:700])
            return error.name == "BYPASS_ROWS"
        except Exception as error:  # noqa: BLE001
            return self._found(f"{type(error).__name__} {_place(error)}", f"in mend: {error}"[:600])
        return self.check() or True

    def _restless(self, kind: str, status: Status) -> Finding:
        told = f"{status.name} is {status.verdict}: {status.reason}; mend: {status.mend}"
        return self._found(kind, told)


def _rests(status: Status) -> bool:
    """Return whether nothing is left to do: proven, or unproven or retained without a mend."""
    if status.verdict in ("unproven", "retained"):
        return not status.mend
    return status.verdict == "proven"


def _is_answer(status: Status, error: Error) -> bool:
    """Return whether the failure is an answer that the mend may give.

    ADOPT may find that rows by hand are not the view's. Other mends may find that the view fails on
    rows that it has to read again."""
    if "ADOPT VIEW" in status.mend and error.name == "BYPASS_ROWS":
        return True
    undigestible = error.name in CONTENT or any(name in str(error) for name in CONTENT)
    return undigestible and status.verdict in ("partial", "unproven", "bypassed", "stale")


def _place(error: BaseException) -> str:
    """Return where in olapdb the error was raised. Shrinking the script rarely changes this."""
    frames = traceback.extract_tb(error.__traceback__)
    cause = error.__cause__ or error.__context__
    if isinstance(error, InternalError) and cause is not None:
        frames = traceback.extract_tb(cause.__traceback__) or frames
    inside = [f for f in frames if "olapdb/" in f.filename and "tests" not in f.filename]
    return f"in {inside[-1].filename.rpartition('olapdb/')[2]}:{inside[-1].name}" if inside else ""


def run_script(script: Script, totals: Totals | None = None) -> Finding | None:
    """Run the script; return its first finding, None if there is none."""
    totals = totals or Totals()
    totals.scripts += 1
    run = Run(totals)
    try:
        for step in script.steps:
            finding = run.take(step)
            if finding is not None:
                totals.kinds[finding.kind] += 1
                return finding
    finally:
        run.close()
    return None


__all__ = ["TRUSTED", "Finding", "Run", "Totals", "run_script"]
