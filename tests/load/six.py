"""One of six processes on a warehouse, until standard input closes or it is killed.

    python -m tests.load.six FOLDER writer 3 | reader | keeper

A writer numbers its commits without gaps. It prints `begin S` and `ack N S`, so that the test knows
how long a killed writer had waited. S is seconds of the machine's monotonic clock. A reader checks
what it sees. The keeper merges and vacuums."""

from __future__ import annotations

import select
import sys
import time

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import CommitConflict, TooManyParts
from olapdb.maintenance.vacuum import vacuum

ROWS = 40


def wanted() -> bool:
    """Return whether standard input is still open."""
    return not select.select([sys.stdin], [], [], 0)[0]


def create(folder: str) -> None:
    """Create the source, the target and the view."""
    with olapdb.connect(folder) as connection:
        connection.execute(
            "CREATE TABLE events (writer UInt8, number UInt32, k UInt32) ENGINE = MergeTree"
            " ORDER BY (writer, number)"
        )
        connection.execute(
            "CREATE TABLE totals (writer UInt8, n SimpleAggregateFunction(sum, UInt64),"
            " top SimpleAggregateFunction(max, UInt32)) ENGINE = AggregatingMergeTree ORDER BY writer"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO totals AS"
            " SELECT writer, count() AS n, max(number) AS top FROM events GROUP BY writer"
        )


def write(connection: Connection, writer: int) -> None:
    """Insert numbered commits until standard input closes, printing begin and ack."""
    ((number,),) = connection.execute(
        f"SELECT count() / {ROWS} FROM events WHERE writer = {writer}"
    ).fetchall()
    number = int(number)
    while wanted():
        inline = 262_144 if number % 3 else 0
        print(f"begin {time.monotonic():.3f}", flush=True)
        try:
            connection.execute(
                f"INSERT INTO events SETTINGS inline_bytes_max = {inline}"
                f" SELECT {writer}, {number}, number FROM numbers({ROWS})"
            )
        except TooManyParts:
            print("too many parts", flush=True)
            continue
        print(f"ack {number} {time.monotonic():.3f}", flush=True)
        number += 1


def read(connection: Connection) -> None:
    """Check prefixes of each writer's commits, and view against source, until standard input
    closes."""
    seen: dict[int, int] = {}
    while wanted():
        found = connection.execute(
            "SELECT e.writer, e.c, e.d, e.top, t.n, t.top FROM"
            " (SELECT writer, count() AS c, uniqExact(number) AS d, max(number) AS top FROM events"
            "  GROUP BY writer) AS e"
            " FULL JOIN (SELECT writer, sum(n) AS n, max(top) AS top FROM totals GROUP BY writer) AS t"
            " ON e.writer = t.writer"
        ).fetchall()
        for writer, count, distinct, top, counted, view_top in found:
            row = (writer, count, distinct, top, counted, view_top)
            assert count == distinct * ROWS, ("part of an INSERT", row)
            assert top == distinct - 1, ("not a prefix", row)
            assert (counted, view_top) == (count, top), ("view and source differ", row)
            assert top >= seen.get(writer, 0), ("back in time", row)
            seen[writer] = top
        print("round", flush=True)


def keep(connection: Connection) -> None:
    """Merge and vacuum until standard input closes."""
    while wanted():
        try:
            connection.execute("OPTIMIZE TABLE events")
            connection.execute("OPTIMIZE TABLE totals FINAL")
        except CommitConflict:
            continue
        vacuum(connection.database.services, lifetime_seconds=3)
        print("round", flush=True)


def main() -> None:
    folder, role, *which = sys.argv[1:]
    with olapdb.connect(folder) as connection:
        if role == "writer":
            write(connection, int(which[0]))
        elif role == "reader":
            read(connection)
        else:
            keep(connection)
    print("done", flush=True)


if __name__ == "__main__":
    main()
