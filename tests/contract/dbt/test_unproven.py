"""A model that cannot be proven says so when it is made, and its test `reconciled` says why."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture

import olapdb

pytestmark = pytest.mark.feature("dbt", "provability")

MODELS = """
sources: [{name: raw, schema: raw, tables: [{name: events}, {name: kinds}]}]
models: [{name: costs, data_tests: [reconciled]}]
"""
COSTS = """
{{ config(materialized='incremental_mv') }}
select e.kind as kind, sum(k.cost) as cost
from {{ source('raw', 'events') }} as e
join {{ source('raw', 'kinds') }} as k on e.kind = k.kind
group by e.kind
"""


class TestUnproven:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"models.yml": MODELS, "costs.sql": COSTS}

    def test_the_reason_is_told(self, project: Any) -> None:
        """Merges of kinds, which the model reads without FINAL, change what it joins."""
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            for statement in (
                "create database raw",
                "create table raw.events (kind String) engine = MergeTree order by kind",
                "create table raw.kinds (kind String, cost UInt32) engine = ReplacingMergeTree"
                " order by kind",
                "insert into raw.kinds values ('a', 1), ('b', 2)",
                "insert into raw.events values ('a'), ('b')",
            ):
                connection.execute(statement)
            _, log = run_dbt_and_capture(["run"])
            assert "costs__mv cannot be proven: " in log
            reasons = connection.execute("select verdict, reason from system.views").fetchall()
            ((verdict, reason),) = reasons
            assert verdict == "unproven"
            assert "FINAL" in reason or "merges" in reason
            assert reason in " ".join(log.split())
        _, log = run_dbt_and_capture(["test"], expect_pass=False)
        assert reason in " ".join(log.split())
