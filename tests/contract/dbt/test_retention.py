"""Rows that leave by TTL are no defect: tests and operations of dbt pass, and mend nothing."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

import olapdb

pytestmark = pytest.mark.feature("dbt", "changes")

HEAD = "{{ config(materialized='incremental_mv', "
BODY = ") }} select day, kind, sum(n) as n from {{ source('raw', 'events') }} group by day, kind"
TESTS = "[reconciled, reconciles_with_source, covers_source, no_bypass_writes, not_stale]"
SCHEMA = f"""
sources: [{{name: raw, schema: raw, tables: [{{name: events}}]}}]
models: [{{name: short, data_tests: {TESTS}}}, {{name: kept, data_tests: {TESTS}}}]
"""


class TestRetention:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "short.sql": f"{HEAD}ttl='day + interval 1 year'{BODY}",
            "kept.sql": f"{HEAD}retain='1 year', partition_by='day'{BODY}",
            "schema.yml": SCHEMA,
        }

    def test_expired_partitions_are_frozen_not_wrong(self, project: Any) -> None:
        schema = project.test_schema
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute(
                "create database raw; create table raw.events (day Date, kind String, n Int64) "
                "engine = MergeTree partition by toYYYYMM(day) order by day; "
                "insert into raw.events select toDate('2020-01-01') + number, 'a', 1 from numbers(40); "
                "insert into raw.events select today() - number, 'b', 1 from numbers(3)"
            )
            run_dbt(["run"])
            for model in ("short", "kept"):
                connection.execute(f"optimize table {schema}.{model}__target final")
            rows = f"select count() from {schema}.short union all select count() from {schema}.kept"
            assert connection.execute(rows).fetchall() == [(3,), (3,)]
            _, log = run_dbt_and_capture(["test"])
            assert "partition 202001: retention froze results of it" in log
            assert "partition 2020-01-05: retention froze results of it" in log
            run_dbt(["run-operation", "reconcile"])
            _, log = run_dbt_and_capture(["run-operation", "repair"])
            assert log.count("nothing to repair") == 2
            results = run_dbt(["run"])
            assert {r.message for r in results} == {"NO CHANGE"}
            assert connection.execute(rows).fetchall() == [(3,), (3,)]

            # A defect of what is left is found beside them.
            connection.execute(f"insert into {schema}.short__target values (today(), 'x', 5)")
            results = run_dbt(["test", "--select", "short"], expect_pass=False)
            failed = {r.node.name.removesuffix("_short_") for r in results if r.failures}
            assert failed == {"reconciled", "reconciles_with_source", "no_bypass_writes"}
