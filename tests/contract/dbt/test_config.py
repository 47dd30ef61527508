"""Every key of a model's config is known or refused; all mistakes of a model are one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import CompilationError

import olapdb

pytestmark = pytest.mark.feature("dbt")

SOURCES = """
sources: [{name: raw, schema: raw, tables: [{name: events}]}]
"""
EVENTS = """
create database raw;
create table raw.events (day Date, kind String, amount Int64, note Nullable(String))
engine = MergeTree partition by toYYYYMM(day) order by day;
insert into raw.events values ('2024-01-05', 'a', 1, null), ('2024-02-05', 'b', 2, 'x'),
    ('2024-03-05', 'a', 3, null)
"""


def create_events(project: Any) -> None:
    with olapdb.connect(project.adapter.config.credentials.location) as connection:
        connection.execute(EVENTS)


def by_name(results: Any) -> dict[str, str]:
    """Return the message of each node, by name."""
    return {r.node.name: str(r.message) for r in results}


WRONG_MV = """
{{ config(materialized='incremental_mv', unique_key='kind', incremental_strategy='append',
          on_definition_change='sometimes', backfill={'from': '2024-01-01', 'until': 1},
          retain='a while', backfill_on='cluster', reconcile='often', partition_bi='day',
          catchup='no', projections=[], query_settings={'max_threads': 1},
          on_schema_change='bogus') }}
select kind, count() as n from {{ source('raw', 'events') }} group by kind
"""
WRONG_TABLE = """
{{ config(materialized='table', ttl=5, settings=['a'], indexes=[{'nam': 1}], order_bi='x',
          projections=[{'name': 'p'}], retain='1 day', my_own_key=1) }}
