"""The table of dbt's test classes in docs says what the list of classes says.

A run of the suite checks that the list is true; this test needs none.
"""

from __future__ import annotations

import pytest

from tests.contract.dbt.suite.results import DOCUMENT, expected_outcomes, render

pytestmark = pytest.mark.feature("house")


def test_the_table_is_current() -> None:
    assert DOCUMENT.read_text() == render(expected_outcomes()), (
        "Run the suite with --write-dbt-table, as docs/dbt-tests.md says."
    )
