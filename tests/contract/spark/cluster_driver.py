"""The driver of the cluster tests, in a process of its own: a process has one Spark session.

    python -m tests.contract.spark.cluster_driver MASTER FOLDER

It works in three warehouses while one worker is there that sees them all, says "alone", waits until
the second worker has joined, does the same again, and prints what became of each step as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BackfillIncomplete, Error
from olapdb.maintenance.check import check_database
from olapdb.spark import read_table, spark_session, write_dataframe
from tests.contract.spark.cluster import SHORT_LIVED

ROWS = 4_000
PARTITIONS = 4
WAREHOUSES = ("shared", "hidden", "copied", "overlaid")
EXECUTORS_SECONDS_MAX = 600
SOURCE = f"""
CREATE TABLE events (p UInt8, k UInt64, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k
SETTINGS inline_bytes_max = 0, index_granularity = {ROWS // PARTITIONS // 2}
"""
TARGET = """
CREATE TABLE sums (p UInt8, k UInt64, n Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY (p, k)
SETTINGS inline_bytes_max = 0
"""
VIEW = "SELECT p, k % 10 AS k, sum(n) AS n FROM events GROUP BY p, k"


def main(master: str, folder: Path) -> None:
    spark = spark_session(
        "olapdb cluster tests",
        master,
        memory="512m",
        prewarm=False,
        conf={
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.default.parallelism": str(PARTITIONS),
        },
    )
    opened = {name: olapdb.connect(folder / name) for name in WAREHOUSES}
    for connection in opened.values():
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(SOURCE)
        connection.execute(TARGET)
        connection.execute(f"CREATE MATERIALIZED VIEW v TO sums AS {VIEW}")
    wait_for_executors(spark, 1)
    written = {
        name: write_dataframe(frame(spark), one, "events").rows for name, one in opened.items()
    }
    frames = {name: read_table(spark, one, "events") for name, one in opened.items()}
    for one in opened.values():
        one.execute("SYSTEM STOP VIEW v")
        one.execute("INSERT INTO events SELECT number % 4, number, 1 FROM numbers(8)")
        one.execute("SYSTEM START VIEW v")
    say({"alone": written})
    sys.stdin.readline()
    wait_for_executors(spark, 2)
    say({name: steps(spark, one, frames[name]) for name, one in opened.items()})
    for one in opened.values():
        one.close()
    spark.stop()


def steps(spark: SparkSession, connection: Connection, early: DataFrame) -> dict[str, Any]:
    """Return the answer of each way of working on Spark, and the state after it."""
    services = connection.database.services
    on_spark = "SETTINGS engine = 'spark', inline_bytes_max = 0, backfill_threads = 4"

    def run(work: Callable[[], Any]) -> dict[str, Any]:
        before = services.catalog.snapshot().number
        try:
            outcome = {"answer": str(work())}
        except BackfillIncomplete as error:
            outcome = {"error": "BackfillIncomplete", "message": str(error)}
        except Error as error:
            outcome = {"error": type(error).__name__, "message": str(error)}
        except PySparkException as error:
            outcome = {"error": "PySparkException", "message": str(error)}
        return {**outcome, "commits": services.catalog.snapshot().number - before}

    def statement(text: str) -> Callable[[], Any]:
        return lambda: len(connection.execute(f"{text} {on_spark}").fetchall())

    found: dict[str, Any] = {
        "frame of before": run(early.count),
        "read": run(lambda: read_table(spark, connection, "events").count()),
        "write": run(lambda: write_dataframe(frame(spark), connection, "events").rows),
        "reconcile": run(statement("SYSTEM RECONCILE VIEW v")),
        "backfill": run(statement("SYSTEM BACKFILL VIEW v")),
        "replay": run(statement("SYSTEM REPLAY VIEW v")),
    }
    found["rows"] = connection.execute("SELECT count() FROM events").fetchall()[0][0]
    found["read back"] = connection.execute("SELECT sum(k) >= 0, sum(n) FROM sums").fetchall()[0][0]
    connection.execute("SYSTEM BACKFILL VIEW v")
    verdicts = connection.execute("SYSTEM RECONCILE VIEW v").fetchall()
    found["verdicts"] = sorted({str(row[11]) for row in verdicts})
    found["problems"] = check_database(services.catalog, services.store)
    markers = services.store.list("data/markers/")
    found["markers"] = len([marker for marker in markers if not marker.path.endswith(".tmp")])
    return found


def frame(spark: SparkSession) -> DataFrame:
    rows = spark.range(0, ROWS, 1, PARTITIONS)
    return rows.selectExpr(f"smallint(id % {PARTITIONS}) AS p", "id AS k", "id AS n")


def wait_for_executors(spark: SparkSession, count: int) -> None:
    until = time.monotonic() + EXECUTORS_SECONDS_MAX
    status = spark.sparkContext._jsc.sc()
    while status.getExecutorMemoryStatus().size() < count + 1:  # the driver is one
        if time.monotonic() > until:
            raise TimeoutError(f"{count} executors did not come.")
        time.sleep(0.1)


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
