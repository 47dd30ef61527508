"""The child process to which strace is attached: runs operations on request and reports their
outcomes.

    python -m tests.faults.strace_child FD DURABILITY

Over the socket FD comes a line `folder operation`; "ready" goes back once the connection is open,
and "go" starts the operation. Its outcome is `acknowledged` or the error's class. "again" (the
faults have stopped) makes the open connection go on; the answer is "fine", or the problem. Nothing
here calls write(2), which may be the failing call.
"""

from __future__ import annotations

import socket
import sys
import traceback
from pathlib import Path
from typing import Any

import olapdb
from olapdb.errors import Error
from tests.faults.operations import OPERATIONS, goes_on

BYTES_MAX = 65_536


def main() -> None:
    """Serve requests until the socket is closed."""
    with socket.socket(fileno=int(sys.argv[1])) as line:
        while order := line.recv(BYTES_MAX).decode():
            folder, _, name = order.partition(" ")
            serve(line, Path(folder), name, sys.argv[2])


def serve(line: socket.socket, folder: Path, name: str, durability: Any) -> None:
    """Run one operation and report its outcome, then check the open connection."""
    operation = OPERATIONS[name]
    states: Any = eval(folder.with_name(f"{folder.name}.states").read_text())
    with olapdb.connect(str(folder), durability=durability) as connection:
        connection.execute("SYSTEM STOP MERGES")
        line.sendall(b"ready")
        line.recv(BYTES_MAX)
        try:
            operation.run(connection, folder)
            outcome = "acknowledged"
        except Error as error:
            outcome = type(error).__name__
        except Exception:  # noqa: BLE001  (the test gets any exception)
            outcome = f"raw: {traceback.format_exc()}"
        line.sendall(outcome.encode())
        line.recv(BYTES_MAX)
        try:
            goes_on(operation, connection, folder, name, states)
            answer = "fine"
        except Exception:  # noqa: BLE001
            answer = traceback.format_exc()
    line.sendall(answer.encode()[-BYTES_MAX:])


if __name__ == "__main__":
    main()
