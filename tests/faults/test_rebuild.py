"""A lost catalog comes back from the footers: tables and rows, each row once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, CannotOpenWarehouse
from olapdb.transaction.check import check_database


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With two merges and a DELETE whose old parts are still there."""
    folder = tmp_path / "warehouse"
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE DATABASE other")
        connection.execute(
            "CREATE TABLE t (d Date, a UInt32, s LowCardinality(String) DEFAULT 'x') "
            "ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY a"
        )
        connection.execute(
            "CREATE TABLE other.sums (k UInt8, n SimpleAggregateFunction(sum, UInt64), "
            "u AggregateFunction(uniq, UInt32)) ENGINE = AggregatingMergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO other.sums AS"
            " SELECT a % 3 AS k, count() AS n, uniqState(a) AS u FROM t GROUP BY k"
        )
        for month in (1, 2, 3):
            connection.execute(
                f"INSERT INTO t (d, a) SELECT '2024-0{month}-01', number FROM numbers(100)"
            )
            connection.execute(
                f"INSERT INTO t (d, a) SELECT '2024-0{month}-02', number + 100 FROM numbers(100)"
            )
        connection.execute("OPTIMIZE TABLE t FINAL")
        connection.execute("DELETE FROM t WHERE a = 7")
        connection.execute("OPTIMIZE TABLE other.sums FINAL")
        (folder / "before.txt").write_text(str(content(connection)))
    return folder


def content(connection: Connection) -> list[tuple[object, ...]]:
    return [
        *connection.execute(
            "SELECT toYYYYMM(d) AS m, count(), sum(a), uniqExact(a), any(s) FROM t GROUP BY m ORDER BY m"
        ).fetchall(),
        *connection.execute(
            "SELECT k, sum(n), uniqMerge(u) FROM other.sums GROUP BY k ORDER BY k"
        ).fetchall(),
    ]


def lose_catalog(folder: Path) -> None:
    for file in folder.glob("catalog.*"):
        if file.is_file():
            file.unlink()


def test_tables_and_rows_come_back(folder: Path) -> None:
    lose_catalog(folder)
    report = olapdb.rebuild_catalog(folder)
    assert report.tables == ("default.t", "other.sums")
    assert report.rows == 3 * 199 + 3
    assert report.superseded > 0
    assert (report.unreadable, report.renamed) == ((), ())
    with olapdb.connect(str(folder)) as connection:
        assert str(content(connection)) == (folder / "before.txt").read_text()
        assert connection.execute("SELECT count() FROM system.views").fetchall() == [(0,)]
        services = connection.database.services
        problems = list(check_database(services.catalog, services.store))
        assert all("referred to by nothing" in one for one in problems), problems


def test_a_view_is_made_again_and_adopts_what_it_had_made(folder: Path) -> None:
    lose_catalog(folder)
    olapdb.rebuild_catalog(folder)
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        # Rows left t behind the target's back before: the target is wrong, and ADOPT says so.
        connection.execute(
            "INSERT INTO t (d, a) VALUES ('2024-01-01', 7), ('2024-02-01', 7), ('2024-03-01', 7)"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO other.sums AS"
            " SELECT a % 3 AS k, count() AS n, uniqState(a) AS u FROM t GROUP BY k"
        )
        assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("bypassed",)]
        connection.execute("SYSTEM ADOPT VIEW v")
        assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("proven",)]


def test_damaged_files_are_named_and_left_out(folder: Path) -> None:
    lose_catalog(folder)
    files = sorted((folder / "data").rglob("*.parquet"), key=lambda file: file.stat().st_size)
    data = files[-1].read_bytes()
    files[-1].write_bytes(data[: len(data) // 2])
    (folder / "data" / "torn.parquet.tmp").write_bytes(b"x")
    report = olapdb.rebuild_catalog(folder)
    assert len(report.unreadable) == 1
    assert files[-1].name in report.unreadable[0]
    with olapdb.connect(str(folder)) as connection:
        assert connection.execute("SELECT count() > 0 FROM t").fetchall() == [(True,)]


def test_a_catalog_is_never_overwritten(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="has a catalog"):
        olapdb.rebuild_catalog(folder)
    with pytest.raises(CannotOpenWarehouse, match="no warehouse"):
        olapdb.rebuild_catalog(tmp_path)


def test_a_merge_that_never_came_to_be_doubles_nothing(folder: Path) -> None:
    """Its file stands for parts that another merge has joined with more since."""
    script = (
        "import sys, olapdb; from olapdb.transaction.points import kill_at;"
        " connection = olapdb.connect(sys.argv[1], settings={'inline_bytes_max': 0});"
        " connection.execute('SYSTEM STOP MERGES');"
        " connection.execute(\"INSERT INTO t (d, a) SELECT '2024-01-03', number FROM numbers(9)\");"
        " kill_at('catalog.before_commit'); connection.execute('OPTIMIZE TABLE t FINAL')"
    )
    died = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)
    assert died.returncode == -signal.SIGKILL
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("INSERT INTO t (d, a) SELECT '2024-01-04', number FROM numbers(5)")
        connection.execute("OPTIMIZE TABLE t FINAL")
        before = content(connection)
    lose_catalog(folder)
    olapdb.rebuild_catalog(folder)
    with olapdb.connect(str(folder), read_only=True) as connection:
        assert content(connection) == before
