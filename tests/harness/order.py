"""The order in which the files of tests run: those that take long come first.

A worker of pytest-xdist takes a file at a time. A long file that begins late is the end of the run
for all, while the other workers have nothing left to do.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

LONG_FILES = (
    "tests/sql/test_sql.py",
    "tests/scenarios/test_demo.py",
    "tests/faults/test_kill_dbt.py",
    "tests/property/test_text_indexes.py",
    "tests/definitions/test_definitions.py",
    "tests/property/test_tables.py",
    "tests/contract/spark/test_folder_not_shared.py",
    "tests/protocol/test_model.py",
    "tests/structure/test_wheel.py",
    "tests/oracle/test_random_joins.py",
    "tests/faults/test_partition_kill.py",
    "tests/contract/spark/test_session.py",
    "tests/faults/test_commit_kill.py",
    "tests/structure/test_benchmarks.py",
    "tests/load/test_small_inserts.py",
    "tests/schedules/test_schedules.py",
    "tests/property/test_function_calls.py",
    "tests/property/test_pruning.py",
    "tests/structure/test_form.py",
    "tests/faults/test_kill_statements.py",
    "tests/contract/spark/test_warehouse.py",
    "tests/property/test_tuning.py",
    "tests/contract/spark/test_frames.py",
    "tests/faults/test_strace.py",
    "tests/property/test_late_rows.py",
    "tests/oracle/test_reads.py",
    "tests/property/test_mend.py",
    "tests/oracle/test_random_selects.py",
    "tests/load/test_inserts.py",
    "tests/schedules/test_planted.py",
    "tests/load/test_six_processes.py",
    "tests/contract/spark/test_items.py",
    "tests/load/test_second_process.py",
    "tests/unit/execute/test_spill.py",
    "tests/unit/execute/test_memory.py",
    "tests/unit/execute/test_join_outputs.py",
    "tests/unit/maintenance/test_policy.py",
)
"""The files that take ten seconds and more of one processor, about in the order of their times."""


def long_files_first(items: list[pytest.Item], root: Path) -> None:
    """Sort the tests by file: the long ones, then by the number of tests; a file's own order stays."""
    ranks = {root / name: rank for rank, name in enumerate(LONG_FILES)}
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (ranks.get(item.path, len(ranks)), -sizes[item.path]))
