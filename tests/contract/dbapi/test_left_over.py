"""Results that are never read to the end, as an interactive session leaves them."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import threading
from collections.abc import Callable

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO t SELECT number FROM numbers(200000)",
        on_disk=True,
        merges=False,  # a merge in the background pins the snapshot that it plans on
    ),
    pytest.mark.feature("python"),
]


def nothing_runs(connection: Connection) -> bool:
    """Return whether only the asking statement runs and no snapshot is pinned for a reader."""
    connection.execute("INSERT INTO t VALUES (1)")
    catalog = connection.database.services.catalog
    shown = connection.execute("SELECT query FROM system.processes").fetchall()
    return len(shown) == 1 and catalog.oldest_pin() == catalog.snapshot().number


LEFT: dict[str, Callable[[Connection], object]] = {
    "not read": lambda c: c.execute("SELECT k FROM t"),
    "one row": lambda c: c.execute("SELECT k FROM t").fetchone(),
    "the only row": lambda c: c.execute("SELECT count() FROM t").fetchone(),
    "a reader": lambda c: c.execute("SELECT k FROM t").fetch_record_batch(),
    "an iterator": lambda c: next(iter(c.execute("SELECT k FROM t"))),
    "not a query": lambda c: c.execute("SHOW TABLES"),
}


@pytest.mark.parametrize("how", LEFT)
def test_what_is_left_holds_nothing(connection: Connection, how: str) -> None:
    """This needs no garbage collection, since a cursor is not part of a reference cycle."""
    gc.collect()
    gc.disable()
    try:
        LEFT[how](connection)
        assert nothing_runs(connection)
    finally:
        gc.enable()


def test_a_cursor_in_a_cycle_holds_nothing(connection: Connection) -> None:
    cycle: list[object] = [connection.execute("SELECT k FROM t")]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert nothing_runs(connection)


def test_garbage_is_collected_while_a_lock_is_held(connection: Connection) -> None:
    """Python may collect garbage at any allocation, also inside olapdb's own statements. A
    collected cursor must not wait for locks that the interrupted statement holds."""
    services = connection.database.services
    locks = (
        services.catalog._registration._lock,  # type: ignore[attr-defined]
        services.activity._lock,
        connection.session._tracker._lock,
    )
    for read in (False, True):
        cursor = connection.execute("SELECT k FROM t")
        if read:
            cursor.fetchone()
        cycle: list[object] = [cursor]
        cycle.append(cycle)
        del cursor, cycle

        def collect() -> None:
            with locks[0], locks[1], locks[2]:
                gc.collect()

        collecting = threading.Thread(target=collect, daemon=True)
        collecting.start()
        collecting.join(60)
        assert not collecting.is_alive()
    assert nothing_runs(connection)


def test_a_signal_handler_may_cancel(connection: Connection) -> None:
    """Python runs signal handlers between any two steps of the main thread, also during its
    statement."""
    before = signal.signal(signal.SIGUSR1, lambda *_: connection.cancel())
    try:
        with connection.session._tracker._lock:
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert nothing_runs(connection)


def test_an_open_cursor_stays_with_the_parent_of_a_fork(connection: Connection) -> None:
    """The child lacks the threads that the query needs, so it raises. A statement of the child
    runs."""
    connection.execute("INSERT INTO t SELECT number FROM numbers(600000)")
    cursor = connection.execute("SELECT k, k + 1 FROM t SETTINGS max_threads = 4")
    first = cursor.fetchone()
    receive, send = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        try:
            cursor.fetchall()
        except olapdb.InterfaceError as error:
            send.send(str(error))
        send.send(connection.execute("SELECT count() FROM t").fetchone())

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    try:
        assert receive.poll(20)
        assert "Run the statement again" in receive.recv()
        assert receive.poll(20)
        assert receive.recv() == (800_000,)
    finally:
        process.kill()
        process.join()
    assert first is not None
    assert len(cursor.fetchall()) == 799_999
