"""A program that never calls close() ends at once: idle threads do not keep its process alive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.feature("crashes")

CHILD = """
import sys
import olapdb
import olapdb.threads

olapdb.threads.END_SECONDS_MAX = float("inf")
connection = olapdb.connect(*sys.argv[1:])
connection.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
connection.execute("INSERT INTO t SELECT number FROM numbers(100000)")
print(connection.execute("SELECT count() FROM t").fetchone())
"""


@pytest.mark.parametrize("stored", [True, False])
def test_a_process_does_not_wait_for_idle_threads(tmp_path: Path, stored: bool) -> None:
    """Let the child wait for busy threads without limit: an idle thread must not count as busy."""
    folder = [str(tmp_path / "w")] if stored else []
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *folder],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "(100000,)\n", done.stderr
    assert done.returncode == 0, done.stderr
