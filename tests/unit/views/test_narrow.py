"""A replay or a reconciliation of a slice reads only source parts that can reach it, and agrees
with a full read."""

import pytest

pytestmark = [
    pytest.mark.warehouse(
        (
            "CREATE TABLE s (day Date, k UInt32, v Int64) ENGINE = MergeTree "
            "PARTITION BY toYYYYMM(day) ORDER BY day"
        ),
        merges=False,
    ),
    pytest.mark.feature("views"),
]


def fill(connection):
    connection.execute(
        "INSERT INTO s SELECT toDate('2024-01-01') + number % 90, number % 250, number "
        "FROM numbers(9000)"
    )


def replayed(connection, partition):
    rows = connection.execute(f"SYSTEM REPLAY VIEW v PARTITION {partition}").fetchall()
    (row,) = rows
    return row[1]


@pytest.mark.parametrize(
    ("columns", "partition_by", "select", "slice_", "reads"),
    [
        ("day Date", "toYYYYMM(day)", "SELECT day, count() AS n FROM s GROUP BY day", 202402, 2900),
        (
            "month UInt32",
            "month",
            "SELECT toYYYYMM(day) AS month, count() AS n FROM s GROUP BY month",
            202402,
            2900,
        ),
        ("day Date", "day", "SELECT day, count() AS n FROM s GROUP BY day", "'2024-02-03'", 2900),
        ("b UInt32", "b", "SELECT k % 7 AS b, count() AS n FROM s GROUP BY b", 3, 9000),
        # The key's type differs from the source's k, so no part can be excluded.
        ("k UInt8", "k", "SELECT k, count() AS n FROM s GROUP BY k", 44, 9000),
    ],
)
def test_a_slice_reads_the_parts_that_reach_it(
    connection, columns, partition_by, select, slice_, reads
):
    key = columns.split()[0]
    connection.execute(
        f"CREATE TABLE t ({columns}, n SimpleAggregateFunction(sum, UInt64)) "
        f"ENGINE = AggregatingMergeTree PARTITION BY {partition_by} ORDER BY {key} "
    )
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {select}")
    connection.execute("SET max_partitions_per_insert_block = 0")
    fill(connection)
    before = connection.execute("SELECT * FROM t ORDER BY ALL").fetchall()
    assert replayed(connection, slice_) == reads
    assert connection.execute("SELECT * FROM t FINAL ORDER BY ALL").fetchall() == before
    verdicts = connection.execute("SYSTEM RECONCILE VIEW v").fetch_arrow_table()
    assert set(verdicts.column("verdict").to_pylist()) == {"equal"}


def test_a_partition_reconciled_alone_still_finds_a_wrong_row(connection):
    connection.execute(
        "CREATE TABLE t (day Date, n SimpleAggregateFunction(sum, UInt64)) "
        "ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day) ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO t AS SELECT day, count() AS n FROM s GROUP BY day"
    )
    fill(connection)
    connection.execute("INSERT INTO t VALUES ('2024-02-03', 1)")
    rows = connection.execute("SYSTEM RECONCILE VIEW v PARTITION 202402").fetch_arrow_table()
    assert rows.column("verdict").to_pylist() == ["different"]
    assert rows.column("differing").to_pylist() == [1]
