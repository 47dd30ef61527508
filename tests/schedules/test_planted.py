"""Plants faults that the random schedules must notice by themselves, within a few seeds.

tests/protocol/test_planted.py shows for each guard of the protocol the fault on the shortest
schedule that needs it; here the schedules are random.
"""

from __future__ import annotations

import pytest

from tests.protocol.planted import FAULTS
from tests.schedules.schedule import Failed, run_seed

pytestmark = pytest.mark.feature("concurrency")

SEEDS_MAX = 60
NOTICED = ("2.coverage_opens", "3.coverage_with_rows", "4.stale", "8.contributions")


@pytest.mark.slow
@pytest.mark.parametrize("guard", NOTICED)
def test_some_schedule_fails_without_this_guard(guard: str) -> None:
    for seed in range(SEEDS_MAX):
        try:
            run_seed(seed, FAULTS[guard])
        except Failed as failure:
            print(f"\nseed {seed}: {failure.problems[0][:200]}")
            return
    raise AssertionError(f"{SEEDS_MAX} schedules notice nothing.")
