"""TTL: removes expired rows of a table in one commit, groups them in another, resets expired columns
in a third.

    TTL d + INTERVAL 1 MONTH                     every row, a month after d
    TTL d + INTERVAL 1 DAY WHERE kind = 'debug'  just these, a day after
    TTL d + INTERVAL 1 YEAR GROUP BY id SET n = sum(n)   one row for those of a group: `ttl_group`
    ip String TTL d + INTERVAL 1 WEEK            a column, which reads as its default from then on

Expired rows stay until a pass removes them, as in ClickHouse: in the background, before OPTIMIZE
merges, or by MATERIALIZE TTL.  A pass judges parts by the bounds of their columns where it can. A
part without expired rows is not opened. A part that expired as a whole is dropped; it is read only
where views need its rows.

The rows leave by retention (rule 4): what views computed from them is frozen, unless the table sets
`ttl_retain = 0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from olapdb.commit.origin import CommitOrigin
from olapdb.commit.staging import Staging
from olapdb.dml.column_ttl import reset_expired_columns
from olapdb.dml.delete import NOTHING_DELETED, DeleteResult, remove_rows
from olapdb.dml.find_rows import matching_offsets
from olapdb.dml.ttl_group import group_expired_rows
from olapdb.engine.expiry import Expiry, expired_share, expiry_condition, ttl_rules
from olapdb.lineage.row_removal import RowChange, stored_table
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot


def apply_ttl(
    origin: CommitOrigin, table_id: str, *, partition_id: str | None = None
) -> DeleteResult:
    """Remove the rows that have expired by now, in one commit; group those of each rule with GROUP
    BY in another; reset expired columns in the last. The result counts all of them; `commit` is the
    last one's, None if nothing had expired.

    Raises CommitConflict, with nothing changed, where concurrent commits kept changing the parts.
    """
    services = origin.services
    origin = replace(origin, environment=services.environment(origin.query_id))
    table_now = services.catalog.snapshot().by_id(table_id)
    retain = bool(table_now.setting("ttl_retain")) if isinstance(table_now, Table) else True
    change = RowChange(origin, "TTL", retain=retain)

    def remove(snapshot: Snapshot, staging: Staging) -> DeleteResult:
        """Remove the expired rows of the partition, or of the table, in one commit."""
        table = stored_table(snapshot, table_id, "TTL")
        expired = _expired_rows(change, snapshot, table, partition_id)
        return remove_rows(change, snapshot, table, expired, staging)

    def reset(snapshot: Snapshot, staging: Staging) -> DeleteResult:
        """Give expired values of columns their defaults, in one commit."""
        table = stored_table(snapshot, table_id, "TTL")
        return reset_expired_columns(change, snapshot, table, partition_id, staging)

    def group(at: int, snapshot: Snapshot, staging: Staging) -> DeleteResult:
        """Group the expired rows by rule number `at` of the table's TTL … GROUP BY rules, in one
        commit. Do nothing if the table no longer has that many rules."""
        table = stored_table(snapshot, table_id, "TTL")
        rules = [rule for rule in ttl_rules(table) if rule.action == "GROUP BY"]
        if at >= len(rules):
            return NOTHING_DELETED
        return group_expired_rows(change, snapshot, table, rules[at], partition_id, staging)

    rules = ttl_rules(table_now) if isinstance(table_now, Table) else ()
    attempts: list[Callable[[Snapshot, Staging], DeleteResult]] = [remove]
    attempts += [partial(group, at) for at, _ in enumerate(rules)]
    attempts.append(reset)
    results = [change.until_published(attempt) for attempt in attempts]
    commits = [result.commit for result in results if result.commit is not None]
    return DeleteResult(
        sum(result.rows for result in results),
        sum(result.parts for result in results),
        commits[-1] if commits else None,
    )


def _expired_rows(
    change: RowChange, snapshot: Snapshot, table: Table, partition_id: str | None
) -> list[tuple[Part, np.ndarray | None]]:
    """Return each part with expired rows, and their offsets in it (None: all of them)."""
    expiries = [
        Expiry.of(rule.expression, table, change.origin.services, rule.where)
        for rule in ttl_rules(table)
        if rule.action == "DELETE"
    ]
    if not expiries:
        return []
    expired_parts: list[tuple[Part, np.ndarray | None]] = []
    partly_expired: list[Part] = []
    for part in snapshot.parts(table.id):
        if not part.rows or partition_id not in (None, part.partition_id):
            continue
        match expired_share(expiries, part):
            case "all":
                expired_parts.append((part, None))
            case "some":
                partly_expired.append(part)
    if not partly_expired:
        return expired_parts
    offsets_of_parts = matching_offsets(
        change.context(snapshot), table, partly_expired, expiry_condition(expiries), None
    )
    if table.setting("ttl_only_drop_parts"):
        offsets_of_parts = [
            (part, offsets) for part, offsets in offsets_of_parts if len(offsets) == part.rows
        ]
    return [*expired_parts, *offsets_of_parts]
