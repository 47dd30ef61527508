"""Several processes on one warehouse: readers see whole commits while another process writes."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite.catalog import SqliteCatalog

pytestmark = pytest.mark.feature("python", "concurrency")

WRITER = """
    import sys, olapdb
    with olapdb.connect(sys.argv[1]) as connection:
        for number in range(60):
            connection.execute(
                "INSERT INTO s SELECT {n} AS batch, number AS k FROM numbers(50)".replace("{n}", str(number))
            )
    print("done")
"""
READER = """
    import sys, olapdb
    seen = 0
    with olapdb.connect(sys.argv[1], read_only=True) as connection:
        while seen < 60:
            row = connection.execute(
                "SELECT count(), uniqExact(batch), max(batch) FROM s"
            ).fetchone()
            count, batches, last = row
            assert count == batches * 50, row                    # no part of an INSERT
            assert batches in (0, last + 1), row                 # a prefix of the commits
            assert batches >= seen, (row, seen)                  # never back in time
            seen = batches
            rolled, = connection.execute("SELECT sum(n) FROM t").fetchone()
            assert rolled >= count and rolled % 50 == 0, (rolled, count)   # view and source move together
    print("seen", seen)
"""


Start = Callable[[str, str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a script in a process of its own; what a failed test leaves running is killed."""
    with ExitStack() as started:

        def start(script: str, folder: str) -> subprocess.Popen[str]:
            process = started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", textwrap.dedent(script), folder],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            started.callback(process.kill)
            return process

        yield start


def test_readers_see_prefixes_while_one_writes(tmp_path: Path, start: Start) -> None:
    folder = str(tmp_path / "warehouse")
    with olapdb.connect(folder) as connection:
        connection.execute("CREATE TABLE s (batch UInt32, k UInt32) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE TABLE t (batch UInt32, n SimpleAggregateFunction(sum, UInt64)) "
            "ENGINE = AggregatingMergeTree ORDER BY batch"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO t AS SELECT batch, count() AS n FROM s GROUP BY batch"
        )
    readers = [start(READER, folder) for _ in range(2)]
    writer = start(WRITER, folder)
    for process, last in [(writer, "done"), *((r, "seen 60") for r in readers)]:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err[-3000:]
        assert out.strip().endswith(last)


def test_two_processes_write_and_nothing_is_lost(tmp_path: Path, start: Start) -> None:
    folder = str(tmp_path / "warehouse")
    with olapdb.connect(folder) as connection:
        connection.execute("CREATE TABLE s (batch UInt32, k UInt32) ENGINE = MergeTree ORDER BY k")
    writers = [start(WRITER, folder) for _ in range(2)]
    for process in writers:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err[-3000:]
    with olapdb.connect(folder) as connection:
        assert connection.execute("SELECT count(), uniqExact(batch) FROM s").fetchone() == (
            6000,
            60,
        )


COMER = """
    import sys, olapdb
    for number in range(12):
        with olapdb.connect(sys.argv[1]) as connection:
            connection.execute(f"INSERT INTO s SELECT {number} AS batch, number AS k FROM numbers(50)")
    print("done")
"""
LOOKER = """
    import sys, olapdb
    seen = 0
    while seen < 12:
        with olapdb.connect(sys.argv[1], read_only=True) as connection:
            ((seen,),) = connection.execute("SELECT uniqExact(batch) FROM s").fetchall()
    print("seen", seen)
"""


def test_readers_connect_while_writers_come_and_go(tmp_path: Path, start: Start) -> None:
    folder = str(tmp_path / "warehouse")
    with olapdb.connect(folder) as connection:
        connection.execute("CREATE TABLE s (batch UInt32, k UInt32) ENGINE = MergeTree ORDER BY k")
    readers = [start(LOOKER, folder) for _ in range(2)]
    writer = start(COMER, folder)
    for process, last in [(writer, "done"), *((r, "seen 12") for r in readers)]:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err[-3000:]
        assert out.strip().endswith(last)


def test_a_warehouse_that_cannot_be_opened_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retrying while another process holds the catalog's turn does not use up file descriptors."""
    olapdb.connect(tmp_path / "w").close()

    def busy(*_: object) -> str:
        raise olapdb.OperationalError("planted")

    monkeypatch.setattr(SqliteCatalog, "open_lease", busy)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(olapdb.OperationalError, match="planted"):
            olapdb.connect(tmp_path / "w")
    assert len(os.listdir("/proc/self/fd")) == before
