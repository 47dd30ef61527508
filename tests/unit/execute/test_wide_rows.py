"""Batches of wide rows are bounded by bytes: of scans, joins, ARRAY JOIN and the rows of a LIMIT."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb.compute.context import ExecutionContext
from olapdb.compute.row_sizes import row_sizes, stretches
from olapdb.dbapi.connection import Connection
from olapdb.result import QueryStatistics

pytestmark = pytest.mark.feature("settings")

TEXT_BYTES = 100_000
ROWS = 300
LIMIT = 16 << 20
"""Of this memory limit a batch may take a thirty-second part with two threads."""
WIDE = f"SELECT number AS k, concat(toString(number), repeat('x', {TEXT_BYTES})) AS s FROM"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Connect to a warehouse with a table of 300 texts of 100 kB, and one with a long text among 30,000."""
    path = tmp_path_factory.mktemp("wide")
    settings = {"max_memory_usage": LIMIT, "max_threads": 2}
    with olapdb.connect(path, settings=settings) as connection:
        for name, rows in (("t", f"{WIDE} numbers({ROWS})"), ("uneven", _uneven())):
            connection.execute(
                f"CREATE TABLE {name} (k UInt64, s String) ENGINE = MergeTree ORDER BY k"
            )
            connection.execute(f"INSERT INTO {name} {rows} SETTINGS max_memory_usage = 0")
        yield connection


def _uneven() -> str:
    texts = f"SELECT toUInt64(7), repeat('yyyy', {10 * TEXT_BYTES}) UNION ALL"
    return f"{texts} SELECT number, 'short' FROM numbers(30000) WHERE number != 7"


def batches(connection: Connection, sql: str) -> list[tuple[int, int]]:
    """Return the rows and bytes of each batch of a query's answer."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [(batch.num_rows, batch.nbytes) for batch in cursor.fetch_record_batch()]


def test_a_row_group_has_few_bytes_of_a_column(connection: Connection) -> None:
    parts = "SELECT rows, marks FROM system.parts WHERE table = '{}' AND active"
    ((rows, granules),) = connection.execute(parts.format("t")).fetchall()
    assert rows == ROWS
    assert granules == -(-ROWS // ((8 << 20) // (TEXT_BYTES + 7)))
    ((_, of_uneven),) = connection.execute(parts.format("uneven")).fetchall()
    assert of_uneven == 1  # one long text does not divide a part of short ones


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT k, s FROM t", ROWS),
        ("SELECT k, s FROM t WHERE k % 2 = 0", ROWS // 2),
        ("SELECT k, s FROM t LIMIT 200", 200),
        ("SELECT k, s FROM t ORDER BY k DESC LIMIT 200", 200),
        ("SELECT k, s FROM t ORDER BY s LIMIT 200", 200),
        ("SELECT k, s, a FROM t ARRAY JOIN range(5) AS a", 5 * ROWS),
        ("SELECT k, s, a FROM t LEFT ARRAY JOIN range(k % 3) AS a", 400),
        (
            f"SELECT t.k, s FROM t JOIN (SELECT number % {ROWS} AS n FROM numbers(1500)) AS v ON n = t.k",
            1500,
        ),
        (
            "SELECT n, s FROM (SELECT number % 90 AS n FROM numbers(1500)) AS v LEFT JOIN t ON n = t.k",
            1500,
        ),
    ],
)
def test_batches_have_few_bytes(connection: Connection, sql: str, rows: int) -> None:
    found = batches(connection, sql)
    assert sum(count for count, _ in found) == rows
    # A row group of 8 MiB is the least that is read.
    assert max(nbytes for _, nbytes in found) <= 9 << 20


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s, a FROM uneven ARRAY JOIN range(if(k = 7, 600, 1)) AS a",
        "SELECT u.k, s FROM (SELECT toUInt64(7) AS n FROM numbers(600)) AS v LEFT JOIN uneven AS u ON n = u.k",
        "SELECT u.k, u.s FROM uneven AS u LEFT JOIN (SELECT toUInt64(7) AS n FROM numbers(600)) AS v ON n = u.k",
        "SELECT u.k, u.s FROM uneven AS u, (SELECT number FROM numbers(600)) AS v WHERE u.k = 7",
    ],
)
def test_a_long_text_that_is_repeated_is_repeated_some_rows_at_a_time(
    connection: Connection, sql: str
) -> None:
    """A batch of 600 copies of 4 MB would exceed what an Arrow array holds."""
    settings = " SETTINGS max_memory_usage = 200000000, query_plan_optimize_join_order_limit = 0"
    found = batches(connection, sql + settings)
    assert sum(nbytes for _, nbytes in found) >= 600 * 40 * TEXT_BYTES
    assert max(nbytes for _, nbytes in found) <= 80 * TEXT_BYTES


def test_the_peak_of_a_process_that_scans_wide_rows_is_bounded(tmp_path: Path) -> None:
    """The process reads 200 MB; its peak rises by a part of that."""
    script = f"""
import sys, olapdb
connection = olapdb.connect({str(tmp_path)!r}, uncompressed_cache_size=0)
if sys.argv[1] == "write":
    connection.execute("CREATE TABLE t (k UInt64, s String) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO t SELECT number, randomPrintableASCII(1000000) FROM numbers(200)")
    sys.exit()
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
connection.execute("SELECT count() FROM t WHERE k > 3").fetchall()
before = status("VmRSS")
cursor = connection.execute("SELECT k, s FROM t SETTINGS max_memory_usage = 104857600, max_threads = 2")
rows = sum(batch.num_rows for batch in cursor.fetch_record_batch())
assert rows == 200, rows
print(status("VmHWM") - before)
"""
    for step in ("write", "read"):
        done = subprocess.run(
            [sys.executable, "-c", script, step], check=True, capture_output=True, text=True
        )
    assert int(done.stdout) < 180 << 10, done.stdout  # it was 590 MB, in kB


def test_sizes_of_rows() -> None:
    texts = pa.array(["a", None, "ccc", ""])
    lists = pa.array([[1, 2], None, [], [3]], pa.list_(pa.int64()))
    assert row_sizes([texts], 4).tolist() == [1, 0, 3, 0]
    assert row_sizes([texts.slice(2)], 2).tolist() == [3, 0]
    of_lists = row_sizes([lists], 4)
    assert of_lists[0] == 2 * of_lists[3] > of_lists[1] == of_lists[2] == 0
    assert row_sizes([], 2).tolist() == [0, 0]


def test_stretches_have_a_row_at_least() -> None:
    sizes = np.array([5, 5, 90, 1, 1, 1, 1])
    assert list(stretches(sizes, 3, 10)) == [(0, 2), (2, 3), (3, 6), (6, 7)]
    assert list(stretches(np.zeros(0, np.int64), 3, 10)) == []


def test_a_batch_may_have_a_share_of_the_memory() -> None:
    context = ExecutionContext(
        statistics=QueryStatistics(), settings={"max_memory_usage": LIMIT, "max_threads": 2}
    )
    assert context.batch_bytes == LIMIT // 32
    context.close()
