"""The turn of a run's threads: one at a time, except while a thread computes many rows."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from dbt.adapters.olapdb.incremental_mv.turn import ROWS_IN_TURN_MAX, Turn
from dbt_common.exceptions import DbtRuntimeError

pytestmark = pytest.mark.feature("dbt")

SECONDS_MAX = 60


@dataclass(frozen=True)
class Event:
    phase: str
    rows: int


class Rival:
    """A thread that takes the turn as soon as it may."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.has_begun, self.had_it = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.has_begun.wait(SECONDS_MAX)

    def _run(self) -> None:
        self.has_begun.set()
        with self._turn.taken():
            self.had_it.set()


def test_one_thread_at_a_time() -> None:
    turn = Turn()
    with turn.taken():
        rival = Rival(turn)
        assert not rival.had_it.is_set()
    assert rival.had_it.wait(SECONDS_MAX)


def test_a_thread_that_computes_lets_others_in_and_has_the_turn_again() -> None:
    turn = Turn()
    with turn.taken():
        rival = Rival(turn)
        with turn.given_up() as watch:
            assert watch is None
            assert rival.had_it.wait(SECONDS_MAX)
        assert not Rival(turn).had_it.is_set()


def test_only_many_rows_give_the_turn_up() -> None:
    turn, seen = Turn(), []
    with turn.taken():
        rival = Rival(turn)
        with turn.given_up(seen.append) as watch:
            assert watch is not None
            watch(Event("planned", ROWS_IN_TURN_MAX))
            watch(Event("published", ROWS_IN_TURN_MAX))
            assert not rival.had_it.is_set()
            watch(Event("planned", 1))
            assert rival.had_it.wait(SECONDS_MAX)
        assert not Rival(turn).had_it.is_set()
    assert len(seen) == 3


def test_an_error_leaves_the_turn_free() -> None:
    turn = Turn()
    with pytest.raises(ValueError), turn.taken(), turn.given_up():
        raise ValueError
    assert Rival(turn).had_it.wait(SECONDS_MAX)


def test_a_thread_without_the_turn_gives_none_up() -> None:
    turn, events = Turn(), []
    with turn.given_up(events.append) as watch:
        assert watch is not None
        watch(Event("planned", ROWS_IN_TURN_MAX + 1))
    assert Rival(turn).had_it.wait(SECONDS_MAX)
    assert len(events) == 1


def test_no_thread_has_the_turn_after_the_end_of_a_run() -> None:
    turn, refused = Turn(), threading.Event()

    def wait_for_it() -> None:
        with pytest.raises(DbtRuntimeError, match="cancelled"), turn.taken():
            pass
        refused.set()

    with turn.taken():
        threading.Thread(target=wait_for_it, daemon=True).start()
        turn.end()
        assert not refused.is_set()
    assert refused.wait(SECONDS_MAX)
    with pytest.raises(DbtRuntimeError, match="cancelled"), turn.taken():
        pass


def test_a_thread_that_computes_does_not_go_on_after_the_end() -> None:
    turn = Turn()
    with pytest.raises(DbtRuntimeError, match="cancelled"), turn.taken(), turn.given_up():
        turn.end()
