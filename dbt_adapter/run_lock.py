"""One dbt run of a target at a time: the second waits for the first, or is refused.

The lock is an advisory lock of the operating system on a file of the warehouse, so it ends with the
process that holds it, however that ends. The file says who holds it.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

try:
    import fcntl
except ImportError:  # not a Unix: runs are not kept apart
    fcntl = None  # type: ignore[assignment]

logger = AdapterLogger("olapdb")

FOLDER = "dbt.runs"
"""The folder of the lock files in a warehouse."""
_POLL_SECONDS = 0.2
WRITING_COMMANDS = frozenset({"run", "build", "seed", "snapshot", "clone", "retry"})
"""The commands of dbt that take the lock."""


class RunLock:
    """The lock of the runs of one target: a schema of a warehouse in a folder."""

    def __init__(self, warehouse: str, schema: str) -> None:
        self._path = Path(warehouse) / FOLDER / f"{_file_name(schema)}.lock"
        self._schema = schema
        self._warehouse = warehouse
        self._descriptor = -1

    def acquire(
        self, command: str, wait_seconds: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Take the lock, or wait for it; does nothing if this object holds it.

        Raises DbtRuntimeError, which names the holder, if another run holds it for longer than
        `wait_seconds`."""
        if self._descriptor >= 0 or fcntl is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._wait(descriptor, time.monotonic() + wait_seconds, sleep)
            _write(descriptor, command)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; does nothing if this object does not hold it."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def _wait(self, descriptor: int, deadline: float, sleep: Callable[[float], None]) -> None:
        """Lock the file; raise DbtRuntimeError if another process has it at the deadline."""
        is_logged = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = _describe(_read(descriptor))
            if time.monotonic() >= deadline:
                raise DbtRuntimeError(
                    f"Another dbt run works on the schema {self._schema} of {self._warehouse}: "
                    f"{holder}. Two runs of one target would replace each other's relations. Run "
                    "dbt again when it has ended; wait_for_run in the profile is how many seconds "
                    "a run waits for another."
                )
            if not is_logged:
                logger.info(f"Waiting for another run of {self._schema}: {holder}")
                is_logged = True
            sleep(_POLL_SECONDS)


def _file_name(schema: str) -> str:
    """Return a schema as a file's name: letters, digits, - and _ as they are, others as %XX."""
    return "".join(
        c
        if c.isascii() and (c.isalnum() or c in "-_")
        else "".join(f"%{b:02X}" for b in c.encode())
        for c in schema
    )


def _write(descriptor: int, command: str) -> None:
    """Write who holds the lock into its file."""
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "command": command,
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _read(descriptor: int) -> Mapping[str, object]:
    """Return who holds the lock; empty between the lock and its holder's writing."""
    try:
        holder = json.loads(os.pread(descriptor, 65_536, 0) or b"{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe(holder: Mapping[str, object]) -> str:
    """Return the holder as text for messages."""
    if not holder:
        return "a run that has just begun"
    return (
        f"`{holder.get('command')}`, process {holder.get('pid')} on {holder.get('host')}, "
        f"since {holder.get('since')}"
    )
