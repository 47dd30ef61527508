"""Registers the fixtures of the harness for all tests, the order of files, and the examples of hypothesis.

A change lands or not by what it does: the same examples each time, unless fresh ones are asked for
by `--hypothesis-profile=fresh`, as `make soak` does.  None has a deadline; the tests are about
answers, not about how long a shared machine takes for one.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.harness.order import long_files_first

pytest_plugins = ["tests.harness.fixtures"]

settings.register_profile("fresh", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    long_files_first(items, config.rootpath)
