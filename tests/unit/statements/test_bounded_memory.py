"""Memory tables with max_rows_to_keep: what an INSERT removes, and what always stays."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("engines", "insert")


def test_the_block_of_the_last_insert_stays_whole() -> None:
    """ClickHouse keeps all of it or nothing, from one run to the next."""
    with olapdb.connect(":memory:") as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (i UInt32) ENGINE = Memory SETTINGS max_rows_to_keep = 10")
        for first, rows in ((0, 4), (10, 4), (100, 15)):
            cursor.execute(f"INSERT INTO t SELECT number + {first} FROM numbers({rows})")
        cursor.execute("SELECT count(), min(i) FROM t")
        assert cursor.fetchall() == [(15, 100)]
