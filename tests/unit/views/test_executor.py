"""Threads compute chunks while the caller publishes others."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from olapdb.errors import QueryWasCancelled
from olapdb.storage.store import MemoryStore
from olapdb.views.jobs import executor as executor_module
from olapdb.views.jobs.chunk import StagedChunk
from olapdb.views.jobs.executor import InProcessExecutor

pytestmark = pytest.mark.feature("views", "concurrency")


def tasks(count: int) -> Any:
    return [SimpleNamespace(index=index, partition="", rows=1 << 20) for index in range(count)]


def computed_by(monkeypatch: pytest.MonkeyPatch, begun: list[int], enough: threading.Event) -> None:
    def compute(task: Any, *_: object) -> StagedChunk:
        begun.append(task.index)
        if len(begun) >= 4:
            enough.set()
        return StagedChunk(task.index, "", None, None, 0, 0, 0)

    monkeypatch.setattr(executor_module, "compute_chunk", compute)


def test_chunks_are_computed_while_the_caller_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    enough = threading.Event()
    computed_by(monkeypatch, begun, enough)
    outcomes = InProcessExecutor(MemoryStore(), threads=2).run(tasks(6))
    first = next(outcomes)
    assert enough.wait(30)  # the caller has not asked for another one
    assert sorted([first.index, *(outcome.index for outcome in outcomes)]) == list(range(6))


def test_what_waits_is_not_computed_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    computed_by(monkeypatch, begun, threading.Event())
    with pytest.raises(QueryWasCancelled):
        list(InProcessExecutor(MemoryStore(), threads=2).run(tasks(50), lambda: len(begun) > 0))
    assert len(begun) <= 8


def test_chunks_that_run_side_by_side_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has more rows than its share outlasts the others, and has all threads."""
    shares: dict[int, int] = {}

    def compute(task: Any, store: Any, cache: Any, ended: Any, at_a_time: int) -> StagedChunk:
        shares[task.index] = at_a_time
        return StagedChunk(task.index, "", None, None, 0, 0, 0)

    monkeypatch.setattr(executor_module, "compute_chunk", compute)
    some = tasks(5)
    list(InProcessExecutor(MemoryStore(), threads=2).run(some))
    assert shares == dict.fromkeys(range(5), 2)
    some[3].rows = 1 << 24
    list(InProcessExecutor(MemoryStore(), threads=2).run(some))
    assert shares == {0: 2, 1: 2, 2: 2, 3: 1, 4: 2}
    list(InProcessExecutor(MemoryStore(), threads=2).run(some[:1]))
    assert shares[0] == 1
