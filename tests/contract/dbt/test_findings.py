"""Findings of a first user that no other file shows through dbt itself: views over a rebuilt table,
a read view that was replaced by hand, SQL that does not parse."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb

pytestmark = pytest.mark.feature("dbt")

SOURCES = "sources: [{name: raw, schema: raw, tables: [{name: events}]}]"
MODELS = SOURCES + "\nmodels: [{name: totals, data_tests: [reconciled]}]"
BASE = "{{ config(materialized='table') }} select kind from {{ source('raw', 'events') }}"
TOTALS = """
{{ config(materialized='incremental_mv') }}
select kind, count() as n from {{ source('raw', 'events') }} group by kind
"""
BROKEN = """
{{ config(materialized='incremental_mv') }}
select kind, count( as n
from {{ source('raw', 'events') }} group by kind
"""
BROKEN_REFRESHED = BROKEN.replace(
    "materialized='incremental_mv'", "materialized='materialized_view', refresh='EVERY 1 DAY'"
)


class TestFindings:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"models.yml": MODELS, "base.sql": BASE, "totals.sql": TOTALS}

    @pytest.fixture(scope="class")
    def raw(self, project: Any) -> Any:
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute("create database raw")
            connection.execute(
                "create table raw.events (kind String) engine = MergeTree order by kind"
            )
            connection.execute("insert into raw.events values ('a'), ('b')")
            run_dbt(["build"])
            yield connection

    def test_views_over_a_table_go_on_when_it_is_rebuilt(self, project: Any, raw: Any) -> None:
        """Finding A."""
        raw.execute(f"create view over as select count() as n from {project.test_schema}.base")
        raw.execute("create view over_over as select n from over")
        raw.execute("insert into raw.events values ('c')")
        for arguments in (["--select", "base"], ["--select", "base", "--full-refresh"]):
            run_dbt(["run", *arguments])
            assert raw.execute("select n from over_over").fetchall() == [(3,)]
        write_file(
            BASE.replace("kind", "kind, 1 as more", 1), project.project_root, "models", "base.sql"
        )
        run_dbt(["run", "--select", "base"])
        assert raw.execute("select n from over_over").fetchall() == [(3,)]

    def test_reconciled_tests_what_users_read(self, project: Any, raw: Any) -> None:
        """Finding J."""
        run_dbt(["test", "--select", "totals"])
        raw.execute(f"create or replace view {project.test_schema}.totals as select 1 as broken")
        results = run_dbt(["test", "--select", "totals"], expect_pass=False)
        assert [r.status.value for r in results] == ["fail"]
        assert {r.node.name: r.message for r in run_dbt(["run", "--select", "totals"])} == {
            "totals": "READ VIEW"
        }
        run_dbt(["test", "--select", "totals"])

    def test_reconciled_finds_a_source_that_was_exchanged(self, project: Any, raw: Any) -> None:
        """Finding C, where no run has come since: INSERTs into raw.events reach nothing."""
        raw.execute("create table raw.loaded as raw.events")
        raw.execute("exchange tables raw.events and raw.loaded")
        _, log = run_dbt_and_capture(["test", "--select", "totals"], expect_pass=False)
        assert (
            "reads raw.loaded, and raw.events, which it was made for, is another table now" in log
        )
        _, log = run_dbt_and_capture(["run-operation", "status"])
        assert "dbt run --select totals --full-refresh" in log
        raw.execute("exchange tables raw.events and raw.loaded")
        run_dbt(["test", "--select", "totals"])
        # A rename is followed: INSERTs into the table fire the trigger under its new name.
        raw.execute("rename table raw.events to raw.renamed")
        run_dbt(["test", "--select", "totals"])
        raw.execute("rename table raw.renamed to raw.events")

    @pytest.mark.parametrize("text", [BROKEN, BROKEN_REFRESHED], ids=["trigger", "refreshed"])
    def test_a_syntax_error_is_shown_with_its_line(self, project: Any, raw: Any, text: str) -> None:
        """Finding M."""
        write_file(text, project.project_root, "models", "wrong.sql")
        _, log = run_dbt_and_capture(["run", "--select", "wrong"], expect_pass=False)
        assert "the SQL does not parse" in log
        assert re.search(r"line \d \| select kind, count\( as n\s+\^", log)
        assert "Unhandled error" not in log
        assert "Compilation Error in model wrong" in log
        left = raw.execute("select name from system.tables where startsWith(name, 'wrong')")
        assert left.fetchall() == []
