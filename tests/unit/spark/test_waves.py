"""How chunks share Spark jobs; the tests start no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from olapdb.spark.executor import WAVE_ROWS, waves

if TYPE_CHECKING:
    from olapdb.views.jobs.chunk import ChunkTask

pytestmark = pytest.mark.feature("spark")


@dataclass(frozen=True)
class Task:
    index: int
    purpose: str
    rows: int


def shared(purpose: str, rows: list[int], tasks_max: int = 4) -> list[list[int]]:
    tasks = [cast("ChunkTask", Task(at, purpose, n)) for at, n in enumerate(rows)]
    return [[task.index for task in wave] for wave in waves(tasks, tasks_max)]


def test_each_chunk_of_a_backfill_is_a_job_of_its_own() -> None:
    assert shared("backfill", [1, 1, 1]) == [[0], [1], [2]]


def test_small_chunks_of_other_work_share_a_job() -> None:
    assert shared("rows", [1] * 6) == [[0, 1, 2, 3], [4, 5]]
    assert shared("replay", [1, 1]) == [[0, 1]]


def test_large_chunks_do_not() -> None:
    assert shared("rows", [WAVE_ROWS, WAVE_ROWS, 5, 5]) == [[0], [1], [2, 3]]
    assert shared("rows", [WAVE_ROWS // 2] * 3) == [[0, 1], [2]]


def test_nothing_is_no_job() -> None:
    assert shared("rows", []) == []
