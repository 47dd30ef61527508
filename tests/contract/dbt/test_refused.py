"""Features of dbt that olapdb lacks are refused with a message that names the alternative."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture

pytestmark = pytest.mark.feature("dbt", "provability")


class TestRefused:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "keyed.sql": "{{ config(materialized='incremental', unique_key='id', "
            "incremental_strategy='append') }} select 1 as id"
        }

    def test_each_refusal_names_the_alternative(self, project: Any) -> None:
        results, log = run_dbt_and_capture(["build"], expect_pass=False)
        assert {str(r.status) for r in results} == {"error"}
        assert "means nothing to incremental_strategy='append'" in log
