"""Writers take turns, in order, and wait no longer than they said; forks and dead processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from olapdb.catalog.queue import FairLock, TicketQueue
from olapdb.catalog.sqlite import SqliteCatalog
from olapdb.errors import CatalogBusy, CommitConflict
from olapdb.model.changes import Commit, LeaseLive
from tests.harness.commits import create_all, insert


def test_threads_get_the_lock_in_their_order() -> None:
    lock, served = FairLock(), []
    lock.acquire(1000, "first")
    threads = []
    for number in range(5):
        threads.append(
            threading.Thread(
                target=lambda n=number: (lock.acquire(5000, "x"), served.append(n), lock.release())
            )
        )
        threads[-1].start()
        time.sleep(0.02)
    lock.release()
    for thread in threads:
        thread.join()
    assert served == [0, 1, 2, 3, 4]


def test_a_wait_is_bounded_and_names_the_holder(tmp_path: Path) -> None:
    lock = FairLock()
    lock.acquire(10, "INSERT")
    with pytest.raises(CatalogBusy, match=r"this process .INSERT."):
        lock.acquire(10, "MERGE")
    lock.release()
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


HOLD = """
import sys, time
from olapdb.catalog.queue import TicketQueue
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
from olapdb.catalog.sqlite import SqliteCatalog
from tests.harness.commits import insert, make_part
catalog = SqliteCatalog(sys.argv[1])
lease = catalog.open_lease("writer")
longest, until, count = 0.0, time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < until:
    started = time.monotonic()
    insert(catalog, lease, part=make_part("s", id=f"{sys.argv[3]}-{count}"))
    longest, count = max(longest, time.monotonic() - started), count + 1
catalog.close()
print(count, longest)
"""


def test_processes_write_fairly_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    catalog = SqliteCatalog(path)
    create_all(catalog)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path), "2", f"w{n}"],
            stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
        )
        for n in range(3)
    ]  # fmt: skip
    outcomes = [child.communicate(timeout=60)[0].split() for child in children]
    counts = [int(count) for count, _ in outcomes]
    assert all(child.returncode == 0 for child in children)
    parts = catalog.snapshot().parts("s")
    assert len(parts) == sum(counts) == len({p.block_range.first for p in parts})
    for number, count in enumerate(counts):
        assert sum(p.id.startswith(f"w{number}-") for p in parts) == count
    assert min(counts) > max(counts) / 4
    assert max(float(longest) for _, longest in outcomes) < 2
    catalog.close()


def test_leases_of_dead_processes_are_revoked(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    catalog = SqliteCatalog(path)
    ours = catalog.open_lease("ours")
    script = (
        "import sys, os\nfrom olapdb.catalog.sqlite import SqliteCatalog\n"
        "print(SqliteCatalog(sys.argv[1]).open_lease('theirs'), flush=True)\nos._exit(1)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    theirs = done.stdout.strip()
    assert {one.id: one.state for one in catalog.leases()} == {ours: "live", theirs: "live"}
    assert catalog.revoke_dead_leases() == (theirs,)
    assert {one.id: one.state for one in catalog.leases()} == {ours: "live", theirs: "revoked"}
    with pytest.raises(CommitConflict) as caught:
        catalog.apply(Commit((LeaseLive(theirs),), (), "LATE"))
    assert caught.value.requirement == LeaseLive(theirs)
    catalog.forget_leases([ours, theirs])
    assert [one.id for one in catalog.leases()] == [ours], "a live lease is not forgotten"
    catalog.close()


PIN = """
import sys, time
from olapdb.catalog.sqlite import SqliteCatalog
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
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "pinned\n"
    assert catalog.oldest_pin() == old
    child.kill()
    child.communicate()
    assert catalog.oldest_pin() == newest
    catalog.close()


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
