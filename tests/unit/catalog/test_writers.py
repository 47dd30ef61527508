"""Writers take turns in order and respect their timeouts; forks and dead processes."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.catalog.sqlite.fair_lock import FairLock, TicketQueue
from olapdb.errors import Aborted, CatalogBusy
from olapdb.model.changes import Commit
from olapdb.model.requirements import LeaseLive, SchemaIs
from tests.harness.commits import create_all, insert, make_part

pytestmark = pytest.mark.feature("commits")


def test_threads_get_the_lock_in_their_order() -> None:
    lock, served = FairLock(), []
    first = lock.acquire(1000, "first")
    threads = []

    def serve(number: int) -> None:
        place = lock.acquire(5000, "x")
        served.append(number)
        lock.release(place)

    for number in range(5):
        threads.append(threading.Thread(target=serve, args=(number,)))
        threads[-1].start()
        while len(lock._waiting) <= number:
            time.sleep(0.001)
    lock.release(first)
    for thread in threads:
        thread.join()
    assert served == [0, 1, 2, 3, 4]


def test_a_wait_is_bounded_and_names_the_holder(tmp_path: Path) -> None:
    lock = FairLock()
    place = lock.acquire(10, "INSERT")
    with pytest.raises(CatalogBusy, match=r"this process .INSERT."):
        lock.acquire(10, "MERGE")
    lock.release(place)
    lock.acquire(10, "MERGE")

    held, other = TicketQueue(str(tmp_path / "q")), TicketQueue(str(tmp_path / "q"))
    held.acquire(10, "INSERT")
    with pytest.raises(CatalogBusy, match=f"process {os.getpid()} .INSERT."):
        other.acquire(10, "MERGE")
    held.release()
    other.acquire(10, "MERGE")
    with pytest.raises(CatalogBusy):
        held.acquire(10, "INSERT")
    other.release()
    held.acquire(10, "INSERT")
    held.close()


def test_who_is_interrupted_while_waiting_gives_its_place_up(tmp_path: Path) -> None:
    """After Ctrl-C during the wait, the turn must not be given to the dead ticket."""
    lock, queue, others = (
        FairLock(),
        TicketQueue(str(tmp_path / "q")),
        TicketQueue(str(tmp_path / "q")),
    )
    place = lock.acquire(10, "INSERT")
    others.acquire(10, "INSERT")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for wait in (lock.acquire, queue.acquire):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                wait(10_000, "MERGE")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    lock.release(place)
    lock.acquire(10, "the next")
    others.release()
    others.acquire(10, "the next")
    others.close()


@pytest.mark.parametrize("call", range(1, 7))
def test_an_interrupt_of_a_ticket_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """The interrupt comes after any of the calls that draw a ticket."""
    real, left = fcntl.fcntl, [call]

    def interrupted(*arguments: object) -> object:
        answer = real(*arguments)  # type: ignore[arg-type]
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return answer

    mine, others = TicketQueue(str(tmp_path / "q")), TicketQueue(str(tmp_path / "q"))
    with monkeypatch.context() as planted:
        planted.setattr(fcntl, "fcntl", interrupted)
        with contextlib.suppress(KeyboardInterrupt):
            mine.acquire(10, "MERGE")
            mine.release()
    done = threading.Thread(target=lambda: others.acquire(1_000, "INSERT"), daemon=True)
    done.start()
    done.join(60)
    assert not done.is_alive()
    others.release()
    mine.acquire(10, "again")
    mine.close()
    others.close()


HOLD = """
import sys, time
from olapdb.catalog.sqlite.fair_lock import TicketQueue
queue = TicketQueue(sys.argv[1])
queue.acquire(1000, "INSERT")
print("held", flush=True)
time.sleep(60)
"""


def test_a_killed_holder_gives_its_turn_up(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "q")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    queue = TicketQueue(str(tmp_path / "q"))
    with pytest.raises(CatalogBusy, match=f"process {child.pid}"):
        queue.acquire(50, "MERGE")
    child.kill()
    child.wait()
    child.stdout.close()
    queue.acquire(1000, "MERGE")
    queue.close()


WRITE = """
import sys, time
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from tests.harness.commits import insert, make_part
catalog = SqliteCatalog(sys.argv[1])
lease = catalog.open_lease("writer")
print("ready", flush=True)
sys.stdin.readline()
until, count = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < until:
    insert(catalog, lease, part=make_part("s", id=f"{sys.argv[3]}-{count}"))
    count += 1
