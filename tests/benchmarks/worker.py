"""One engine in a process of its own: reads a statement a line (JSON), answers with its seconds.

Both engines get the same text. olapdb is durable (fsync on every commit); chDB as it comes. With
`cpu` as second argument the seconds are those of the processor, of all threads: what can be compared
on a machine that does other things.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

FROM_PYTHON = "INSERT FROM PYTHON "
"""Then a table and a number of rows: an Arrow table of the process goes in, made before."""


@cache
def rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    day = np.datetime64("2024-01-01") + numbers % 28
    names = pa.array([str(name) for name in range(10)]).take(pa.array(numbers % 10))
    return pa.table(
        {"k": numbers.astype(np.uint64), "day": pa.array(day), "name": names, "v": numbers / 7}
    )


def olapdb_engine(folder: Path) -> Callable[[str], object]:
    import olapdb

    connection = olapdb.connect(folder / "warehouse")
    connection.execute("CREATE DATABASE bench")
    connection.execute("USE bench")

    def run(sql: str) -> object:
        if sql.startswith(FROM_PYTHON):
            table, count = sql.removeprefix(FROM_PYTHON).split()
            return connection.insert(table, rows(int(count)))
        cursor = connection.execute(sql)
        return cursor.fetch_arrow_table() if _reads(sql) else cursor

    return run


def chdb_engine(folder: Path) -> Callable[[str], object]:
    from chdb import session

    running = session.Session(str(folder / "chdb"))
    running.query("CREATE DATABASE bench ENGINE = Atomic")
    running.query("USE bench")

    def run(sql: str) -> object:
        if sql.startswith(FROM_PYTHON):
            table, count = sql.removeprefix(FROM_PYTHON).split()
            given = rows(int(count))
            assert given.num_rows  # chDB finds it by its name
            return running.query(f"INSERT INTO {table} SELECT * FROM Python(given)")
        return running.query(sql, "ArrowStream" if _reads(sql) else "Null")

    return run


def _reads(sql: str) -> bool:
    return sql.startswith(("SELECT", "SYSTEM BACKFILL"))


def main() -> None:
    engine = {"olapdb": olapdb_engine, "chdb": chdb_engine}[sys.argv[1]]
    clock = time.process_time if sys.argv[2:] == ["cpu"] else time.perf_counter
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run = engine(Path(folder))
        for line in sys.stdin:
            statements = json.loads(line)
            started = clock()
            for sql in statements:
                run(sql)
            sys.stdout.write(f"{clock() - started}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
