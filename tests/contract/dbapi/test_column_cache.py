"""The cache of decoded columns, as users see it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb import Connection
from olapdb.config import tuning
from olapdb.errors import BadArguments
from olapdb.storage.column_cache import default_bytes_max, process_columns

pytestmark = pytest.mark.feature("storage")

FILL = "INSERT INTO t SELECT number, toString(number % 10) FROM numbers(1000)"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute(
            "CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a"
            " SETTINGS inline_bytes_max = 0, index_granularity = 100"
        )
        yield connection


def held(connection: Connection) -> list[tuple[object, ...]]:
    return list(
        connection.execute(
            "SELECT column, sum(cells), sum(rows) FROM system.uncompressed_cache"
            " WHERE database = 'default' AND table = 't' GROUP BY column ORDER BY column"
        ).fetchall()
    )


def counted(connection: Connection, table: str, name: str) -> int:
    key = "event" if table == "events" else "metric"
    rows = connection.execute(f"SELECT value FROM system.{table} WHERE {key} = '{name}'").fetchall()
    return int(rows[0][0]) if rows else 0


def test_what_an_insert_wrote_is_read_from_memory(connection: Connection) -> None:
    connection.execute(FILL)
    assert held(connection) == [("a", 10, 1000), ("s", 10, 1000)]
    misses = counted(connection, "events", "UncompressedCacheMisses")
    assert connection.execute("SELECT sum(a), max(s) FROM t").fetchall() == [(499_500, "9")]
    assert counted(connection, "events", "UncompressedCacheMisses") == misses


def test_a_large_block_is_not_kept_before_it_is_read(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that the process never used may cost more than all else of a large INSERT."""
    monkeypatch.setattr(tuning, "KEPT_BLOCK_BYTES_MAX", 8_000)
    connection.execute(FILL)
    assert held(connection) == []
    connection.insert("t", pa.table({"a": np.arange(1000, dtype="uint64"), "s": ["x"] * 1000}))
    assert held(connection) == []
    assert connection.execute("SELECT sum(a), max(s) FROM t").fetchall() == [(999_000, "x")]
    assert [name for name, *_ in held(connection)] == ["a", "s"]


def test_a_statement_drops_it_and_reads_fill_it(connection: Connection) -> None:
    connection.execute(FILL)
    connection.execute("SYSTEM DROP UNCOMPRESSED CACHE")
    assert held(connection) == []
    assert counted(connection, "metrics", "UncompressedCacheBytes") == 0
    for _ in range(2):
        assert connection.execute("SELECT sum(a) FROM t WHERE a < 250").fetchall() == [(31_125,)]
    assert held(connection) == [("a", 3, 300)]
    assert counted(connection, "metrics", "UncompressedCacheBytes") == 2_400
    assert counted(connection, "metrics", "UncompressedCacheCells") == 3


def test_connections_share_it_until_the_last_one_closes(
    connection: Connection, tmp_path: Path
) -> None:
    connection.execute(FILL)
    with olapdb.connect(tmp_path / "warehouse") as other:
        assert held(other) == held(connection) != []
    store = connection.database.services.store.cache.columns.store
    assert list(process_columns().entries(store)) != []
    connection.close()
    assert list(process_columns().entries(store)) == []


def test_merges_and_changed_columns_are_never_stale(connection: Connection) -> None:
    connection.execute(FILL)
    connection.execute(FILL)
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert connection.execute("SELECT sum(a) FROM t").fetchall() == [(999_000,)]
    connection.execute("ALTER TABLE t UPDATE s = 'x' WHERE a < 10 SETTINGS mutations_sync = 1")
    assert connection.execute("SELECT countIf(s = 'x') FROM t").fetchall() == [(20,)]
    connection.execute("ALTER TABLE t MODIFY COLUMN s LowCardinality(String)")
    connection.execute("ALTER TABLE t RENAME COLUMN s TO r")
    assert connection.execute("SELECT countIf(r = 'x') FROM t").fetchall() == [(20,)]
    connection.execute("ALTER TABLE t DROP COLUMN r")
    connection.execute("ALTER TABLE t ADD COLUMN r String DEFAULT 'new'")
    assert connection.execute("SELECT DISTINCT r FROM t").fetchall() == [("new",)]


def test_a_merge_drops_the_columns_of_the_parts_that_it_replaces(connection: Connection) -> None:
    connection.execute(FILL)
    connection.execute(FILL)
    connection.execute("OPTIMIZE TABLE t FINAL")
    (parts,) = connection.execute(
        "SELECT groupUniqArray(path) FROM system.uncompressed_cache"
    ).fetchall()
    assert len(parts[0]) == 1, "those of the merged part alone"
    assert connection.execute("SELECT count(), sum(a) FROM t").fetchall() == [(2000, 999_000)]


def test_its_size_is_an_option(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="uncompressed_cache_size"):
        olapdb.connect(uncompressed_cache_size=-1)
    try:
        with olapdb.connect(tmp_path / "warehouse", uncompressed_cache_size=0) as connection:
            connection.execute("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
            connection.execute("INSERT INTO t SELECT number FROM numbers(100000)")
            assert connection.execute("SELECT sum(a) FROM t").fetchall() == [(4_999_950_000,)]
            assert counted(connection, "metrics", "UncompressedCacheBytes") == 0
            assert counted(connection, "metrics", "UncompressedCacheSizeLimit") == 0
    finally:
        process_columns().resize(default_bytes_max())


def test_arrays_that_their_owner_changes_after_an_insert_change_no_answer(tmp_path: Path) -> None:
    numbers = np.arange(60_000, dtype=np.int64)
    with olapdb.connect(tmp_path / "own", settings={"inline_bytes_max": 0}) as connection:
        connection.execute("CREATE TABLE n (a Int64) ENGINE = MergeTree ORDER BY tuple()")
        connection.insert("n", pa.table({"a": pa.array(numbers)}))
        before = connection.execute("SELECT count(), sum(a) FROM n").fetchall()
        numbers[:] = 0
        assert connection.execute("SELECT count(), sum(a) FROM n").fetchall() == before
