"""A second process that compares source, target, chain and join, each time at one snapshot.

    python -m tests.load.second FOLDER CHECKS

A check is of one view at one snapshot. Every slice of its target that is neither stale nor in the
gap must equal the query at that snapshot. Views with other verdicts claim nothing. The process ends
after CHECKS checks, or prints a mismatch and ends. It prints its counts each 1,000 snapshots."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.ingest.read_parts import Pin

TOLD_EVERY = 1_000
DIFFERENCES = {
    "totals_mv": "SELECT p, k, sum(n), sum(x) FROM (SELECT p, k, n, x FROM {target} UNION ALL"
    " SELECT p, k, -toInt64(count()), -sum(x) FROM {source} GROUP BY p, k)"
    " GROUP BY p, k HAVING sum(n) != 0 OR sum(x) != 0",
    "by_p_mv": "SELECT p, sum(n), sum(x) FROM (SELECT p, n, x FROM {target} UNION ALL"
    " SELECT p, -sum(n), -sum(x) FROM {source} GROUP BY p)"
    " GROUP BY p HAVING sum(n) != 0 OR sum(x) != 0",
    "joined_mv": "SELECT p, k, sum(n), sum(x) FROM (SELECT p, k, n, x FROM {target} UNION ALL"
    " SELECT s.p AS p, s.k AS k, -toInt64(count()), -sum(s.x * d.w) FROM {source} AS s"
    " JOIN d ON s.k = d.k GROUP BY s.p, s.k) GROUP BY p, k HAVING sum(n) != 0 OR sum(x) != 0",
}
"""By view: a query without rows if the target is what the view's query gives. Versions that REBUILD
keeps have the view's name with a suffix, and a target of their own."""


@dataclass
class Seen:
    """Counts of checks by kind: "whole" for covered or proven views, "in part" for views with some
    open slices, "nothing claimed" for the others, which are not checked."""

    checks: int = 0
    snapshots: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.checks} checks at {self.snapshots} snapshots: {dict(self.kinds)}, {dict(self.verdicts)}"


Rows = list[tuple[object, ...]]


def compare(connection: Connection, seen: Seen) -> list[str]:
    """Check each view at the newest snapshot; return the differences in words."""
    services = connection.database.services
    number = services.catalog.snapshot().number
    wrong = []
    with Pin(services, number):

        def ask(query: str) -> Rows:
            found = connection.execute(f"{query} SETTINGS snapshot = {number}").fetchall()
            return [tuple(row) for row in found]

        seen.snapshots += 1
        stale = ask("SELECT view, partition_id FROM system.view_invalidations")
        missed = ask("SELECT view, partition_id FROM system.view_coverage WHERE status = 'gap'")
        for name, source, target, verdict, reason in ask(
            "SELECT name, source_table, target_table, verdict, reason FROM system.views"
        ):
            seen.verdicts[str(verdict)] += 1
            open_slices = _open_slices(str(name), str(verdict), stale, missed)
            if open_slices is None:
                seen.kinds["nothing claimed"] += 1
                continue
            seen.checks += 1
            seen.kinds["in part" if open_slices else "whole"] += 1
            query = DIFFERENCES[str(name).split("__v")[0]].format(source=source, target=target)
            rows = [row for row in ask(query) if str(row[0]) not in open_slices]
            if rows:
                wrong.append(
                    f"snapshot {number}: {name} is {verdict} ({reason}), open {open_slices}:"
                    f" {rows[:5]}"
                )
    return wrong


def _open_slices(name: str, verdict: str, stale: Rows, missed: Rows) -> set[str] | None:
    """Return the partitions without a claim, or None if the view claims nothing at all."""
    if verdict in ("covered", "proven"):
        return set()
    if verdict not in ("partial", "stale"):
        return None
    found = {partition for view, partition in [*stale, *missed] if view == name}
    return None if None in found else {str(partition) for partition in found}


def main() -> None:
    folder, wanted = sys.argv[1], int(sys.argv[2])
    seen = Seen()
    with olapdb.connect(folder) as connection:
        while seen.checks < wanted:
            wrong = compare(connection, seen)
            if wrong:
                print("\n".join(wrong), flush=True)
                sys.exit(1)
            if seen.snapshots % TOLD_EVERY == 0:
                print(seen, flush=True)
    print(seen, flush=True)


if __name__ == "__main__":
    main()
