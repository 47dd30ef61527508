"""The process that strace is attached to: runs operations when it is told, and says what became of
them.

    python -m tests.faults.strace_child FD DURABILITY

Over the socket FD comes a line `folder operation`; "ready" goes back once the connection is open,
"go" starts the operation, its outcome is `acknowledged` or the error's class, and "again" (the
faults have stopped) makes the open connection go on; the answer is "fine", or what went wrong.
Nothing here calls write(2), which may be what fails.
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
    with socket.socket(fileno=int(sys.argv[1])) as line:
        while order := line.recv(BYTES_MAX).decode():
            folder, _, name = order.partition(" ")
            serve(line, Path(folder), name, sys.argv[2])


def serve(line: socket.socket, folder: Path, name: str, durability: Any) -> None:
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
        except Exception:  # noqa: BLE001  (whatever it is, the test is told)
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
