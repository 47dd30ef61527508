"""A process that works hard in olapdb and ends abruptly, without close():

    python exit_child.py FOLDER WORK ENDING

It prints "at work" before it ends, so that a test knows that it got so far.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error

ROWS = 100_000
PREPARED = (
    "SYSTEM STOP MERGES",
    "CREATE TABLE s (p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY (k, n)",
    "CREATE TABLE t (p UInt8, k String, n Int64) ENGINE = SummingMergeTree PARTITION BY p"
    " ORDER BY (p, k)",
    "CREATE MATERIALIZED VIEW v TO t AS SELECT p, k, sum(n) AS n FROM s GROUP BY p, k",
    *[
        f"INSERT INTO s SELECT number % 2, toString(number * 7919 % 100003), number FROM numbers({ROWS})"
    ]
    * 4,
)
INSERT = "INSERT INTO s SELECT number % 2, toString(rand() % 100003), number FROM numbers(100000)"
SELECT = "SELECT k, count(), sum(n) FROM s GROUP BY k ORDER BY k"


def over_and_over(
    work: Callable[[], object], *, daemon: bool = True, times: int = 1_000_000
) -> None:
    """Repeat the work in a thread; ignore olapdb errors, as a program would catch them."""
    began = threading.Event()

    def run() -> None:
        for _ in range(times):
            began.set()
            try:
                work()
            except Error:
                continue

    threading.Thread(target=run, daemon=daemon).start()
    began.wait()


def fetch(connection: Connection, text: str) -> Callable[[], object]:
    """Return a function that executes the statement and fetches its rows."""
    return lambda: connection.execute(text).fetchall()


def merges(connection: Connection) -> None:
    """Start background merges with something to merge."""
    connection.execute("SYSTEM START MERGES")
    connection.execute(INSERT)


def selects(connection: Connection) -> None:
    """Repeat a SELECT in two threads."""
    for _ in range(2):
        over_and_over(fetch(connection, SELECT))


def inserts(connection: Connection) -> None:
    """Repeat an INSERT in a thread."""
    over_and_over(fetch(connection, INSERT))


def optimizes(connection: Connection) -> None:
    """Repeat OPTIMIZE in a thread."""
    over_and_over(fetch(connection, "OPTIMIZE TABLE s FINAL"))


def reconciles(connection: Connection) -> None:
    """Repeat RECONCILE in a thread."""
    over_and_over(fetch(connection, "SYSTEM RECONCILE VIEW v"))


def replays(connection: Connection) -> None:
    """Repeat REPLAY in a thread."""
    over_and_over(fetch(connection, "SYSTEM REPLAY VIEW v"))


LEFT: list[Any] = []


def results(connection: Connection) -> None:
    """Leave results unread and open: their look-ahead threads decode parts."""
    for _ in range(4):
        cursor = connection.execute("SELECT * FROM s SETTINGS max_threads = 2")
        cursor.fetchone()
        LEFT.append(cursor)


def own_threads(connection: Connection) -> None:
    """Start non-daemon threads of the program: Python waits for them to finish their work."""
    for _ in range(2):
        over_and_over(lambda: connection.execute(INSERT), daemon=False, times=2)


WORK: dict[str, Callable[[Connection], None]] = {
    "merges": merges,
    "selects": selects,
    "inserts": inserts,
    "optimizes": optimizes,
    "reconciles": reconciles,
    "replays": replays,
    "results": results,
    "own threads": own_threads,
}


def fork_that_exits(connection: Connection, code: int) -> None:
    """Fork a child that ends regularly, while its parent works on."""
    child = os.fork()
    if child == 0:
        sys.exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == code, status


def fork_that_leaves(connection: Connection) -> None:
    """Fork a child that ends by os._exit."""
    child = os.fork()
    if child == 0:
        os._exit(5)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 5, status


def of_a_pool(folder: str) -> int:
    """Work in a process of a pool."""
    connection = olapdb.connect(folder)
    inserts(connection)
    return len(connection.execute("SELECT 1").fetchall())


def processes(method: str) -> None:
    """Run work in a pool of processes."""
    import multiprocessing

    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(of_a_pool, [sys.argv[1]] * 2) == [1, 1]
        pool.close()
        pool.join()


def interrupt() -> None:
    """Send Ctrl-C to this process, which a shell's background job would ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


def raise_error() -> None:
    """Raise an exception of the program."""
    raise LookupError("of the program's own")


def import_modules() -> None:
    """Do all the work once, on few rows of another warehouse, which imports the modules that it needs.

    Were a thread to import them when the process is interrupted, its status would be 1: any exec() of
    a text, as of a dataclass, makes CPython forget the interrupt."""
    statements = (
        *(text.replace(f"({ROWS})", "(10)") for text in PREPARED),
        "SYSTEM START MERGES",
        "OPTIMIZE TABLE s FINAL",
        SELECT,
        "SYSTEM RECONCILE VIEW v",
        "SYSTEM REPLAY VIEW v",
        INSERT,
    )
    with tempfile.TemporaryDirectory() as folder, olapdb.connect(folder) as connection:
        for statement in statements:
            connection.execute(statement)


def main(folder: str, work: str, ending: str) -> None:
    """Start the work and end the process in the given way."""
    import_modules()
    connection = olapdb.connect(folder)
    if ending == "before atexit":
        atexit.register(lambda: connection.execute("SELECT count() FROM s").fetchall())
        atexit.register(connection.close)
    WORK[work](connection)
    time.sleep(float(sys.argv[4]))
    print("at work", flush=True)
    match ending:
        case "end" | "before atexit":
            return
        case "exit":
            sys.exit(3)
        case "error":
            raise_error()
        case "interrupt":
            interrupt()
        case "fork":
            fork_that_exits(connection, 4)
        case "fork and leave":
            fork_that_leaves(connection)
        case "multiprocessing fork" | "multiprocessing spawn":
            processes(ending.partition(" ")[2])
        case "thread exits":
            threading.Thread(target=sys.exit).start()
            sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:4])
