"""dbt clone of an `incremental_mv`: rows are shared, no trigger is made, a run makes a model of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

pytestmark = pytest.mark.feature("dbt", "views")

MODEL = """
{{ config(materialized='incremental_mv') }}
select shop, count() as sales, avg(price) as mean from {{ source('raw', 'sales') }} group by shop
"""
TOP = "select shop from {{ ref('by_shop') }} where sales > 1"
SOURCES = """
sources:
  - name: raw
    schema: "{{ env_var('RAW_SCHEMA') }}"
    tables: [{name: sales}]
"""
RELATIONS = """select name, engine from system.tables where database = '{schema}'
    and name not like 'sales' order by name"""


class Clones:
    """A project with the targets default and dev, a table of sales, and the state of a first run."""

    @pytest.fixture(scope="class")
    def profiles_config_update(
        self, dbt_profile_target: dict[str, Any], unique_schema: str
    ) -> dict[str, Any]:
        outputs = {
            "default": {**dbt_profile_target, "schema": unique_schema},
            "dev": {**dbt_profile_target, "schema": f"{unique_schema}_dev"},
        }
        return {"test": {"outputs": outputs, "target": "default"}}

    @pytest.fixture
    def dev(self, project: Any, unique_schema: str, monkeypatch: pytest.MonkeyPatch) -> str:
        """Return the schema of dev, after a first run of the default target."""
        monkeypatch.setenv("RAW_SCHEMA", unique_schema)
        dev = f"{unique_schema}_dev"
        if dev not in project.created_schemas:
            project.created_schemas.append(dev)
            project.run_sql("create table {schema}.sales (shop String, price Int64) order by shop")
            project.run_sql("insert into {schema}.sales values ('a', 1), ('a', 3), ('b', 5)")
            run_dbt(["run"])
            state = Path(project.project_root) / "state"
            state.mkdir()
            shutil.copy(Path(project.project_root) / "target" / "manifest.json", state)
        return dev


class TestCloneOfModel(Clones):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"by_shop.sql": MODEL, "top.sql": TOP, "schema.yml": SOURCES}

    def test_clone_run_and_clone_again(self, project: Any, unique_schema: str, dev: str) -> None:
        clone = ["clone", "--state", "state", "--target", "dev"]

        run_dbt(clone)
        answer = f"select * from {dev}.by_shop order by shop"
        cloned = [("a", 2, 2.0), ("b", 1, 5.0)]
        assert [tuple(row) for row in project.run_sql(answer, fetch="all")] == cloned
        relations = project.run_sql(RELATIONS.format(schema=dev), fetch="all")
        assert [tuple(row) for row in relations] == [
            ("by_shop", "View"),
            ("by_shop__target", "AggregatingMergeTree"),
            ("top", "View"),
        ]
        project.run_sql(f"insert into {unique_schema}.sales values ('b', 7)")
        assert [tuple(row) for row in project.run_sql(answer, fetch="all")] == cloned
        assert all("no-op" in result.message.lower() for result in run_dbt(clone))

        _, log = run_dbt_and_capture(["run", "--empty", "--target", "dev"])
        assert "by_shop: has rows and no trigger, as a clone has, and is left as it is" in log
        assert [tuple(row) for row in project.run_sql(answer, fetch="all")] == cloned

        run_dbt(["run", "--target", "dev"])
        live = [("a", 2, 2.0), ("b", 2, 6.0)]
        assert [tuple(row) for row in project.run_sql(answer, fetch="all")] == live
        run_dbt([*clone, "--full-refresh"])
        relations = project.run_sql(RELATIONS.format(schema=dev), fetch="all")
        assert [name for name, _ in relations] == ["by_shop", "by_shop__target", "top"]
        assert [tuple(row) for row in project.run_sql(answer, fetch="all")] == live

    def test_a_relation_of_the_state_that_does_not_exist(
        self, project: Any, unique_schema: str, dev: str
    ) -> None:
        state = Path(project.project_root) / "of_nobody"
        state.mkdir()
        manifest = (Path(project.project_root) / "state" / "manifest.json").read_text()
        (state / "manifest.json").write_text(manifest.replace(unique_schema, "gone"))
        arguments = ["clone", "--state", "of_nobody", "--target", "dev", "--full-refresh"]
        _, log = run_dbt_and_capture(arguments, expect_pass=False)
        assert "as `gone`.`by_shop`, and that relation does not exist" in log


CHAINED = """
{{ config(materialized='incremental_mv') }}
select shop, sum(sales) as sales from {{ ref('by_shop') }} group by shop
"""


class TestCloneOverALiveChain(Clones):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"by_shop.sql": MODEL, "chained.sql": CHAINED, "schema.yml": SOURCES}

    def test_a_refused_clone_leaves_the_model_as_it_is(
        self, project: Any, unique_schema: str, dev: str
    ) -> None:
        """The model that is to be replaced has a trigger that another one's target fires."""
        run_dbt(["run", "--target", "dev"])
        relations = RELATIONS.format(schema=dev)
        before = project.run_sql(relations, fetch="all")
        assert len(before) == 6
        clone = ["clone", "--state", "state", "--target", "dev", "--full-refresh"]
        _, log = run_dbt_and_capture([*clone, "--select", "by_shop"], expect_pass=False)
        assert f"cannot become a clone: the triggers {dev}.chained__mv read it" in log
        assert project.run_sql(relations, fetch="all") == before
        project.run_sql(f"insert into {unique_schema}.sales values ('b', 7)")
        answer = project.run_sql(
            f"select shop, sales from {dev}.chained order by shop", fetch="all"
        )
        assert [tuple(row) for row in answer] == [("a", 2), ("b", 2)]
