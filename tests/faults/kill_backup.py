"""Backs a warehouse up, or restores it, and dies by SIGKILL at the n-th time a stage is reached.

python -m tests.faults.kill_backup WAREHOUSE BACKUP backup|restore STAGE N
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at


def main() -> None:
    """Run the backup or restore of the command line until the kill."""
    folder, backup, work, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    kill_at(stage, int(count))
    verb = "BACKUP TO" if work == "backup" else "RESTORE FROM"
    connection.execute(f"SYSTEM {verb} '{backup}'")
    print("finished", flush=True)


if __name__ == "__main__":
    main()
