"""A dimension that dbt builds: each run replaces its rows, and makes only the slices stale that the
changed rows reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("dbt")

RATES = """
{{ config(materialized='table', engine='MergeTree', order_by=['kind']) }}
select kind, weight + {{ var('more', 0) }} * (kind = 'b') as weight from {{ source('raw', 'weights') }}
"""
WEIGHTED = """
select e.day as day, sum(e.amount * r.weight) as total
from {{ source('raw', 'events') }} e inner join {{ ref('rates') }} r on r.kind = e.kind group by day
"""
SCHEMA = "sources: [{name: raw, schema: raw, tables: [{name: events}, {name: weights}]}]"


class Dimension:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "rates.sql": RATES,
            "weighted.sql": "{{ config(materialized='incremental_mv', partition_by='toYYYYMM(day)') }}"
            + WEIGHTED,
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def raw(self, dbt_profile_target: dict[str, object]) -> Iterator[Connection]:
        with olapdb.connect(str(dbt_profile_target["path"])) as connection:
            connection.execute("CREATE DATABASE raw")
            connection.execute(
                "CREATE TABLE raw.events (day Date, kind String, amount Int64) "
                "ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY day"
            )
            connection.execute(
                "CREATE TABLE raw.weights (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
            )
            connection.execute("INSERT INTO raw.weights VALUES ('a', 1), ('b', 2)")
            connection.execute(
                "INSERT INTO raw.events VALUES ('2024-01-05', 'a', 1), ('2024-02-05', 'b', 1)"
            )
            yield connection


class TestDimension(Dimension):
    def test_a_run_makes_only_reached_slices_stale(self, project: object, raw: Connection) -> None:
        run_dbt(["run"])
        stale = "SELECT partition_id, cause FROM system.view_invalidations"
        run_dbt(["run", "--select", "rates"])
        assert raw.execute(stale).fetchall() == []
        run_dbt(["run", "--select", "rates", "--vars", "{more: 5}"])
        assert [tuple(r) for r in raw.execute(stale).fetchall()] == [("202402", "DIMENSION CHANGE")]
        view, schema = raw.execute("SELECT name, database FROM system.views").fetchone()
        raw.execute(f"SYSTEM REPLAY VIEW {schema}.{view} STALE")
        totals = raw.execute(f"SELECT * FROM {schema}.weighted ORDER BY day").fetchall()
        assert [total for _, total in totals] == [1, 7]
        tables = raw.execute(
            f"SELECT name FROM system.tables WHERE name LIKE '%dbt_%' AND database = '{schema}'"
        )
        assert tables.fetchall() == []


INPUTS = {
    "rates": "{{ config(materialized='table', order_by=['kind']) }} "
    "select kind, weight from {{ source('raw', 'weights') }}",
    "facts": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
    "order_by=['day']) }} select day, kind, amount from {{ source('raw', 'events') }}",
    "unread": "{{ config(materialized='table') }} select kind from {{ source('raw', 'weights') }}",
}
OVER_INPUTS = WEIGHTED.replace("source('raw', 'events')", "ref('facts')")


class TestLimitedInputs(Dimension):
    """--empty and --sample leave what live triggers read as it is."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='incremental_mv', partition_by='toYYYYMM(day)') }}"
        models = {f"{name}.sql": text for name, text in INPUTS.items()}
        return {**models, "weighted.sql": config + OVER_INPUTS, "schema.yml": SCHEMA}

    def test_a_limited_run_changes_no_answer(self, project: object, raw: Connection) -> None:
        run_dbt(["run"])
        schema = project.test_schema  # type: ignore[attr-defined]
        answer = f"SELECT day, total FROM {schema}.weighted ORDER BY day"
        before = raw.execute(answer).fetchall()
        for arguments in (["--empty"], ["--empty", "--full-refresh"]):
            results, log = run_dbt_and_capture(["run", *arguments])
            messages = {r.node.name: str(r.message) for r in results}
            assert messages["rates"] == messages["facts"] == "NO CHANGE"
            assert f"`{schema}`.`rates` is left as it is" in log
            assert f"{schema}.weighted__mv read it" in log
            assert raw.execute(f"SELECT count() FROM {schema}.unread").fetchall() == [(0,)]
            run_dbt(["run", "--select", "weighted"])
            assert raw.execute(answer).fetchall() == before
        run_dbt(["run"])
        raw.execute("INSERT INTO raw.weights VALUES ('c', 9)")
        run_dbt(["run"])
        assert raw.execute(f"SELECT count() FROM {schema}.rates").fetchall() == [(3,)]


class TestViewAsDimension(Dimension):
    """A plain view that a model joins: a run replaces it under the live trigger."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "names.sql": "select kind, weight from {{ source('raw', 'weights') }}",
            "rates.sql": "select kind, weight * {{ var('factor', 1) }} as weight from {{ ref('names') }}",
            "weighted.sql": "{{ config(materialized='incremental_mv') }}" + WEIGHTED,
            "schema.yml": SCHEMA,
        }

    def test_a_changed_view_is_replaced_and_its_models_replayed(
        self, project: object, raw: Connection
    ) -> None:
        schema = str(project.test_schema)  # type: ignore[attr-defined]
        total = f"SELECT sum(total) FROM {schema}.weighted"
        run_dbt(["run"])
        assert raw.execute(total).fetchall() == [(3,)]
        _, output = run_dbt_and_capture(["run", "--empty"])
        assert output.count("is left as it is") == 3
        assert raw.execute("SELECT verdict FROM system.views").fetchall() == [("covered",)]
        run_dbt(["run", "--vars", "factor: 10", "--select", "rates"])
        assert raw.execute("SELECT verdict FROM system.views").fetchall() == [("stale",)]
        raw.execute("INSERT INTO raw.events VALUES ('2024-02-06', 'b', 1)")
        run_dbt(["run", "--vars", "factor: 10"])
        assert raw.execute(total).fetchall() == [(50,)]
        assert raw.execute("SELECT verdict FROM system.views").fetchall() == [("covered",)]
        # The view becomes a table and a view again, as a project changes its materialization.
        models = Path(project.project_root) / "models"  # type: ignore[attr-defined]
        view = (models / "rates.sql").read_text()
        for factor, kind in ((100, "table"), (1000, "view")):
            config = f"{{{{ config(materialized='{kind}') }}}} "
            (models / "rates.sql").write_text(config + view)
            run_dbt(["run", "--vars", f"factor: {factor}"])
            assert raw.execute(total).fetchall() == [(5 * factor,)]
            assert raw.execute("SELECT verdict FROM system.views").fetchall() == [("covered",)]
