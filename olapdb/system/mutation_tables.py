"""system.mutations: the commits that rewrote rows of parts. Each was done when its statement ended."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.catalog.protocol import PartChange
from olapdb.system.registry import Row, SystemContext, SystemTable, moment
from olapdb.types import DATETIME, INT64, STRING, UINT8, UINT64, Array, DataType, Map

_NAMES: DataType = Array(STRING)
_NUMBERS: DataType = Array(INT64)
_KINDS = ("UPDATE", "DELETE", "DEDUPLICATE", "ALTER")
HISTORY_MAX = 100_000
"""Parts that are looked at, the newest first."""


def _mutations(context: SystemContext) -> Iterator[Row]:
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
_REASONS: DataType = Map(STRING, STRING)

TABLES = (
    SystemTable(
        "mutations",
        (
            ("database", STRING),
            ("table", STRING),
            ("mutation_id", STRING),
            ("command", STRING),
            ("create_time", DATETIME),
            ("finish_time", DATETIME),
            ("block_numbers.partition_id", _NAMES),
            ("block_numbers.number", _NUMBERS),
            ("parts_in_progress_names", _NAMES),
            ("parts_to_do_names", _NAMES),
            ("parts_to_do", INT64),
            ("is_done", UINT8),
            ("is_killed", UINT8),
            ("latest_failed_part", STRING),
            ("latest_fail_time", DATETIME),
            ("latest_fail_reason", STRING),
            ("latest_fail_error_code_name", STRING),
            ("parts_done", UINT64),
            ("query_id", STRING),
            ("commit", UINT64),
            ("parts_postpone_reasons", _REASONS),
        ),
        _mutations,
    ),
)
