"""Runs INSERTs with views, or a backfill, and dies by SIGKILL at the n-th time a stage is reached.

    python -m tests.faults.kill_views FOLDER insert|backfill STAGE N

Every acknowledged INSERT is reported on standard output, before the next one begins.
"""

from __future__ import annotations

import sys

import olapdb
from tests.faults.kill import die_at


def main() -> None:
    folder, work, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    die_at(stage, int(count))
    if work == "insert":
        for number in range(20):
            values = ", ".join(
                f"('2024-0{1 + (number + i) % 3}-01', '{'ab'[i % 2]}', {number}, {i})"
                for i in range(6)
            )
            connection.execute(
                f"INSERT INTO events SETTINGS max_insert_block_size = 4 VALUES {values}"
            )
            print(f"acknowledged {number}", flush=True)
    else:
        connection.execute("SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_threads = 1")
    print("finished", flush=True)


if __name__ == "__main__":
    main()
