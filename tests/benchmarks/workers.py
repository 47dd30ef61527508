"""The engines, each in a process of its own (see `worker`), and whether their answers agree."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

Rows = list[list[object]]


class Worker:
    """A process with one engine, and the folder of its tables. A context manager."""

    def __init__(self, engine: str, clock: str, threads: int, files: Path) -> None:
        self.engine = engine
        self._tables = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        script = Path(__file__).with_name("worker.py")
        self._command = [
            *(sys.executable, str(script), engine, clock),
            *(str(threads), str(files), self._tables.name),
        ]
        self.process = self._started()
        self.about = str(self._ask({"about": True}))

    def restart(self) -> None:
        """End the process and start another one, which opens the same tables and has read none."""
        self._end()
        self.process = self._started()
        self._ask({"about": True})

    def seconds(self, statements: Sequence[str]) -> float:
        answer = self._ask({"seconds": list(statements)})
        assert isinstance(answer, float)
        return answer

    def rows(self, query: str) -> Rows:
        answer = self._ask({"rows": query})
        assert isinstance(answer, list)
        return answer

    def facts(self) -> dict[str, int]:
        """Return `peak_bytes`, the peak memory of the process, and `disk_bytes`, of the tables."""
        answer = self._ask({"facts": True})
        assert isinstance(answer, dict)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()
        self._tables.cleanup()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _ask(self, request: Mapping[str, object]) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its last words are on stderr
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.engine} failed, as said above, at {str(request)[:400]}")
        return json.loads(answer)


@contextmanager
def started(
    engines: Sequence[str], clock: str, threads: int, files: Path
) -> Iterator[dict[str, Worker]]:
    with ExitStack() as stack:
        yield {
            engine: stack.enter_context(Worker(engine, clock, threads, files)) for engine in engines
        }


def check(
    name: str, queries: Mapping[str, str], workers: Mapping[str, Worker], tolerance: float
) -> None:
    """Ends the run where an engine's rows are not those of the first."""
    answers = {engine: workers[engine].rows(sql) for engine, sql in queries.items()}
    (first, expected), *others = answers.items()
    for engine, rows in others:
        difference = differs(expected, rows, tolerance)
        if difference:
            raise SystemExit(
                f"Answers differ at {name}: {first} and {engine}: {difference}\n"
                f"  {first}: {queries[first]}\n  {engine}: {queries[engine]}"
            )


def differs(expected: Rows, rows: Rows, tolerance: float) -> str | None:
    """Return the first row that differs. Floats may differ by the relative `tolerance`; integers may not,
    unless it is one of an approximation (1e-6 and more)."""
    if len(expected) != len(rows):
        return f"{len(expected)} and {len(rows)} rows"
    for number, (one, other) in enumerate(zip(expected, rows)):
        if len(one) != len(other) or not all(map(_same, one, other, [tolerance] * len(one))):
            return f"row {number} is {one} and {other}"
    return None


def _same(one: object, other: object, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        exact = isinstance(one, int) and isinstance(other, int) and tolerance < 1e-6
        return one == other if exact else math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9)
    return one == other
