"""One engine in a process of its own: a request a line (JSON), answered by a line.

    {"seconds": [statement, …]}    runs them, answers with the seconds they took together
    {"rows": query}                answers with the rows, each value as JSON has it
    {"about": true}                answers with name and version
    {"facts": true}                answers with the peak memory of the process and the bytes of its tables

Started by `workers`, with the engine, the clock, the number of threads (0: as the engine comes), the
folder of the Parquet files that `LOAD` reads, and the folder of the tables, which an earlier process
may have filled. The clock is `wall`, or `cpu`: the processor
seconds of all threads, which can be compared on a machine that does other things.

olapdb is durable (fsync on every commit), DuckDB too (a database file with its log), chDB as it
comes.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import resource
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from data import inserted

INSERT, LOAD = "INSERT FROM PYTHON ", "LOAD "
LIVE_BYTES = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'"
READS = ("SELECT", "WITH", "SYSTEM BACKFILL")


class Engine(Protocol):
    about: str

    def run(self, sql: str) -> object:
        """One statement; what it reads is delivered as Arrow."""

    def insert(self, table: str, given: pa.Table) -> object: ...

    def load(self, table: str, file: Path) -> object: ...

    def rows(self, sql: str) -> list[list[object]]: ...

    def disk_bytes(self) -> int:
        """Return the bytes of what tables hold now, without parts that merges have replaced."""


class Olapdb:
    def __init__(self, folder: Path, threads: int) -> None:
        import olapdb

        self.about = f"olapdb {olapdb.__version__}"
        self.connection = olapdb.connect(
            folder / "warehouse", settings={"max_threads": threads} if threads else None
        )
        self.connection.execute("CREATE DATABASE IF NOT EXISTS bench")
        self.connection.execute("USE bench")

    def run(self, sql: str) -> object:
        cursor = self.connection.execute(sql)
        return cursor.fetch_arrow_table() if sql.startswith(READS) else cursor

    def insert(self, table: str, given: pa.Table) -> object:
        return self.connection.insert(table, given)

    def load(self, table: str, file: Path) -> object:
        return self.insert(table, pq.read_table(file))

    def rows(self, sql: str) -> list[list[object]]:
        return [list(row) for row in self.connection.execute(sql).fetchall()]

    def disk_bytes(self) -> int:
        return int(str(self.rows(LIVE_BYTES)[0][0]))


class Chdb:
    def __init__(self, folder: Path, threads: int) -> None:
        import chdb
        from chdb import session

        self.session = session.Session(str(folder / "chdb"))
        server = str(self.session.query("SELECT version()")).strip().strip('"')
        self.about = f"chDB {chdb.__version__} (ClickHouse {server})"
        self.session.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.session.query("USE bench")
        if threads:
            self.session.query(f"SET max_threads = {threads}")

    def run(self, sql: str) -> object:
        return self.session.query(sql, "ArrowStream" if sql.startswith(READS) else "Null")

    def insert(self, table: str, given: pa.Table) -> object:
        assert given.num_rows  # chDB finds it by its name
        return self.session.query(f"INSERT INTO {table} SELECT * FROM Python(given)")

    def load(self, table: str, file: Path) -> object:
        return self.session.query(f"INSERT INTO {table} SELECT * FROM file('{file}', Parquet)")

    def rows(self, sql: str) -> list[list[object]]:
        lines = self.session.query(sql, "JSONCompactEachRow").bytes().decode().splitlines()
        return [json.loads(line) for line in lines]

    def disk_bytes(self) -> int:
        return int(str(self.rows(LIVE_BYTES)[0][0]))


class Duckdb:
    def __init__(self, folder: Path, threads: int) -> None:
        import duckdb

        self.about = f"DuckDB {duckdb.__version__}"
        self.file = folder / "duck.db"
        self.connection = duckdb.connect(
            str(self.file), config={"autoinstall_known_extensions": "false"}
        )
        if threads:
            self.connection.execute(f"SET threads = {threads}")

    def run(self, sql: str) -> object:
        if sql.startswith(READS):
            return self.connection.sql(sql).to_arrow_table()
        return self.connection.execute(sql)

    def insert(self, table: str, given: pa.Table) -> object:
        assert given.num_rows  # DuckDB finds it by its name
        return self.connection.execute(f"INSERT INTO {table} SELECT * FROM given")

    def load(self, table: str, file: Path) -> object:
        return self.connection.execute(f"INSERT INTO {table} SELECT * FROM '{file}'")

    def rows(self, sql: str) -> list[list[object]]:
        return [list(row) for row in self.connection.execute(sql).fetchall()]

    def disk_bytes(self) -> int:
        return self.file.stat().st_size


def plain(value: Any) -> object:
    """Return a value as the other engines' rows have it: times without a zone, no decimals, no NaN."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def seconds(engine: Engine, statements: list[str], files: Path, clock: str) -> float:
    now = time.process_time if clock == "cpu" else time.perf_counter
    started = now()
    for sql in statements:
        if sql.startswith(INSERT):
            table, count = sql.removeprefix(INSERT).split()
            engine.insert(table, inserted(int(count)))
        elif sql.startswith(LOAD):
            table = sql.removeprefix(LOAD)
            engine.load(table, files / f"{table}.parquet")
        else:
            engine.run(sql)
    return now() - started


def facts(engine: Engine) -> dict[str, int]:
    """Return the peak memory of this process (Linux counts it in KiB) and the bytes of the tables."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak_bytes": peak, "disk_bytes": engine.disk_bytes()}


def answer(engine: Engine, request: dict[str, Any], files: Path, clock: str) -> object:
    if "about" in request:
        return engine.about
    if "facts" in request:
        return facts(engine)
    if "rows" in request:
        return [[plain(value) for value in row] for row in engine.rows(request["rows"])]
    return seconds(engine, request["seconds"], files, clock)


def main() -> None:
    name, clock, threads, files, tables = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    made = {"olapdb": Olapdb, "chdb": Chdb, "duckdb": Duckdb}[name]
    engine: Engine = made(Path(tables), int(threads))
    for line in sys.stdin:
        answers.write(json.dumps(answer(engine, json.loads(line), Path(files), clock)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
