"""Runs random schedules on the engine and compares it with plain Python after every step.

A view with the verdict covered or proven must equal its recomputed source; every other view must
show its true cause. A failure prints the seed and the shortest schedule, as SQL.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.schedules.model import Model, tables_of
from tests.schedules.schedule import OPERATIONS, Totals, draw_cast, draw_operation, run_seed
from tests.schedules.soak import soak

pytestmark = pytest.mark.feature("concurrency")

SECONDS = 50
LEAST = 10
"""Schedules that even a slow machine finishes in that time."""


@pytest.mark.timeout(600)
def test_schedules() -> None:
    """Run the same seeds each time, as many as the time allows."""
    totals, seed, started = Totals(), 0, time.monotonic()
    while seed < LEAST or time.monotonic() - started < SECONDS:
        totals.add(run_seed(seed))
        seed += 1
    print(f"\n{totals}")
    assert totals.steps > totals.schedules * 5
    assert totals.kills
    assert totals.meetings


@pytest.mark.timeout(600)
def test_a_fresh_schedule() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"\nfresh seed {seed}")
    run_seed(seed)


def test_every_kind_of_step_is_drawn() -> None:
    """Draw steps in models that the steps themselves create, without an engine."""
    drawn: set[type] = set()
    for seed in range(800):
        chance = random.Random(seed)
        model = Model.of(tables_of(draw_cast(chance)))
        for _ in range(20):
            operation = draw_operation(model, chance)
            drawn.add(type(operation))
            if not operation.asks:
                model = chance.choice(list(operation.prefixes(model)))
    assert drawn == set(OPERATIONS)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_many_schedules() -> None:
    """Run at least 5,000 schedules, with new seeds each day."""
    first = time.time_ns() // 86_400_000_000_000 * 1_000_000
    count = int(os.environ.get("OLAPDB_SOAK_SCHEDULES", "5000"))
    totals, failures = soak(first, count, processes=os.cpu_count() or 1)
    print(f"\n{totals}")
    assert not failures, "\n".join(failures)
    assert totals.schedules == count
