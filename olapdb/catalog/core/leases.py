"""Leases of processes."""

from __future__ import annotations

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, insert_into, listed

insert_lease = insert_into(t.leases)
lease_state = CoreStatement(
    lambda: sa.select(t.leases.c.state).where(t.leases.c.id == P("lease_id"))
)
set_lease_state = CoreStatement(
    lambda: (
        sa.update(t.leases)
        .where(
            t.leases.c.id.in_(listed("lease_ids")), t.leases.c.state == sa.literal_column("'live'")
        )
        .values(state=P("new_state"))
    )
)
renew_lease = CoreStatement(
    lambda: sa.update(t.leases).where(t.leases.c.id == P("lease_id")).values(renewed_ms=P("now_ms"))
)
all_leases = CoreStatement(lambda: sa.select(*t.leases.columns).order_by(t.leases.c.opened_ms))
purge_leases = CoreStatement(
    lambda: sa.delete(t.leases).where(
        t.leases.c.id.in_(listed("lease_ids")), t.leases.c.state != sa.literal_column("'live'")
    )
)
purge_all_leases = CoreStatement(lambda: sa.delete(t.leases))
