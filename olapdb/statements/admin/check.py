"""CHECK TABLE: read every byte of the parts, and compare it with its recorded checksum and
bounds."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.dml.part_selection import is_part_name
from olapdb.errors import BadDataPartName, NoSuchDataPart, NotSupportedError, QueryWasCancelled
from olapdb.maintenance.check import part_problems
from olapdb.maintenance.damaged_parts import damage_of, record_check
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_database
from olapdb.statements.dml.partitions import find_partition
from olapdb.types import STRING, UINT8


def check_tables(statement: nodes.CheckTable, context: StatementContext) -> Result:
    """Return a row (part_path, is_passed, message) for each part; CHECK ALL TABLES adds the columns
    database and table in front. CHECK DATABASE asks whether the database's catalog can be reached, as
    it was to answer.

    With the setting check_query_single_value_result, there is one row, whether all parts passed.
    A damaged part is a row, not an error: SYSTEM QUARANTINE PART 'part' ON t sets it aside. Parts
    without rows are skipped.
    """
    context = context.with_settings(statement.settings)
    if statement.database:
        require_database(statement.database, context.snapshot(), statement.position)
        return Result()
    with context.services.catalog.pinned() as snapshot:
        if statement.table is not None:
            table = _checkable_table(statement.table, context, snapshot)
            selected_parts = _selected_parts(statement, table, context, snapshot)
            rows = list(_check_parts(table, selected_parts, snapshot, context))
            names, types = ["part_path", "is_passed", "message"], [STRING, UINT8, STRING]
        else:
            rows = [
                (table.database, table.name, *row)
                for table in snapshot.objects()
                if isinstance(table, Table)
                for row in _check_parts(table, snapshot.parts(table.id), snapshot, context)
            ]
            names = ["database", "table", "part_path", "is_passed", "message"]
            types = [STRING, STRING, STRING, UINT8, STRING]
    if context.settings.boolean("check_query_single_value_result"):
        return from_columns(["result"], [UINT8], [[int(all(row[-2] for row in rows))]])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    return from_columns(names, types, columns)


def _checkable_table(name: nodes.TableName, context: StatementContext, snapshot: Snapshot) -> Table:
    """Return the table to check, for a materialized view its target. Raise NotSupportedError for an
    object that stores no rows."""
    table = context.require(snapshot, name)
    if isinstance(table, MaterializedView):
        table = snapshot.by_id(table.target_id) or table
    if not isinstance(table, Table) or not table.engine.stores_rows:
        engine = table.engine.name if isinstance(table, Table) else "View"
        raise NotSupportedError(
            f"CHECK TABLE: {name} is of the engine {engine}, which stores nothing.",
            hint="Name a table that stores rows, or use CHECK ALL TABLES.",
            position=name.position,
        )
    return table


def _selected_parts(
    statement: nodes.CheckTable, table: Table, context: StatementContext, snapshot: Snapshot
) -> list[Part]:
    """Return the parts that PARTITION or PART selects, all without a clause. Raise NoSuchDataPart
    for a part that the table lacks, BadDataPartName for what is no name of a part."""
    parts = list(snapshot.parts(table.id))
    reference = statement.partition
    if reference is None or reference.kind == "ALL":
        return parts
    if reference.kind != "PART":
        partition = find_partition(reference, table, context, snapshot)
        return [part for part in parts if part.partition_id == partition]
    named_parts = [part for part in parts if reference.id in (part.name, part.id)]
    if not named_parts:
        known = is_part_name(reference.id or "")
        kind = NoSuchDataPart if known else BadDataPartName
        raise kind(
            f"{table.database}.{table.name} has no part {reference.id}.",
            hint="system.parts lists those there are.",
            position=reference.position,
        )
    return named_parts


def _check_parts(
    table: Table,
    parts: list[Part] | tuple[Part, ...],
    snapshot: Snapshot,
    context: StatementContext,
) -> Iterator[tuple[object, ...]]:
    """Check the parts with rows in block order; yield (part name, is_passed, message) for each.
    Each verdict is recorded in the catalog at once. Raise QueryWasCancelled between two parts."""
    services = context.services
    for part in sorted(parts, key=lambda candidate: candidate.block_range):
        if not part.rows:
            continue
        if context.cancelled.is_set():
            raise QueryWasCancelled("CHECK TABLE was cancelled.")
        problems = list(part_problems(snapshot, services.store, table, part))
        damaged = [damage_of(part, "; ".join(problems), services.clock_ms())] if problems else []
        record_check(services, damaged, () if problems else (part.id,))
        if context.progress is not None:
            context.progress(f"{table.database}.{table.name}: {part.name}")
        yield part.name, int(not problems), "; ".join(problems)
