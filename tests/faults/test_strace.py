"""Runs the unmodified engine while strace injects errors into its system calls.

In each case the n-th call of a kind fails (`when=n`), or all from the n-th on (`when=n+`), in the
middle of an operation: no space, or an I/O error.  The operation must raise an olapdb error. A copy
of the folder at that moment must open as after a crash. The open connection must work once the
faults stop.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.operations import OPERATIONS, expected, prepare_all, verify

pytestmark = pytest.mark.feature("crashes", "concurrency")

ROOT = Path(__file__).parents[2]
CALLS = (
    "fsync",
    "fdatasync",
    "pwrite64",
    "write",
    "rename",
    "openat",
    "unlink",
    "ftruncate",
    "pread64",
)
ERRORS = ("ENOSPC", "EIO")
SECONDS = 15.0
ATTACH_SECONDS_MAX = 20.0


@dataclass(frozen=True)
class Case:
    """An operation and the injected error."""

    operation: str
    call: str
    error: str
    number: int
    forever: bool

    @property
    def injection(self) -> str:
        """The option for strace."""
        return (
            f"inject={self.call}:error={self.error}:when={self.number}{'+' if self.forever else ''}"
        )

    def __str__(self) -> str:
        return f"{self.operation}, {self.injection}"


class Child:
    """A process that runs operations, to which strace is attached for a while."""

    def __init__(self, durability: str = "full") -> None:
        self._line, theirs = socket.socketpair()
        self._line.settimeout(120)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.strace_child", str(theirs.fileno()), durability],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        theirs.close()

    def say(self, text: str) -> None:
        """Send a line to the process."""
        self._line.sendall(text.encode())

    def hear(self) -> str:
        """Return the process's next line."""
        answer = self._line.recv(65_536).decode()
        if not answer:
            assert self._process.stderr is not None
            raise AssertionError(f"The child died: {self._process.stderr.read().decode()[-2000:]}")
        return answer

    def attach(self, options: list[str], log: Path) -> subprocess.Popen[bytes]:
        """Attach strace; return once it has all threads of the process."""
        command = ["strace", "-f", "-p", str(self._process.pid), "-o", str(log), *options]
        started = subprocess.Popen(command, stderr=subprocess.PIPE)
        assert started.stderr is not None
        until = time.monotonic() + ATTACH_SECONDS_MAX
        while time.monotonic() < until:
            text = started.stderr.readline().decode()
            if "attached" in text:
                return started
            if not text or "not permitted" in text:
                break
        started.kill()
        raise PermissionError("strace may not attach to a process here")

    @staticmethod
    def detach(started: subprocess.Popen[bytes]) -> None:
        """End strace."""
        started.terminate()
        started.communicate()

    def run(self, folder: Path, operation: str, options: list[str], log: Path) -> str:
        """Return the outcome of the operation, with strace attached to it alone."""
        self.say(f"{folder} {operation}")
        assert self.hear() == "ready"
        strace = self.attach(options, log)
        self.say("go")
        outcome = self.hear()
        self.detach(strace)
        return outcome

    def close(self) -> None:
        """End the process."""
        self._line.close()
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare a warehouse for each operation, with the states before and after it."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (the package strace)")
    folder = prepare_all(tmp_path_factory.mktemp("strace"))
    for name, operation in OPERATIONS.items():
        shutil.copytree(folder / name, folder / f"{name}.run")
        states = expected(folder, folder / f"{name}.run", operation)
        (folder / f"{name}.states").write_text(repr(states))
    return folder


@pytest.fixture
def child(template: Path) -> Iterator[Child]:
    """Start a child, and end it after the test."""
    started = Child()
    yield started
    started.close()


def copied(template: Path, folder: Path, name: str) -> Path:
    """Copy the warehouse of the operation with its states."""
    shutil.copytree(template / name, folder)
    shutil.copyfile(template / f"{name}.states", folder.with_name(f"{folder.name}.states"))
    return folder


def counted(child: Child, template: Path, tmp_path: Path, name: str) -> dict[str, int]:
    """Return how often the operation makes each call without faults. The run also loads all
    modules, so that no import meets a fault."""
    for number in range(2):
        folder = copied(template, tmp_path / f"dry-{number}", name)
        log = tmp_path / "calls.txt"
        try:
            outcome = child.run(folder, name, ["-e", f"trace={','.join(CALLS)}"], log)
        except PermissionError as error:
            pytest.skip(str(error))
        assert outcome == "acknowledged"
        child.say("again")
        assert child.hear() == "fine"
    text = log.read_text()
    return {call: len(re.findall(rf"\b{call}\(", text)) for call in CALLS}


