"""How many queries a run asks, and what they cost: counted, not timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from dbt.adapters.olapdb.incremental_mv.shared_reads import SINGLE_READS
from dbt.adapters.olapdb.incremental_mv.warehouse import Warehouse
from dbt.cli.main import dbtRunner

import olapdb
from olapdb.system import catalog_tables
from olapdb.system.registry import SystemTable

pytestmark = pytest.mark.feature("dbt")

MODELS = 8
OTHERS = 30
"""Tables and views in the warehouse that the project does not know."""


class RenderedRows:
    """The statements that system.tables renders, and the rows of each system table that are listed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.rows: Counter[str] = Counter()
        create_statement, filled_rows = catalog_tables.create_statement, SystemTable._filled_rows

        def rendered(item: Any, snapshot: Any) -> str:
            self.statements.append(item.name)
            return create_statement(item, snapshot)

        def listed(table: SystemTable, context: Any) -> Any:
            rows = filled_rows(table, context)
            self.rows[table.name] += len(rows)
            return rows

        monkeypatch.setattr(catalog_tables, "create_statement", rendered)
        monkeypatch.setattr(SystemTable, "_filled_rows", listed)

    def clear(self) -> None:
        """Begin to count anew."""
        self.statements.clear()
        self.rows.clear()


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
            for number in range(OTHERS):
                connection.execute(
                    f"create table raw.other{number} (k String) engine = MergeTree order by k; "
                    f"create materialized view raw.view{number} engine = MergeTree order by k "
                    f"as select k from raw.other{number}"
                )
        described: list[str] = []
        describe = Warehouse.describe

        def counted(warehouse: Warehouse, sql: str) -> Any:
            described.append(sql)
            return describe(warehouse, sql)

        monkeypatch.setattr(Warehouse, "describe", counted)
        rendered = RenderedRows(monkeypatch)
        events: list[Any] = []
        runner = dbtRunner(callbacks=[events.append])
        assert runner.invoke(["run"]).success
        looked_up = [e for e in events if e.info.name == "SQLQuery" and e.data.node_info.node_name]
        looked_up = [e for e in looked_up if "FROM system." in e.data.sql]
        # A first run asks for each source once, and for the parts of the upstream of a chain.
        assert len(looked_up) <= 3, [e.data.sql for e in looked_up]
        # A model of keys and aggregates is described once, by the query of its trigger.
        assert len(described) == MODELS + 1, described
        own = {f"m{n}" for n in range(MODELS)} | {"chained"}
        parts = {f"{name}{part}" for name in own for part in ("", "__mv", "__target")}
        sources = {"events0", "events1"}
        # Rendered are the sources, and the parts of the upstream of the chain.
        assert set(rendered.statements) <= parts | sources
        assert len(rendered.statements) <= len(sources) + 3, rendered.statements
        events.clear()
        described.clear()
        rendered.clear()
        result = runner.invoke(["run"])
        assert result.success
        messages = [r.adapter_response["_message"] for r in result.result.results]  # type: ignore[union-attr]
        assert messages == ["NO CHANGE"] * (MODELS + 1)
        assert len(described) == MODELS + 1, described
        queries = Counter(
            event.data.node_info.node_name for event in events if event.info.name == "SQLQuery"
        )
        of_models = {name: count for name, count in queries.items() if name}
        assert set(of_models) <= own
        assert 0 < max(of_models.values()) <= 2, of_models
        # After a few models one query of each kind answers for all.
        assert sum(of_models.values()) <= 2 * (SINGLE_READS + 1), of_models
        # Statements are rendered, and health is computed, of the project's relations only.
        assert set(rendered.statements) <= parts | sources
        alone = 4 * SINGLE_READS  # the first models ask for their own parts and source
        assert len(rendered.statements) <= len(parts | sources) + alone, rendered.statements
        listed_by_dbt = len(parts)
        assert rendered.rows["tables"] <= len(rendered.statements) + listed_by_dbt, rendered.rows
        assert rendered.rows["views"] <= 2 * len(own) + SINGLE_READS, rendered.rows
