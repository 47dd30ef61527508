"""Following `mend` ends: from any state in `system.views`, its statements lead to a settled
verdict.

    python -m tests.property.test_mend FIRST COUNT

prints how often each verdict and mend was met, and the shortest script of each seed that got
stuck."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from olapdb.views.jobs.replay_attempt import ReplayAttempt
from tests.property.mending import Case, Stuck, run_case, run_seed

pytestmark = pytest.mark.feature("reconcile")

SEEDS = 100
SOAK_SEEDS = 10_000
MET = (
    "covered RECONCILE",
    "partial BACKFILL",
    "stale REPLAY",
    "bypassed ADOPT",
    "bypassed REPLAY",
    "bypassed BACKFILL",
    "unproven",
    "unproven BACKFILL",
    "unproven REPLAY",
    "proven",
)
"""Verdicts that the seeds must reach, or else they test too little."""


def met(first: int, count: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            found.update(run_seed(seed))
        except Stuck as stuck:
            raise AssertionError(f"seed {seed}: {stuck}") from stuck
    return found


def test_mend_ends() -> None:
    found = met(0, SEEDS)
    assert not [one for one in MET if not found[one]]


@pytest.mark.soak
def test_mend_ends_for_long() -> None:
    met(1_000_000, SOAK_SEEDS)


STALE = Case(
    (
        "CREATE DATABASE wh",
        "CREATE TABLE wh.s (k UInt8) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE wh.t (k UInt8) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW wh.v TO wh.t AS SELECT k FROM wh.s",
    ),
    ("INSERT INTO wh.s VALUES (1)", "DELETE FROM wh.s WHERE k = 1"),
    0,
    "wh",
)


BESIDE_A_STALE_UNPROVEN_VIEW = Case(
    (
        "CREATE DATABASE wh",
        "CREATE TABLE wh.s (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE wh.d (k UInt8, w Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE wh.t1 (k UInt8, v Int64) ENGINE = SummingMergeTree(v) ORDER BY k",
        "CREATE TABLE wh.t2 (k UInt8, v Int64) ENGINE = SummingMergeTree(v) ORDER BY k",
        "CREATE MATERIALIZED VIEW wh.v1 TO wh.t1 AS SELECT k, sum(v) AS v FROM wh.s GROUP BY k",
        "CREATE MATERIALIZED VIEW wh.unproven TO wh.t2 AS"
        " SELECT x.k AS k, sum(x.v * y.w) AS v FROM wh.t1 AS x LEFT JOIN wh.d AS y ON x.k = y.k GROUP BY k",
        "CREATE MATERIALIZED VIEW wh.proven TO wh.t2 AS SELECT k, sum(v) AS v FROM wh.s GROUP BY k",
    ),
    ("INSERT INTO wh.s VALUES (1, 2)", "INSERT INTO wh.d VALUES (1, 3)"),
    0,
    "wh",
)


def test_a_view_beside_a_stale_unproven_one_becomes_proven() -> None:
    assert run_case(BESIDE_A_STALE_UNPROVEN_VIEW) >= {"covered RECONCILE", "proven"}
    run_seed(1_000_337)


def test_a_mend_that_changes_nothing_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_case(STALE) == {"stale REPLAY", "covered RECONCILE", "proven"}
    monkeypatch.setattr(ReplayAttempt, "_cleared", lambda *_: [])
    with pytest.raises(Stuck, match=r"is not settled: stale: .*STALE -> stale: .*STALE"):
        run_case(STALE)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    totals, stuck_seeds = Counter[str](), 0
    for number in range(first, first + count):
        try:
            totals.update(run_seed(number))
        except Stuck as problem:
            stuck_seeds += 1
            print(f"seed {number}: {problem}", flush=True)
    print(f"{count} seeds, {stuck_seeds} stuck: {dict(totals.most_common())}")
