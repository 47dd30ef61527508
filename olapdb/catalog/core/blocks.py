"""Blocks and data versions of tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, insert_into

insert_block = insert_into(t.blocks)
newest_block = CoreStatement(
    lambda: sa.select(sa.func.max(t.blocks.c.number)).where(t.blocks.c.table_id == P("of_table"))
)
newest_block_at = CoreStatement(
    lambda: (
        sa.select(t.blocks.c.number)
        .where(t.blocks.c.table_id == P("of_table"), t.blocks.c.commit_number <= P("at_commit"))
        .order_by(t.blocks.c.number.desc())
    )
)
blocks_at = CoreStatement(
    lambda: (
        sa.select(
            t.blocks.c.table_id,
            t.blocks.c.number,
            t.blocks.c.commit_number,
            t.blocks.c.row_count,
            t.blocks.c.query_id,
            t.blocks.c.kind,
            t.blocks.c.created_ms,
        )
        .where(t.blocks.c.table_id == P("of_table"), t.blocks.c.commit_number <= P("at_commit"))
        .order_by(t.blocks.c.number)
    )
)
block_span_at = CoreStatement(
    lambda: sa.select(sa.func.count(), sa.func.min(t.blocks.c.created_ms)).where(
        t.blocks.c.table_id == P("of_table"),
        t.blocks.c.number >= P("first"),
        t.blocks.c.number <= P("last"),
        t.blocks.c.commit_number <= P("at_commit"),
    )
)

insert_span = insert_into(t.block_spans)
spans_of = CoreStatement(
    lambda: (
        sa.select(
            t.block_spans.c.first_block,
            t.block_spans.c.last_block,
            t.block_spans.c.first_commit,
            t.block_spans.c.last_commit,
            t.block_spans.c.row_count,
            t.block_spans.c.oldest_ms,
            t.block_spans.c.newest_ms,
        )
        .where(t.block_spans.c.table_id == P("of_table"))
        .order_by(t.block_spans.c.last_block)
    )
)
delete_spans = CoreStatement(
    lambda: sa.delete(t.block_spans).where(t.block_spans.c.table_id == P("of_table"))
)
delete_blocks = CoreStatement(
    lambda: sa.delete(t.blocks).where(
        t.blocks.c.table_id == P("of_table"),
        t.blocks.c.number >= P("first"),
        t.blocks.c.number <= P("last"),
    )
)
blocks_until = CoreStatement(
    lambda: (
        sa.select(
            t.blocks.c.number, t.blocks.c.commit_number, t.blocks.c.row_count, t.blocks.c.created_ms
        )
        .where(
            t.blocks.c.table_id == P("of_table"),
            t.blocks.c.commit_number <= P("up_to"),
            t.blocks.c.number < P("before"),
            t.blocks.c.number > P("after"),
        )
        .order_by(t.blocks.c.number)
    )
)
block_counts_until = CoreStatement(
    lambda: (
        sa.select(t.blocks.c.table_id, sa.func.count())
        .where(t.blocks.c.commit_number <= P("up_to"))
        .group_by(t.blocks.c.table_id)
    )
)
commits_of_failures = CoreStatement(
    lambda: (
        sa.select(t.invalidations.c.created_commit)
        .distinct()
        .where(
            t.invalidations.c.cause == sa.literal_column("'VIEW FAILED'"),
            sa.or_(
                t.invalidations.c.dropped_commit.is_(None),
                t.invalidations.c.dropped_commit > P("up_to"),
            ),
        )
    )
)
purge_older_versions = CoreStatement(lambda: sa.delete(t.data_versions).where(_superseded()))


def _superseded() -> Any:
    """Return the condition that every readable snapshot sees a newer version of the partition."""
    newer = t.data_versions.alias()
    return sa.and_(
        t.data_versions.c.commit_number <= P("up_to"),
        sa.exists().where(
            newer.c.table_id == t.data_versions.c.table_id,
            newer.c.partition_id == t.data_versions.c.partition_id,
            newer.c.version > t.data_versions.c.version,
            newer.c.commit_number <= P("up_to"),
        ),
    )


insert_data_version = insert_into(t.data_versions)
data_versions_at = CoreStatement(
    lambda: (
        sa.select(t.data_versions.c.partition_id, sa.func.max(t.data_versions.c.version))
        .where(
            t.data_versions.c.table_id == P("of_table"),
            t.data_versions.c.commit_number <= P("at_commit"),
        )
        .group_by(t.data_versions.c.partition_id)
    )
)
data_version_at = CoreStatement(
    lambda: sa.select(sa.func.max(t.data_versions.c.version)).where(
        t.data_versions.c.table_id == P("of_table"),
        t.data_versions.c.partition_id == P("of_partition"),
        t.data_versions.c.commit_number <= P("at_commit"),
    )
)
