"""The command `python -m dbt.adapters.olapdb.migrate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .decide import decide_all
from .project import ProjectError, read_project
from .report import report_lines
from .write import write_project


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a project, print what its models become, and write it with --out. Return the exit code.

    It is 0, or 2 if the project cannot be read or written."""
    parser = argparse.ArgumentParser(
        prog="python -m dbt.adapters.olapdb.migrate",
        description="Say what each model of a dbt-clickhouse project becomes in olapdb, what is "
        "wrong with its materialized views today, and write the changed project.",
    )
    parser.add_argument("project", type=Path, help="the folder of dbt_project.yml")
    parser.add_argument("--out", type=Path, help="a new folder for the changed project")
    options = parser.parse_args(arguments)
    try:
        project = read_project(options.project)
        decisions = decide_all(project)
        notes = write_project(project, decisions, options.out) if options.out else []
    except (ProjectError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("\n".join([*report_lines(decisions), *notes]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
