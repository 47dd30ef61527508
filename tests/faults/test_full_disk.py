"""Runs operations on a really full disk: a small tmpfs with a few bytes left.

An operation that does not fit raises an olapdb error and changes nothing. A copy of the folder
opens, and the open connection works once there is space.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import olapdb
from olapdb.errors import Error, NotEnoughSpace
from tests.faults.operations import OPERATIONS, expected, goes_on, prepare, state, verify

pytestmark = pytest.mark.feature("crashes")

DISK_BYTES = 24 << 20
LEFT_BYTES = (0, 4_096, 16_384, 65_536)
HOUSEKEEPING_BYTES = 256 << 10
"""At most so much may the catalog's log grow during a query: background work renews leases."""
CHOSEN = ("insert", "replay", "backfill")
"""Operations in CI; `make soak` takes all."""


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mount a tmpfs."""
    folder = tmp_path_factory.mktemp("disk") / "mounted"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a tmpfs can be mounted by root only")
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def disk(mounted: Path) -> Iterator[Path]:
    """Give the test an empty disk: what a failed test leaves must not fail the next."""
    yield mounted
    for left in mounted.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def fill(disk: Path, left_bytes: int) -> Path:
    """Write a file that leaves `left_bytes` of the disk; return its path."""
    filler = disk / "filler"
    with open(filler, "wb") as file:
        try:
            while file.write(bytes(1 << 20)):
                file.flush()
        except OSError:
            pass
    os.truncate(filler, max(filler.stat().st_size - max(left_bytes - free(disk), 0), 0))
    return filler


def free(disk: Path) -> int:
    """Return the free bytes of the disk."""
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize


def run(disk: Path, tmp_path: Path, name: str, left_bytes: int) -> str:
    """Run the operation with `left_bytes` of space, check, and return the name of its outcome."""
    operation = OPERATIONS[name]
    template = tmp_path / "template"
    if not template.exists():
        prepare(template, operation)
    states = expected(template, shutil.copytree(template, tmp_path / f"run{left_bytes}"), operation)
    folder = Path(shutil.copytree(template, disk / "warehouse"))
    crashed = tmp_path / f"crashed{left_bytes}"
    where = f"{name} with {left_bytes} bytes left"
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        filler = fill(disk, left_bytes)
        try:
            operation.run(connection, folder)
            outcome = "acknowledged"
        except Error as error:
            outcome = type(error).__name__
        shutil.copytree(folder, crashed)
        filler.unlink()
        goes_on(operation, connection, folder, where, states)
    verify(crashed, operation, states, outcome == "acknowledged", where)
    shutil.rmtree(folder)
    shutil.rmtree(disk / "warehouse.backup", ignore_errors=True)
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_what_does_not_fit_changes_nothing(disk: Path, tmp_path: Path, name: str) -> None:
    assert run(disk, tmp_path, name, 0) != "acknowledged"
    assert run(disk, tmp_path, name, 16_384) is not None


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", OPERATIONS)
def test_with_every_bit_of_space(disk: Path, tmp_path: Path, name: str) -> None:
    for left_bytes in LEFT_BYTES:
        run(disk, tmp_path, name, left_bytes)


@pytest.mark.slow
def test_inserts_until_it_is_full_and_on(disk: Path) -> None:
    """Check that acknowledged rows exist, those of the failed INSERT do not, and queries still
    work."""
    with olapdb.connect(str(disk / "filling"), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY k AS"
            " SELECT a % 10 AS k, count() AS n FROM t GROUP BY k"
        )
        filler = fill(disk, 4 << 20)
        insert = "INSERT INTO t SELECT number, toString(rand()) FROM numbers(50000)"
        acknowledged = 0
        with suppress(NotEnoughSpace):
            while acknowledged < 10_000_000:
                connection.execute(insert)
                acknowledged += 50_000
        assert 0 < acknowledged < 10_000_000
        for _ in range(3):
            with pytest.raises(NotEnoughSpace):
                connection.execute(insert)
            counted = connection.execute("SELECT count() FROM t").fetchall()
            assert counted == [(acknowledged,)]
            assert connection.execute("SELECT sum(n) FROM v").fetchall() == counted
        filler.unlink()
        connection.execute(insert)
        counted = connection.execute("SELECT count() FROM t").fetchall()
        assert counted == [(acknowledged + 50_000,)]
        connection.execute("SYSTEM RECONCILE VIEW v")
        assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("proven",)]


def test_states_are_read_on_a_full_disk(disk: Path, tmp_path: Path) -> None:
    prepare(disk / "reading")
    with olapdb.connect(str(disk / "reading")) as connection:
        connection.execute("SYSTEM STOP MERGES")
        before = state(connection)
        filler = fill(disk, 0)
        assert state(connection) == before
        filler.unlink()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT number FROM numbers(3000000) ORDER BY intHash64(number)",
        "SELECT intHash64(number) AS k, count() FROM numbers(3000000) GROUP BY k",
        "SELECT DISTINCT intHash64(number) AS k FROM numbers(3000000)",
        "SELECT l.number FROM numbers(3000000) AS l JOIN numbers(3000000) AS r"
        " ON intHash64(l.number) = intHash64(r.number)",
        "SELECT rank() OVER (PARTITION BY number % 9 ORDER BY intHash64(number)) FROM numbers(3000000)",
        "SELECT intHash64(number) AS h FROM numbers(3000000) LIMIT 1 BY h",
        "SELECT intHash64(number) FROM numbers(3000000) EXCEPT SELECT number FROM numbers(3000000)",
        "SELECT l.number FROM numbers(3000000) AS l ASOF JOIN numbers(3000000) AS r"
        " ON l.number % 9 = r.number % 9 AND intHash64(l.number) >= intHash64(r.number)",
        "SELECT uniqExact(intHash64(number)), quantileExact(intHash64(number)) FROM numbers(3000000)",
        "SELECT count() FROM numbers(3000000) WHERE intHash64(number) IN (SELECT intHash64(number) FROM numbers(3000000))",
        "INSERT INTO viewed SELECT number FROM numbers(3000000)",
    ],
)
def test_temporary_data_that_does_not_fit(disk: Path, query: str) -> None:
    """Check that the query fails with our error, frees the disk at once, and leaves the warehouse as
    it was."""
    operations = ("group_by", "sort", "join", "distinct")
    spilling = {f"max_bytes_before_external_{operation}": 1_000_000 for operation in operations}
    spilling |= {"max_memory_usage": 24_000_000}
    with olapdb.connect(str(disk / "spilling"), settings=spilling) as connection:
        connection.execute("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
        connection.execute("INSERT INTO t SELECT number FROM numbers(1000)")
        connection.execute("CREATE TABLE viewed (a UInt64) ENGINE = Null")
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY k AS"
            " SELECT intHash64(a) AS k, count() AS n FROM viewed GROUP BY k"
        )
        filler = fill(disk, 4 << 20)
        free_bytes = free(disk)
        with pytest.raises(NotEnoughSpace, match="temporary data"):
            connection.execute(query).fetchall()
        assert connection.execute("SELECT count() FROM v").fetchall() == [(0,)]
        assert free(disk) > free_bytes - HOUSEKEEPING_BYTES
        assert list((disk / "spilling" / "tmp").iterdir()) == []
        filler.unlink()
        connection.execute("INSERT INTO t SELECT number FROM numbers(1000)")
        assert connection.execute("SELECT count() FROM t").fetchall() == [(2000,)]
