"""Small INSERTs into a table with three views, and their costs, counted and not timed.

    python -m tests.load.small_inserts INSERTS [FOLDER]

prints a line for each measurement. Merges and vacuum run as in the background, but at fixed points,
so that two runs give the same counts."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import olapdb
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.merge_planner import merge_worthwhile
from olapdb.maintenance.vacuum import vacuum
from olapdb.runtime.services import Services

ROWS = 3
MERGED_EVERY = 50
VACUUMED_EVERY = 250
STEPS_A_COUNT = 20
"""Virtual machine instructions of SQLite between two counts."""
TABLES = (
    "CREATE TABLE s (d Date, k UInt32, v Int64) ENGINE = MergeTree PARTITION BY d ORDER BY k",
    *(
        f"CREATE TABLE t{i} (k UInt32, n UInt64, v Int64) ENGINE = SummingMergeTree ORDER BY k"
        for i in range(3)
    ),
    *(
        f"CREATE MATERIALIZED VIEW v{i} TO t{i} AS"
        f" SELECT k % {i + 2} AS k, count() AS n, sum(v) AS v FROM s GROUP BY k"
        for i in range(3)
    ),
)


def statement(number: int) -> str:
    """Return the INSERT of this number."""
    rows = (f"('2024-01-0{1 + row % 2}', {(number + row) % 10}, {number})" for row in range(ROWS))
    return f"INSERT INTO s VALUES {', '.join(rows)}"


@dataclass
class Work:
    """Work that SQLite did: statements, and virtual machine instructions in units of
    `STEPS_A_COUNT`."""

    statements: int = 0
    counts: int = 0

    def watch(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Count the work of one SQLite connection; return it."""
        connection.set_trace_callback(self._traced)
        connection.set_progress_handler(self._stepped, STEPS_A_COUNT)
        return connection

    def _traced(self, text: str) -> None:
        self.statements += 1

    def _stepped(self) -> int:
        self.counts += 1
        return 0


@contextmanager
def watched(catalog: SqliteCatalog) -> Iterator[Work]:
    """Count the work of the catalog's connections inside the `with`, present and future ones."""
    work, connections = Work(), catalog.connections
    opened: list[sqlite3.Connection] = []
    real = connections.open

    def opening() -> sqlite3.Connection:
        opened.append(work.watch(real()))
        return opened[-1]

    with connections.exclusive() as writer:
        opened += [work.watch(one) for one in (writer, *connections._idle)]
    connections.open = opening  # type: ignore[method-assign]
    try:
        yield work
    finally:
        connections.open = real  # type: ignore[method-assign]
        for one in opened:
            one.set_trace_callback(None)
            one.set_progress_handler(None, 0)


@dataclass
class Window:
    """The cost of each INSERT of a series, and what the catalog holds afterwards."""

    statements: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    live_parts: int = 0
    head_parts: int = 0
    used_bytes: int = 0
    file_bytes: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    age_seconds: float = 0.0
    opening: Work = field(default_factory=Work)

    def quantile(self, values: list[int], share: float) -> int:
        return sorted(values)[min(len(values) - 1, int(share * len(values)))]

    def line(self) -> str:
        times = sorted(self.milliseconds)
        return (
            f"{len(times)} INSERTs, p50 {times[len(times) // 2]:.1f} ms, p99"
            f" {times[int(0.99 * len(times))]:.1f} ms; SQLite statements p50"
            f" {self.quantile(self.statements, 0.5)}, steps p50 {self.quantile(self.counts, 0.5)}"
            f" p99 {self.quantile(self.counts, 0.99)}; live parts {self.live_parts};"
            f" {self.used_bytes:,} bytes used of {self.file_bytes:,}; opening"
            f" {self.opening.statements} statements {self.opening.counts} steps; rows {self.rows}"
        )


def merge_all(services: Services) -> None:
    """Merge all tables until no merge is worth its cost."""
    for item in services.catalog.snapshot().objects():
        while merge_worthwhile(services, item.id):
            pass


def insert(connection: Connection, first: int, count: int) -> Window:
    """Run `count` INSERTs, merging and vacuuming at fixed points; measure each INSERT."""
    services, window = connection.database.services, Window()
    catalog = services.catalog
    assert isinstance(catalog, SqliteCatalog)
    with watched(catalog) as work:
        for number in range(first, first + count):
            before = work.statements, work.counts
            started = time.perf_counter()
            connection.execute(statement(number))
            window.milliseconds.append((time.perf_counter() - started) * 1_000)
            window.statements.append(work.statements - before[0])
            window.counts.append(work.counts - before[1])
            if (number + 1) % MERGED_EVERY == 0:
                merge_all(services)
            if (number + 1) % VACUUMED_EVERY == 0:
                vacuum(services, lifetime_seconds=0)
    look(connection, window)
    return window


def look(connection: Connection, window: Window) -> None:
    """Add what the catalog and the process's memory hold now."""
    catalog = connection.database.services.catalog
    assert isinstance(catalog, SqliteCatalog)
    snapshot = catalog.snapshot()
    window.live_parts = sum(len(snapshot.parts(item.id)) for item in snapshot.objects())
    window.head_parts = sum(len(table._by_id) for table in catalog._head._tables.values())
    with catalog.connections.consistent() as reader:
        names = [
            n for (n,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        window.rows = {
            name: reader.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names
        }
        ((age_ms,),) = reader.execute("SELECT max(newest_ms) - min(oldest_ms) FROM block_spans")
        (size,), (pages,), (free,) = (
            reader.execute(f"PRAGMA {name}").fetchone()
            for name in ("page_size", "page_count", "freelist_count")
        )
    window.age_seconds = (age_ms or 0) / 1_000
    window.used_bytes, window.file_bytes = size * (pages - free), size * pages
    window.opening = opening(Path(catalog.path))


def opening(path: Path) -> Work:
    """Measure what a new process reads to know every table's parts and each view's coverage."""
    catalog = SqliteCatalog(path)
    try:
        with watched(catalog) as work:
            snapshot = catalog.snapshot()
            for item in snapshot.objects():
                snapshot.parts(item.id)
                snapshot.coverage(item.id)
        return work
    finally:
        catalog.close()


def prepared(folder: str) -> Connection:
    """Open a warehouse with the tables and views, and background merges stopped."""
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    for text in TABLES:
        connection.execute(text)
    return connection


def main() -> None:
    total = int(sys.argv[1])
    folder = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
    with prepared(folder) as connection:
        for first in range(0, total, 1_000):
            print(first, insert(connection, first, min(1_000, total - first)).line(), flush=True)


if __name__ == "__main__":
    main()
