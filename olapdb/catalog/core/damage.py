"""Parts known to be damaged."""

from __future__ import annotations

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, insert_into, listed

insert_damaged = insert_into(t.damaged_parts)
all_damaged = CoreStatement(lambda: sa.select(*t.damaged_parts.columns))
clear_damaged = CoreStatement(
    lambda: sa.delete(t.damaged_parts).where(t.damaged_parts.c.part_id.in_(listed("part_ids")))
)
clear_damaged_of_dropped = CoreStatement(
    lambda: sa.delete(t.damaged_parts).where(
        t.damaged_parts.c.part_id.not_in(
            sa.select(t.parts.c.id).where(t.parts.c.dropped_commit.is_(None))
        )
    )
)
clear_all_damaged = CoreStatement(lambda: sa.delete(t.damaged_parts))
