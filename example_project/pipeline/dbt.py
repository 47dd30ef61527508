"""Runs dbt in this process, so that it uses the running Spark session, and reports its events."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]

PASSED = ("success", "pass", "no-op")


@dataclass(frozen=True)
class Result:
    """The outcome of a node; `kind` is model, seed, test, …"""

    name: str
    kind: str
    status: str
    message: str


@dataclass
class Run:
    """The outcome of a dbt command: `results` by node id, and the `lines` that the adapter or an
    operation logged for people."""

    success: bool = False
    results: dict[str, Result] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[str]:
        """Names of the nodes that failed."""
        return [r.name for r in self.results.values() if r.status not in PASSED]


OnFinished = Callable[[int, int], None]
OnLine = Callable[[str], None]


def _ignore(*_: object) -> None:
    return


class Dbt:
    """A runner of dbt commands on the warehouse; `target` is the folder for dbt's own files."""

    def __init__(self, warehouse: Path, target: Path) -> None:
        self._variables = {
            "OLAPDB_WAREHOUSE": str(warehouse),
            "DBT_TARGET_PATH": str(target),
            "DBT_LOG_PATH": str(target / "logs"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "0",
        }

    def __call__(
        self,
        *arguments: str,
        macro_arguments: Mapping[str, Any] | None = None,
        on_finished: OnFinished = _ignore,
        on_line: OnLine = _ignore,
    ) -> Run:
        """Run one command.

        Calls `on_finished` with (nodes done, all nodes) and `on_line` with each line for people.
        Raises errors that dbt itself does not handle, such as a project that does not parse."""
        from dbt.cli.main import dbtRunner

        run = Run()
        done: set[str] = set()
        total = [0]

        def add_line(line: str) -> None:
            run.lines.append(line)
            on_line(line)

        def listen(event: Any) -> None:
            name = event.info.name
            if name == "NodeFinished":
                done.add(event.data.node_info.unique_id)
                on_finished(len(done), total[0])
            elif name == "LogStartLine":
                total[0] = event.data.total
                on_finished(len(done), total[0])
            elif name in ("AdapterEventInfo", "AdapterEventWarning"):
                add_line(event.data.base_msg)
            elif name == "JinjaLogInfo" or (name == "Note" and event.info.level == "info"):
                add_line(event.data.msg)

        extra = ["--args", json.dumps(macro_arguments)] if macro_arguments is not None else []
        with _environment(self._variables):
            outcome = dbtRunner(callbacks=[listen]).invoke(
                [
                    "--log-level",
                    "none",
                    "--no-use-colors",
                    *arguments,
                    *extra,
                    "--project-dir",
                    str(PROJECT),
                    "--profiles-dir",
                    str(PROJECT),
                ]
            )
        if outcome.exception is not None:
            raise outcome.exception
        run.success = outcome.success
        run.results.update(_results(outcome.result))
        return run


def _results(result: Any) -> dict[str, Result]:
    listed = getattr(result, "results", None)
    if listed is None:
        return {}
    return {
        node_result.node.unique_id: Result(
            node_result.node.name.rstrip("_"),
            str(node_result.node.resource_type),
            str(node_result.status),
            node_result.message or "",
        )
        for node_result in listed
        if getattr(node_result, "node", None) is not None
    }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
