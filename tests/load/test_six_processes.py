"""Four writers, a reader, and a process that merges and vacuums; a random one is killed repeatedly.

Every reader sees a prefix of each writer's commits, source and view at one snapshot. Acknowledged
rows are stored once. A few rounds in CI, a minute in the soak."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from tests.load.six import ROWS, create

pytestmark = pytest.mark.feature("concurrency")

ROLES = ("writer 0", "writer 1", "writer 2", "writer 3", "reader", "keeper")
ROOT = Path(__file__).parents[2]
WRITER_WAITS_SECONDS_MAX = 2.0
TICK_SECONDS = 0.02
LATE_SECONDS = 0.3


class Child:
    """A process of one role. Its output goes to a file, so that a kill loses nothing."""

    def __init__(self, folder: Path, role: str) -> None:
        self.role = role
        self.output = tempfile.TemporaryFile("w+")  # noqa: SIM115  (it lives as long as the child)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.load.six", str(folder), *role.split()],
            stdin=subprocess.PIPE,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )

    def has_begun(self) -> bool:
        """Return whether the process has printed something or ended."""
        return os.fstat(self.output.fileno()).st_size > 0 or self.process.poll() is not None

    def kill(self) -> str:
        """Kill the process; return all its output and a last line with the time of the kill."""
        self.process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        self.process.communicate()
        return f"{self._said()}\nkilled {killed:.3f}\n"

    def stop(self) -> str:
        self.process.communicate("", timeout=120)
        said = self._said()
        assert self.process.returncode == 0, (self.role, said[-3000:])
        return said

    def _said(self) -> str:
        self.output.seek(0)
        said = self.output.read()
        self.output.close()
        return said


def run(folder: Path, seconds: float, pause_seconds: float, seed: int) -> dict[str, list[str]]:
    """Run and kill processes of all roles; return the outputs of each role's processes."""
    draw = random.Random(seed)
    children = {role: Child(folder, role) for role in ROLES}
    said: dict[str, list[str]] = {role: [] for role in ROLES}
    try:
        while not all(child.has_begun() for child in children.values()):
            time.sleep(TICK_SECONDS)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(pause_seconds)
            role = draw.choice(ROLES)
            for other, child in children.items():
                assert child.process.poll() is None, (other, child.kill()[-3000:])
            said[role].append(children[role].kill())
            children[role] = Child(folder, role)
        for role, child in children.items():
            said[role].append(child.stop())
    finally:
        for child in children.values():
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait()
    return said


@contextmanager
def standstills() -> Iterator[list[tuple[float, float]]]:
    """Measure when the whole machine stood still, as (from, to).

    A thread that only sleeps wakes late then. No lock of the engine can delay that thread."""
    found: list[tuple[float, float]] = []
    done = threading.Event()

    def watch() -> None:
        slept = time.monotonic()
        while not done.wait(TICK_SECONDS):
            woke = time.monotonic()
            if woke - slept > LATE_SECONDS:
                found.append((slept + TICK_SECONDS, woke))
            slept = woke

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def waits(text: str, still: Sequence[tuple[float, float]] = ()) -> list[float]:
    """Return the duration of each INSERT of a writer, without the time in which the machine stood
    still.

    A killed INSERT counts until the kill. A refused one counts on until a retry is acknowledged."""
    found, begun = [], None
    for line in text.splitlines():
        what, *numbers = line.split() or [""]
        if what in ("ack", "killed") and begun is not None:
            ended = float(numbers[-1])
            stood = sum(max(min(ended, to) - max(begun, since), 0.0) for since, to in still)
            found.append(ended - begun - stood)
            begun = None
        if what == "begin" and begun is None:  # a refused INSERT begins again: its wait continues
            begun = float(numbers[0])
    return found


def figures(
    said: dict[str, list[str]], still: Sequence[tuple[float, float]] = ()
) -> tuple[str, float]:
    """Return a summary in words, and a writer's longest wait in seconds."""
    took = sorted(
        wait
        for role, texts in said.items()
        if role.startswith("writer")
        for text in texts
        for wait in waits(text, still)
    )
    rounds = {role: sum(t.count("round") for t in said[role]) for role in ("reader", "keeper")}
    kills = sum(text.count("killed ") for texts in said.values() for text in texts)
    told = (
        f"{len(took)} INSERTs by four writers: median {took[len(took) // 2] * 1000:.1f} ms, 99th"
        f" percentile {took[len(took) * 99 // 100] * 1000:.1f} ms, longest {took[-1]:.2f} s;"
        f" {rounds['reader']} reads of source and view; {rounds['keeper']} rounds of merge and"
        f" vacuum; {kills} processes killed; the machine stood still for"
        f" {sum(to - since for since, to in still):.1f} s"
    )
    return told, took[-1]


def check(folder: Path, said: dict[str, list[str]]) -> None:
    with olapdb.connect(str(folder)) as connection:
        for writer in range(4):
            acknowledged = [
                int(line.split()[1])
                for text in said[f"writer {writer}"]
                for line in text.splitlines()
                if re.fullmatch(r"ack \d+ [\d.]+", line)  # ignores a line cut off by the kill
            ]
            assert acknowledged == sorted(set(acknowledged)), "a number was given twice"
            ((count, distinct, top),) = connection.execute(
                f"SELECT count(), uniqExact(number), max(number) FROM events WHERE writer = {writer}"
            ).fetchall()
            assert count == distinct * ROWS
            assert top == max(distinct - 1, 0)
            assert set(acknowledged) <= set(range(distinct))
        connection.execute("SYSTEM RECONCILE VIEW v")
        assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("proven",)]
        services = connection.database.services
        services.catalog.revoke_dead_leases()
        from olapdb.maintenance.vacuum import vacuum

        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == []


def test_six_processes_and_one_is_killed_now_and_then(tmp_path: Path) -> None:
    create(str(tmp_path))
    said = run(tmp_path, seconds=9, pause_seconds=1.5, seed=3)
    print(figures(said)[0])
    check(tmp_path, said)


@pytest.mark.soak
def test_a_minute_of_six_processes(tmp_path: Path) -> None:
    create(str(tmp_path))
    with standstills() as still:
        said = run(tmp_path, seconds=60, pause_seconds=3, seed=random.randrange(1 << 30))
    check(tmp_path, said)
    told, longest = figures(said, still)
    print(told)
    assert all(any("round" in text for text in said[role]) for role in ("reader", "keeper"))
    assert longest <= WRITER_WAITS_SECONDS_MAX


def test_waits_are_counted_to_the_end() -> None:
    text = "begin 1.0\nack 0 1.5\nbegin 2.0\ntoo many parts\nbegin 3.0\nack 1 4.5\nbegin 5.0\nkilled 8.5"
    assert waits(text) == [0.5, 2.5, 3.5]
    assert waits(text, [(0.0, 1.25), (4.0, 7.0)]) == [0.25, 2.0, 1.5]
