"""How many queries a run asks: counted, not timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from dbt.adapters.olapdb.incremental_mv.shared_reads import SINGLE_READS
from dbt.adapters.olapdb.incremental_mv.warehouse import Warehouse
from dbt.cli.main import dbtRunner

import olapdb

pytestmark = pytest.mark.feature("dbt")

MODELS = 8


class TestRuns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='incremental_mv') }}"
        sources = {
            f"m{n}.sql": f"{config} select k, count() as c, sum(v) as s "
            f"from {{{{ source('raw', 'events{n % 2}') }}}} group by k"
            for n in range(MODELS)
        }
        chained = f"{config} select sum(s) as s from {{{{ ref('m0') }}}}"
        tables = "[{name: events0}, {name: events1}]"
        return {
            **sources,
            "chained.sql": chained,
            "sources.yml": f"sources: [{{name: raw, schema: raw, tables: {tables}}}]",
        }

    def test_two_queries_a_model_that_list_only_its_parts(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        credentials = project.adapter.config.credentials
        with olapdb.connect(credentials.location) as connection:
            connection.execute("create database raw")
            for number in range(2):
                connection.execute(
                    f"create table raw.events{number} (k String, v Int64) "
                    "engine = MergeTree order by k"
                )
                connection.execute(f"insert into raw.events{number} values ('a', 1), ('b', 2)")
        described: list[str] = []
        describe = Warehouse.describe

        def counted(warehouse: Warehouse, sql: str) -> Any:
            described.append(sql)
            return describe(warehouse, sql)

        monkeypatch.setattr(Warehouse, "describe", counted)
        events: list[Any] = []
        runner = dbtRunner(callbacks=[events.append])
        assert runner.invoke(["run"]).success
        looked_up = [e for e in events if e.info.name == "SQLQuery" and e.data.node_info.node_name]
        looked_up = [e for e in looked_up if "FROM system." in e.data.sql]
        # A first run asks for each source once, and for the parts of the upstream of a chain.
        assert len(looked_up) <= 3, [e.data.sql for e in looked_up]
        # A model of keys and aggregates is described once, by the query of its trigger.
        assert len(described) == MODELS + 1, described
        events.clear()
        described.clear()
        result = runner.invoke(["run"])
        assert result.success
        messages = [r.adapter_response["_message"] for r in result.result.results]  # type: ignore[union-attr]
        assert messages == ["NO CHANGE"] * (MODELS + 1)
        assert len(described) == MODELS + 1, described
        queries = Counter(
            event.data.node_info.node_name for event in events if event.info.name == "SQLQuery"
        )
        of_models = {name: count for name, count in queries.items() if name}
        assert set(of_models) <= {f"m{n}" for n in range(MODELS)} | {"chained"}
        assert 0 < max(of_models.values()) <= 2, of_models
        # After a few models one query of each kind answers for all.
        assert sum(of_models.values()) <= 2 * (SINGLE_READS + 1), of_models
