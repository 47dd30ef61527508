"""system.source_offsets and deduplication: by what duplicate deliveries are recognized."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.ingest.deduplication_key import key_rule
from olapdb.model.schema import Table
from olapdb.system.registry import Row, SystemContext, SystemTable, moment


def _tables(context: SystemContext) -> Iterator[Table]:
    """Yield the tables of all databases."""
    return (item for item in context.objects("table") if isinstance(item, Table))


def _source_offsets(context: SystemContext) -> Iterator[Row]:
    """Yield the positions as of the query's snapshot, so that they agree with its rows."""
    for table in _tables(context):
        for offset in context.services.catalog.source_offsets(table.id, context.snapshot.number):
            yield (
                table.database,
                table.name,
                offset.stream,
                offset.position,
                offset.commit,
                moment(offset.time_ms),
                offset.token,
            )


def _deduplication(context: SystemContext) -> Iterator[Row]:
    """Yield the key ledgers of tables with `deduplicate_by`, as of now. Keys that left the window
    since the last INSERT are not counted."""
    catalog, now_ms = context.services.catalog, context.services.clock_ms()
    for table in _tables(context):
        rule = key_rule(table)
        if rule is None:
            continue
        ledger = catalog.key_ledger(table.id)
        oldest, oldest_ms = catalog.oldest_key(
            table.id, now_ms - rule.window_ms if rule.window_ms else -1
        )
        key_count = ledger.next - max(oldest, ledger.next - rule.window_rows)
        if ledger.definition not in ("", rule.definition):
            key_count = 0  # keys of other columns: the next INSERT forgets them
        yield (
            table.database,
            table.name,
            list(rule.columns),
            key_count,
            ledger.dropped,
            rule.window_rows,
            rule.window_ms // 1_000,
            moment(oldest_ms) if key_count else None,
            moment(ledger.newest_ms) if key_count else None,
            catalog.accepted_key_bytes(table.id),
        )


TABLES = (
    SystemTable(
        "source_offsets",
        """database String, table String, stream String, position UInt64, commit UInt64,
        time DateTime64(3), token String""",
        _source_offsets,
        "How far each table has come in the streams that feed it",
    ),
    SystemTable(
        "deduplication",
        """database String, table String, columns Array(String), keys_held UInt64,
        rows_dropped UInt64, window_rows UInt64, window_seconds UInt64,
        oldest Nullable(DateTime64(3)), newest Nullable(DateTime64(3)), bytes UInt64""",
        _deduplication,
        "The keys of accepted rows that tables with deduplicate_by remember",
    ),
)
