"""Python models: a timestamp of the input model is PostgreSQL's literal."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonSampleTests,
)

pytestmark = pytest.mark.feature("dbt")

INPUT_MODEL = """
{{ config(materialized='table', event_time='event_time') }}
select 1 as id, toDateTime('2025-01-01 01:25:00') as event_time
union all
select 2 as id, toDateTime('2025-01-02 13:47:00') as event_time
union all
select 3 as id, toDateTime('2025-01-03 01:32:00') as event_time
"""


class OurInput:
    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        return INPUT_MODEL


class TestEmpty(OurInput, BasePythonEmptyTests):
    pass


class TestSample(OurInput, BasePythonSampleTests):
    pass
