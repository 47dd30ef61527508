"""The table of the classes of dbt-tests-adapter and their results, docs/dbt-tests.md.

A run of all of the suite renders the table from what happened. It writes the file with
`--write-dbt-table`, and fails if the file says something else without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import pytest

from tests.contract.dbt.suite.registry import RANKS, BaseClass, base_classes, base_of

PROPERTY = "base class of dbt-tests-adapter"
DOCUMENT = Path(__file__).parents[4] / "docs" / "dbt-tests.md"
HEAD = """# The tests of dbt

dbt Labs publish `dbt-tests-adapter`, the tests that every adapter should pass. This table has every
class of them that applies to olapdb, run on the built wheel. `python -m pytest tests/contract/dbt/suite
-p tests.harness.wheel -p dbt.tests.fixtures.project -p no:warnings --write-dbt-table` runs them and
writes it; a run of all classes checks that it is current.

MUST are the features that dbt's users take for granted, SHOULD is what few adapters have. Not in the
table: templates, and classes for what olapdb has not (users and grants, several catalogs,
JavaScript). Set-up that a class translates is SQL of the test itself, which is PostgreSQL's:
statements that make its tables, and types in its models. Its assertions are the test's own.

"""


def render(outcomes: Mapping[BaseClass, str]) -> str:
    """Return the document for these results of classes."""
    lines = [HEAD, *_summary(outcomes), ""]
    for area, classes in groupby(base_classes(), key=lambda base: base.area):
        lines += [f"## {area}", "", "| class | | translated | result |", "|---|---|---|---|"]
        lines += [
            f"| {base.name} | {base.rank} | {base.translated} | {outcomes[base]} |"
            for base in classes
        ]
        lines.append("")
    return "\n".join(lines)


def _summary(outcomes: Mapping[BaseClass, str]) -> list[str]:
    """Return a table of how many classes of each rank pass."""
    lines = ["| | classes | pass | of those translated |", "|---|--:|--:|--:|"]
    for rank in RANKS:
        classes = [base for base in outcomes if base.rank == rank]
        passing = [base for base in classes if outcomes[base] == "passes"]
        translated = sum(1 for base in passing if base.translated)
        lines.append(f"| {rank} | {len(classes)} | {len(passing)} | {translated} |")
    return lines


def expected_outcomes() -> dict[BaseClass, str]:
    """Return the results that the list of classes promises."""
    return {base: f"fails: {base.failing}" if base.failing else "passes" for base in base_classes()}


class Results:
    """The outcomes of a run's tests, by base class; in the process that collects all reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._write = bool(config.getoption("--write-dbt-table", default=False))
        self._bases = {_key(base): base for base in base_classes()}
        self._outcomes: defaultdict[BaseClass, Counter[str]] = defaultdict(Counter)
        self._message = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once it has an outcome, in whichever process it ran."""
        key = dict(report.user_properties).get(PROPERTY)
        if key is not None and (report.when == "call" or report.outcome != "passed"):
            outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            self._outcomes[self._bases[str(key)]][outcome] += 1

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write or check the document after a run of all classes."""
        if exitstatus != pytest.ExitCode.OK or set(self._outcomes) != set(base_classes()):
            return
        document = render({base: _result(base, self._outcomes[base]) for base in base_classes()})
        if self._write:
            DOCUMENT.write_text(document)
        elif DOCUMENT.read_text() != document:
            self._message = f"{DOCUMENT.name} is not what this run found: --write-dbt-table"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is wrong with the document."""
        if self._message:
            terminalreporter.write_line(self._message, red=True)


def _result(base: BaseClass, outcomes: Counter[str]) -> str:
    if outcomes["xfailed"]:
        return f"fails: {base.failing}"
    return "passes" if set(outcomes) == {"passed"} else f"skipped {outcomes['skipped']}"


def note_base_class(item: pytest.Item) -> BaseClass | None:
    """Note the listed base class of a test of the suite in its reports, and return it, if any."""
    in_suite = Path(__file__).parent in item.path.parents
    base = base_of(getattr(item, "cls", None)) if in_suite else None
    if base is not None:
        item.user_properties.append((PROPERTY, _key(base)))
    return base


def _key(base: BaseClass) -> str:
    """Return the name of a base class in reports."""
    return f"{base.module}.{base.name}"
