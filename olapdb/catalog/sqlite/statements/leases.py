"""Leases of processes.

Generated from `olapdb.catalog.core.leases` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_lease = CatalogStatement(
    "INSERT INTO leases (id, purpose, owner, process_id, state, opened_ms, renewed_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ("id", "purpose", "owner", "process_id", "state", "opened_ms", "renewed_ms"),
)
lease_state = CatalogStatement(
    "SELECT leases.state  FROM leases  WHERE leases.id = ?", ("lease_id",)
)
set_lease_state = CatalogStatement(
    "UPDATE leases SET state=? WHERE leases.id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1) AND leases.state = 'live'",
    ("new_state", "lease_ids"),
)
renew_lease = CatalogStatement(
    "UPDATE leases SET renewed_ms=? WHERE leases.id = ?", ("now_ms", "lease_id")
)
all_leases = CatalogStatement(
    "SELECT leases.id, leases.purpose, leases.owner, leases.process_id, leases.state, leases.opened_ms, leases.renewed_ms  "
    "FROM leases ORDER BY leases.opened_ms",
    (),
)
purge_leases = CatalogStatement(
    "DELETE FROM leases WHERE leases.id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1) AND leases.state != 'live'",
    ("lease_ids",),
)
purge_all_leases = CatalogStatement("DELETE FROM leases", ())
