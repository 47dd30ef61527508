"""A process with temporary files on disk: it reads the first rows of queries that spill, one of each operator, and waits."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import olapdb

OPERATIONS = ("group_by", "sort", "join", "distinct")
ROWS = "(SELECT number AS n, intHash64(number) AS h, number % 10 AS d FROM numbers(200000))"
QUERIES = {
    "ORDER BY": f"SELECT n FROM {ROWS} ORDER BY h",
    "GROUP BY": f"SELECT h, count() FROM {ROWS} GROUP BY h",
    "the state of one group": f"SELECT quantileExact(h), n > 0 AS k FROM {ROWS} GROUP BY k",
    "DISTINCT": f"SELECT DISTINCT h FROM {ROWS}",
    "EXCEPT": f"SELECT h FROM {ROWS} EXCEPT SELECT h + 1 FROM {ROWS}",
    "INTERSECT": f"SELECT h FROM {ROWS} INTERSECT SELECT h FROM {ROWS}",
    "LIMIT BY": f"SELECT h FROM {ROWS} LIMIT 1 BY h",
    "JOIN": f"SELECT l.n FROM {ROWS} AS l JOIN {ROWS} AS r ON l.h = r.h",
    "ASOF JOIN": f"SELECT l.n FROM {ROWS} AS l ASOF JOIN {ROWS} AS r ON l.d = r.d AND l.h >= r.h",
    "a set": f"SELECT n FROM {ROWS} WHERE h IN (SELECT h FROM {ROWS})",
    "a window": f"SELECT n, rank() OVER (PARTITION BY d ORDER BY h) FROM {ROWS}",
    "a window's partition": f"SELECT n, sum(n) OVER (ORDER BY h), ntile(3) OVER (ORDER BY h) FROM {ROWS}",
    "FINAL": "SELECT a FROM sums FINAL",
}
"""Queries that have temporary files while their rows are read, by operator."""


def open_files(connection: olapdb.Connection) -> int:
    """Return the number of temporary files of running queries."""
    sql = "SELECT value FROM system.metrics WHERE metric = 'TotalTemporaryFiles'"
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def main(folder: str) -> None:
    """Hold temporary files of each operator, print how many more each one opened, and wait to be killed."""
    settings = {f"max_bytes_before_external_{operation}": 100_000 for operation in OPERATIONS}
    settings |= {"max_memory_usage": 4_000_000}
    with olapdb.connect(folder, settings=settings) as connection, ExitStack() as stack:
        connection.execute("CREATE TABLE sums (a UInt64) ENGINE = SummingMergeTree ORDER BY a")
        connection.execute("INSERT INTO sums SELECT number FROM numbers(200000)")
        connection.execute("INSERT INTO sums SELECT number FROM numbers(200000)")
        opened = []
        for sql in QUERIES.values():
            before = open_files(connection)
            cursor = stack.enter_context(connection.cursor())
            cursor.execute(sql)
            while cursor.fetchone() is not None and open_files(connection) == before:
                cursor.fetchmany(1_000)
            opened.append(open_files(connection) - before)
        print(*opened, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
