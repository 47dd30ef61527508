"""A process with temporary files on disk: it reads one row of a query that spilled, and waits."""

from __future__ import annotations

import sys

import olapdb

if __name__ == "__main__":
    with (
        olapdb.connect(
            sys.argv[1], settings={"max_bytes_before_external_sort": 100_000}
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT number FROM numbers(1000000) ORDER BY intHash64(number)")
        cursor.fetchone()
        print(cursor.statistics.spilled_bytes, flush=True)
        sys.stdin.read()
