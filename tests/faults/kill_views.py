"""Runs INSERTs with views, or a backfill, and dies by SIGKILL at the n-th time a stage is reached.

    python -m tests.faults.kill_views FOLDER insert|backfill|replay|create STAGE N

Every INSERT is reported on standard output as soon as it is acknowledged.
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at
from tests.unit.views.warehouse import CREATE

INSERTS = 12


def values(number: int) -> str:
    """Rows of three months; large enough, with `inline_bytes_max` 0, to be written as files."""
    return ", ".join(
        f"('2024-0{1 + (number + i) % 3}-01', '{'ab'[i % 2]}', {number}, {i})" for i in range(6)
    )


def main() -> None:
    """Run the work of the command line until the kill."""
    folder, work, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    kill_at(stage, int(count))
    if work == "insert":
        for number in range(INSERTS):
            inline = 0 if number % 2 else 262_144
            connection.execute(
                f"INSERT INTO events SETTINGS max_insert_block_size = 4, inline_bytes_max = {inline}"
                f" VALUES {values(number)}"
            )
            print(f"acknowledged {number}", flush=True)
    elif work == "backfill":
        connection.execute(
            "SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_threads = 1, inline_bytes_max = 0"
        )
    elif work == "create":
        connection.execute("SET backfill_threads = 1, inline_bytes_max = 0")
        connection.execute(CREATE)
    else:
        connection.execute("SYSTEM REPLAY VIEW daily_mv SETTINGS inline_bytes_max = 0")
    print("finished", flush=True)


if __name__ == "__main__":
    main()
