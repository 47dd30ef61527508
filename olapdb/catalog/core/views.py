"""The ledger of views: coverage, invalidations, retained slices, checks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, alive, insert_into, listed

insert_coverage = insert_into(t.coverage)
extend_coverage = CoreStatement(
    lambda: (
        sa.update(t.coverage)
        .where(
            t.coverage.c.view_id == P("of_view"),
            t.coverage.c.last_block == P("before"),
            t.coverage.c.partition_id.is_(None),
            t.coverage.c.dropped_commit.is_(None),
        )
        .values(last_block=P("block"))
    )
)
coverage_at = CoreStatement(
    lambda: sa.select(
        t.coverage.c.row_id,
        t.coverage.c.partition_id,
        t.coverage.c.first_block,
        t.coverage.c.last_block,
    ).where(t.coverage.c.view_id == P("of_view"), alive(t.coverage))
)
coverage_of_partition = CoreStatement(
    lambda: sa.select(
        t.coverage.c.row_id,
        t.coverage.c.partition_id,
        t.coverage.c.first_block,
        t.coverage.c.last_block,
    ).where(
        t.coverage.c.view_id == P("of_view"),
        sa.or_(t.coverage.c.partition_id.is_(None), t.coverage.c.partition_id == P("partition")),
        alive(t.coverage),
    )
)
drop_coverage = CoreStatement(
    lambda: (
        sa.update(t.coverage)
        .where(t.coverage.c.row_id.in_(listed("row_ids")))
        .values(dropped_commit=P("number"))
    )
)

insert_invalidation = CoreStatement(
    lambda: sa.insert(t.invalidations).values(
        {c.name: P(c.name) for c in t.invalidations.columns if c.name != "id"}
    )
)
invalidations_at = CoreStatement(
    lambda: (
        sa.select(
            t.invalidations.c.view_id,
            t.invalidations.c.target_partition,
            t.invalidations.c.cause,
            t.invalidations.c.statement,
            t.invalidations.c.query_id,
            t.invalidations.c.row_count,
            t.invalidations.c.since_ms,
            t.invalidations.c.example_keys,
            t.invalidations.c.id,
            t.invalidations.c.created_commit,
        )
        .where(alive(t.invalidations))
        .order_by(t.invalidations.c.id)
    )
)
clear_invalidations_of_slice = CoreStatement(
    lambda: (
        sa.update(t.invalidations)
        .where(
            t.invalidations.c.view_id == P("of_view"),
            t.invalidations.c.target_partition == P("of_partition"),
            t.invalidations.c.created_commit <= P("up_to"),
            t.invalidations.c.dropped_commit.is_(None),
        )
        .values(dropped_commit=P("number"))
    )
)
clear_invalidations = CoreStatement(
    lambda: (
        sa.update(t.invalidations)
        .where(
            t.invalidations.c.view_id == P("of_view"),
            t.invalidations.c.created_commit <= P("up_to"),
            t.invalidations.c.dropped_commit.is_(None),
            # Notes of failures are about no slice: they stay until their gap is filled.
            t.invalidations.c.target_partition.is_distinct_from(sa.literal_column("''")),
        )
        .values(dropped_commit=P("number"))
    )
)

insert_retained = insert_into(t.retained)
retained_at = CoreStatement(
    lambda: (
        sa.select(t.retained.c.row_id, t.retained.c.body)
        .where(alive(t.retained))
        .order_by(t.retained.c.row_id)
    )
)
retained_of = CoreStatement(
    lambda: sa.select(t.retained.c.row_id, t.retained.c.body).where(
        t.retained.c.view_id == P("of_view"), t.retained.c.dropped_commit.is_(None)
    )
)
drop_retained = CoreStatement(
    lambda: (
        sa.update(t.retained)
        .where(t.retained.c.row_id.in_(listed("row_ids")))
        .values(dropped_commit=P("number"))
    )
)

insert_check = CoreStatement(
    lambda: sa.insert(t.checks).values(
        {c.name: P(c.name) for c in t.checks.columns if c.name != "id"}
    )
)


def _checks_at() -> Any:
    """Return the query of the newest live check for each view and target partition, ordered by
    both."""
    newest = (
        sa.select(sa.func.max(t.checks.c.id))
        .where(alive(t.checks))
        .group_by(t.checks.c.view_id, t.checks.c.target_partition)
    )
    return (
        sa.select(t.checks.c.body)
        .where(t.checks.c.id.in_(newest))
        .order_by(t.checks.c.view_id, t.checks.c.target_partition)
    )


checks_at = CoreStatement(_checks_at)
drop_checks = CoreStatement(
    lambda: (
        sa.update(t.checks)
        .where(t.checks.c.view_id == P("of_view"), t.checks.c.dropped_commit.is_(None))
        .values(dropped_commit=P("number"))
    )
)
