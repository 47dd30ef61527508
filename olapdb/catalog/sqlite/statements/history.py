"""What vacuum forgets: rows that no snapshot reaches any more."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.sqlite import tables as t
from olapdb.catalog.sqlite.statements.base import CatalogStatement, P, listed


def _without_parts() -> Any:
    """Tables dropped up to `up_to` of whose parts none is left."""
    kept = sa.exists().where(
        t.parts.c.dropped_commit == t.dropped_tables.c.dropped_commit,
        t.parts.c.table_id == t.dropped_tables.c.table_id,
    )
    return sa.and_(t.dropped_tables.c.dropped_commit <= P("up_to"), sa.not_(kept))


forget_dropped_tables = CatalogStatement(
    lambda: sa.delete(t.dropped_tables).where(_without_parts())
)

_VERSIONED = (
    t.databases,
    t.objects,
    t.coverage,
    t.invalidations,
    t.checks,
    t.source_offsets,
    t.retained,
)


def _forget(table: sa.Table) -> CatalogStatement:
    return CatalogStatement(lambda: sa.delete(table).where(table.c.dropped_commit <= P("up_to")))


def _has_history() -> Any:
    return sa.union_all(
        *(
            sa.select(sa.literal_column("1")).where(table.c.dropped_commit <= P("up_to"))
            for table in _VERSIONED
        ),
        sa.select(sa.literal_column("1")).where(t.commits.c.number < P("before")),
        sa.select(sa.literal_column("1")).where(_without_parts()),
    )


has_history = CatalogStatement(_has_history)
forget_dropped = tuple(_forget(table) for table in _VERSIONED)


def _leaving_tables() -> Any:
    """Tables of which a version is forgotten up to `up_to`; some of them may be there still."""
    return sa.union(
        sa.select(t.objects.c.id).where(
            t.objects.c.dropped_commit <= P("up_to"),
            t.objects.c.kind == sa.literal_column("'table'"),
        ),
        sa.select(t.dropped_tables.c.table_id).where(_without_parts()),
    )


leaving_tables = CatalogStatement(_leaving_tables)


def _homeless(table: sa.Table) -> Any:
    """What is kept of tables that nothing can bring back."""
    return sa.and_(
        table.c.table_id.not_in(sa.select(t.objects.c.id)),
        table.c.table_id.not_in(sa.select(t.dropped_tables.c.table_id)),
    )


def _forget_homeless(table: sa.Table) -> CatalogStatement:
    """Of the tables `of_tables` only: these rows are many, and a round must not look at all."""
    return CatalogStatement(
        lambda: sa.delete(table).where(table.c.table_id.in_(listed("of_tables")), _homeless(table))
    )


_OF_TABLES = (
    t.tokens,
    t.source_offsets,
    t.key_ledgers,
    t.accepted_keys,
    t.blocks,
    t.block_spans,
    t.data_versions,
)
forget_homeless = tuple(_forget_homeless(table) for table in _OF_TABLES)


def _forget_all_homeless(table: sa.Table) -> CatalogStatement:
    return CatalogStatement(lambda: sa.delete(table).where(_homeless(table)))


forget_all_homeless = tuple(_forget_all_homeless(table) for table in _OF_TABLES)


def _forget_superseded_checks() -> Any:
    newest = (
        sa.select(sa.func.max(t.checks.c.id))
        .where(t.checks.c.created_commit <= P("up_to"))
        .group_by(t.checks.c.view_id, t.checks.c.target_partition)
    )
    return sa.delete(t.checks).where(
        t.checks.c.created_commit <= P("up_to"), t.checks.c.id.not_in(newest)
    )


forget_superseded_checks = CatalogStatement(_forget_superseded_checks)
