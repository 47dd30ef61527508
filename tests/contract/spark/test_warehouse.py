"""Writer, executor and reader on a real warehouse: one commit, triggers on executors, chunks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import olapdb
from olapdb.errors import (
    BackfillIncomplete,
    CannotConvertType,
    CannotInsertNull,
    DataError,
    Error,
    ExecutorFailed,
    NoSuchColumn,
    NotSupportedError,
    ThereIsNoColumn,
    UnknownTable,
)
from olapdb.spark import read_table, write_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("spark")]

ROWS = 10_000

SOURCE = """
CREATE TABLE events (day Date, country String, amount Int64, price Nullable(Float64),
                     at DateTime, note String DEFAULT 'none')
ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (country, day)
"""
TARGET = """
CREATE TABLE totals (country String, day Date, n SimpleAggregateFunction(sum, UInt64),
                     amount SimpleAggregateFunction(sum, Int64),
                     mean AggregateFunction(avg, Nullable(Float64)))
ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day) ORDER BY (country, day)
"""
VIEW = """
CREATE MATERIALIZED VIEW totals_mv TO totals AS
SELECT country, day, count() AS n, sum(amount) AS amount, avgState(price) AS mean
FROM events GROUP BY country, day
"""
FROM_VIEW = """
SELECT country, day, sum(n), sum(amount), round(avgMerge(mean), 9) FROM totals
GROUP BY country, day ORDER BY country, day
"""
FROM_SOURCE = """
SELECT country, day, count(), sum(amount), round(avg(price), 9) FROM events
GROUP BY country, day ORDER BY country, day
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    with olapdb.connect(tmp_path / "warehouse") as opened:
        opened.execute(SOURCE)
        opened.execute(TARGET)
        yield opened


def events(spark: SparkSession, rows: int = ROWS, partitions: int = 4) -> DataFrame:
    return spark.range(0, rows, 1, partitions).selectExpr(
        "date_add(date'2024-01-01', int(id % 90)) AS day",
        "concat('C', id % 7) AS country",
        "id AS amount",
        "if(id % 5 = 0, NULL, id / 4D) AS price",
        "timestamp_seconds(1704067200 + id) AS at",
    )


def commits(connection: olapdb.Connection) -> int:
    return connection.database.services.catalog.snapshot().number