select 1 as x
"""


class TestMistakes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": SOURCES,
            "wrong_mv.sql": WRONG_MV,
            "wrong_table.sql": WRONG_TABLE,
            "wrong_view.sql": "{{ config(materialized='view', ttl='day') }} select 1 as x",
            "wrong_engine.sql": "{{ config(materialized='table', engine='Log', order_by='x', "
            "ttl='x', table_settings={'index_granularity': 1}) }} select 1 as x",
            "marts": {
                "of_folder.sql": "{{ config(lookback=3, on_configuration_change='apply') }}"
                " select day, count() as n from {{ source('raw', 'events') }} group by day",
                "in_folder.sql": "{{ config(materialized='view') }} select 1 as x",
            },
            "good_view.sql": "{{ config(materialized='view') }} select 1 as x",
            "m.sql": "{{ config(materialized='incremental_mv') }} select kind, count() as n "
            "from {{ source('raw', 'events') }} group by kind",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "models": {
                "test": {
                    "+ttl": "day + interval 1 year",
                    "+meta": {"any": "key"},
                    "marts": {
                        "+materialized": "incremental_mv",
                        "+indexes": [{"name": "i", "definition": "kind TYPE minmax"}],
                        "+unique_key": "kind",
                    },
                }
            }
        }

    def test_each_model_lists_all_its_mistakes(self, project: Any) -> None:
        """Finding H."""
        create_events(project)
        results = run_dbt(["run", "--exclude", "m", "good_view", "marts"], expect_pass=False)
        messages = by_name(results)
        assert "Compilation Error in model wrong_mv (models/wrong_mv.sql)" in messages["wrong_mv"]
        for part in (
            "There are 14 mistakes",
            "partition_bi means nothing to an incremental_mv. Maybe you meant partition_by.",
            "projections means nothing to an incremental_mv: add them to the target in a post_hook",
            "query_settings means nothing to an incremental_mv: the trigger runs in each INSERT",
            "unique_key means nothing to an incremental_mv: the group keys are unique already",
            "incremental_strategy means nothing to an incremental_mv: every INSERT",
            "on_definition_change is fail, rebuild, replay or ignore, not 'sometimes'",
            "on_schema_change is ignore, fail, append_new_columns or sync_all_columns",
            "catchup is true or false, not 'no'",
            "catchup is another spelling of backfill",
            "backfill has from, to, parallel, not until",
            "retain is an interval such as '13 months', not 'a while'",
            "retain and ttl both say when rows leave the target",
            "backfill_on is local, spark, auto or in_process, not 'cluster'",
            "reconcile is full, sample, stale or off, not 'often'",
        ):
            assert part in messages["wrong_mv"], (part, messages["wrong_mv"])
        for part in (
            "There are 7 mistakes",
            "my_own_key means nothing to a table. Keys of your own belong under meta.",
            "order_bi means nothing to a table. Maybe you meant order_by.",
            "An entry of projections has name and query",
            "retain means nothing to a table; it is of incremental_mv",
            "ttl is an expression or a list of expressions, not 5",
            "settings is a mapping of names to values, not ['a']",
            "An entry of indexes has name and definition",
        ):
            assert part in messages["wrong_table"], (part, messages["wrong_table"])
        assert "ttl means nothing to a view" in messages["wrong_view"]
        assert "order_by means nothing for the engine Log" in messages["wrong_engine"]
        assert "The engine Log has no settings" in messages["wrong_engine"]

    def test_keys_that_a_folder_gives_with_its_materialization_are_meant(
        self, project: Any
    ) -> None:
        results = run_dbt(["run", "--select", "of_folder", "in_folder"], expect_pass=False)
        messages = by_name(results)
        for part in (
            "There are 4 mistakes",
            "indexes (from dbt_project.yml) means nothing to an incremental_mv: add them",
            "lookback means nothing to an incremental_mv: rows that arrive late",
            "unique_key means nothing to an incremental_mv: the group keys",
            "on_configuration_change means nothing to an incremental_mv: it is called",
        ):
            assert part in messages["of_folder"], (part, messages["of_folder"])
        assert messages["in_folder"] == "OK"

    def test_keys_of_a_folder_may_be_meant_for_other_materializations(self, project: Any) -> None:
        results = run_dbt(["run", "--select", "good_view"])
        assert by_name(results) == {"good_view": "OK"}
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            names = connection.execute(
                f"select name from system.tables where database = '{project.test_schema}'"
            ).fetchall()
        assert ("good_view",) in names


STORED = """
{{ config(materialized='table', order_by=['kind', 'day'], ttl='day + interval 20 year',
          settings={'index_granularity': 1024}, query_settings={'max_threads': 2},
          indexes=[{'name': 'by_amount', 'definition': 'amount TYPE minmax GRANULARITY 1'},
                   {'name': 'by_note', 'expression': 'note', 'type': 'bloom_filter'}],
          projections=[{'name': 'by_day', 'query': 'select day, sum(amount) group by day'}]) }}
select day, kind, amount, note from {{ source('raw', 'events') }}
"""
KEPT = """
{{ config(materialized='incremental_mv', order_by=['day', 'kind'], retain='20 years',
          engine='ReplicatedAggregatingMergeTree', settings={'index_granularity': 512},
          backfill_on='local', backfill='auto') }}
