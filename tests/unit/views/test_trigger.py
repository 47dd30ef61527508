"""The effect of an INSERT on the views of its table."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ThrowIfNonZero
from tests.unit.views.warehouse import DIRECT, READ, add, dicts, make, rows

pytestmark = pytest.mark.feature("views")


def test_a_view_sees_each_insert_alone_and_its_target_merges(connection: Connection) -> None:
    make(connection)
    add(connection, ("2024-01-01", "a", 1, 10), ("2024-01-01", "a", 2, 20))
    add(connection, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 3, 7))
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert [r[2:5] for r in rows(connection, READ)] == [(3, 35, 2), (1, 7, 1)]
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_blocks_are_cut_at_max_insert_block_size(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (v UInt64) ENGINE = MergeTree ORDER BY v")
    connection.execute("CREATE TABLE t (n UInt64, s UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute("CREATE MATERIALIZED VIEW m TO t AS SELECT count() AS n, sum(v) AS s FROM s")
    connection.execute(
        "INSERT INTO s SETTINGS max_insert_block_size = 2 VALUES (1), (2), (3), (4), (5)"
    )
    assert sorted(rows(connection, "SELECT n, s FROM t")) == [(1, 5), (2, 3), (2, 7)]


def test_a_partitioned_source_does_not_cut_what_the_view_sees(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE s (p UInt8, v UInt64) ENGINE = MergeTree PARTITION BY p ORDER BY v"
    )
    connection.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute("CREATE MATERIALIZED VIEW m TO t AS SELECT count() AS n FROM s")
    connection.execute("INSERT INTO s SELECT number % 3, number FROM numbers(9)")
    assert rows(connection, "SELECT n FROM t") == [(9,)]


def test_a_failing_view_fails_the_whole_insert_and_is_named(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k")
    for name in "abc":
        connection.execute(f"CREATE TABLE t{name} (k UInt64) ENGINE = MergeTree ORDER BY k")
        guard = "throwIf(k = 13, 'boom') + k" if name == "b" else "k"
        connection.execute(
            f"CREATE MATERIALIZED VIEW v{name} TO t{name} AS SELECT {guard} AS k FROM s"
        )
    connection.execute("INSERT INTO s VALUES (1)")
    with pytest.raises(ThrowIfNonZero, match=r"while pushing to view default\.vb"):
        connection.execute(
            "INSERT INTO s SETTINGS max_insert_block_size = 1 VALUES (9), (13), (14)"
        )
    for table in ("s", "ta", "tb", "tc"):
        assert rows(connection, f"SELECT k FROM {table}") == [(1,)]


def test_views_cascade_in_the_same_commit(connection: Connection) -> None:
    connection.execute("CREATE TABLE c0 (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE c1 (k UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY k")
    connection.execute("CREATE TABLE c2 (g UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY g")
    connection.execute(
        "CREATE MATERIALIZED VIEW m1 TO c1 AS SELECT k, count() AS n FROM c0 GROUP BY k"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW m2 TO c2 AS SELECT k % 2 AS g, sum(n) AS n FROM c1 GROUP BY g"
    )
    connection.execute("INSERT INTO c0 SELECT number % 4 FROM numbers(8)")
    connection.execute("INSERT INTO c0 VALUES (1)")
    assert rows(connection, "SELECT g, sum(n) FROM c2 GROUP BY g ORDER BY g") == [(0, 4), (1, 5)]
    commits = rows(connection, "SELECT kind FROM system.snapshots WHERE kind = 'INSERT'")
    assert len(commits) == 2


def test_the_view_sees_the_block_before_optimize_on_insert(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (k UInt64, v UInt64) ENGINE = SummingMergeTree ORDER BY k")
    connection.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute("CREATE MATERIALIZED VIEW m TO t AS SELECT count() AS n FROM s")
    connection.execute("INSERT INTO s VALUES (1, 1), (1, 2), (1, 3)")
    assert rows(connection, "SELECT k, v FROM s") == [(1, 6)]
    assert rows(connection, "SELECT n FROM t") == [(3,)]


def test_a_null_source_fires_and_stores_nothing(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (v UInt64) ENGINE = Null")
    connection.execute("CREATE TABLE t (v UInt64) ENGINE = MergeTree ORDER BY v")
    connection.execute("CREATE MATERIALIZED VIEW m TO t AS SELECT v + 1 AS v FROM s")
    connection.execute("INSERT INTO s VALUES (1), (2)")
    assert rows(connection, "SELECT v FROM t ORDER BY v") == [(2,), (3,)]
    status = dicts(connection, "SELECT * FROM system.views")[0]
    assert status["verdict"] == "unproven"


def test_a_join_reads_the_dimension_as_it_is(connection: Connection) -> None:
    connection.execute("CREATE TABLE d (k UInt64, name String) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE f (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE TABLE t (k UInt64, name String, v UInt64) ENGINE = MergeTree ORDER BY k"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO t AS"
        " SELECT f.k AS k, d.name AS name, f.v AS v FROM f LEFT JOIN d ON f.k = d.k"
    )
    connection.execute("INSERT INTO d VALUES (1, 'one')")
    connection.execute("INSERT INTO f VALUES (1, 10), (2, 20)")
    assert rows(connection, "SELECT k, name, v FROM t ORDER BY k") == [(1, "one", 10), (2, "", 20)]
    connection.execute("INSERT INTO d VALUES (2, 'two')")
    status = dicts(connection, "SELECT * FROM system.views")[0]
    assert status["verdict"] == "stale"
    causes = rows(connection, "SELECT cause, partition_id FROM system.view_invalidations")
    assert causes == [("DIMENSION CHANGE", "all")]
    connection.execute("SYSTEM REPLAY VIEW m STALE")
    assert rows(connection, "SELECT k, name, v FROM t ORDER BY k") == [
        (1, "one", 10),
        (2, "two", 20),
    ]
    assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]


def test_a_token_names_the_whole_insert(connection: Connection) -> None:
    make(connection)
    data = pa.table(
        {"day": pa.array([19723], pa.date32()), "kind": ["a"], "user": [1], "amount": [5]}
    )
    assert connection.insert("events", data, token="one") == 1
    assert connection.insert("events", data, token="one") == 0
    assert rows(connection, "SELECT count() FROM events") == [(1,)]
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_a_view_created_while_inserts_run_misses_and_doubles_nothing(
    connection: Connection,
) -> None:
    make(connection, view=False)
    stop = threading.Event()
    failures: list[olapdb.Error] = []

    def insert() -> None:
        try:
            while not stop.is_set():
                add(connection, ("2024-01-01", "a", 1, 1), ("2024-02-01", "b", 2, 3))
        except olapdb.Error as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=insert) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        while rows(connection, "SELECT count() FROM events")[0][0] < 20:
            pass
        connection.execute(
            "CREATE MATERIALIZED VIEW late TO daily AS SELECT day, kind, count() AS events,"
            " sum(amount) AS total, uniqExactState(user) AS users, avgState(amount) AS mean"
            " FROM events GROUP BY day, kind"
        )
        connection.execute("SYSTEM BACKFILL VIEW late")
        while rows(connection, "SELECT count() FROM events")[0][0] < 60:
            pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    connection.execute("SYSTEM BACKFILL VIEW late")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_a_block_of_which_nothing_qualifies_is_covered(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW m TO t AS SELECT k FROM s WHERE k > 10")
    connection.execute("INSERT INTO s VALUES (1)")
    assert rows(connection, "SELECT count() FROM t") == [(0,)]
    status = dicts(connection, "SELECT * FROM system.views")[0]
    assert (status["gap_rows"], status["covered_rows"]) == (0, 1)
