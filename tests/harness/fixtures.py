"""Fixtures that any test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """One ClickHouse for the whole run, started at the first question."""
    with Oracle() as running:
        yield running
