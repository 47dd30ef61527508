"""The child process of the catalog's rebuild: runs statements on a warehouse.

    python -m tests.faults.killed_statements <folder> <statements and stage, as JSON>

The stage is null, or a name and how often it is reached before the process kills itself.
"""

from __future__ import annotations

import json
import sys

import olapdb
from olapdb.runtime.failpoints import kill_at


def main() -> None:
    """Run the statements of the command line, one after the other, until the kill."""
    folder, work = sys.argv[1:]
    statements, stage = json.loads(work)
    connection = olapdb.connect(folder, settings={"inline_bytes_max": 0})
    connection.execute("SYSTEM STOP MERGES")
    if stage:
        kill_at(*stage)
    for statement in statements:
        connection.execute(statement)
    connection.close()


if __name__ == "__main__":
    main()
