"""What vacuum forgets: rows that no snapshot reaches any more."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog import tables as t
from olapdb.catalog.statements.base import P, Statement


def _without_parts() -> Any:
    """Tables dropped up to `up_to` of whose parts none is left."""
    kept = sa.exists().where(
        t.parts.c.dropped_commit == t.dropped_tables.c.dropped_commit,
        t.parts.c.table_id == t.dropped_tables.c.table_id,
    )
    return sa.and_(t.dropped_tables.c.dropped_commit <= P("up_to"), sa.not_(kept))


forget_dropped_tables = Statement(lambda: sa.delete(t.dropped_tables).where(_without_parts()))

_VERSIONED = (
    t.databases,
    t.objects,
    t.coverage,
    t.invalidations,
    t.checks,
    t.source_offsets,
    t.retained,
)


def _forget(table: sa.Table) -> Statement:
    return Statement(lambda: sa.delete(table).where(table.c.dropped_commit <= P("up_to")))


def _has_history() -> Any:
    return sa.union_all(
        *(
            sa.select(sa.literal_column("1")).where(table.c.dropped_commit <= P("up_to"))
            for table in _VERSIONED
        ),
        sa.select(sa.literal_column("1")).where(t.commits.c.number < P("before")),
        sa.select(sa.literal_column("1")).where(_without_parts()),
    )


has_history = Statement(_has_history)
forget_dropped = tuple(_forget(table) for table in _VERSIONED)


def _forget_homeless(table: sa.Table) -> Statement:
    """What is kept of tables that nothing can bring back."""
    return Statement(
        lambda: sa.delete(table).where(
            table.c.table_id.not_in(sa.select(t.objects.c.id)),
            table.c.table_id.not_in(sa.select(t.dropped_tables.c.table_id)),
        )
    )


forget_homeless = tuple(
    _forget_homeless(table)
    for table in (t.tokens, t.source_offsets, t.key_ledgers, t.accepted_keys)
)


def _forget_superseded_checks() -> Any:
    newest = sa.select(sa.func.max(t.checks.c.id)).where(
        t.checks.c.created_commit <= P("up_to")
    ).group_by(t.checks.c.view_id, t.checks.c.target_partition)  # fmt: skip
    return sa.delete(t.checks).where(
        t.checks.c.created_commit <= P("up_to"), t.checks.c.id.not_in(newest)
    )


forget_superseded_checks = Statement(_forget_superseded_checks)
