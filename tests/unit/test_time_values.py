"""Time and Time64 as users get them: timedelta in Python, durations in Arrow."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.errors import CannotConvertType, IllegalColumn, UnknownType, ValueOutOfBound

pytestmark = pytest.mark.feature("types")

_SELECT = (
    "SELECT toTime(-5) AS a, toTime64(-5.25, 2) AS b, toTime64('1:00:00.123456789', 9) AS c,"
    " [toTime(5)] AS d, CAST(NULL AS Nullable(Time)) AS e, map('k', toTime64('100:00:00', 6)) AS f,"
    " toTime64(1, 0) AS g"
)


def test_python_has_timedeltas() -> None:
    row = olapdb.connect(":memory:").execute(_SELECT).fetchone()
    assert row == (
        timedelta(seconds=-5),
        timedelta(seconds=-5.25),
        timedelta(hours=1, microseconds=123456),
        [timedelta(seconds=5)],
        None,
        {"k": timedelta(hours=100)},
        timedelta(seconds=1),
    )


def test_arrow_has_durations_in_the_coarsest_unit_that_holds_the_precision() -> None:
    table = olapdb.connect(":memory:").execute(_SELECT).fetch_arrow_table()
    assert table.schema.types == [
        pa.duration("s"),
        pa.duration("ms"),
        pa.duration("ns"),
        pa.list_(pa.duration("s")),
        pa.duration("s"),
        pa.map_(pa.string(), pa.duration("us")),
        pa.duration("s"),
    ]
    assert table["b"].cast(pa.int64()).to_pylist() == [-5250]
    assert table["c"].cast(pa.int64()).to_pylist() == [3_600_123_456_789]


def test_inserted_spans_come_back() -> None:
    """Timedeltas, times of day, durations and pandas' nanoseconds are stored; Time64 in lists."""
    connection = olapdb.connect(":memory:")
    connection.execute(
        "CREATE TABLE t (a Time, b Time64(6), c Array(Time64(3)), m Map(String, Time64(3)))"
        " ENGINE = MergeTree ORDER BY a"
    )
    spans = [timedelta(hours=-5), timedelta(seconds=7)]
    connection.insert(
        "t",
        pa.table(
            {
                "a": pa.array(spans, pa.duration("ns")),
                "b": pa.array([1, 2], pa.time64("us")),
                "c": pa.array([spans, []], pa.list_(pa.duration("ms"))),
                "m": pa.array([[("k", 5)], []], pa.map_(pa.string(), pa.int32())).cast(
                    pa.map_(pa.string(), pa.time32("ms"))
                ),
            }
        ),
    )
    given = {"a": [timedelta(days=1)], "b": [time(1, 2, 3, 4)], "c": [[timedelta(0)]], "m": [{}]}
    connection.insert("t", given)
    rows = connection.execute("SELECT * FROM t ORDER BY a").fetchall()
    assert rows == [
        (spans[0], timedelta(microseconds=1), spans, {"k": timedelta(milliseconds=5)}),
        (spans[1], timedelta(microseconds=2), [], {}),
        (timedelta(days=1), timedelta(hours=1, minutes=2, seconds=3.000004), [timedelta(0)], {}),
    ]
    found = connection.execute("SELECT count() FROM t WHERE a = ? OR b = ?", [spans[0], time(0)])
    assert found.fetchone() == (1,)


@pytest.mark.parametrize(
    ("values", "row"),
    [
        (pa.array([1, 3_600_000], pa.duration("s")), 1),
        (pa.array([1, -3_600_000_000], pa.duration("ms")), 1),
        (pa.array([500], pa.duration("ms")), 0),
    ],
)
def test_durations_that_a_time_does_not_hold_are_refused(values: pa.Array, row: int) -> None:
    connection = olapdb.connect(":memory:")
    connection.execute("CREATE TABLE t (a Time) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(CannotConvertType):
        connection.insert("t", pa.table({"a": values}))
    assert connection.execute("SELECT count() FROM t").fetchone() == (0,)


@pytest.mark.parametrize("data_type", ["Time", "Time64(3)"])
def test_conditions_on_times_skip_parts(data_type: str) -> None:
    """The bounds of a key of times prune parts."""
    connection = olapdb.connect(":memory:")
    connection.execute(f"CREATE TABLE t (k Int32, a {data_type}) ENGINE = MergeTree ORDER BY a")
    for hour in range(4):
        connection.execute(f"INSERT INTO t VALUES ({hour}, '0{hour}:00:00')")
    for condition in ("a >= '02:30:00'", "a = '03:00:00'", "a IN ('03:00:00')"):
        cursor = connection.execute(f"SELECT k FROM t WHERE {condition}")
        assert cursor.fetchall() == [(3,)]
        assert cursor.statistics.parts_read == 1


def test_arrow_files_have_times_of_day_and_other_files_refuse_times() -> None:
    connection = olapdb.connect(":memory:")
    sql = "SELECT toTime(5) AS a, [toTime64(1.5, 2)] AS b, toTime64(2, 9) AS c"
    data = connection.execute(sql).fetch_text("Arrow")
    table = pa.ipc.open_file(data).read_all()
    element = pa.field("item", pa.time32("ms"), nullable=False)
    assert table.schema.types == [pa.time32("s"), pa.list_(element), pa.time64("ns")]
    assert table.to_pylist() == [
        {"a": time(0, 0, 5), "b": [time(0, 0, 1, 500_000)], "c": time(0, 0, 2)}
    ]
    for wrong in ("toTime(86400)", "toTime64(-1, 3)"):
        with pytest.raises(ValueOutOfBound):
            connection.execute(f"SELECT {wrong}").fetch_text("ArrowStream")
    for name, kind in (("Parquet", UnknownType), ("ORC", IllegalColumn)):
        with pytest.raises(kind):
            connection.execute("SELECT [toTime(1)]").fetch_text(name)


def test_arrow_files_with_times_are_read(tmp_path: Path) -> None:
    """Times of day are Time64, durations intervals."""
    table = pa.table(
        {
            "t": pa.array([[5]], pa.list_(pa.int32())).cast(pa.list_(pa.time32("s"))),
            "d": pa.array([7], pa.duration("ms")),
        }
    )
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    connection = olapdb.connect(":memory:", settings={"user_files_path": str(tmp_path)})
    row = connection.execute("SELECT t, toTypeName(d), toInt64(d) FROM file('t.arrow')").fetchone()
    assert row == ([timedelta(seconds=5)], "Nullable(IntervalMillisecond)", 7)
