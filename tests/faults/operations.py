"""The operations of the fault tests, on one small warehouse, and the checks after them.

    s --v--> sums --w--> more      two views, chained; s by partition, in files
    s --x--> late                  a view that has not seen the first rows: its gap
    other                          a table whose partitions, or name, are swapped with those of s
    junk                           dropped parts, for vacuum; dropped itself, and brought back

A *state* is the rows that users see: before an operation or after it, and nothing between.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.unit.views.warehouse import dicts, rows

COLUMNS = "(p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k"
SUMS = "(p UInt8, k String, n Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY (p, k)"
QUERY = "SELECT p, k, sum(n) AS n FROM s GROUP BY p, k"
PREPARED = (
    "SYSTEM STOP MERGES",
    f"CREATE TABLE s {COLUMNS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE other {COLUMNS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE junk {COLUMNS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE sums {SUMS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE more {SUMS}",
    f"CREATE TABLE late {SUMS} SETTINGS inline_bytes_max = 0",
    "INSERT INTO s VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3)",
    "INSERT INTO other VALUES (1, 'z', 7), (3, 'z', 8)",
    "INSERT INTO junk VALUES (1, 'a', 1)",
    "INSERT INTO junk VALUES (1, 'b', 1)",
    "OPTIMIZE TABLE junk FINAL",
    f"CREATE MATERIALIZED VIEW v TO sums AS {QUERY}",
    "CREATE MATERIALIZED VIEW w TO more AS SELECT p, k, sum(n) AS n FROM sums GROUP BY p, k",
    "SYSTEM BACKFILL VIEW v",
    f"CREATE MATERIALIZED VIEW x TO late AS {QUERY}",
    "INSERT INTO s VALUES (1, 'a', 10), (2, 'c', 20)",
)
SMALL = "backfill_chunk_rows_max = 1, backfill_threads = 1, inline_bytes_max = 0"
TABLES = ("s", "other")
REBUILD = f"SYSTEM REBUILD VIEW x SETTINGS {SMALL} AS {QUERY.replace('sum(n)', 'sum(2 * n)')}"
BY_HAND = "INSERT INTO late VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3)"
"""An INSERT by hand of the gap of x."""


@dataclass(frozen=True)
class Operation:
    """An operation under faults. `one_commit`: it happens as a whole or not at all; others work
    in several commits, each of them atomic.  `work` replaces the statement."""

    statement: str = ""
    before: tuple[str, ...] = ()
    one_commit: bool = True
    work: Callable[[Connection], None] | None = None

    def run(self, connection: Connection, folder: Path) -> None:
        """Run the work or the statement."""
        if self.work is not None:
            self.work(connection)
        else:
            connection.execute(self.statement.replace("{backup}", f"{folder}.backup"))


def _vacuum(connection: Connection) -> None:
    vacuum(connection.database.services, lifetime_seconds=0)


OPERATIONS = {
    "insert": Operation("INSERT INTO s VALUES (1, 'a', 5), (4, 'd', 6)"),
    "merge": Operation("OPTIMIZE TABLE s PARTITION 1 FINAL", ("INSERT INTO s VALUES (1, 'd', 7)",)),
    "delete": Operation("DELETE FROM s WHERE k = 'a'"),
    "update": Operation("ALTER TABLE s UPDATE n = n * 2 WHERE k = 'a'"),
    "replace partition": Operation("ALTER TABLE s REPLACE PARTITION 1 FROM other"),
    "exchange": Operation("EXCHANGE TABLES s AND other"),
    "detach": Operation("ALTER TABLE s DETACH PARTITION 1"),
    "attach": Operation("ALTER TABLE s ATTACH PARTITION 1", ("ALTER TABLE s DETACH PARTITION 1",)),
    "quarantine": Operation("SYSTEM QUARANTINE PART '1_1_1_0' ON s"),
    "quarantine of a target": Operation("SYSTEM QUARANTINE PART '1_3_3_0' ON sums"),
    "drop of a target": Operation("ALTER TABLE sums DROP PARTITION 1"),
    "backfill": Operation(f"SYSTEM BACKFILL VIEW x SETTINGS {SMALL}", one_commit=False),
    "replay": Operation(
        "SYSTEM REPLAY VIEW v SETTINGS inline_bytes_max = 0", ("DELETE FROM s WHERE k = 'b'",)
    ),
    "alter": Operation(
        "ALTER TABLE s ADD COLUMN extra Int64 DEFAULT n + 1, RENAME COLUMN old TO new,"
        " MODIFY COLUMN n DEFAULT 7",
        ("ALTER TABLE s ADD COLUMN old String DEFAULT k",),
    ),
    "modify column": Operation(
        "ALTER TABLE other MODIFY COLUMN n Int64 DEFAULT 5",
        (
            "ALTER TABLE other MODIFY COLUMN n Nullable(Int64)",
            "INSERT INTO other VALUES (1, 'q', NULL), (3, 'q', NULL)",
        ),
    ),
    "move partition": Operation("ALTER TABLE s MOVE PARTITION 1 TO TABLE other"),
    "truncate": Operation("TRUNCATE TABLE s"),
    "drop table": Operation("DROP TABLE junk"),
    "undrop": Operation("UNDROP TABLE junk", ("DROP TABLE junk",)),
    "staged backfill": Operation(f"SYSTEM BACKFILL VIEW x SETTINGS {SMALL}, backfill_staging = 1"),
    "rebuild": Operation(REBUILD),
    "rollback": Operation("SYSTEM ROLLBACK VIEW x", (REBUILD,)),
    "adopt": Operation("SYSTEM ADOPT VIEW x", (BY_HAND,)),
    "vacuum": Operation(one_commit=False, work=_vacuum),
    "backup": Operation("SYSTEM BACKUP TO '{backup}'", one_commit=False),
}


def prepare(folder: Path, operation: Operation | None = None) -> None:
    """Create the warehouse, about to run the operation."""
    with olapdb.connect(str(folder)) as connection:
        for text in (*PREPARED, *(operation.before if operation else ())):
            connection.execute(text)


def prepare_all(folder: Path) -> Path:
    """Create in the folder `warehouse`, and for each operation a warehouse of its name, about to
    run it."""
    prepare(folder / "warehouse")
    for name, operation in OPERATIONS.items():
        shutil.copytree(folder / "warehouse", folder / name)
        with olapdb.connect(str(folder / name)) as connection:
            for text in ("SYSTEM STOP MERGES", *operation.before):
                connection.execute(text)
    return folder


def state(connection: Connection) -> dict[str, Any]:
    """Return the rows of the tables that the operations change, and the sums in the targets."""
    found: dict[str, Any] = {
        name: sorted(rows(connection, f"SELECT p, k, n FROM {name}"), key=repr) for name in TABLES
    }
    found["columns"] = rows(
        connection,
        "SELECT table, name, type, default_expression FROM system.columns"
        " WHERE table IN ('s', 'other') AND database = 'default'",
    )
    there = rows(connection, "SELECT count() FROM system.tables WHERE name = 'junk'") == [(1,)]
    found["junk"] = sorted(rows(connection, "SELECT p, k, n FROM junk")) if there else None
    found["bypass"] = rows(connection, "SELECT sum(bypass_rows) FROM system.views")
    for name in ("sums", "more", "late"):
        query = f"SELECT p, k, sum(n) FROM {name} GROUP BY p, k ORDER BY p, k"
        found[name] = rows(connection, query)
    found["detached"] = rows(connection, "SELECT sum(rows) FROM system.detached_parts")
    return found


def untruths(connection: Connection) -> Iterator[str]:
    """Yield wrong reports about views: a differing slice that is not named, or a covered view
    with a gap."""
    status = {one["name"]: one for one in dicts(connection, "SELECT * FROM system.views")}
    for view, one in status.items():
        if one["verdict"] in ("covered", "proven") and one["gap_rows"]:
            yield f"{view} is called {one['verdict']}, with a gap of {one['gap_rows']} rows"
        by_hand = one["verdict"] == "bypassed" and one["bypass_rows"]
        if one["verdict"] not in ("covered", "proven", "stale", "partial") and not by_hand:
            yield f"{view} is called {one['verdict']}: {one['reason']}"
        for slice_ in dicts(connection, f"SYSTEM RECONCILE VIEW {view}"):
            if slice_["verdict"] != "equal" and not slice_["causes"]:
                yield f"{view}, {slice_['partition']} is {slice_['verdict']}: {slice_['examples']}"
            if slice_["verdict"] != "equal" and one["verdict"] not in ("stale", "bypassed"):
                yield f"{view} is called {one['verdict']}, and {slice_['partition']} differs"


def mend(connection: Connection) -> None:
    """Run the statements that system.views suggests until every view is proven; upstream first."""
    for _ in range(3):
        for view in ("v", "w", "x"):
            for _ in range(2):
                (one,) = dicts(connection, f"SELECT * FROM system.views WHERE name = '{view}'")
                if one["verdict"] in ("stale", "partial"):
                    connection.execute(one["mend"])
    for view in ("v", "w", "x"):
        assert {r["verdict"] for r in dicts(connection, f"SYSTEM RECONCILE VIEW {view}")} <= {
            "equal"
        }
        (one,) = dicts(connection, f"SELECT * FROM system.views WHERE name = '{view}'")
        assert one["verdict"] in ("proven", "covered"), one


def goes_on(
    operation: Operation, connection: Connection, folder: Path, where: str, states: tuple[Any, Any]
) -> None:
    """Require that the open connection is right and works, once the faults have stopped."""
    before, after = states
    assert list(untruths(connection)) == [], where
    found = state(connection)
    assert not operation.one_commit or found in (before, after), where
    if not operation.one_commit or found == before:
        operation.run(connection, folder)
        assert state(connection) == after, where
    if "{backup}" in operation.statement:
        check_backup(folder, before, where)
    connection.execute("INSERT INTO s (p, k, n) VALUES (9, 'later', 1)")
    mend(connection)


def check_backup(folder: Path, before: Any, where: str) -> None:
    """Require that the backup is whole."""
    with olapdb.connect(f"{folder}.backup", read_only=True) as backup:
        assert state(backup) == before, where
        assert {one["is_passed"] for one in dicts(backup, "CHECK ALL TABLES")} == {1}, where


def verify(
    folder: Path,
    operation: Operation,
    states: tuple[dict[str, Any], dict[str, Any]],
    acknowledged: bool,
    where: str,
) -> bool:
    """Open the warehouse as after a crash; return whether the operation happened.  Require that
    an acknowledged one did, that none happened in part, that the reports about views are true,
    and that recovery ends."""
    before, after = states
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        services = connection.database.services
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == [], where
        again = vacuum(services, lifetime_seconds=0)
        assert (again.parts, again.files) == (0, 0), f"{where}: recovery does not end"
        found = state(connection)
        happened = found == after
        assert happened or not acknowledged, f"{where}: lost {found}, was to be {after}"
        if operation.one_commit:
            assert found in (before, after), f"{where}: {found}"
        else:
            assert {n: found[n] for n in TABLES} == {n: before[n] for n in TABLES}, where
        assert list(untruths(connection)) == [], where
        return happened


def expected(template: Path, folder: Path, operation: Operation) -> tuple[Any, Any]:
    """Run the operation on the warehouse `folder`; return the states before and after it."""
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        before = state(connection)
        operation.run(connection, folder)
        return before, state(connection)
