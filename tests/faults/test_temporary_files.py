"""Temporary files of queries end with the query, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import QueryWasCancelled, ThrowIfNonZero
from tests.faults.spill_child import QUERIES

pytestmark = pytest.mark.feature("crashes")

SPILLING = {
    f"max_bytes_before_external_{operation}": 100_000
    for operation in ("group_by", "sort", "join", "distinct")
}
SORT = "SELECT number FROM numbers(1000000) ORDER BY intHash64(number)"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(str(tmp_path / "warehouse"), settings=SPILLING) as connection:
        yield connection


def open_files(connection: Connection) -> int:
    """Return the number of temporary files of running queries, as system.metrics has it."""
    sql = "SELECT value FROM system.metrics WHERE metric = 'TotalTemporaryFiles'"
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def descriptors(folder: Path) -> list[str]:
    """Return the files of the folder that this process has open, unlinked ones too."""
    names = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            names.append(os.readlink(entry.path))
        except FileNotFoundError:
            continue  # the scan's own
    return [name for name in names if name.startswith(str(folder))]


def test_a_result_that_is_closed_early(warehouse: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "warehouse" / "tmp"
    with warehouse.cursor() as cursor:
        cursor.execute(SORT)
        assert cursor.fetchone() is not None
        assert open_files(warehouse) == 1
        assert len(descriptors(folder)) == 1
        assert list(folder.iterdir()) == []  # it has no name
    assert open_files(warehouse) == 0
    assert descriptors(folder) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT throwIf(number = 900000) FROM numbers(1000000) ORDER BY intHash64(number)",
        "SELECT number + throwIf(number = 900000) AS k, count() FROM numbers(1000000) GROUP BY k",
        "SELECT DISTINCT number + throwIf(number = 900000) FROM numbers(1000000)",
        "SELECT l.number FROM (SELECT number + throwIf(number = 900000) AS number"
        " FROM numbers(1000000)) AS l JOIN numbers(1000000) AS r ON l.number = r.number",
    ],
)
def test_a_query_that_fails(warehouse: Connection, tmp_path: Path, query: str) -> None:
    with pytest.raises(ThrowIfNonZero):
        warehouse.execute(query).fetchall()
    assert open_files(warehouse) == 0
    assert descriptors(tmp_path / "warehouse" / "tmp") == []


def test_a_query_that_is_cancelled(warehouse: Connection, tmp_path: Path) -> None:
    with warehouse.cursor() as cursor:
        cursor.execute(SORT)
        cursor.fetchone()
        thread = threading.Thread(target=warehouse.cancel)
        thread.start()
        thread.join()
        with pytest.raises(QueryWasCancelled):
            cursor.fetchall()
        assert descriptors(tmp_path / "warehouse" / "tmp") == []
    assert open_files(warehouse) == 0


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse"
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.spill_child", str(folder)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    opened = dict(zip(QUERIES, map(int, child.stdout.readline().split()), strict=True))
    assert [name for name, files in opened.items() if files < 1] == []
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.communicate()
    assert list((folder / "tmp").iterdir()) == []
    with olapdb.connect(str(folder)) as connection:
        counted = connection.execute("SELECT count(), sum(a) FROM sums").fetchall()
        assert counted == [(400_000, 2 * sum(range(200_000)))]


def test_named_files_of_a_killed_process_are_removed_by_the_next_open(tmp_path: Path) -> None:
    """Where the system has no files without a name, a kill may come before one is unlinked."""
    folder = tmp_path / "warehouse"
    olapdb.connect(str(folder)).close()
    (folder / "tmp").mkdir()
    (folder / "tmp" / "spill-1").write_bytes(b"rows")
    with olapdb.connect(str(folder), read_only=True):
        assert (folder / "tmp" / "spill-1").exists()
    with olapdb.connect(str(folder)):
        assert list((folder / "tmp").iterdir()) == []


def test_another_folder(warehouse: Connection, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with warehouse.cursor() as cursor:
        cursor.execute(f"{SORT} SETTINGS tmp_path = '{elsewhere}'")
        cursor.fetchone()
        assert len(descriptors(elsewhere)) == 1
    assert descriptors(elsewhere) == []


def test_events_count_what_was_written(warehouse: Connection) -> None:
    with warehouse.cursor() as cursor:
        cursor.execute(SORT)
        cursor.fetchall()
        statistics = cursor.statistics
    sql = "SELECT event, value FROM system.events WHERE event LIKE 'ExternalProcessing%'"
    assert dict(warehouse.execute(sql).fetchall()) == {
        "ExternalProcessingFilesTotal": 1,
        "ExternalProcessingCompressedBytesTotal": statistics.spilled_bytes,
        "ExternalProcessingUncompressedBytesTotal": statistics.spilled_uncompressed_bytes,
    }
