"""Cloning a relation to itself: the test makes its source under a name of three levels."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneSameSourceAndTarget

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")


class TestSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    rules: ClassVar[Rules] = ((r"\bolapdb\.(?=test\d)", ""),)
