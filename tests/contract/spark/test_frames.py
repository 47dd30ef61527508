"""A frame of read_table reads its snapshot as often as it is used, until its connection is closed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import FolderNotShared, QueryWasCancelled, ReadOnly
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import AddPart
from olapdb.spark import read_table, write_dataframe
from olapdb.spark.folder import marked_folder, verify_staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("spark")]

ROWS = 4_000
TABLE = """
CREATE TABLE t (n UInt64, m UInt64) ENGINE = MergeTree ORDER BY n
SETTINGS old_parts_lifetime = 0, inline_bytes_max = 0, index_granularity = 100
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "w") as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(TABLE)
        for first in (0, ROWS // 2):
            opened.execute(f"INSERT INTO t SELECT number + {first}, 1 FROM numbers({ROWS // 2})")
        yield opened


CHANGES = (
    "OPTIMIZE TABLE t FINAL",
    "ALTER TABLE t UPDATE m = 7 WHERE n % 2 = 0",
    "DELETE FROM t WHERE n < 100",
    "ALTER TABLE t ADD COLUMN more UInt8 DEFAULT 1",
    "TRUNCATE TABLE t",
    "DROP TABLE t",
)


def clean(connection: Connection) -> int:
    return vacuum(connection.database.services, lifetime_seconds=0).files


def test_a_frame_outlives_all_that_is_done_to_its_table(
    spark: SparkSession, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olapdb.spark.reader.SLICE_ROWS_MIN", 500)  # parts are cut by granules
    frame = read_table(spark, connection, "t")
    derived = frame.where("n >= 100").groupBy().sum("n", "m")
    assert frame.rdd.getNumPartitions() > 2, "no part was cut"

    def answers() -> tuple[object, ...]:
        first, second = derived.collect()[0]
        distinct = frame.select("n").distinct().count()
        return (frame.count(), distinct, int(first), int(second))

    expected = (ROWS, ROWS, sum(range(100, ROWS)), ROWS - 100)
    assert answers() == expected
    for change in CHANGES:
        connection.execute(change)
        assert clean(connection) == 0, "a part that the frame reads was vacuumed"
    assert answers() == expected
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def test_defaults_of_older_parts_are_of_the_moment_of_the_frame(
    spark: SparkSession, connection: Connection
) -> None:
    """A column that parts lack is filled as SELECT fills it: now() is not 1970."""
    connection.execute("ALTER TABLE t ADD COLUMN seen DateTime('UTC') DEFAULT now()")
    connection.execute("ALTER TABLE t ADD COLUMN store UUID DEFAULT serverUUID()")
    frame = read_table(spark, connection, "t", columns=["seen", "store"])
    ((store,),) = connection.execute("SELECT DISTINCT store FROM t").fetchall()
    rows = frame.distinct().collect()
    assert len({row.seen for row in rows}) == 1, "one moment in all tasks"
    assert {row.seen.year > 2000 for row in rows} == {True}
    assert {uuid.UUID(bytes=bytes(row.store)) for row in rows} == {uuid.UUID(str(store))}


def test_a_frame_of_a_closed_connection_says_that_its_snapshot_is_too_old(
    spark: SparkSession, connection: Connection
) -> None:
    """Not that a file is missing, whether it is there yet or was vacuumed."""
    with olapdb.connect(connection.database.location) as other:
        frame = read_table(spark, other, "t")
        again = read_table(spark, other, "t")
        assert frame.count() == again.count() == ROWS
    for _ in range(2):
        for one in (frame, again):
            with pytest.raises(PySparkException, match="SNAPSHOT_TOO_OLD"):
                one.count()
        connection.execute("OPTIMIZE TABLE t FINAL")
        clean(connection)
    assert list(connection.database.services.store.list("data/markers/")) == []


def test_a_frame_of_a_read_only_connection(spark: SparkSession, connection: Connection) -> None:
    location = connection.database.location
    connection.close()
    with olapdb.connect(location, read_only=True) as reading:
        assert read_table(spark, reading, "t").count() == ROWS
        with pytest.raises(ReadOnly):
            write_dataframe(spark.range(3).selectExpr("id AS n", "id AS m"), reading, "t")


def test_a_write_is_listed_and_logged_and_can_be_ended(
    spark: SparkSession, connection: Connection
) -> None:
    seen: list[tuple[object, ...]] = []

    def kill(*_: int) -> None:
        running = "SELECT query_kind, query FROM system.processes WHERE query_kind = 'Insert'"
        if not seen:
            seen.extend(connection.execute(running).fetchall())
            connection.execute("KILL QUERY WHERE query_kind = 'Insert'").fetchall()

    slow = spark.range(0, 10, 1, 2).mapInArrow(wait_for_the_kill, "n long, m long")
    with pytest.raises(QueryWasCancelled):
        write_dataframe(slow, connection, "t", on_progress=kill)
    rows = spark.range(0, 10, 1, 2).selectExpr("id AS n", "id AS m")
    assert len(seen) == 1
    assert write_dataframe(rows, connection, "t").rows == 10
    log = connection.execute(
        "SELECT type, written_rows FROM system.query_log WHERE query LIKE '%DataFrame%'"
        " AND query_kind = 'Insert' ORDER BY event_time_microseconds"
    ).fetchall()
    assert log == [("ExceptionWhileProcessing", 0), ("QueryFinish", 10)]


def wait_for_the_kill(batches: Iterator[object]) -> Iterator[object]:
    """Ended with its Spark job; its time is only a bound."""
    time.sleep(300)
    yield from batches


def damaged(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "missing":
            path.unlink()
        case "short":
            path.write_bytes(data[:-1])
        case "another footer":
            path.write_bytes(data[:-20] + bytes(20 - 8) + data[-8:])


@pytest.mark.parametrize("how", ["missing", "short", "another footer"])
def test_a_staged_file_that_is_not_what_the_task_wrote_is_not_committed(
    spark: SparkSession, connection: Connection, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the tasks and the commit, where a folder that is not shared shows."""
    services = connection.database.services
    before = services.catalog.snapshot().number

    def verify(store: object, address: object, staged: list[object]) -> None:
        (part,) = [c.part for one in staged for c in one.changes if isinstance(c, AddPart)]  # type: ignore[attr-defined]
        damaged(Path(services.store.local_path(part.path) or ""), how)
        verify_staged(store, address, staged)  # type: ignore[arg-type]

    monkeypatch.setattr("olapdb.spark.writer.verify_staged", verify)
    rows = spark.range(0, 10, 1, 1).selectExpr("id AS n", "id AS m")
    with pytest.raises(FolderNotShared, match="Share the folder"):
        write_dataframe(rows, connection, "t")
    assert services.catalog.snapshot().number == before


def test_a_marker_is_there_as_long_as_its_job(connection: Connection) -> None:
    services = connection.database.services
    with marked_folder(services) as address:
        assert services.store.exists(address.marker)
        clean(connection)
        assert services.store.exists(address.marker), "that of a live lease"
    assert not services.store.exists(address.marker)
    assert check_database(services.catalog, services.store) == []
