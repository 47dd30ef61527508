"""Results that nobody reads to their end, as an interactive session leaves them."""

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
    ),
    pytest.mark.feature("python"),
]


def nothing_runs(connection: Connection) -> bool:
    """But for the statement that asks; and no snapshot is kept for a reader."""
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
    """And it needs no collection of garbage: a cursor is no cycle."""
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
    """Python collects garbage wherever it makes an object, in the midst of our own statements too:
    what a cursor leaves to do must not wait for the locks that these hold."""
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
    """Which Python runs between any two steps of the main thread, its own statement's too."""
    before = signal.signal(signal.SIGUSR1, lambda *_: connection.cancel())
    try:
        with connection.session._tracker._lock:
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert nothing_runs(connection)


def test_an_open_cursor_stays_with_the_parent_of_a_fork(connection: Connection) -> None:
    """The child lacks the threads that its query would wait for; a statement of its own runs."""
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
