"""Parts, and the rows of inline parts, as of a commit."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, insert_into, listed, unindexed

PART_COLUMNS = (
    t.parts.c.id,
    t.parts.c.table_id,
    t.parts.c.partition_id,
    t.parts.c.first_block,
    t.parts.c.last_block,
    t.parts.c.level,
    t.parts.c.rows,
    t.parts.c.bytes,
    t.parts.c.path,
    t.parts.c.inline,
    t.parts.c.created_commit,
    t.parts.c.rest,
)

insert_part = insert_into(t.parts)
insert_inline = insert_into(t.inline_rows)
inline_of_part = CoreStatement(
    lambda: sa.select(t.inline_rows.c.data).where(t.inline_rows.c.part_id == P("of_part"))
)


def _parts_at() -> Any:
    """Return the query of the parts of table :of_table in the snapshot of commit :number,
    unordered."""
    # Two queries, so that each uses its partial index.
    live = sa.select(*PART_COLUMNS).where(
        t.parts.c.table_id == P("of_table"),
        t.parts.c.dropped_commit.is_(None),
        t.parts.c.created_commit <= P("number"),
    )
    dropped = sa.select(*PART_COLUMNS).where(
        t.parts.c.dropped_commit > P("number"),
        t.parts.c.table_id == P("of_table"),
        t.parts.c.created_commit <= P("number"),
    )
    return sa.union_all(live, dropped)


parts_at = CoreStatement(_parts_at)
parts_created_since = CoreStatement(
    lambda: sa.select(*PART_COLUMNS).where(
        t.parts.c.created_commit > P("after"), t.parts.c.created_commit <= P("up_to")
    )
)
parts_dropped_since = CoreStatement(
    lambda: sa.select(t.parts.c.table_id, t.parts.c.id, t.parts.c.dropped_commit).where(
        t.parts.c.dropped_commit > P("after"), t.parts.c.dropped_commit <= P("up_to")
    )
)
live_parts_of = CoreStatement(
    lambda: sa.select(
        t.parts.c.id, t.parts.c.partition_id, t.parts.c.first_block, t.parts.c.last_block
    ).where(t.parts.c.table_id == P("of_table"), t.parts.c.dropped_commit.is_(None))
)
live_parts_in = CoreStatement(
    lambda: sa.select(
        t.parts.c.id, t.parts.c.partition_id, t.parts.c.first_block, t.parts.c.last_block
    ).where(
        t.parts.c.table_id == P("of_table"),
        t.parts.c.partition_id == P("partition"),
        t.parts.c.dropped_commit.is_(None),
    )
)
live_parts_named = CoreStatement(
    lambda: sa.select(
        t.parts.c.id, t.parts.c.partition_id, t.parts.c.first_block, t.parts.c.last_block
    ).where(
        t.parts.c.id.in_(listed("part_ids")),
        unindexed(t.parts.c.table_id) == P("of_table"),
        t.parts.c.dropped_commit.is_(None),
    )
)
drop_parts = CoreStatement(
    lambda: (
        sa.update(t.parts)
        .where(
            t.parts.c.id.in_(listed("part_ids")),
            unindexed(t.parts.c.table_id) == P("of_table"),
            t.parts.c.dropped_commit.is_(None),
        )
        .values(dropped_commit=P("number"), dropped_ms=P("now_ms"))
    )
)
parts_dropped_with = CoreStatement(
    lambda: sa.select(*PART_COLUMNS).where(
        t.parts.c.dropped_commit == P("at_commit"), t.parts.c.table_id.in_(listed("of_tables"))
    )
)
drop_all_parts = CoreStatement(
    lambda: (
        sa.update(t.parts)
        .where(t.parts.c.table_id == P("of_table"), t.parts.c.dropped_commit.is_(None))
        .values(dropped_commit=P("number"), dropped_ms=P("now_ms"))
    )
)


def _due() -> Any:
    """Return the expression of the latest time (ms since 1970) at which a part must have been
    dropped for vacuum to purge it: that of its table in :until_of, a JSON object by table id, else
    :until_ms."""
    own = sa.func.json_each(P("until_of")).table_valued("key", "value").c
    of_table = sa.select(own.value).where(own.key == t.parts.c.table_id).scalar_subquery()
    return sa.func.coalesce(of_table, P("until_ms"))


def _is_due() -> Any:
    """Return the condition that a commit up to :up_to dropped the part, no later than `_due` says."""
    return sa.and_(t.parts.c.dropped_commit <= P("up_to"), t.parts.c.dropped_ms <= _due())


dropped_parts = CoreStatement(
    lambda: (
        sa.select(*PART_COLUMNS, t.parts.c.dropped_commit, t.parts.c.dropped_ms)
        .where(_is_due(), t.parts.c.dropped_commit >= P("after"))
        .order_by(t.parts.c.dropped_commit)
    )
)
overdue_parts = CoreStatement(lambda: sa.select(sa.func.count()).where(_is_due()))
purge_parts = CoreStatement(
    lambda: sa.delete(t.parts).where(
        t.parts.c.id.in_(listed("part_ids")), t.parts.c.dropped_commit <= P("up_to")
    )
)
purge_inline = CoreStatement(
    lambda: sa.delete(t.inline_rows).where(
        t.inline_rows.c.part_id.in_(listed("part_ids")),
        t.inline_rows.c.part_id.not_in(
            sa.select(t.parts.c.id).where(t.parts.c.id.in_(listed("part_ids")))
        ),
    )
)
paths_still_used = CoreStatement(
    lambda: sa.select(t.parts.c.path).where(
        t.parts.c.path != sa.literal_column("''"), t.parts.c.path.in_(listed("paths"))
    )
)


def _part_history() -> Any:
    """Return the query of the changes of parts by commits up to :up_to, newest first: each part
    with the commit that added it, and again with the one that dropped it."""

    def joined(at: Any, dropped: int) -> Any:
        """Return the query that joins parts with the commit whose number is in the column `at`. Its
        column "dropped" is the number given: 1 for removals, 0 for additions."""
        commit = t.commits.c
        return sa.select(
            *PART_COLUMNS,
            sa.literal_column(str(dropped)).label("dropped"),
            commit.number,
            commit.kind,
            commit.query_id,
            commit.statement,
            commit.time_ms,
        ).where(at == commit.number, commit.number <= P("up_to"))

    both = sa.union_all(joined(t.parts.c.created_commit, 0), joined(t.parts.c.dropped_commit, 1))
    return both.order_by(sa.literal_column("number").desc(), sa.literal_column("dropped"))


part_history = CoreStatement(_part_history)
all_parts = CoreStatement(lambda: sa.select(*PART_COLUMNS))
purge_dropped_parts = CoreStatement(
    lambda: sa.delete(t.parts).where(t.parts.c.dropped_commit <= P("up_to"))
)
purge_inline_of_dropped = CoreStatement(
    lambda: sa.delete(t.inline_rows).where(
        t.inline_rows.c.part_id.not_in(
            sa.select(t.parts.c.id).where(
                sa.or_(t.parts.c.dropped_commit.is_(None), t.parts.c.dropped_commit > P("up_to"))
            )
        )
    )
)
all_paths = CoreStatement(
    lambda: sa.select(t.parts.c.path).where(t.parts.c.path != sa.literal_column("''"))
)
