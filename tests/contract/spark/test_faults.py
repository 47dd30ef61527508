"""Executors and drivers that die between staging and commit, and commits of unknown outcome: what is
run again loses and doubles nothing, and views stay right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import olapdb
from olapdb.errors import CommitUnknown
from olapdb.maintenance.check import check_database
from olapdb.runtime.failpoints import watching
from olapdb.spark import write_dataframe
from tests.contract.spark.dying_driver import BACKFILL, ROWS, TOKEN
from tests.faults.failing import Fault, failing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from olapdb.dbapi.connection import Connection

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("spark", "crashes")]

TABLES = """
CREATE TABLE s (n Int64, k Int64) ENGINE = MergeTree PARTITION BY k % 3 ORDER BY n;
CREATE TABLE t (k Int64, cnt SimpleAggregateFunction(sum, UInt64), total SimpleAggregateFunction(sum, Int64))
ENGINE = AggregatingMergeTree ORDER BY k;
CREATE TABLE below (parity Int64, cnt SimpleAggregateFunction(sum, UInt64))
ENGINE = AggregatingMergeTree ORDER BY parity
"""
VIEWS = """
CREATE MATERIALIZED VIEW v TO t AS SELECT k, count() AS cnt, sum(n) AS total FROM s GROUP BY k;
CREATE MATERIALIZED VIEW w TO below AS SELECT k % 2 AS parity, sum(cnt) AS cnt FROM t GROUP BY parity
"""


def script(connection: Connection, text: str) -> None:
    for statement in text.split(";"):
        connection.execute(statement)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "warehouse") as opened:
        script(opened, TABLES)
        yield opened


def frame(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 4).selectExpr("id AS n", "id % 7 AS k")


def check(connection: Connection, rows: int = ROWS) -> None:
    """Assert that the rows are there once, that both views equal their queries and are proven."""
    counted = connection.execute("SELECT count(), uniqExact(n) FROM s").fetchall()
    assert counted == [(rows, rows)]
    of_source = "SELECT k, count(), sum(n) FROM s GROUP BY k ORDER BY k"
    of_view = "SELECT k, sum(cnt), sum(total) FROM t GROUP BY k ORDER BY k"
    assert connection.execute(of_view).fetchall() == connection.execute(of_source).fetchall()
    of_source = "SELECT k % 2 AS parity, count() FROM s GROUP BY parity ORDER BY parity"
    of_view = "SELECT parity, sum(cnt) FROM below GROUP BY parity ORDER BY parity"
    assert connection.execute(of_view).fetchall() == connection.execute(of_source).fetchall()
    for view in ("v", "w"):
        connection.execute(f"SYSTEM RECONCILE VIEW {view}").fetchall()
    verdicts = "SELECT DISTINCT verdict FROM system.views"
    assert connection.execute(verdicts).fetchall() == [("proven",)]
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def die(warehouse: Path, stage: str, work: str) -> None:
    """Run a driver that must die at the stage."""
    command = [sys.executable, "-m", "tests.contract.spark.dying_driver"]
    ended = subprocess.run(
        [*command, str(warehouse), stage, work], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3_000:]


def test_an_executor_that_dies_while_it_stages_writes_its_rows_once(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    script(connection, VIEWS)

    def dying(batches: Iterator[object]) -> Iterator[object]:
        """Kill the worker behind its first batch, once."""
        for batch in batches:
            yield batch
            try:
                (tmp_path / "died").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    rows = frame(spark).mapInArrow(dying, "n long, k long")  # type: ignore[arg-type]
    assert write_dataframe(rows, connection, "s").rows == ROWS
    assert (tmp_path / "died").exists()
    check(connection)


@pytest.mark.parametrize("stage", ["catalog.before_commit", "catalog.committed"])
def test_a_write_whose_driver_died_may_be_run_again(
    spark: SparkSession, connection: Connection, tmp_path: Path, stage: str
) -> None:
    script(connection, VIEWS)
    die(tmp_path / "warehouse", stage, "write")
    again = write_dataframe(frame(spark), connection, "s", token=TOKEN)
    assert again.duplicate == (stage == "catalog.committed")
    check(connection)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_write_of_unknown_outcome_may_be_run_again(
    spark: SparkSession, connection: Connection, when: str
) -> None:
    script(connection, VIEWS)
    fault = Fault(1, when, forever=False, name="catalog.apply")  # type: ignore[arg-type]
    services = connection.database.services
    with failing(services, fault), pytest.raises(olapdb.Error) as caught:
        write_dataframe(frame(spark), connection, "s", token=TOKEN)
    assert isinstance(caught.value, CommitUnknown) == (when == "after")
    again = write_dataframe(frame(spark), connection, "s", token=TOKEN)
    assert again.duplicate == (when == "after")
    check(connection)


def test_a_view_that_comes_between_staging_and_commit_sees_the_rows(
    spark: SparkSession, connection: Connection
) -> None:
    done: list[str] = []

    def create(stage: str) -> None:
        if stage == "insert.before_commit" and not done:
            done.append(stage)
            script(connection, VIEWS)

    with watching(create):
        assert write_dataframe(frame(spark), connection, "s").rows == ROWS
    assert done
    check(connection)


def test_a_backfill_whose_driver_died_goes_on(
    spark: SparkSession, connection: Connection, tmp_path: Path
) -> None:
    write_dataframe(frame(spark), connection, "s")
    script(connection, VIEWS)
    die(tmp_path / "warehouse", "backfill.before_commit", "backfill")
    connection.execute(BACKFILL).fetchall()
    check(connection)
