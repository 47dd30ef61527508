"""system.mutations: the commits that rewrote rows of parts. Each was complete when its statement
ended."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.catalog.protocol import PartChange
from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.formatter.expressions import format_expression, format_names
from olapdb.sql.parser import parse_one
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
            _command(commit.statement),
            at,
            at,
            list(last),
            list(last.values()),
            [],
            [],
            0,
            {},
            1,
            0,
            "",
            _NEVER,
            "",
            "",
            len(replaced),
            commit.query_id,
            number,
        )


def _command(statement: str) -> str:
    """Return the actions of an ALTER … UPDATE, DELETE, CLEAR and MATERIALIZE COLUMN as ClickHouse shows
    them, each in parentheses; another statement as it was written."""
    try:
        parsed = parse_one(statement)
    except Error:
        return statement  # one of several, or of an older version
    if isinstance(parsed, nodes.Delete) and parsed.where is not None:
        return f"(UPDATE _row_exists = 0{_conditions(parsed.partition, parsed.where)})"
    if not isinstance(parsed, nodes.Alter):
        return statement
    shown = []
    for action in parsed.actions:
        if isinstance(action, nodes.UpdateWhere):
            values = (f"{name} = {format_expression(v)}" for name, v in action.assignments)
            what = f"UPDATE {', '.join(values)}"
            shown.append(f"({what}{_conditions(action.partition, action.where)})")
        elif isinstance(action, nodes.DeleteWhere):
            shown.append(f"(DELETE{_conditions(action.partition, action.where)})")
        elif isinstance(action, nodes.ClearColumn | nodes.MaterializeColumn):
            verb = "CLEAR" if isinstance(action, nodes.ClearColumn) else "MATERIALIZE"
            name = format_names([action.name])
            shown.append(f"({verb} COLUMN {name}{_place(action.partition)})")
        else:
            return statement
    return ", ".join(shown)


def _conditions(partition: nodes.PartitionReference | None, where: nodes.Expression) -> str:
    """Return IN PARTITION and WHERE of an action, with a blank before each."""
    return f"{_place(partition)} WHERE {format_expression(where)}"


def _place(partition: nodes.PartitionReference | None) -> str:
    """Return IN PARTITION of an action with a blank before it, "" for all partitions."""
    if partition is not None and partition.kind == "ID":
        return f" IN PARTITION ID '{partition.id}'"
    if partition is not None and partition.value is not None:
        return f" IN PARTITION {format_expression(partition.value)}"
    return ""


_NEVER = moment(0)

TABLES = (
    SystemTable(
        "mutations",
        """database String, table String, mutation_id String, command String, create_time DateTime,
        finish_time DateTime, block_numbers.partition_id Array(String),
        block_numbers.number Array(Int64), parts_in_progress_names Array(String),
        parts_to_do_names Array(String), parts_to_do Int64,
        parts_postpone_reasons Map(String, String), is_done UInt8, is_killed UInt8,
        latest_failed_part String, latest_fail_time DateTime, latest_fail_reason String,
        latest_fail_error_code_name String, parts_done UInt64, query_id String, commit UInt64""",
        _mutations,
    ),
)
