"""The child process of the partition tests: runs one statement on a warehouse.

    python partition_child.py <folder> <operation> <stage> <count>

Without a stage ("-") it prints the stages that the operation reaches, in their order.
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at, recording

SHAPE = "(d Date, k String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY k"

STATEMENTS = {
    "drop": "ALTER TABLE s DROP PARTITION 202401",
    "retain": "ALTER TABLE s DROP PARTITION 202401 SETTINGS retain = 1",
    "detach": "ALTER TABLE s DETACH PARTITION 202401",
    "attach": "ALTER TABLE s ATTACH PARTITION 202403",
    "attach from": "ALTER TABLE s ATTACH PARTITION 202401 FROM wide",
    "replace": "ALTER TABLE s REPLACE PARTITION 202401 FROM o",
    "insert replace": "INSERT INTO s REPLACE WHERE toYYYYMM(d) = 202401 SELECT * FROM o",
    "create or replace": f"CREATE OR REPLACE TABLE s {SHAPE} AS SELECT * FROM o",
    "move": "ALTER TABLE s MOVE PARTITION 202401 TO TABLE o",
    "clone": "CREATE TABLE k CLONE AS s",
    "drop of a target": "ALTER TABLE t DROP PARTITION 202401",
    "ttl": "ALTER TABLE s MATERIALIZE TTL",
    "replay beside retained rows": "SYSTEM REPLAY VIEW v",
}


def prepare(folder: str) -> None:
    """Create a source with a view and a chained view, tables to share parts with, and detached
    parts."""
    with olapdb.connect(folder) as connection:
        for text in (
            "SYSTEM STOP MERGES",
            "SET inline_bytes_max = 0",
            f"CREATE TABLE s {SHAPE} TTL d + INTERVAL 1 MONTH WHERE n = 2",
            f"CREATE TABLE o {SHAPE}",
            "CREATE TABLE wide (n UInt64, k String, d Date) ENGINE = MergeTree"
            " PARTITION BY toYYYYMM(d) ORDER BY k",
            "CREATE TABLE t (d Date, n UInt64) ENGINE = SummingMergeTree PARTITION BY toYYYYMM(d)"
            " ORDER BY d",
            "CREATE TABLE u (m UInt32, n UInt64) ENGINE = SummingMergeTree ORDER BY m",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT d, sum(s.n) AS n FROM s GROUP BY d",
            "CREATE MATERIALIZED VIEW w TO u AS SELECT toYYYYMM(d) AS m, sum(t.n) AS n FROM t GROUP BY m",
            "INSERT INTO s VALUES ('2023-12-01', 'r', 100)",
            "ALTER TABLE s DROP PARTITION 202312 SETTINGS retain = 1",
            *(
                f"INSERT INTO s VALUES ('2024-01-0{i}', 'a', {i}), ('2024-02-0{i}', 'b', 1)"
                for i in range(1, 4)
            ),
            "INSERT INTO s VALUES ('2024-03-01', 'c', 50)",
            "ALTER TABLE s DETACH PARTITION 202403",
            "SYSTEM REPLAY VIEW v STALE",
            "SYSTEM REPLAY VIEW w STALE",
            "INSERT INTO o VALUES ('2024-01-09', 'o', 1000)",
            "INSERT INTO wide VALUES (10000, 'w', '2024-01-09')",
        ):
            connection.execute(text)


def main() -> None:
    """Record the stages of the operation, or run it until the kill."""
    folder, operation, stage, count = sys.argv[1:]
    with olapdb.connect(folder) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("SET inline_bytes_max = 0")
        if stage == "-":
            with recording() as stages:
                connection.execute(STATEMENTS[operation])
            print("\n".join(stages))
            return
        kill_at(stage, int(count))
        connection.execute(STATEMENTS[operation])
        print("done", flush=True)


if __name__ == "__main__":
    main()
