"""durability = 'process' waits for no disk, and loses nothing when the process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import olapdb
from olapdb.errors import BadArguments, InterfaceError
from olapdb.maintenance.check import check_database

pytestmark = pytest.mark.feature("python")

CHILD = """
    import os, signal, sys, olapdb
    flushed = []
    flush = os.fsync
    os.fsync = lambda descriptor: (flushed.append(descriptor), flush(descriptor))
    connection = olapdb.connect(sys.argv[1], durability=sys.argv[2], settings={"inline_bytes_max": 0})
    connection.execute("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
    for _ in range(5):
        connection.execute("INSERT INTO t SELECT number FROM numbers(10)")
    print(len(flushed), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("durability", "flushes"), [("full", True), ("process", False)])
def test_a_killed_process_loses_nothing(tmp_path: Path, durability: str, flushes: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path), durability],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    assert (int(done.stdout) > 0) == flushes
    with olapdb.connect(str(tmp_path)) as connection:
        assert connection.execute("SELECT count() FROM t").fetchall() == [(50,)]
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def test_connections_of_a_process_agree(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path), durability="process"):
        with pytest.raises(InterfaceError, match="durability = 'process'"):
            olapdb.connect(str(tmp_path))
        with olapdb.connect(str(tmp_path), durability="process"):
            pass
    with pytest.raises(BadArguments, match="'full' or 'process'"):
        olapdb.connect(str(tmp_path), durability="none")
