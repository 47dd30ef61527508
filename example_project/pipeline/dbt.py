"""dbt in this process, so that it uses the Spark session that runs, with its events shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]

PASSED = ("success", "pass", "no-op")


@dataclass
class Run:
    """What a dbt command did: `results` by node name as (status, message), `lines` of its log that
    the adapter or an operation wrote for people."""

    success: bool = False
    results: dict[str, tuple[str, str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[str]:
        return [name for name, (status, _) in self.results.items() if status not in PASSED]


Started = Callable[[str], None]
Finished = Callable[[int, int], None]
Told = Callable[[str], None]


def _ignore(*_: object) -> None:
    return


class Dbt:
    """Runs dbt commands on the warehouse; `target` is the folder of what dbt writes itself."""

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
        on_finished: Finished = _ignore,
        on_line: Told = _ignore,
    ) -> Run:
        """One command. `on_finished` is called with (nodes done, nodes in all), `on_line` with
        each line for people. Raises what dbt could not handle, such as a project that does not
        parse."""
        from dbt.cli.main import dbtRunner

        run = Run()

        def listen(event: Any) -> None:
            name = event.info.name
            if name == "NodeFinished":
                run.results.setdefault(event.data.node_info.node_name, ("", ""))
            elif name == "LogStartLine":
                on_finished(event.data.index - 1, event.data.total)
            elif name in ("AdapterEventInfo", "AdapterEventWarning", "JinjaLogInfo"):
                run.lines.append(event.info.msg)
                on_line(event.info.msg)

        extra = ["--args", json.dumps(macro_arguments)] if macro_arguments is not None else []
        with _environment(self._variables):
            answer = dbtRunner(callbacks=[listen]).invoke([
                "--log-level", "none", "--no-use-colors",
                *arguments, *extra, "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT),
            ])  # fmt: skip
        if answer.exception is not None:
            raise answer.exception
        run.success = answer.success
        run.results.update(_results(answer.result))
        return run


def _results(result: Any) -> dict[str, tuple[str, str]]:
    listed = getattr(result, "results", None)
    if listed is None:
        return {}
    return {
        one.node.name: (str(one.status), one.message or "")
        for one in listed
        if getattr(one, "node", None) is not None
    }


@contextmanager
def _environment(variables: Mapping[str, str]):  # noqa: ANN202
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
