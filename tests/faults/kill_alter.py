"""Runs one ALTER and dies by SIGKILL at the n-th time a stage is reached.

python -m tests.faults.kill_alter FOLDER STATEMENT STAGE N
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at


def main() -> None:
    """Run the statement of the command line until the kill."""
    folder, statement, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    kill_at(stage, int(count))
    connection.execute(statement)
    print("finished", flush=True)


if __name__ == "__main__":
    main()
