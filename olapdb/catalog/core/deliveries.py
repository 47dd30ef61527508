"""Duplicate detection: tokens, offsets of streams, keys."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, alive, insert_into

insert_token = insert_into(t.tokens)
token_commit = CoreStatement(
    lambda: sa.select(t.tokens.c.commit_number).where(
        t.tokens.c.table_id == P("of_table"), t.tokens.c.token == P("of_token")
    )
)

forget_tokens = CoreStatement(
    lambda: sa.delete(t.tokens).where(t.tokens.c.table_id == P("of_table"))
)
insert_offset = insert_into(t.source_offsets)
drop_offset = CoreStatement(
    lambda: (
        sa.update(t.source_offsets)
        .where(
            t.source_offsets.c.table_id == P("of_table"),
            t.source_offsets.c.stream == P("of_stream"),
            t.source_offsets.c.dropped_commit.is_(None),
        )
        .values(dropped_commit=P("number"))
    )
)
drop_all_offsets = CoreStatement(
    lambda: (
        sa.update(t.source_offsets)
        .where(
            t.source_offsets.c.table_id == P("of_table"),
            t.source_offsets.c.dropped_commit.is_(None),
        )
        .values(dropped_commit=P("number"))
    )
)
offset_of_stream = CoreStatement(
    lambda: sa.select(t.source_offsets.c.position).where(
        t.source_offsets.c.table_id == P("of_table"),
        t.source_offsets.c.stream == P("of_stream"),
        t.source_offsets.c.dropped_commit.is_(None),
    )
)
offsets_at = CoreStatement(
    lambda: (
        sa.select(
            t.source_offsets.c.stream,
            t.source_offsets.c.position,
            t.source_offsets.c.created_commit,
            t.source_offsets.c.time_ms,
            t.source_offsets.c.token,
        )
        .where(t.source_offsets.c.table_id == P("of_table"), alive(t.source_offsets))
        .order_by(t.source_offsets.c.stream)
    )
)

key_ledger = CoreStatement(
    lambda: sa.select(
        t.key_ledgers.c.definition,
        t.key_ledgers.c.epoch,
        t.key_ledgers.c.oldest,
        t.key_ledgers.c.next,
        t.key_ledgers.c.newest_ms,
        t.key_ledgers.c.dropped,
    ).where(t.key_ledgers.c.table_id == P("of_table"))
)
put_key_ledger = CoreStatement(
    lambda: (
        sa.insert(t.key_ledgers)
        .prefix_with("OR REPLACE")
        .values({c.name: P(c.name) for c in t.key_ledgers.columns})
    )
)
insert_keys = insert_into(t.accepted_keys)
keys_since = CoreStatement(
    lambda: (
        sa.select(
            t.accepted_keys.c.first_ordinal, t.accepted_keys.c.segments, t.accepted_keys.c.hashes
        )
        .where(
            t.accepted_keys.c.table_id == P("of_table"), t.accepted_keys.c.next_ordinal > P("since")
        )
        .order_by(t.accepted_keys.c.first_ordinal)
    )
)
newest_key_tiers = CoreStatement(
    lambda: (
        sa.select(
            t.accepted_keys.c.first_ordinal, t.accepted_keys.c.next_ordinal, t.accepted_keys.c.tier
        )
        .where(t.accepted_keys.c.table_id == P("of_table"))
        .order_by(t.accepted_keys.c.first_ordinal.desc())
    )
)
oldest_keys = CoreStatement(
    lambda: (
        sa.select(t.accepted_keys.c.first_ordinal, t.accepted_keys.c.segments)
        .where(t.accepted_keys.c.table_id == P("of_table"))
        .order_by(t.accepted_keys.c.first_ordinal)
    )
)
delete_keys_from = CoreStatement(
    lambda: sa.delete(t.accepted_keys).where(
        t.accepted_keys.c.table_id == P("of_table"), t.accepted_keys.c.first_ordinal >= P("first")
    )
)
delete_expired_keys = CoreStatement(
    lambda: sa.delete(t.accepted_keys).where(
        t.accepted_keys.c.table_id == P("of_table"),
        sa.or_(
            t.accepted_keys.c.next_ordinal <= P("oldest"),
            t.accepted_keys.c.newest_ms <= P("cutoff_ms"),
        ),
    )
)


def _has_deliveries() -> Any:
    """Return the query that gives a row if the table has any token, live offset or accepted key."""
    one: Any = sa.literal_column("1")
    offsets, keys = t.source_offsets, t.accepted_keys
    return sa.union_all(
        sa.select(one).where(t.tokens.c.table_id == P("of_table")),
        sa.select(one).where(
            offsets.c.table_id == P("of_table"), offsets.c.dropped_commit.is_(None)
        ),
        sa.select(one).where(keys.c.table_id == P("of_table")),
    )


has_deliveries = CoreStatement(_has_deliveries)
key_bytes: Any = sa.func.length(t.accepted_keys.c.hashes) + sa.func.length(
    t.accepted_keys.c.segments
)
accepted_key_bytes = CoreStatement(
    lambda: sa.select(sa.func.sum(key_bytes)).where(t.accepted_keys.c.table_id == P("of_table"))
)
