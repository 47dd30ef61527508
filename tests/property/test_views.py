"""Random histories: after each step every view equals its source recomputed in plain Python, or
system.views names what differs and why.

The model holds the source's rows, which of them the view has seen, and which slices of the target
an earlier step made stale or bypassed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import olapdb
from tests.unit.views.warehouse import READ, SOURCE, TARGET, VIEW, dicts, rows

pytestmark = pytest.mark.feature("views")

DAYS = [date(2024, 1, 30) + timedelta(days=d) for d in range(4)]
"""Two months, so two partitions of source and target."""
KINDS = ("a", "b")


@dataclass
class Row:
    """A row of the source; `covered` says whether the view has seen it."""

    day: date
    kind: str
    user: int
    amount: int
    covered: bool


def month(day: date) -> str:
    return f"{day:%Y%m}"


@dataclass
class Model:
    """The source's rows, and the slices that earlier steps made stale or bypassed."""

    rows: list[Row] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    bypass: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def expected(self) -> list[tuple[Any, ...]]:
        groups: dict[tuple[date, str], list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.covered:
                groups[row.day, row.kind].append(row)
        return [
            (
                day,
                kind,
                len(found),
                sum(r.amount for r in found),
                len({r.user for r in found}),
                sum(r.amount for r in found) / len(found),
            )
            for (day, kind), found in sorted(groups.items())
        ]


new_rows = st.lists(
    st.tuples(st.sampled_from(DAYS), st.sampled_from(KINDS), st.integers(0, 3), st.integers(-5, 5)),
    min_size=1,
    max_size=6,
)


class Views(RuleBasedStateMachine):
    """A state machine over a source, an aggregating view of it, and a summing view below that."""

    @initialize(early=st.booleans())
    def open(self, early: bool) -> None:
        self.connection = olapdb.connect()
        self.connection.execute("SYSTEM STOP MERGES")
        self.connection.execute(SOURCE)
        self.connection.execute(TARGET)
        self.model = Model()
        self.there = self.attached = False
        if early:
            self.create_view()

    def teardown(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()

    @rule(given=new_rows, cut=st.sampled_from([1, 2, 1_048_576]))
    def insert(self, given: list[tuple[date, str, int, int]], cut: int) -> None:
        text = ", ".join(f"('{d}', '{k}', {u}, {a})" for d, k, u, a in given)
        self.connection.execute(
            f"INSERT INTO events SETTINGS max_insert_block_size = {cut} VALUES {text}"
        )
        self.model.rows += [Row(*one, covered=self.attached) for one in given]

    @rule(given=new_rows)
    def insert_arrow(self, given: list[tuple[date, str, int, int]]) -> None:
        columns = list(zip(*given, strict=True))
        self.connection.insert(
            "events",
            pa.table(
                {
                    "day": pa.array(columns[0], pa.date32()),
                    "kind": list(columns[1]),
                    "user": list(columns[2]),
                    "amount": list(columns[3]),
                }
            ),
        )
        self.model.rows += [Row(*one, covered=self.attached) for one in given]

    @precondition(lambda self: not self.there)
    @rule()
    def create_view(self) -> None:
        self.connection.execute(VIEW)
        self.there = self.attached = True

    @precondition(lambda self: self.there)
    @rule()
    def toggle(self) -> None:
        self.connection.execute(f"{'DETACH' if self.attached else 'ATTACH'} VIEW daily_mv")
        self.attached = not self.attached

    @precondition(lambda self: self.there)
    @rule(only=st.sampled_from([None, *sorted({month(d) for d in DAYS})]))
    def backfill(self, only: str | None) -> None:
        gap = {month(r.day) for r in self.model.rows if not r.covered}
        known = {month(r.day) for r in self.model.rows}
        if only is not None and only not in known:
            return
        wanted = gap if only is None else gap & {only}
        clause = "" if only is None else f" PARTITION {only}"
        done = dicts(self.connection, f"SYSTEM BACKFILL VIEW daily_mv{clause}")
        assert {d["partition"] for d in done} == wanted
        assert all(d["status"] == "published" for d in done)
        for row in self.model.rows:
            row.covered = row.covered or month(row.day) in wanted

    @rule(day=st.sampled_from(DAYS), user=st.integers(0, 3))
    def delete(self, day: date, user: int) -> None:
        self.connection.execute(f"DELETE FROM events WHERE day = '{day}' AND user >= {user}")
        gone = [r for r in self.model.rows if r.day == day and r.user >= user]
        self.model.rows = [r for r in self.model.rows if r not in gone]
        if any(r.covered for r in gone):
            self.model.stale.add(month(day))

    @precondition(lambda self: self.there)
    @rule()
    def replay_stale(self) -> None:
        done = dicts(self.connection, "SYSTEM REPLAY VIEW daily_mv STALE")
        assert {d["partition"] for d in done} >= self.model.stale
        self.model.stale.clear()

    @precondition(lambda self: self.there)
    @rule(discard=st.booleans())
    def replay_all(self, discard: bool) -> None:
        self.connection.execute(
            f"SYSTEM REPLAY VIEW daily_mv{' DISCARD BYPASS' if discard else ''}"
        )
        self.model.stale.clear()
        if discard:
            self.model.bypass.clear()

    @rule(day=st.sampled_from(DAYS))
    def write_by_hand(self, day: date) -> None:
        self.connection.execute(
            f"INSERT INTO daily (day, kind, events) VALUES ('{day}', 'hand', 1)"
        )
        self.model.bypass[month(day)] += 1

    @rule(table=st.sampled_from(["events", "daily"]))
    def merge(self, table: str) -> None:
        self.connection.execute(f"OPTIMIZE TABLE {table} FINAL")

    @precondition(lambda self: self.there)
    @rule()
    def reconcile(self) -> None:
        done = dicts(self.connection, "SYSTEM RECONCILE VIEW daily_mv")
        for one in done:
            partition = one["partition"]
            if partition in self.model.bypass:
                assert one["verdict"] == "different"
                assert one["bypass_rows"] > 0
            elif partition not in self.model.stale:
                assert one["verdict"] == "equal", one
            elif one["verdict"] == "equal":
                self.model.stale.discard(partition)  # the replay restored the deleted rows

    @invariant()
    def target_is_what_it_claims(self) -> None:
        if not hasattr(self, "connection"):
            return
        trusted = [
            r
            for r in rows(self.connection, READ)
            if r[1] != "hand" and month(r[0]) not in self.model.stale
        ]
        expected = self.model.expected() if self.there else []
        assert trusted == [r for r in expected if month(r[0]) not in self.model.stale]

    @invariant()
    def status_tells_the_truth(self) -> None:
        if not getattr(self, "there", False):
            return
        status = dicts(self.connection, "SELECT * FROM system.views")[0]
        assert status["gap_rows"] == sum(not r.covered for r in self.model.rows)
        assert bool(status["bypass_rows"]) == bool(self.model.bypass)
        stale = rows(self.connection, "SELECT DISTINCT partition_id FROM system.view_invalidations")
        assert {s[0] for s in stale} == self.model.stale
        if self.model.stale:
            assert status["verdict"] == "stale"
        elif self.model.bypass:
            assert status["verdict"] == "bypassed"
        elif status["gap_rows"]:
            assert status["verdict"] == "partial"
        else:
            assert status["verdict"] in ("covered", "proven")


TestViews = Views.TestCase
TestViews.settings = settings(
    max_examples=25, stateful_step_count=15, suppress_health_check=list(HealthCheck)
)
