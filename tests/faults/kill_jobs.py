"""Runs a backfill of several chunks a partition and dies by SIGKILL at the n-th time of a stage.

python -m tests.faults.kill_jobs FOLDER staged|chunks STAGE N
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at

SETTINGS = "backfill_chunk_rows_max = 12, backfill_threads = 1, inline_bytes_max = 0"


def main() -> None:
    """Run the backfill of the command line until the kill."""
    folder, work, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    kill_at(stage, int(count))
    staging = int(work == "staged")
    connection.execute(
        f"SYSTEM BACKFILL VIEW daily_mv SETTINGS {SETTINGS}, backfill_staging = {staging}"
    )
    print("finished", flush=True)


if __name__ == "__main__":
    main()