def test_a_frame_and_its_views_are_one_commit(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    connection.execute(VIEW)
    before = commits(connection)
    progress: list[tuple[int, int]] = []
    result = write_dataframe(
        events(spark), connection, "events", on_progress=lambda a, b: progress.append((a, b))
    )
    assert (result.rows, result.blocks, result.commit) == (ROWS, 4, before + 1)
    assert [write.rows_read for write in result.views] == [ROWS]
    assert connection.execute(FROM_VIEW).fetchall() == connection.execute(FROM_SOURCE).fetchall()
    assert connection.execute("SELECT count(), sum(amount), any(note) FROM events").fetchall() == [
        (ROWS, ROWS * (ROWS - 1) // 2, "none")
    ]
    assert all(done <= planned for done, planned in progress)


def test_a_token_names_the_whole_insert(spark: SparkSession, connection: olapdb.Connection) -> None:
    first = write_dataframe(events(spark), connection, "events", token="day 1")
    again = write_dataframe(
        events(spark, partitions=2), connection, "default.events", token="day 1"
    )
    assert not first.duplicate
    assert again.duplicate
    assert connection.execute("SELECT count() FROM events").fetchall() == [(ROWS,)]


def test_a_path_opens_the_warehouse_for_the_write(spark: SparkSession, tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute(SOURCE)
    assert write_dataframe(events(spark, 10), tmp_path / "w", "events").rows == 10
    with olapdb.connect(tmp_path / "w") as connection:
        assert connection.execute("SELECT count() FROM events").fetchall() == [(10,)]


@pytest.mark.parametrize(
    ("columns", "error", "name"),
    [
        ("day, country, amount, price", ThereIsNoColumn, "at"),
        ("day, country, amount, price, at, 1 AS surplus", NoSuchColumn, "surplus"),
        ("day, country, amount, price, interval 1 day AS at", CannotConvertType, "at"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_the_job(
    spark: SparkSession, connection: olapdb.Connection, columns: str, error: type[Error], name: str
) -> None:
    events(spark).createOrReplaceTempView("incoming")
    frame = spark.sql(f"SELECT {columns} FROM incoming")
    before = commits(connection)
    with pytest.raises(error) as caught:
        write_dataframe(frame, connection, "events")
    assert name in str(caught.value) or error is CannotConvertType
    assert commits(connection) == before


def test_a_value_that_does_not_fit_lands_nothing(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    frame = events(spark).selectExpr(
        "day", "if(amount = 9000, NULL, country) AS country", "amount", "price", "at"
    )
    with pytest.raises(CannotInsertNull, match="country"):
        write_dataframe(frame, connection, "events")
    assert connection.execute("SELECT count() FROM events").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("v UInt8", "id + 250", "Cannot convert 256 to UInt8"),
        ("v Int64", "id / 2", "it has a fraction"),
        ("v Decimal(9, 2)", "cast(id AS decimal(20, 3)) / 8", "Decimal"),
        ("v DateTime", "timestamp_micros(id)", "1970-01-01 00:00:00"),
    ],
)
def test_a_value_that_the_column_would_change_lands_nothing(
    spark: SparkSession, connection: olapdb.Connection, column: str, value: str, says: str
) -> None:
    connection.execute(f"CREATE TABLE narrow ({column}) ENGINE = MergeTree ORDER BY v")
    frame = spark.range(0, 10, 1, 2).selectExpr(f"{value} AS v")
    with pytest.raises(
        CannotConvertType, match=r"Column v of default\.narrow, row \d+: "
    ) as caught:
        write_dataframe(frame, connection, "narrow")
    assert says in str(caught.value)
    assert connection.execute("SELECT count() FROM narrow").fetchall() == [(0,)]
    connection.execute("SET insert_allow_lossy_conversion = 1")
    assert write_dataframe(frame, connection, "narrow").rows == 10


def test_a_failing_view_lands_nothing_and_is_named(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW picky ENGINE = MergeTree ORDER BY country AS "
        "SELECT country, throwIf(amount = 5000) AS failed FROM events"
    )
    with pytest.raises(DataError, match="picky"):
        write_dataframe(events(spark), connection, "events")
    assert connection.execute("SELECT count() FROM events").fetchall() == [(0,)]


def test_an_error_in_the_frame_itself_is_ours(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    frame = events(spark).selectExpr(
        "day",
        "country",
        "if(amount = 77, raise_error('broken input'), amount) AS amount",
        "price",
        "at",
    )
    with pytest.raises(ExecutorFailed, match="broken input"):
        write_dataframe(
            frame.selectExpr("day", "country", "bigint(amount) AS amount", "price", "at"),
            connection,
            "events",
        )


def test_other_modes_and_warehouses_are_refused(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    with pytest.raises(NotSupportedError, match="TRUNCATE"):
        write_dataframe(events(spark), connection, "events", mode="overwrite")
    with pytest.raises(UnknownTable):
        write_dataframe(events(spark), connection, "nothing")
    with olapdb.connect() as memory:
        memory.execute("CREATE TABLE events (a Int64) ENGINE = MergeTree ORDER BY a")
        with pytest.raises(NotSupportedError, match="in-memory"):
            write_dataframe(spark.range(1).toDF("a"), memory, "events")


def test_backfill_and_reconcile_over_spark(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    write_dataframe(events(spark), connection, "events")
    connection.execute(VIEW)
    before = commits(connection)
    rows = connection.execute("SYSTEM BACKFILL VIEW totals_mv SETTINGS engine = 'spark'").fetchall()
    assert sorted(row[1] for row in rows) == ["202401", "202402", "202403"]
    assert commits(connection) == before + 3, "each chunk is published by itself"
    assert connection.execute(FROM_VIEW).fetchall() == connection.execute(FROM_SOURCE).fetchall()
    verdicts = connection.execute(
        "SYSTEM RECONCILE VIEW totals_mv SETTINGS engine = 'spark'"
    ).fetchall()
    assert len(verdicts) == 3
    assert all("equal" in row for row in verdicts)


def test_a_failing_chunk_stops_no_other(spark: SparkSession, connection: olapdb.Connection) -> None:
    write_dataframe(events(spark), connection, "events")
    connection.execute(
        "CREATE TABLE picky (day Date, failed UInt8) ENGINE = MergeTree ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW picky_mv TO picky AS SELECT day, "
        "throwIf(day = toDate('2024-02-03'), 'a bad day') AS failed FROM events"
    )
    with pytest.raises(BackfillIncomplete, match="a bad day") as raised:
        connection.execute("SYSTEM BACKFILL VIEW picky_mv SETTINGS engine = 'spark'")
    status = {row.partition: row.status for row in raised.value.rows}
    assert status == {"202401": "published", "202402": "failed", "202403": "published"}
    (job,) = connection.execute("SELECT state, executor FROM system.view_jobs").fetchall()
    assert job[:] == ("failed", "spark")


def test_a_frame_reads_the_snapshot_of_its_making(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    write_dataframe(events(spark), connection, "events")
    frame = read_table(spark, connection, "events")
    assert dict(frame.dtypes)["at"] == "timestamp"
    assert frame.selectExpr("count(*)", "sum(amount)", "count(price)").collect()[0][:] == (
        ROWS,
        ROWS * (ROWS - 1) // 2,
        ROWS - ROWS // 5,
    )
    connection.insert(
        "events",
        pa.table(
            {
                "day": pa.array([19800], pa.int32()).cast(pa.date32()),
                "country": ["inline"],
                "amount": [-1],
                "price": [None],
                "at": pa.array([1], pa.timestamp("s", "UTC")),
            }
        ),
    )
    assert frame.count() == ROWS, "a frame reads the snapshot of its making"
    mixed = read_table(spark, connection, "events", columns=["amount", "country", "at"])
    assert mixed.columns == ["amount", "country", "at"]
    assert mixed.count() == ROWS + 1
    assert mixed.where("country = 'inline'").selectExpr("amount", "unix_seconds(at)").collect()[0][
        :
    ] == (-1, 1)


def test_types_that_spark_lacks_widen(spark: SparkSession, connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE wide (a UInt8, b UInt64, c UUID, d Array(UInt32), e Nullable(UInt16), "
        "f DateTime64(3)) ENGINE = MergeTree ORDER BY a"
    )
    connection.execute(
        "INSERT INTO wide VALUES (255, 18446744073709551615, "
        "'00112233-4455-6677-8899-aabbccddeeff', [4294967295], NULL, '2024-01-01 00:00:00.125')"
    )
    row = read_table(spark, connection, "wide").collect()[0]
    assert (row.a, int(row.b), row.d, row.e) == (255, 2**64 - 1, [2**32 - 1], None)
    assert bytes(row.c).hex() == "00112233445566778899aabbccddeeff"
    connection.execute("CREATE TABLE fine (a DateTime64(9)) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(NotSupportedError, match="nanoseconds"):
        read_table(spark, connection, "fine")


def test_an_empty_table_is_an_empty_frame(
    spark: SparkSession, connection: olapdb.Connection
) -> None:
    assert read_table(spark, connection, "events").count() == 0
