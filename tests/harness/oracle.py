"""The oracle: real ClickHouse (chDB) in a process of its own.

chDB allows one embedded server a process and has a memory allocator of its own, so it never runs
inside the tests' process.  A long-lived child reads one JSON request a line and answers with one
JSON line; values come as ClickHouse prints them in TabSeparated, so that a comparison is one of
text, types included.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_CODE = re.compile(r"Code: (\d+)")
_NAME = re.compile(r"\(([A-Z][A-Z0-9_]+)\)\s*(?:\(version[^)]*\))?\s*$")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"b": b"\b", b"f": b"\f"}


class OracleError(Exception):
    """ClickHouse refused the statement; `code` and `name` are its own."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        code, name = _CODE.search(text), _NAME.search(text.strip())
        self.code = int(code.group(1)) if code else 0
        self.name = name.group(1) if name else ""


@dataclass(frozen=True)
class OracleResult:
    """Column names, type names, and rows of values as printed (unescaped); NULL at top level is
    None."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[str | None, ...]]

    @property
    def value(self) -> str | None:
        """Return the only value of a result of one row and one column."""
        ((value,),) = self.rows
        return value

    def column(self, name: str) -> list[str | None]:
        """Return the values of one column."""
        at = self.names.index(name)
        return [row[at] for row in self.rows]


class Oracle:
    """A ClickHouse process. Its database is `t`, an Atomic one. A context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def query(self, sql: str) -> OracleResult:
        """Run one statement. Raise OracleError where ClickHouse refuses it."""
        return parse_tsv(self._ask(sql, "TabSeparatedWithNamesAndTypes"))

    def execute(self, sql: str) -> None:
        """Run a statement and drop its result. Raise OracleError where ClickHouse refuses it."""
        self._ask(sql, "Null")

    def text(self, sql: str, output_format: str) -> bytes:
        """Return the result in an output format of ClickHouse, as bytes (`Parquet`, `JSONEachRow`,
        …)."""
        return self._ask(sql, output_format)

    def close(self) -> None:
        """End the child process."""
        if self._process is not None:
            process, self._process = self._process, None
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            process.wait(timeout=120)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, sql: str, output_format: str) -> bytes:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"sql": sql, "format": output_format}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            self._process = None
            raise RuntimeError(f"The oracle's process ended (code {process.wait()}) on: {sql}")
        answer = json.loads(line)
        if "error" in answer:
            raise OracleError(answer["error"])
        return base64.b64decode(answer["data"])

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve()), "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env={**os.environ, "TZ": "UTC"},
            )
        return self._process


def parse_tsv(data: bytes) -> OracleResult:
    """Parse a TabSeparatedWithNamesAndTypes text. Bytes that are not UTF-8 become surrogate
    escapes."""
    lines = data.split(b"\n")
    if len(lines) < 2:
        return OracleResult((), (), [])
    names, types, *rest = lines
    if rest and not rest[-1]:
        rest.pop()
    return OracleResult(
        tuple(_unescape(n) or "" for n in names.split(b"\t")),
        tuple(_unescape(n) or "" for n in types.split(b"\t")),
        [tuple(_unescape(v) for v in line.split(b"\t")) for line in rest],
    )


def _unescape(value: bytes) -> str | None:
    if value == b"\\N":
        return None
    plain = _ESCAPE.sub(lambda m: _ESCAPES.get(m.group(1), m.group(1)), value)
    return plain.decode("utf-8", "surrogateescape")


def _serve() -> None:
    """Answer requests in the child. chDB may itself write to descriptor 1, so answers go to a
    copy."""
    from chdb import session  # type: ignore[import-untyped]

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        server = session.Session(folder)
        server.query("CREATE DATABASE t ENGINE = Atomic")
        server.query("USE t")
        for line in sys.stdin:
            request = json.loads(line)
            try:
                result = server.query(request["sql"], request["format"])
                data = result.bytes() if hasattr(result, "bytes") else bytes(result)
                answer = {"data": base64.b64encode(data or b"").decode()}
            except (RuntimeError, ValueError, OSError) as error:  # ChdbError is a RuntimeError
                answer = {"error": str(error) or type(error).__name__}
                # discards the header of the failed statement
                server.query("SELECT 1", "TabSeparated")
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        server.close()


if __name__ == "__main__":
    _serve()
