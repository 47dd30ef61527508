"""Rows that vacuum purges: no snapshot reaches them any more."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, listed


def _without_parts() -> Any:
    """Return the condition that a commit up to :up_to dropped a table, and that the catalog has
    none of the parts dropped with it."""
    has_parts = sa.exists().where(
        t.parts.c.dropped_commit == t.dropped_tables.c.dropped_commit,
        t.parts.c.table_id == t.dropped_tables.c.table_id,
    )
    return sa.and_(t.dropped_tables.c.dropped_commit <= P("up_to"), sa.not_(has_parts))


purge_dropped_tables = CoreStatement(lambda: sa.delete(t.dropped_tables).where(_without_parts()))

_VERSIONED_TABLES = (
    t.databases,
    t.objects,
    t.coverage,
    t.invalidations,
    t.checks,
    t.source_offsets,
    t.retained,
)


def _purge(table: sa.Table) -> CoreStatement:
    """Return the DELETE of the table's rows that commits up to :up_to dropped."""
    return CoreStatement(lambda: sa.delete(table).where(table.c.dropped_commit <= P("up_to")))


def _has_history() -> Any:
    """Return the query that gives a row if vacuum would purge anything: dropped rows, commits
    before :before, dropped tables without parts."""
    return sa.union_all(
        *(
            sa.select(sa.literal_column("1")).where(table.c.dropped_commit <= P("up_to"))
            for table in _VERSIONED_TABLES
        ),
        sa.select(sa.literal_column("1")).where(t.commits.c.number < P("before")),
        sa.select(sa.literal_column("1")).where(_without_parts()),
    )


has_history = CoreStatement(_has_history)
purge_dropped = tuple(_purge(table) for table in _VERSIONED_TABLES)


def _tables_dropped_until() -> Any:
    """Return the query of the ids of tables with a definition that was dropped up to :up_to. A
    table whose definition was only replaced is among them."""
    return sa.union(
        sa.select(t.objects.c.id).where(
            t.objects.c.dropped_commit <= P("up_to"),
            t.objects.c.kind == sa.literal_column("'table'"),
        ),
        sa.select(t.dropped_tables.c.table_id).where(_without_parts()),
    )


tables_dropped_until = CoreStatement(_tables_dropped_until)


def _is_orphan(table: sa.Table) -> Any:
    """Return the condition that a row's table neither exists nor can be recovered."""
    return sa.and_(
        table.c.table_id.not_in(sa.select(t.objects.c.id)),
        table.c.table_id.not_in(sa.select(t.dropped_tables.c.table_id)),
    )


def _purge_orphans(table: sa.Table) -> CoreStatement:
    """Return the DELETE of orphans among the rows of the tables :of_tables. A scan of all rows each
    round would be too slow."""
    return CoreStatement(
        lambda: sa.delete(table).where(table.c.table_id.in_(listed("of_tables")), _is_orphan(table))
    )


_TABLE_CONTENTS = (
    t.tokens,
    t.source_offsets,
    t.key_ledgers,
    t.accepted_keys,
    t.blocks,
    t.block_spans,
    t.data_versions,
)
purge_orphans = tuple(_purge_orphans(table) for table in _TABLE_CONTENTS)


def _purge_all_orphans(table: sa.Table) -> CoreStatement:
    """Return the DELETE of all rows whose table neither exists nor can be recovered."""
    return CoreStatement(lambda: sa.delete(table).where(_is_orphan(table)))


purge_all_orphans = tuple(_purge_all_orphans(table) for table in _TABLE_CONTENTS)


def _purge_superseded_checks() -> Any:
    """Return the DELETE of all checks made up to commit :up_to, except the newest of each view and
    target partition."""
    newest = (
        sa.select(sa.func.max(t.checks.c.id))
        .where(t.checks.c.created_commit <= P("up_to"))
        .group_by(t.checks.c.view_id, t.checks.c.target_partition)
    )
    return sa.delete(t.checks).where(
        t.checks.c.created_commit <= P("up_to"), t.checks.c.id.not_in(newest)
    )


purge_superseded_checks = CoreStatement(_purge_superseded_checks)
