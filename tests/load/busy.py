"""Threads of one process that insert, delete, update the dimension, merge, replay, backfill and
rebuild.

    s --totals_mv--> totals --by_p_mv--> by_p        s, d --joined_mv--> joined

Every table but `d` is partitioned by `p`, so a slice of a target is made of one slice of the
source.  Rows are few and keys meet often; how many rows there are is bounded by the deletes.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, InternalError

PARTITIONS = 3
KEYS = 20
ROWS = 8
TABLES = (
    "CREATE TABLE s (p UInt8, k UInt8, x Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
    "CREATE TABLE d (k UInt8, w Int64) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE totals (p UInt8, k UInt8, n Int64, x Int64) ENGINE = SummingMergeTree"
    " PARTITION BY p ORDER BY (p, k)",
    "CREATE TABLE by_p (p UInt8, n Int64, x Int64) ENGINE = SummingMergeTree"
    " PARTITION BY p ORDER BY p",
    "CREATE TABLE joined (p UInt8, k UInt8, n Int64, x Int64) ENGINE = SummingMergeTree"
    " PARTITION BY p ORDER BY (p, k)",
    "CREATE MATERIALIZED VIEW totals_mv TO totals AS"
    " SELECT p, k, toInt64(count()) AS n, sum(x) AS x FROM s GROUP BY p, k",
    "CREATE MATERIALIZED VIEW by_p_mv TO by_p AS"
    " SELECT p, sum(n) AS n, sum(x) AS x FROM totals GROUP BY p",
    "CREATE MATERIALIZED VIEW joined_mv TO joined AS SELECT s.p AS p, s.k AS k,"
    " toInt64(count()) AS n, sum(s.x * d.w) AS x FROM s JOIN d ON s.k = d.k GROUP BY s.p, s.k",
)
VIEWS = ("totals_mv", "by_p_mv", "joined_mv")


@dataclass
class Busy:
    """Counts of statements done by their first two words, of refused ones by error name; bug
    reports."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def prepare(folder: str) -> None:
    """Create the tables and views, and insert the first rows."""
    with olapdb.connect(folder) as connection:
        for text in TABLES:
            connection.execute(text)
        values = ", ".join(f"({k}, {k % 5 - 2})" for k in range(KEYS))
        connection.execute(f"INSERT INTO d VALUES {values}")
        for _ in range(3):
            connection.execute(_insert(random.Random(0)))


def _insert(chance: random.Random) -> str:
    rows = ", ".join(
        f"({chance.randrange(PARTITIONS)}, {chance.randrange(KEYS)}, {chance.randint(-3, 3)})"
        for _ in range(chance.randint(1, ROWS))
    )
    cut = (
        f" SETTINGS max_insert_block_size = {chance.choice((1, 3))}"
        if chance.random() < 0.3
        else ""
    )
    return f"INSERT INTO s{cut} VALUES {rows}"


def inserts(chance: random.Random) -> Iterator[str]:
    """Yield INSERTs into the source."""
    while True:
        yield _insert(chance)


def deletes(chance: random.Random) -> Iterator[str]:
    """Yield statements that remove source rows."""
    while True:
        p, k = chance.randrange(PARTITIONS), chance.randrange(KEYS)
        yield chance.choice(
            (
                f"DELETE FROM s WHERE p = {p} AND k >= {k // 2}",
                f"DELETE FROM s WHERE k % 3 = {k % 3}",
                f"ALTER TABLE s DROP PARTITION {p}",
            )
        )


def dimension(chance: random.Random) -> Iterator[str]:
    """Yield changes of the dimension."""
    while True:
        k = chance.randrange(KEYS)
        yield chance.choice(
            (
                f"ALTER TABLE d UPDATE w = {chance.randint(-3, 3)} WHERE k = {k}",
                f"DELETE FROM d WHERE k = {k}",
                f"INSERT INTO d VALUES ({k}, {chance.randint(-3, 3)})",
            )
        )


def merges(chance: random.Random) -> Iterator[str]:
    """Yield merges of any table."""
    while True:
        table = chance.choice(("s", "d", "totals", "by_p", "joined"))
        yield f"OPTIMIZE TABLE {table}{chance.choice(('', ' FINAL'))}"


def replays(chance: random.Random) -> Iterator[str]:
    """Yield replays of stale slices, whole replays and reconciliations."""
    while True:
        view = chance.choice(VIEWS)
        p = chance.randrange(PARTITIONS)
        for one in VIEWS:
            yield f"SYSTEM REPLAY VIEW {one} STALE"
        yield chance.choice(
            (
                f"SYSTEM REPLAY VIEW {view} PARTITION {p}",
                f"SYSTEM REPLAY VIEW {view}",
                f"SYSTEM RECONCILE VIEW {view}",
                f"SYSTEM RECONCILE VIEW {view} OLDEST 1",
            )
        )


def backfills(chance: random.Random) -> Iterator[str]:
    """Yield DETACH, INSERT, ATTACH and BACKFILL of the views."""
    while True:
        view = chance.choice(VIEWS)
        yield f"DETACH VIEW {view}"
        yield _insert(chance)
        yield f"ATTACH VIEW {view}"
        for one in VIEWS:
            yield f"SYSTEM BACKFILL VIEW {one}"


def rebuilds(chance: random.Random) -> Iterator[str]:
    """Yield rebuilds of the views beside themselves, and their ROLLBACK."""
    while True:
        view = chance.choice(VIEWS)
        yield f"SYSTEM REBUILD VIEW {view}"
        if chance.random() < 0.5:
            yield f"SYSTEM ROLLBACK VIEW {view}"
        if chance.random() < 0.2:
            yield f"SYSTEM CANCEL REBUILD VIEW {view}"


ROLES: tuple[Callable[[random.Random], Iterator[str]], ...] = (
    inserts,
    inserts,
    deletes,
    dimension,
    merges,
    replays,
    backfills,
    rebuilds,
)


@contextmanager
def busy(folder: str, seed: int) -> Iterator[Busy]:
    """Run all roles, each in a thread of its own, inside the `with`."""
    seen, over, lock = Busy(), threading.Event(), threading.Lock()

    def work(role: Callable[[random.Random], Iterator[str]], number: int) -> None:
        with olapdb.connect(folder) as connection:
            for text in role(random.Random(seed * 100 + number)):
                if over.is_set():
                    return
                _attempt(connection, text, seen, lock)

    threads = [threading.Thread(target=work, args=(role, n)) for n, role in enumerate(ROLES)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _attempt(connection: Connection, text: str, seen: Busy, lock: threading.Lock) -> None:
    """Run one statement and count it. A lost race is a refusal; any other exception is a bug."""
    refused, broken = "", ""
    try:
        connection.execute(text)
    except InternalError as error:
        broken = f"{text}: {error}"
    except Error as error:
        refused = error.name
    except Exception as error:  # noqa: BLE001
        broken = f"{text}: {type(error).__name__}: {error}"
    with lock:
        seen.done[" ".join(text.split()[:2])] += not refused and not broken
        if refused:
            seen.refused[refused] += 1
        if broken:
            seen.broken.append(broken)
