"""Rebuilds a view, or rolls it back, and dies by SIGKILL at the n-th time a stage is reached.

python -m tests.faults.kill_rebuild FOLDER rebuild|rollback|modify STAGE N
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at
from tests.unit.views.warehouse import QUERY

NEW = QUERY.replace("sum(amount)", "sum(2 * amount)")
STATEMENTS = {
    "rebuild": f"SYSTEM REBUILD VIEW daily_mv SETTINGS backfill_threads = 1, inline_bytes_max = 0 AS {NEW}",
    "rollback": "SYSTEM ROLLBACK VIEW daily_mv",
    "modify": f"ALTER TABLE daily_mv MODIFY QUERY {NEW}",
}


def main() -> None:
    """Run the work of the command line until the kill."""
    folder, work, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    kill_at(stage, int(count))
    connection.execute(STATEMENTS[work])
    print("finished", flush=True)


if __name__ == "__main__":
    main()
