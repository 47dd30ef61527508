"""The contract of an `incremental_mv`: names, types, NOT NULL and CHECK, before anything changes."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb

pytestmark = pytest.mark.feature("dbt")

SOURCES = "sources: [{name: raw, schema: raw, tables: [{name: events}]}]"
DAILY = """
{{ config(materialized='incremental_mv', contract={'enforced': true}) }}
select day, kind, count() as n, sum(amount) as total
from {{ source('raw', 'events') }} group by day, kind
"""
CHECKED = """
models:
  - name: daily
    constraints: [{type: check, name: recent, expression: "day >= '2020-01-01'"}]
    columns:
      - {name: day, data_type: Date}
      - {name: kind, data_type: Nullable(String), constraints: [{type: not_null}]}
      - {name: n, data_type: UInt64, constraints: [{type: not_null}]}
      - {name: total, data_type: Int64}
"""
WRONG = {
    "types": ("{name: n, data_type: UInt64", "{name: n, data_type: Int8"),
    "names": ("{name: total,", "{name: surplus,"),
    "states": ("\"day >= '2020-01-01'\"", "'n > 0'"),
    "unknown": ("\"day >= '2020-01-01'\"", "'nothing > 0'"),
    "codec": ("{name: day, data_type: Date", "{name: day, data_type: Date, codec: ZSTD"),
}
REASONS = {
    "types": "This model has an enforced contract that failed",
    "names": "This model has an enforced contract that failed",
    "states": "the target has states of parts of a group",
    "unknown": "which is no column",
    "codec": "the contract gives day a codec or ttl",
}


class TestContract:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"sources.yml": SOURCES, "daily.sql": DAILY, "daily.yml": CHECKED}

    @pytest.fixture(scope="class")
    def raw(self, project: Any) -> Any:
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute(
                "create database raw; create table raw.events "
                "(day Date, kind Nullable(String), amount Int64) engine = MergeTree order by day;"
                "insert into raw.events values ('2024-01-05', 'a', 1), ('2024-02-05', 'b', 2)"
            )
            yield connection

    def test_a_wrong_contract_leaves_nothing(self, project: Any, raw: Any) -> None:
        """Finding D."""
        for case, (right, wrong) in WRONG.items():
            write_file(CHECKED.replace(right, wrong), project.project_root, "models", "daily.yml")
            results = run_dbt(["run"], expect_pass=False)
            assert REASONS[case] in results[0].message, case
            left = f"select count() from system.tables where database = '{project.test_schema}'"
            assert raw.execute(left).fetchall() == [(0,)]
        write_file(CHECKED, project.project_root, "models", "daily.yml")

    def test_constraints_refuse_inserts(self, project: Any, raw: Any) -> None:
        results = run_dbt(["run"])
        assert results[0].message.startswith("CREATE")
        for rows, name in (
            ("('2019-12-31', 'a', 1)", "recent"),
            ("('2024-03-05', null, 1)", "kind_not_null"),
        ):
            with pytest.raises(olapdb.Error, match=f"Constraint {name}"):
                raw.execute(f"insert into raw.events values {rows}")
        raw.execute("insert into raw.events values ('2024-03-05', 'a', 1)")
        model = f"select day, n from {project.test_schema}.daily order by day"
        assert [n for _, n in raw.execute(model).fetchall()] == [1, 1, 1]
        assert run_dbt(["run"])[0].message == "NO CHANGE"

    def test_constraints_that_were_altered_by_hand_are_put_back(
        self, project: Any, raw: Any
    ) -> None:
        target = f"{project.test_schema}.daily__target"
        ddl = "select create_table_query from system.tables where name = 'daily__target'"
        before = raw.execute(ddl).fetchall()
        raw.execute(f"alter table {target} drop constraint recent")
        raw.execute(f"alter table {target} drop constraint kind_not_null")
        raw.execute(f"alter table {target} add constraint kind_not_null check kind <> ''")
        assert run_dbt(["run"])[0].message == "ALTER TARGET"
        assert raw.execute(ddl).fetchall() == before
        assert run_dbt(["run"])[0].message == "NO CHANGE"

    def test_a_contract_that_becomes_wrong_changes_nothing(self, project: Any, raw: Any) -> None:
        commits = "select max(number) from system.snapshots"
        before = raw.execute(commits).fetchall()
        right, wrong = WRONG["types"]
        write_file(CHECKED.replace(right, wrong), project.project_root, "models", "daily.yml")
        _, log = run_dbt_and_capture(["run-operation", "plan"])
        assert "FAIL" in log
        assert "its contract fails: n is UInt64, Int8 in the contract" in log
        run_dbt(["run", "--full-refresh"], expect_pass=False)
        assert raw.execute(commits).fetchall() == before
        without_check = CHECKED.replace("2020-01-01", "2010-01-01")
        write_file(without_check, project.project_root, "models", "daily.yml")
        results = run_dbt(["run"], expect_pass=False)
        assert "has changed" in results[0].message
        assert run_dbt(["run", "--full-refresh"])[0].message.startswith("REBUILD")
        raw.execute("insert into raw.events values ('2019-12-31', 'a', 1)")