def cases(counts: dict[str, int], name: str) -> Iterator[Case]:
    """Yield the first, the middle and the last call of each kind, with each error, once and for
    ever."""
    for turn in range(6):
        for at, (call, count) in enumerate(sorted(counts.items())):
            if not count:
                continue
            number = {0: count, 1: 1, 2: count // 2 + 1}[(turn + at) % 3]
            yield Case(name, call, ERRORS[(turn + at) % 2], number, (turn // 3 + at) % 2 == 0)


def one_case(child: Child, template: Path, folder: Path, case: Case) -> None:
    """Run a case, check the crashed copy, and require that the connection works afterwards."""
    states: Any = eval((template / f"{case.operation}.states").read_text())
    copied(template, folder, case.operation)
    outcome = child.run(
        folder,
        case.operation,
        ["-e", f"trace={case.call}", "-e", case.injection],
        Path("/dev/null"),
    )
    assert not outcome.startswith("raw"), f"{case}: {outcome}"
    crashed = folder.with_name(f"{folder.name}-crashed")
    shutil.copytree(folder, crashed)
    child.say("again")
    answer = child.hear()
    assert answer == "fine", f"{case}: {answer}"
    verify(crashed, OPERATIONS[case.operation], states, outcome == "acknowledged", str(case))
    for one in (folder, crashed, folder.with_name(f"{folder.name}.backup")):
        shutil.rmtree(one, ignore_errors=True)


@pytest.mark.slow
def test_some_calls_fail(child: Child, template: Path, tmp_path: Path) -> None:
    """Fail calls of an INSERT with its views."""
    until = time.monotonic() + SECONDS
    counts = counted(child, template, tmp_path, "insert")
    assert counts["fsync"] + counts["fdatasync"] >= 3, counts
    done = 0
    for done, case in enumerate(dict.fromkeys(cases(counts, "insert")), 1):
        one_case(child, template, tmp_path / str(done), case)
        if time.monotonic() > until and done >= 5:
            break
    assert done >= 5


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_kind_of_call_fails(child: Child, template: Path, tmp_path: Path, name: str) -> None:
    counts = counted(child, template, tmp_path, name)
    for done, case in enumerate(dict.fromkeys(cases(counts, name))):
        one_case(child, template, tmp_path / str(done), case)


@pytest.mark.slow
def test_the_commit_is_flushed(child: Child, template: Path, tmp_path: Path) -> None:
    """Require that files, their folders and the catalog's log are flushed in this order, the log
    after its last write, before the INSERT is acknowledged."""
    renamed, folders, written, flushed = traced_insert(child, template, tmp_path)
    assert renamed
    assert max(renamed) < max(folders), "the names of files"
    # The lease of the process may be renewed at any time, also before the files.
    commit = [at for at in written if at > max(folders)]
    assert commit, "files and their names before the catalog"
    assert max(commit) < max(flushed), "the commit is flushed"


@pytest.mark.slow
def test_that_it_would_be_noticed(template: Path, tmp_path: Path) -> None:
    """Check that the trace shows the missing flushes of durability = 'process'."""
    started = Child("process")
    renamed, folders, written, flushed = traced_insert(started, template, tmp_path)
    started.close()
    assert renamed
    assert written
    assert (folders, flushed) == ([], [])


def traced_insert(child: Child, template: Path, tmp_path: Path) -> tuple[list[int], ...]:
    """Return the positions in the trace of one INSERT at which parts were renamed, their folders
    flushed, and the catalog's log written and flushed."""
    folder = copied(template, tmp_path / "traced", "insert")
    log = tmp_path / "trace.txt"
    try:
        outcome = child.run(
            folder, "insert", ["-y", "-e", "trace=pwrite64,fsync,fdatasync,rename"], log
        )
    except PermissionError as error:
        pytest.skip(str(error))
    assert outcome == "acknowledged"
    child.say("again")
    assert child.hear() == "fine"
    calls = list(enumerate(log.read_text().splitlines()))
    log_calls = [(at, one) for at, one in calls if "catalog.sqlite-wal" in one]
    return (
        [at for at, one in calls if "rename(" in one and ".parquet" in one],
        [at for at, one in calls if "fsync(" in one and "/data/" in one and ".parquet" not in one],
        [at for at, one in log_calls if "pwrite64(" in one],
        [at for at, one in log_calls if "sync(" in one],
    )
