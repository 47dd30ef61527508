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
from pathlib import Path


def olapdb_engine(folder: Path) -> Callable[[str], object]:
    import olapdb

    connection = olapdb.connect(folder / "warehouse")
    connection.execute("CREATE DATABASE bench")
    connection.execute("USE bench")
    return lambda sql: (
        connection.execute(sql).fetch_arrow_table() if _reads(sql) else connection.execute(sql)
    )


def chdb_engine(folder: Path) -> Callable[[str], object]:
    from chdb import session

    running = session.Session(str(folder / "chdb"))
    running.query("CREATE DATABASE bench ENGINE = Atomic")
    running.query("USE bench")
    return lambda sql: running.query(sql, "ArrowStream" if _reads(sql) else "Null")


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
