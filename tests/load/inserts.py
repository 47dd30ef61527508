"""Eight threads insert while views are created, changed and dropped: measures each INSERT's time.

A row has a unique name, (thread, number), so lost and doubled rows are seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error

THREADS = 8
PAUSE_SECONDS = 0.2
LONGER_SECONDS_MAX = 120.0
"""How much longer a run may take on a slow machine until it was `enough`."""
ROWS = 20
"""Rows of an INSERT: few, as ingestion often sends them, which makes races likely."""

SOURCE = """
    CREATE TABLE events (day UInt8, thread UInt32, number UInt64, amount Int64)
    ENGINE = MergeTree PARTITION BY day ORDER BY (thread, number)
"""
TARGET = """
    CREATE TABLE {name} (day UInt8, thread UInt32, rows UInt64, amount Int64)
    ENGINE = SummingMergeTree PARTITION BY day ORDER BY (day, thread)
"""
QUERY = """
    SELECT day, thread, count() AS rows, sum(amount {more}) AS amount FROM events
    GROUP BY day, thread
"""


@dataclass
class Inserts:
    """Results of the threads: seconds of each INSERT, acknowledged numbers by thread, and failed
    INSERTs with their errors."""

    seconds: list[float] = field(default_factory=list)
    acknowledged: dict[int, list[int]] = field(default_factory=dict)
    failed: list[tuple[int, int, str]] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the milliseconds within which this share of the INSERTs finished."""
        ordered = sorted(self.seconds)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000

    def row(self, name: str, seconds: float) -> str:
        """Return one line of the report's table."""
        return (
            f"| {name} | {len(self.seconds)} | {len(self.seconds) / seconds:.0f} |"
            f" {self.percentile(0.5):.1f} | {self.percentile(0.99):.1f} |"
            f" {self.percentile(1):.1f} | {len(self.failed)} |"
        )


HEADER = """
| views | INSERTs | a second | median ms | p99 ms | longest ms | failed |
|---|---|---|---|---|---|---|"""


def values(thread: int, number: int) -> str:
    """Return the VALUES of an INSERT whose rows are numbered through."""
    first = number * ROWS
    return ", ".join(
        f"({1 + n % 3}, {thread}, {n}, {n % 7 - 3})" for n in range(first, first + ROWS)
    )


def insert_for(
    folder: str, seconds: float, start: int = 0, enough: Callable[[], bool] = lambda: True
) -> Inserts:
    """Insert from all threads, numbering from `start`, until the time is over and `enough` is
    true."""
    done, lock = Inserts(), threading.Lock()
    until = time.monotonic() + seconds

    def goes_on() -> bool:
        now = time.monotonic()
        return now < until or (now < until + LONGER_SECONDS_MAX and not enough())

    def work(thread: int) -> None:
        number = start
        with olapdb.connect(folder) as connection:
            while goes_on():
                began = time.perf_counter()
                error = attempt(connection, f"INSERT INTO events VALUES {values(thread, number)}")
                took = time.perf_counter() - began
                with lock:
                    if error:
                        done.failed.append((thread, number, error))
                    else:
                        done.seconds.append(took)
                        done.acknowledged.setdefault(thread, []).append(number)
                number += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def attempt(connection: Connection, text: str) -> str:
    """Run a statement; return its error, or ""."""
    try:
        connection.execute(text)
    except Error as error:
        return str(error)
    return ""


# --- views are created and dropped ----------------------------------------------------------------


@dataclass
class Changes:
    """Counts of statements about views by their first words, and the errors of those that
    failed."""

    done: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


@contextmanager
def views_changing(folder: str) -> Iterator[Changes]:
    """Create, backfill, alter and drop views in another thread inside the `with`."""
    changes, over = Changes(), threading.Event()

    def work() -> None:
        with olapdb.connect(folder) as connection:
            turn = 0
            while not over.is_set():
                turn += 1
                for text in a_life(f"daily{turn}"):
                    error = attempt(connection, text)
                    if text.startswith("DETACH"):
                        over.wait(PAUSE_SECONDS)  # so that the view misses blocks
                    words = " ".join(text.split()[:2])
                    changes.done[words] = changes.done.get(words, 0) + 1
                    if error:
                        changes.refused.append(f"{text.strip()}: {error}")
                    if over.is_set():
                        return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield changes
    finally:
        over.set()
        thread.join()


def a_life(name: str) -> Iterator[str]:
    """Yield the statements of one view's life, from its target table to its DROP."""
    yield TARGET.format(name=name)
    yield f"CREATE MATERIALIZED VIEW {name}_mv TO {name} AS {QUERY.format(more='')}"
    yield f"SYSTEM BACKFILL VIEW {name}_mv"
    yield f"DETACH VIEW {name}_mv"
    yield f"ATTACH VIEW {name}_mv"
    yield f"SYSTEM BACKFILL VIEW {name}_mv"
    yield f"ALTER TABLE {name}_mv MODIFY QUERY {QUERY.format(more='* 2')}"
    yield f"SYSTEM REPLAY VIEW {name}_mv STALE"
    yield "DETACH VIEW kept_mv"
    yield "ATTACH VIEW kept_mv"
    yield f"DROP VIEW {name}_mv"
    yield f"DROP TABLE {name}"


def prepare(folder: str) -> None:
    """Create the source and a view that is never dropped."""
    with olapdb.connect(folder) as connection:
        connection.execute(SOURCE)
        connection.execute(TARGET.format(name="kept"))
        connection.execute(f"CREATE MATERIALIZED VIEW kept_mv TO kept AS {QUERY.format(more='')}")


def mend(connection: Connection, ask: Callable[[str], str]) -> list[str]:
    """Run the mends of system.views until none is left; return them."""
    said: list[str] = []
    for _ in range(20):
        statement = ask(
            "SELECT mend FROM system.views WHERE verdict NOT IN ('covered', 'proven') LIMIT 1"
        )
        if not statement:
            break
        connection.execute(statement).fetchall()
        said.append(statement)
    return said