select day, kind, sum(amount) as total from {{ source('raw', 'events') }} group by kind, day
"""


REFUSED = ("summing", "timeless", "undeclared", "repeated", "bound", "reversed")


class TestSupported:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        mv = "{{ config(materialized='incremental_mv', %s) }} "
        rows = "select day, kind, amount from {{ source('raw', 'events') }}"
        totals = "select kind, sum(amount) as s from {{ source('raw', 'events') }} group by kind"
        return {
            "sources.yml": SOURCES,
            "stored.sql": STORED,
            "kept.sql": KEPT,
            "rows.sql": mv % "order_by='day', ttl='day + interval 30 year'" + rows,
            "texts.sql": "select cast(note as String) as t from {{ source('raw', 'events') }}",
            "ranged.sql": mv % "backfill={'from': '2024-02-20', 'to': '2024-03-01', 'parallel': 2}"
            + totals,
            "manual.sql": mv % "catchup=false" + totals,
            "joined.sql": mv
            % "dimensions=['kinds']"
            + "select k.at as at, count() as n from {{ source('raw', 'events') }} as e "
            "left join {{ ref('kinds') }} as k on k.kind = e.kind group by at",
            "undeclared.sql": mv
            % "dimensions=['others']"
            + "select k.at as at, count() as n from {{ source('raw', 'events') }} as e "
            "left join {{ ref('kinds') }} as k on k.kind = e.kind group by at",
            "repeated.sql": mv % "deduplicate_by=['day', 'kind']" + totals,
            "bound.sql": mv % "backfill={'from': 202401}" + totals,
            "reversed.sql": mv % "backfill={'from': '2024-03-01', 'to': '2024-01-01'}" + totals,
            "summing.sql": mv % "engine='SummingMergeTree'" + totals,
            "timeless.sql": mv % "retain='1 year'" + totals,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"kinds.csv": "kind,at\na,2024-01-01\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        indexes = [{"name": "i", "definition": "kind TYPE set(10)"}]
        seed = {"+order_by": "kind", "+ttl": "at + interval 30 year", "+indexes": indexes}
        return {"seeds": {"test": seed}}

    def test_storage_configs_are_in_the_ddl(self, project: Any) -> None:
        create_events(project)
        run_dbt(["build", "--exclude", *REFUSED])
        schema = project.test_schema
        with olapdb.connect(project.adapter.config.credentials.location) as connection:

            def ddl(name: str) -> str:
                shown = connection.execute(f"show create table {schema}.{name}").fetchall()
                return " ".join(str(shown[0][0]).split())

            stored = ddl("stored")
            assert "ORDER BY (kind, day) TTL day + toIntervalYear(20)" in stored
            assert "SETTINGS index_granularity = 1024" in stored
            assert "INDEX by_amount amount TYPE minmax GRANULARITY 1" in stored
            assert "INDEX by_note note TYPE bloom_filter" in stored
            assert "PROJECTION by_day" in stored
            kept = ddl("kept__target")
            assert "ENGINE = AggregatingMergeTree" in kept
            assert "ORDER BY (day, kind) TTL day + toIntervalYear(20)" in kept
            assert "index_granularity = 512" in kept
            assert "TTL day + toIntervalYear(30)" in ddl("rows__target")
            assert "INDEX i kind TYPE set(10)" in ddl("kinds")
            assert "TTL at + toIntervalYear(30)" in ddl("kinds")
            totals = connection.execute(f"select kind, s from {schema}.ranged order by kind")
            assert totals.fetchall() == [("a", 3), ("b", 2)]
            assert connection.execute(f"select * from {schema}.manual").fetchall() == []
            connection.execute("insert into raw.events values ('2024-01-06', 'b', 10, null)")
            totals = connection.execute(f"select kind, s from {schema}.ranged order by kind")
            assert totals.fetchall() == [("a", 3), ("b", 12)]
            assert connection.execute(f"select s from {schema}.manual").fetchall() == [(10,)]
            texts = connection.execute(f"select t from {schema}.texts where t is null").fetchall()
            assert texts == [(None,)] * 3
        names = ("kept", "rows", "ranged", "manual", "joined")
        messages = by_name(run_dbt(["run", "--select", *names]))
        assert messages == dict.fromkeys(names, "NO CHANGE")
        # A run leaves the gaps that the config leaves: what fills them is another command.
        _, log = run_dbt_and_capture(["run-operation", "status"])
        for name in ("ranged", "manual"):
            assert f"dbt run-operation backfill --args '{{models: [{name}]}}'" in log

    def test_what_cannot_be_kept_right_is_refused(self, project: Any) -> None:
        results, _ = run_dbt_and_capture(["run", "--select", *REFUSED], expect_pass=False)
        messages = by_name(results)
        assert "SummingMergeTree drops groups whose sums are all zero" in messages["summing"]
        assert "it joins" in messages["undeclared"]
        assert "it does not join others" in messages["undeclared"]
        assert "raw.events keeps all rows" in messages["repeated"]
        assert "MODIFY SETTING deduplicate_by = 'day, kind'" in messages["repeated"]
        assert "backfill.from is a value of day (Date), such as" in messages["bound"]
        assert "from 2024-03-01 is after backfill.to 2024-01-01" in messages["reversed"]
        assert "retain ('1 year') counts from the date or time" in messages["timeless"]
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            left = connection.execute(
                f"select name from system.tables where database = '{project.test_schema}'"
            )
            names = [name for (name,) in left.fetchall()]
            assert not [name for name in names if name.startswith(REFUSED)]


class TestQuerySettings:
    """Settings of the statement that fills a table decide its columns, a comment behind the query or not."""

    JOINED = (
        "select a.k as k, b.v as v from (select toUInt8(1) as k) as a "
        "left join (select toUInt8(2) as k, toUInt8(3) as v) as b on a.k = b.k -- no partner"
    )

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='%s', query_settings={'join_use_nulls': 1, 'max_threads': 1}) }}"
        columns = "[{name: k, data_type: UInt8}, {name: v, data_type: Nullable(UInt8)}]"
        promised = f"{{config: {{contract: {{enforced: true}}}}, columns: {columns}}}"
        return {
            "plain.sql": config % "table" + self.JOINED,
            "promised.sql": config % "table" + self.JOINED,
            "added.sql": config % "incremental" + self.JOINED,
            "schema.yml": "models: [" + promised.replace("{", "{name: promised, ", 1) + "]",
        }

    def test_they_hold_for_each_statement(self, project: Any) -> None:
        for runs in (1, 2):
            run_dbt(["run"])
            for model, rows in (("plain", 1), ("promised", 1), ("added", runs)):
                sql = f"select v from {project.test_schema}.{model}"
                assert project.run_sql(sql, fetch="all") == [(None,)] * rows, model


class TestReservedNames:
    """Names that the adapter gives to relations of its own are refused before anything runs."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        table = "{{ config(materialized='table') }} select 1 as x"
        return {
            "sources.yml": SOURCES,
            "m.sql": "{{ config(materialized='incremental_mv') }} select kind, count() as n "
            "from {{ source('raw', 'events') }} group by kind",
            "m__target.sql": table,
            "plain.sql": table,
        }

    def test_a_part_of_another_model(self, project: Any) -> None:
        """Finding K."""
        create_events(project)
        for command in (["run", "-s", "plain"], ["build"]):
            with pytest.raises(CompilationError) as caught:
                run_dbt(command)
            assert "m__target (models/m__target.sql) would be" in str(caught.value)
            assert "a part of the incremental_mv m (models/m.sql)" in str(caught.value)
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            left = f"select count() from system.tables where database = '{project.test_schema}'"
            assert connection.execute(left).fetchall() == [(0,)]

    @pytest.mark.parametrize("suffix", ["__dbt_tmp", "__dbt_backup", "__dbt_python"])
    def test_a_suffix_is_refused_at_parse(self, project: Any, suffix: str) -> None:
        models = Path(project.project_root) / "models"
        model = models / f"t{suffix}.sql"
        model.write_text("select 1 as x")
        with pytest.raises(CompilationError, match="ends in a suffix that dbt gives") as caught:
            run_dbt(["parse"])
        assert f"in model t{suffix} (models/t{suffix}.sql)" in str(caught.value)
        model.write_text("{{ config(alias='t_of_mine') }} select 1 as x")
        run_dbt(["parse"])
        model.unlink()
        (models / "aliased.sql").write_text(f"{{{{ config(alias='t{suffix}') }}}} select 1 as x")
        with pytest.raises(CompilationError, match=r"in model aliased \(models/aliased.sql\)"):
            run_dbt(["parse"])
        (models / "aliased.sql").unlink()
