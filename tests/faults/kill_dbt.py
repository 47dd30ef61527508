"""A dbt run that dies by SIGKILL, and a writer that inserts meanwhile, as processes of their own.

    python -m tests.faults.kill_dbt PROJECT STAGE N ARGUMENT...   dies at the N-th time at STAGE
    python -m tests.faults.kill_dbt PROJECT writer                inserts until PROJECT/stop is there

The writer reports each acknowledged INSERT on standard output.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import olapdb
from olapdb.runtime.failpoints import kill_at

PAUSE_S = 0.1
"""The writer's pace: it leaves time to dbt, and some hundred blocks in a test."""


def write(project: Path) -> None:
    """Insert rows into the source, one block after the other, until the stop file is there."""
    with olapdb.connect(str(project / "db")) as connection:
        number = 0
        while not (project / "stop").exists():
            month = 1 + number % 3
            connection.execute(
                f"INSERT INTO raw.orders VALUES ('2024-0{month}-02 10:00:00', 'w', {number})"
            )
            print(number, flush=True)
            number += 1
            time.sleep(PAUSE_S)


def main() -> None:
    """Run what the command line says."""
    project = Path(sys.argv[1])
    if sys.argv[2] == "writer":
        write(project)
        return
    from dbt.cli.main import dbtRunner  # slow, and the writer needs none of it

    kill_at(sys.argv[2], int(sys.argv[3]))
    folders = ["--project-dir", str(project), "--profiles-dir", str(project)]
    result = dbtRunner().invoke([*sys.argv[4:], *folders])
    sys.exit(0 if result.success else 1)


if __name__ == "__main__":
    main()
