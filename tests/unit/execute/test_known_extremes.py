"""min, max and count() over a whole table come from the bounds of its parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb

pytestmark = pytest.mark.feature("aggregates")

COLUMNS = ("n", "day", "moment", "fine", "maybe")


@pytest.fixture
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect(settings={"inline_bytes_max": 0}) as connected:
        connected.execute(
            "CREATE TABLE t (n Int32, day Date, moment DateTime('UTC'), fine DateTime64(3, 'UTC'), "
            "maybe Nullable(Int8), text String, real Float64) ENGINE = MergeTree ORDER BY n"
        )
        for start in (0, 5_000, -700):
            connected.execute(
                f"INSERT INTO t SELECT number + {start}, toDate('2024-01-01') + number % 90, "
                "toDateTime('2024-01-01 00:00:00', 'UTC') + number, "
                "toDateTime64('2024-01-01 00:00:00.125', 3, 'UTC') - number, "
                "if(number % 3 = 0, NULL, number % 100), toString(number), number / 7 "
                "FROM numbers(2000)"
            )
        yield connected


def query(columns: tuple[str, ...], form: str = "{}") -> str:
    ends = (f"{end}({form.format(column)})" for column in columns for end in ("min", "max"))
    return f"SELECT {', '.join(ends)}, count() FROM t"


def reads_bounds(connection: olapdb.Connection, sql: str) -> bool:
    shown = connection.execute(f"EXPLAIN ANALYZE {sql}").fetchall()
    return any("Bounds: the parts know" in line for (line,) in shown)


def check(connection: olapdb.Connection, columns: tuple[str, ...] = COLUMNS) -> None:
    assert reads_bounds(connection, query(columns))
    assert not reads_bounds(connection, query(columns, "materialize({})"))
    expected = connection.execute(query(columns, "materialize({})")).fetchall()
    assert connection.execute(query(columns)).fetchall() == expected


def test_bounds_of_all_parts(connection: olapdb.Connection) -> None:
    check(connection)


def test_rows_that_were_deleted_and_changed(connection: olapdb.Connection) -> None:
    connection.execute("DELETE FROM t WHERE n < -500 OR n > 6000")
    check(connection)
    connection.execute("ALTER TABLE t UPDATE maybe = 120 WHERE n = 100")
    check(connection)
    connection.execute("OPTIMIZE TABLE t FINAL")
    check(connection)
    connection.execute("ALTER TABLE t DELETE WHERE 1")
    assert connection.execute("SELECT min(n), max(day), count() FROM t").fetchall()[0][2] == 0


def test_only_nulls(connection: olapdb.Connection) -> None:
    connection.execute("ALTER TABLE t UPDATE maybe = NULL WHERE 1")
    check(connection)
    assert connection.execute("SELECT max(maybe) FROM t").fetchall() == [(None,)]


def test_columns_that_parts_lack_or_have_of_another_type_are_read(
    connection: olapdb.Connection,
) -> None:
    connection.execute("ALTER TABLE t ADD COLUMN late Int32 DEFAULT n * 2")
    check(connection, ("n", "day"))
    for column in ("late", "text", "real", "n + 1"):
        assert not reads_bounds(connection, f"SELECT max({column}) FROM t")
    assert connection.execute("SELECT min(late), max(late) FROM t").fetchall() == [(-1400, 13998)]
    connection.execute("ALTER TABLE t MODIFY COLUMN day DateTime('UTC')")
    expected = connection.execute("SELECT min(materialize(day)), max(materialize(day)) FROM t")
    assert connection.execute("SELECT min(day), max(day) FROM t").fetchall() == expected.fetchall()


@pytest.mark.parametrize("rest", ["WHERE n > 5", "GROUP BY n % 2", "WITH TOTALS", "PREWHERE n > 5"])
def test_other_queries_read_rows(connection: olapdb.Connection, rest: str) -> None:
    assert not reads_bounds(connection, f"SELECT min(n), max(n) FROM t {rest}")


def test_final_reads_rows_where_it_combines_them(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE r (k Int8, v Int32) ENGINE = ReplacingMergeTree ORDER BY k")
    connection.execute("INSERT INTO r VALUES (1, 50), (2, 7)")
    connection.execute("INSERT INTO r VALUES (1, 3)")
    assert connection.execute("SELECT max(v) FROM r").fetchall() == [(50,)]
    assert connection.execute("SELECT max(v) FROM r FINAL").fetchall() == [(7,)]