catalog.close()
print(count)
"""


def test_processes_write_fairly_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    catalog = SqliteCatalog(path)
    create_all(catalog)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path), "2", f"w{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        for n in range(3)
    ]
    for child in children:  # they may take different times to start
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    counts = [int(child.communicate(timeout=60)[0]) for child in children]
    assert all(child.returncode == 0 for child in children)
    parts = catalog.snapshot().parts("s")
    assert len(parts) == sum(counts) == len({p.block_range.first for p in parts})
    for number, count in enumerate(counts):
        assert sum(p.id.startswith(f"w{number}-") for p in parts) == count
    assert min(counts) > max(counts) / 4
    catalog.close()


def test_leases_of_dead_processes_are_revoked(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    catalog = SqliteCatalog(path)
    ours = catalog.open_lease("ours")
    script = (
        "import sys, os\nfrom olapdb.catalog.sqlite.catalog import SqliteCatalog\n"
        "print(SqliteCatalog(sys.argv[1]).open_lease('theirs'), flush=True)\nos._exit(1)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    theirs = done.stdout.strip()
    assert {lease.id: lease.state for lease in catalog.leases()} == {ours: "live", theirs: "live"}
    assert catalog.revoke_dead_leases() == (theirs,)
    assert {lease.id: lease.state for lease in catalog.leases()} == {
        ours: "live",
        theirs: "revoked",
    }
    with pytest.raises(Aborted, match="lease"):
        catalog.apply(Commit((LeaseLive(theirs),), (), "LATE"))
    with pytest.raises(Aborted):  # the lease is checked before any other requirement
        catalog.apply(Commit((SchemaIs("t", 7), LeaseLive(theirs)), (), "LATE"))
    catalog.purge_leases([ours, theirs])
    assert [lease.id for lease in catalog.leases()] == [ours], "a live lease is not forgotten"
    catalog.close()


PIN = """
import sys, time
from olapdb.catalog.sqlite.catalog import SqliteCatalog
catalog = SqliteCatalog(sys.argv[1])
catalog.pin(int(sys.argv[2]))
print("pinned", flush=True)
sys.stdin.readline()
"""


def test_pins_of_other_processes_count_while_they_live(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    catalog = SqliteCatalog(path)
    create_all(catalog)
    lease = catalog.open_lease("w")
    old = insert(catalog, lease).number
    newest = insert(catalog, lease).number
    assert catalog.oldest_pin() == newest
    child = subprocess.Popen(
        [sys.executable, "-c", PIN, str(path), str(old)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "pinned\n"
    assert catalog.oldest_pin() == old
    child.kill()
    child.communicate()
    assert catalog.oldest_pin() == newest
    catalog.close()


def test_a_fork_amid_a_commit_can_write(tmp_path: Path) -> None:
    """A fork during another thread's commit: the child inherits SQLite's memory of its locks."""
    path, amid = tmp_path / "catalog.sqlite", threading.Event()

    def slow(stage: str) -> None:
        if stage == "catalog.before_commit" and threading.current_thread().name == "slow":
            amid.set()
            time.sleep(0.5)

    with contextlib.closing(SqliteCatalog(path, failpoint=slow, lock_timeout_ms=30_000)) as catalog:
        create_all(catalog)
        lease = catalog.open_lease("writer")
        thread = threading.Thread(name="slow", target=lambda: insert(catalog, lease))
        thread.start()
        assert amid.wait(60)
        child = multiprocessing.get_context("fork").Process(
            target=lambda: insert(
                catalog, catalog.open_lease("child"), part=make_part("s", id="second")
            )
        )
        child.start()
        thread.join()
        child.join(60)
        child.kill()
        assert child.exitcode == 0
        table = next(item for item in catalog.snapshot().objects() if item.name == "s")
        assert len(catalog.snapshot().parts(table.id)) == 2


def test_a_fork_while_others_open_catalogs() -> None:
    """A fork waits for all writers; the child, and another fork, can open catalogs too."""
    command = [sys.executable, "-m", "tests.unit.catalog.fork_child"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_fork_uses_connections_and_leases_of_its_own(tmp_path: Path) -> None:
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite")
    create_all(catalog)
    lease = catalog.open_lease("parent")
    insert(catalog, lease)
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def child() -> None:
        own = catalog.open_lease("child")
        committed = insert(catalog, own)
        catalog.close()
        send.send((committed.number, own))

    process = context.Process(target=child)
    process.start()
    number, own = receive.recv()
    process.join()
    insert(catalog, lease)
    assert catalog.snapshot().number == number + 1
    assert len(catalog.snapshot().parts("s")) == 3
    assert {one.id: one.state for one in catalog.leases()} == {lease: "live", own: "closed"}
    catalog.close()
