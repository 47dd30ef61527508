"""Whether threads work on the rows of a scan is decided by what its runs took with them and without."""

from __future__ import annotations

import pytest

from olapdb.observation import _TRIED_AGAIN_RUNS, RowCosts

pytestmark = pytest.mark.feature("select")

ROWS, LOST_MAX = 1000, 100_000
PROCESSOR = 50_000.0


def learn(costs: RowCosts, waited: float, *, shared: bool | None) -> None:
    costs.learn("scan", ROWS, PROCESSOR, waited, shared=shared)


def pays(costs: RowCosts) -> bool:
    return costs.threads_pay("scan", ROWS, LOST_MAX)


def steady(waited: float) -> RowCosts:
    """Return the costs after runs with threads that took the same time."""
    costs = RowCosts()
    learn(costs, 1.0, shared=None)
    assert pays(costs)
    for _ in range(2):
        learn(costs, waited, shared=True)
    return costs


def test_one_thread_is_tried_once_runs_with_threads_take_the_same_time() -> None:
    costs = RowCosts()
    learn(costs, 1.0, shared=None)
    for waited in (200_000.0, 90_000.0, 40_000.0):
        learn(costs, waited, shared=True)
        assert pays(costs)
    learn(costs, 41_000.0, shared=True)
    assert not pays(costs)


def test_the_quicker_way_is_kept() -> None:
    alone, shared = steady(40_000.0), steady(40_000.0)
    learn(alone, 30_000.0, shared=False)
    assert not pays(alone)
    learn(shared, 60_000.0, shared=False)
    assert pays(shared)


def test_one_thread_is_not_tried_where_threads_save_much() -> None:
    costs = RowCosts()
    for _ in range(3):
        costs.learn("scan", ROWS, 400_000.0, 200_000.0, shared=True)
    assert pays(costs)


def test_a_run_on_a_busy_machine_changes_little() -> None:
    costs = steady(40_000.0)
    learn(costs, 30_000.0, shared=False)
    learn(costs, 60_000.0, shared=False)
    assert not pays(costs)
    for _ in range(3):
        learn(costs, 60_000.0, shared=False)
    assert pays(costs)


def test_the_other_way_is_tried_again_once_in_a_while() -> None:
    costs = steady(40_000.0)
    learn(costs, 30_000.0, shared=False)
    for _ in range(_TRIED_AGAIN_RUNS):
        assert not pays(costs)
        learn(costs, 30_000.0, shared=False)
    assert pays(costs)
    learn(costs, 20_000.0, shared=True)
    assert pays(costs)
