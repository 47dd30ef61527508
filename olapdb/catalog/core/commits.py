"""Commits, and the catalog's facts about itself."""

from __future__ import annotations

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, insert_into

insert_meta = insert_into(t.meta)
all_meta = CoreStatement(lambda: sa.select(t.meta.c.key, t.meta.c.value))
get_meta = CoreStatement(lambda: sa.select(t.meta.c.value).where(t.meta.c.key == P("name")))
set_meta = CoreStatement(
    lambda: sa.update(t.meta).where(t.meta.c.key == P("name")).values(value=P("content"))
)

insert_commit = insert_into(t.commits)
newest_commit = CoreStatement(lambda: sa.select(sa.func.max(t.commits.c.number)))
oldest_commit = CoreStatement(lambda: sa.select(sa.func.min(t.commits.c.number)))
newest_commit_until = CoreStatement(
    lambda: sa.select(sa.func.max(t.commits.c.number)).where(t.commits.c.time_ms <= P("until_ms"))
)
commit_by_id = CoreStatement(
    lambda: sa.select(t.commits.c.number).where(
        t.commits.c.number > P("after"), t.commits.c.id == P("commit_id")
    )
)
list_commits = CoreStatement(
    lambda: (
        sa.select(
            t.commits.c.number,
            t.commits.c.kind,
            t.commits.c.query_id,
            t.commits.c.statement,
            t.commits.c.time_ms,
            t.commits.c.process_id,
        )
        .where(t.commits.c.number >= P("since"), t.commits.c.number <= P("up_to"))
        .order_by(t.commits.c.number)
    )
)
purge_commits = CoreStatement(lambda: sa.delete(t.commits).where(t.commits.c.number < P("before")))
