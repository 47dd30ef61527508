"""STATISTICS of columns are stored, and shown by SHOW CREATE TABLE."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb

pytestmark = pytest.mark.feature("schema")


def test_statistics_are_kept(tmp_path: Path) -> None:
    connection = olapdb.connect(tmp_path / "warehouse")
    connection.execute(
        "CREATE TABLE t (a Int64 STATISTICS(tdigest, uniq), b Float64) ENGINE = MergeTree ORDER BY a"
    )
    connection.execute("ALTER TABLE t MODIFY STATISTICS b TYPE minmax, ADD COLUMN c UInt8")
    connection.close()
    connection = olapdb.connect(tmp_path / "warehouse")
    shown = connection.execute("SHOW CREATE TABLE t").fetchall()[0][0]
    assert "`a` Int64 STATISTICS(tdigest, uniq)," in shown
    assert "`b` Float64 STATISTICS(minmax)," in shown
    connection.execute("DROP TABLE t")
    connection.execute(shown)
    assert connection.execute("SHOW CREATE TABLE t").fetchall()[0][0] == shown


def test_a_column_keeps_its_statistics_when_its_type_changes() -> None:
    connection = olapdb.connect()
    connection.execute(
        "CREATE TABLE t (a Int64, b UInt8 STATISTICS(uniq)) ENGINE = MergeTree ORDER BY a"
    )
    connection.execute("ALTER TABLE t MODIFY COLUMN b UInt16")
    shown = connection.execute("SHOW CREATE TABLE t").fetchall()[0][0]
    assert "`b` UInt16 STATISTICS(uniq)" in shown
