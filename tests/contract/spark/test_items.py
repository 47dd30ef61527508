"""run_items: one item a task, errors with their class, retries, progress, cancellation."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olapdb.errors import ExecutorFailed, FileDoesntExist, QueryWasCancelled, UnknownTable
from olapdb.spark import run_items
from olapdb.spark.items import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("spark")]


def test_results_come_in_the_order_of_the_items(spark: SparkSession) -> None:
    assert run_items(spark, lambda item: item * item, range(7)) == [0, 1, 4, 9, 16, 25, 36]
    assert run_items(spark, lambda item: item, []) == []


def test_progress_ends_at_all_items(spark: SparkSession) -> None:
    seen: list[tuple[int, int]] = []
    run_items(
        spark, lambda item: time.sleep(0.1), range(6), on_progress=lambda a, b: seen.append((a, b))
    )
    assert seen[-1] == (6, 6)
    assert seen == sorted(seen)
    assert len(seen) > 2


def test_an_error_carries_item_class_message_and_traceback(spark: SparkSession) -> None:
    def fail(item: int) -> int:
        if item == 2:
            raise KeyError("no such thing")
        return item

    with pytest.raises(ExecutorFailed) as caught:
        run_items(spark, fail, range(4))
    text = str(caught.value)
    assert "Item 2" in text
    assert "KeyError" in text
    assert "no such thing" in text
    assert 'raise KeyError("no such thing")' in text


def test_an_error_of_olapdb_keeps_its_class_and_is_not_tried_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    def fail(item: int) -> int:
        with (tmp_path / "tries").open("a") as file:
            file.write("x")
        raise UnknownTable("Table t does not exist.", hint="Create it.")

    with pytest.raises(UnknownTable, match=r"Table t does not exist\.") as caught:
        run_items(spark, fail, [1])
    assert caught.value.hint == "Create it."
    assert (tmp_path / "tries").read_text() == "x"


def test_what_may_pass_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    def fail_twice(item: int) -> int:
        with (tmp_path / "tries").open("a") as file:
            file.write("x")
        if (tmp_path / "tries").stat().st_size < 3:
            raise FileDoesntExist("gone")
        return item

    assert run_items(spark, fail_twice, [5]) == [5]
    assert (tmp_path / "tries").read_text() == "xxx"


def test_a_killed_worker_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    def die_once(item: int) -> int:
        if item == 1 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert run_items(spark, die_once, range(3)) == [0, 1, 2]
    assert (tmp_path / "died").exists()


def test_a_worker_that_always_dies_is_an_error_of_ours(spark: SparkSession) -> None:
    def die(item: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(ExecutorFailed, match="crashed"):
        run_items(spark, die, [1])


def test_a_cancel_stops_a_job_that_has_not_begun(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the statement and Spark's own record of the job there is time."""
    asked, cancel = threading.Event(), SparkJob.cancel

    def told(job: SparkJob) -> None:
        cancel(job)
        asked.set()

    monkeypatch.setattr(SparkJob, "cancel", told)

    def action() -> list[object]:
        assert asked.wait(60)
        return spark.range(0, 2, 1, 2).mapInArrow(slow, "id long").collect()

    def slow(batches: Iterator[object]) -> Iterator[object]:
        time.sleep(60)
        return batches

    cancelled = threading.Event()
    cancelled.set()
    started = time.monotonic()
    with pytest.raises(QueryWasCancelled):
        SparkJob(spark, "late", "late").run(action, cancelled=cancelled)
    assert time.monotonic() - started < 50


def test_cancelling_stops_the_job(spark: SparkSession) -> None:
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    started = time.monotonic()
    with pytest.raises(QueryWasCancelled):
        run_items(spark, lambda item: time.sleep(30), range(4), cancelled=cancelled)
    assert time.monotonic() - started < 25
    assert run_items(spark, lambda item: item, [1]) == [1]
