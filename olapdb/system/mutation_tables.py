"""system.mutations: the commits that rewrote rows of parts. Each was complete when its statement
ended."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.catalog.protocol import PartChange
from olapdb.system.registry import Row, SystemContext, SystemTable, moment

_KINDS = ("UPDATE", "DELETE", "DEDUPLICATE", "ALTER")
HISTORY_MAX = 100_000
"""Changes of parts that are read, the newest first."""


def _mutations(context: SystemContext) -> Iterator[Row]:
    """List the commits that rewrote rows, the oldest first, with the last block in each
    partition."""
    commits: dict[int, list[PartChange]] = {}
    for change in context.services.catalog.part_changes(context.snapshot.number, HISTORY_MAX):
        if change.commit.kind in _KINDS:
            commits.setdefault(change.commit.number, []).append(change)
    for number in sorted(commits):
        replaced = [change for change in commits[number] if change.dropped]
        if not replaced:
            continue
        commit, table_id = replaced[0].commit, replaced[0].part.table_id
        item = context.snapshot.by_id(table_id)
        last: dict[str, int] = {}
        for change in replaced:
            part = change.part
            last[part.partition_id] = max(last.get(part.partition_id, 0), part.block_range.last)
        at = moment(commit.time_ms)
        yield (
            item.database if item is not None else "",
            item.name if item is not None else "",
            f"mutation_{number}.txt",
            commit.statement,
            at,
            at,
            list(last),
            list(last.values()),
            [],
            [],
            0,
            1,
            0,
            "",
            _NEVER,
            "",
            "",
            len(replaced),
            commit.query_id,
            number,
            {},
        )


_NEVER = moment(0)

TABLES = (
    SystemTable(
        "mutations",
        """database String, table String, mutation_id String, command String, create_time DateTime,
        finish_time DateTime, block_numbers.partition_id Array(String),
        block_numbers.number Array(Int64), parts_in_progress_names Array(String),
        parts_to_do_names Array(String), parts_to_do Int64, is_done UInt8, is_killed UInt8,
        latest_failed_part String, latest_fail_time DateTime, latest_fail_reason String,
        latest_fail_error_code_name String, parts_done UInt64, query_id String, commit UInt64,
        parts_postpone_reasons Map(String, String)""",
        _mutations,
    ),
)
