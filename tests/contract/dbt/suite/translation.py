"""Translation of the SQL that dbt's tests themselves send and write: it is PostgreSQL's.

Only what tests say goes through here: the statements of `project.run_sql` and the files of their
projects. What the adapter makes of models never does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import dbt.tests.fixtures.project as fixtures
import dbt.tests.util as util
import pytest
from dbt.tests.adapter.simple_snapshot import common

Rules = Sequence[tuple[str, str]]
"""Pairs of a regular expression and its replacement, applied in order; case does not matter."""


def translate(text: str, rules: Rules) -> str:
    """Apply the rules to a statement or a file."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    return text


def patch(monkeypatch: pytest.MonkeyPatch, test_class: type, rules: Rules) -> None:
    """Translate what this class sends and writes, wherever its modules have the functions for it."""
    write_file, run_sql = util.write_file, util.run_sql_with_adapter

    def write_translated(contents: str, *paths: str) -> None:
        write_file(translate(contents, rules), *paths)

    def run_translated(adapter: Any, sql: str, fetch: str | None = None) -> Any:
        return run_sql(adapter, translate(sql, rules), fetch)

    modules = {base.__module__: sys.modules[base.__module__] for base in test_class.__mro__}
    replacements: dict[str, Callable[..., Any]] = {
        "write_file": write_translated,
        "run_sql_with_adapter": run_translated,
    }
    for module in (fixtures, util, common, *modules.values()):
        for name, replacement in replacements.items():
            if module.__name__.startswith("dbt.tests") and hasattr(module, name):
                monkeypatch.setattr(module, name, replacement)
