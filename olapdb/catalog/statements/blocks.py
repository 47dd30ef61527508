"""Blocks and data versions of tables."""

from __future__ import annotations

import sqlalchemy as sa

from olapdb.catalog import tables as t
from olapdb.catalog.statements.base import P, Statement, insert_into

insert_block = insert_into(t.blocks)
newest_block = Statement(
    lambda: sa.select(sa.func.max(t.blocks.c.number)).where(t.blocks.c.table_id == P("of_table"))
)
newest_block_at = Statement(
    lambda: (
        sa.select(t.blocks.c.number)
        .where(t.blocks.c.table_id == P("of_table"), t.blocks.c.commit_number <= P("at_commit"))
        .order_by(t.blocks.c.number.desc())
    )
)
blocks_at = Statement(
    lambda: sa.select(
        t.blocks.c.table_id, t.blocks.c.number, t.blocks.c.commit_number, t.blocks.c.row_count,
        t.blocks.c.query_id, t.blocks.c.kind, t.blocks.c.created_ms,
    )
    .where(t.blocks.c.table_id == P("of_table"), t.blocks.c.commit_number <= P("at_commit"))
    .order_by(t.blocks.c.number)
)  # fmt: skip
block_span_at = Statement(
    lambda: sa.select(sa.func.count(), sa.func.min(t.blocks.c.created_ms)).where(
        t.blocks.c.table_id == P("of_table"), t.blocks.c.number >= P("first"),
        t.blocks.c.number <= P("last"), t.blocks.c.commit_number <= P("at_commit"),
    )
)  # fmt: skip
insert_data_version = insert_into(t.data_versions)
data_version_at = Statement(
    lambda: sa.select(sa.func.max(t.data_versions.c.version)).where(
        t.data_versions.c.table_id == P("of_table"),
        t.data_versions.c.partition_id == P("of_partition"),
        t.data_versions.c.commit_number <= P("at_commit"),
    )
)
