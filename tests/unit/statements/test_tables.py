"""Statements about tables: which ones are refused, and the result of those about several tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import olapdb
from olapdb.runtime.activity import RunningMerge

pytestmark = pytest.mark.feature("schema", "changes")


def refused(connection: olapdb.Connection, statement: str) -> tuple[str, str]:
    """Run a statement that must fail; return the error's name and hint."""
    with pytest.raises(olapdb.Error) as raised:
        connection.execute(statement)
    return raised.value.name, raised.value.hint


def rows(connection: olapdb.Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def test_detached_tables_are_found_by_none_and_stay(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        for statement in (
            "CREATE DATABASE d",
            "CREATE TABLE d.t (k UInt64) ENGINE = MergeTree ORDER BY k",
            "INSERT INTO d.t VALUES (1)",
            "CREATE TABLE d.s AS d.t",
            "CREATE MATERIALIZED VIEW d.v ENGINE = MergeTree ORDER BY k AS SELECT k FROM d.s",
        ):
            connection.execute(statement)
        assert refused(connection, "DETACH TABLE d.s")[0] == "HAVE_DEPENDENT_OBJECTS"
        assert refused(connection, "DETACH DATABASE d")[0] == "NOT_IMPLEMENTED"
        connection.execute("DETACH TABLE d.t PERMANENTLY")
        assert refused(connection, "CREATE TABLE d.t AS d.s")[0] == "TABLE_ALREADY_EXISTS"
        connection.execute("RENAME DATABASE d TO e")
    with olapdb.connect(tmp_path / "w") as connection:
        detached = "SELECT database, table, is_permanently FROM system.detached_tables"
        assert rows(connection, detached) == [("e", "t", 1)]
        assert refused(connection, "SELECT * FROM e.t")[0] == "UNKNOWN_TABLE"
        connection.execute("ATTACH TABLE e.t")
        assert rows(connection, "SELECT * FROM e.t") == [(1,)]
        connection.execute("DETACH TABLE e.t")
        connection.execute("DROP DATABASE e")
        assert rows(connection, detached) == []


def test_a_dropped_database_is_emptied_and_its_tables_come_back(
    connection: olapdb.Connection,
) -> None:
    connection.execute("CREATE DATABASE d")
    connection.execute("CREATE TABLE d.t (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO d.t VALUES (1)")
    connection.execute("TRUNCATE DATABASE d")
    assert rows(connection, "SHOW TABLES FROM d") == []
    connection.execute("UNDROP TABLE d.t")
    assert rows(connection, "SELECT k FROM d.t") == [(1,)]


def test_views_know_that_all_tables_were_truncated(connection: olapdb.Connection) -> None:
    connection.execute("CREATE DATABASE d")
    connection.execute("USE d")
    connection.execute("CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW v TO t AS SELECT k FROM s")
    connection.execute("INSERT INTO s VALUES (1)")
    connection.execute("TRUNCATE ALL TABLES FROM d LIKE 's'")
    assert rows(connection, "SELECT stale_slices FROM system.views") == [(1,)]
    connection.execute("TRUNCATE ALL TABLES FROM d")
    connection.execute("INSERT INTO s VALUES (2)")
    assert rows(connection, "SELECT k FROM t") == [(2,)]


def test_all_tables_are_truncated_by_one_commit(connection: olapdb.Connection) -> None:
    for text in (
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE s (k UInt64, j UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE m (k UInt64, j UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE joined (j UInt64, name String) ENGINE = MergeTree ORDER BY j",
        "CREATE TABLE elsewhere (k UInt64) ENGINE = Memory",
        "CREATE MATERIALIZED VIEW v TO m AS SELECT k, j FROM s",
        "CREATE MATERIALIZED VIEW w TO t AS SELECT k FROM m JOIN joined ON m.j = joined.j",
        "CREATE MATERIALIZED VIEW x TO default.o AS SELECT k FROM m",
    ):
        if " x TO" in text:
            connection.execute("CREATE TABLE default.o (k UInt64) ENGINE = MergeTree ORDER BY k")
        connection.execute(text)
    connection.execute("INSERT INTO joined VALUES (1, 'a')")
    connection.execute("INSERT INTO s VALUES (1, 1), (2, 1)")
    connection.execute("INSERT INTO elsewhere VALUES (1)")
    assert rows(connection, "SELECT count() FROM t") == [(2,)]
    before = rows(connection, "SELECT max(number) FROM system.snapshots")[0][0]
    assert connection.execute("TRUNCATE ALL TABLES FROM d").rowcount == 8
    assert rows(connection, "SELECT max(number) FROM system.snapshots") == [(before + 1,)]
    # A view with an empty target has no slice that could be stale.
    stale = "SELECT name, stale_slices FROM system.views ORDER BY name"
    assert rows(connection, stale) == [("v", 0), ("w", 0), ("x", 1)]
    connection.execute("SYSTEM REPLAY VIEW x STALE")
    connection.execute("INSERT INTO joined VALUES (7, 'b')")
    connection.execute("INSERT INTO s VALUES (5, 7)")
    for name in ("v", "w", "x"):
        assert rows(connection, f"SYSTEM RECONCILE VIEW {name}")
    verdicts = "SELECT name, verdict FROM system.views ORDER BY name"
    assert rows(connection, verdicts) == [("v", "proven"), ("w", "proven"), ("x", "proven")]
    assert rows(connection, "SELECT k FROM t") == [(5,)]


def test_what_may_not_be_truncated_is_named_before_anything_is(
    connection: olapdb.Connection,
) -> None:
    connection.execute("CREATE TABLE a (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE n1 (k UInt64) ENGINE = Null")
    connection.execute("CREATE TABLE n2 (k UInt64) ENGINE = Null")
    connection.execute("INSERT INTO a VALUES (1)")
    with pytest.raises(olapdb.NotSupportedError, match=r"n1 is a Null table.*n2 is a Null table"):
        connection.execute("TRUNCATE ALL TABLES FROM default")
    assert rows(connection, "SELECT k FROM a") == [(1,)]
    with pytest.raises(olapdb.NotSupportedError, match="system"):
        connection.execute("TRUNCATE ALL TABLES FROM system")
    connection.execute("TRUNCATE ALL TABLES FROM default NOT LIKE 'n%'")
    assert rows(connection, "SELECT k FROM a") == []


def test_a_cleared_index_is_gone_from_the_files_of_its_partition(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute(
            "CREATE TABLE t (k UInt64, p UInt8, INDEX i k TYPE minmax) ENGINE = MergeTree"
            " PARTITION BY p ORDER BY tuple()"
        )
        connection.execute(
            "INSERT INTO t SELECT number, number % 2 FROM numbers(10) SETTINGS inline_bytes_max = 0"
        )
        assert _indexed(connection, tmp_path) == {"0": True, "1": True}
        connection.execute("ALTER TABLE t CLEAR INDEX i IN PARTITION 1")
        assert _indexed(connection, tmp_path) == {"0": True, "1": False}
        assert rows(connection, "SELECT k FROM t WHERE k = 3") == [(3,)]
        connection.execute("ALTER TABLE t MATERIALIZE INDEX i IN PARTITION 1")
        assert _indexed(connection, tmp_path) == {"0": True, "1": True}


def _indexed(connection: olapdb.Connection, folder: Path) -> dict[str, bool]:
    """Return by partition whether its file holds a skip index."""
    found = rows(connection, "SELECT partition_id, path FROM system.parts WHERE rows > 0")
    return {
        str(partition): any(
            b"index" in key for key in pq.read_metadata(folder / str(path)).metadata
        )
        for partition, path in found
    }


def test_a_view_of_where_rows_lie_is_not_called_provable(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k")
    select = "AS SELECT k, _part AS p FROM s"
    connection.execute(f"CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY k {select}")
    assert "_part" in str(rows(connection, "SELECT reason FROM system.views WHERE name = 'v'"))
    name, _ = refused(
        connection,
        f"CREATE MATERIALIZED VIEW w ENGINE = ReplacingMergeTree ORDER BY (k, p) {select}",
    )
    assert name == "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"


def test_a_nested_column_of_older_parts_is_as_long_as_its_neighbours(
    connection: olapdb.Connection,
) -> None:
    connection.execute("CREATE TABLE t (k UInt64, n Nested(a UInt8)) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO t VALUES (1, [1, 2]), (2, [])")
    connection.execute("ALTER TABLE t ADD COLUMN n.b Array(Nullable(String)) FIRST")
    connection.execute("INSERT INTO t (k, `n.b`) VALUES (3, ['x'])")
    wanted = [([None, None], 1, [1, 2]), ([], 2, []), (["x"], 3, [0])]
    assert rows(connection, "SELECT * FROM t ORDER BY k") == wanted
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT * FROM t ORDER BY k") == wanted
    assert rows(connection, "SELECT k, n.b FROM t ARRAY JOIN n ORDER BY ALL") == [
        (1, None),
        (1, None),
        (3, "x"),
    ]


def test_what_a_nested_cannot_be_is_refused(connection: olapdb.Connection) -> None:
    statement = "CREATE TABLE t (k UInt64, n Nested(a UInt8) DEFAULT [1]) ENGINE = Memory"
    assert refused(connection, statement)[0] == "NOT_IMPLEMENTED"


def test_describe_lists_virtual_columns(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (k UInt64, _part UInt8) ENGINE = MergeTree ORDER BY k")
    found = rows(connection, "DESCRIBE t SETTINGS describe_include_virtual_columns = 1")
    assert [(row[0], row[-1]) for row in found] == [
        ("k", 0),
        ("_part", 0),
        ("_partition_id", 1),
        ("_block_number", 1),
        ("_part_offset", 1),
        ("_database", 1),
        ("_table", 1),
    ]
    connection.execute("CREATE TABLE p (k UInt64) ENGINE = MergeTree PARTITION BY k ORDER BY k")
    found = rows(connection, "DESCRIBE p SETTINGS describe_include_virtual_columns = 1")
    assert ("_partition_value", "Tuple(UInt64)") in [row[:2] for row in found]


def test_show_merges_lists_those_that_run(connection: olapdb.Connection) -> None:
    for name in ("t", "other"):
        connection.execute(f"CREATE TABLE {name} (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO t SELECT number FROM numbers(10)")
    assert rows(connection, "SHOW MERGES") == []
    activity = connection._session.engine.services.activity
    found = connection._session.snapshot().find("default", "t")
    assert found is not None
    merge = RunningMerge(found.id, "all", ("all_1_1_0", "all_2_2_0"), 20, 2048)
    with activity.merging(merge):
        ((table, database, left, elapsed, progress, mutation, size, _),) = rows(
            connection, "SHOW MERGES LIKE 't'"
        )
        assert (table, database, left, mutation, size) == ("t", "default", None, 0, "2.00 KiB")
        assert elapsed >= 0
        assert progress != progress  # NaN: the progress is unknown
        assert rows(connection, "SHOW MERGES NOT LIKE 't'") == []
    assert rows(connection, "SHOW MERGES") == []


def test_grants_are_those_of_the_one_user(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as opened:
        assert rows(opened, "SHOW GRANTS") == [("GRANT ALL ON *.* TO default",)]
        assert rows(opened, "SHOW GRANTS FOR default") == rows(opened, "SHOW GRANTS")
        assert refused(opened, "SHOW GRANTS FOR somebody")[0] == "UNKNOWN_ROLE"
    with olapdb.connect(str(tmp_path), read_only=True) as reader:
        assert rows(reader, "SHOW GRANTS") == [("GRANT SHOW, SELECT ON *.* TO default",)]


def test_show_lists_what_the_system_tables_hold(connection: olapdb.Connection) -> None:
    for statement, table in (("ENGINES", "table_engines"), ("FUNCTIONS", "functions")):
        shown = rows(connection, f"SHOW {statement}")
        assert sorted(map(str, shown)) == sorted(
            map(str, rows(connection, f"SELECT * FROM system.{table}"))
        )
    assert ("plus",) in [row[:1] for row in rows(connection, "SHOW FUNCTIONS LIKE 'pl%'")]
    cursor = connection.execute("SHOW PROCESSLIST")
    at = [column[0] for column in cursor.description or ()].index("query")
    assert [row[at] for row in cursor.fetchall()] == ["SHOW PROCESSLIST"]
    connection.execute("SET max_threads = 1")
    changed = rows(connection, "SHOW CHANGED SETTINGS")
    assert changed == [("max_threads", "MaxThreads", "1")]
    assert refused(connection, "SHOW SETTING nope")[0] == "UNKNOWN_SETTING"


def test_show_create_database(connection: olapdb.Connection) -> None:
    connection.execute("CREATE DATABASE d COMMENT 'it''s'")
    ((made,),) = rows(connection, "SHOW CREATE DATABASE d")
    connection.execute("DROP DATABASE d")
    connection.execute(str(made))
    assert rows(connection, "SHOW CREATE DATABASE d") == [(made,)]


def test_an_assumption_is_no_condition_of_a_target(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE s (k UInt64, v Int64) ENGINE = MergeTree ORDER BY k")
    target = "(k UInt64, n Int64, CONSTRAINT c {} n > 10) ENGINE = SummingMergeTree ORDER BY k"
    view = "CREATE MATERIALIZED VIEW v{0} TO t{0} AS SELECT k, sum(v) AS n FROM s GROUP BY k"
    connection.execute(f"CREATE TABLE t1 {target.format('ASSUME')}")
    connection.execute(view.format(1))
    connection.execute(f"CREATE TABLE t2 {target.format('CHECK')}")
    assert refused(connection, view.format(2))[0] != ""
    connection.execute("INSERT INTO s VALUES (1, 5)")
    assert rows(connection, "SELECT * FROM t1") == [(1, 5)]
