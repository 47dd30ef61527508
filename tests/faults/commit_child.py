"""The child process of the commit tests: runs one operation on a warehouse and reports its end.

    python commit_child.py <folder> <operation> <stage> <count>

Without a stage ("-") it prints the stages that the operation reaches, in their order.
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.database import Database
from olapdb.maintenance.vacuum import vacuum
from olapdb.runtime.failpoints import kill_at, recording


def prepare(folder: str) -> None:
    """Create a source, two views (one cascading) and some parts, some of them dropped."""
    connection = olapdb.connect(folder)
    for text in (
        "SYSTEM STOP MERGES",
        "CREATE TABLE s (d Date, k String, n UInt64) ENGINE = MergeTree"
        " PARTITION BY toYYYYMM(d) ORDER BY k SETTINGS inline_bytes_max = 0",
        "CREATE TABLE t (k String, n UInt64) ENGINE = SummingMergeTree ORDER BY k",
        "CREATE TABLE u (n UInt64, c UInt64) ENGINE = SummingMergeTree ORDER BY tuple()"
        " SETTINGS inline_bytes_max = 0",
        "CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(s.n) AS n FROM s GROUP BY k",
        "CREATE MATERIALIZED VIEW w TO u AS SELECT sum(t.n) AS n, count() AS c FROM t",
        *(
            f"INSERT INTO s VALUES ('2024-01-0{i}', 'a', {i}), ('2024-02-0{i}', 'b', 1)"
            for i in range(1, 5)
        ),
        "OPTIMIZE TABLE u FINAL",
    ):
        connection.cursor().execute(text)
    connection.close()


def operate(folder: str, operation: str) -> None:
    """Run the operation, and print "done" after it."""
    connection = olapdb.connect(folder)
    database = Database.open(folder)
    connection.cursor().execute("SYSTEM STOP MERGES")
    match operation:
        case "insert":
            connection.cursor().execute(
                "INSERT INTO s VALUES ('2024-01-20', 'x', 100), ('2024-02-20', 'y', 200)"
            )
        case "merge":
            connection.cursor().execute("OPTIMIZE TABLE s FINAL")
        case "delete":
            connection.cursor().execute("DELETE FROM s WHERE k = 'b'")
        case "vacuum":
            vacuum(database.services, lifetime_seconds=0)
    print("done", flush=True)
    database.release()
    connection.close()


def main() -> None:
    """Record the stages of the operation, or run it until the kill."""
    folder, operation, stage, count = sys.argv[1:]
    if stage == "-":
        with recording() as stages:
            operate(folder, operation)
        print("\n".join(stages))
        return
    kill_at(stage, int(count))
    operate(folder, operation)


if __name__ == "__main__":
    main()
