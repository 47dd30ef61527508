"""--empty, --sample and the profile's flags: what they may not touch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb

pytestmark = pytest.mark.feature("dbt")

SOURCES = "sources: [{name: raw, schema: raw, tables: [{name: events, config: {event_time: day}}]}]"
CONFIG = "{{ config(materialized='incremental_mv', on_definition_change='rebuild') }} "
TOTALS = CONFIG + "select kind, count() as n from {{ source('raw', 'events') }} group by kind"
ABOVE = CONFIG + "select sum(n) as n from {{ ref('totals') }}"
EVENTS = """
create database raw;
create table raw.events (day Date, kind String) engine = MergeTree order by day;
insert into raw.events values ('2024-01-05', 'a'), ('2024-02-05', 'b')
"""


class TestLimitedRuns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"sources.yml": SOURCES, "totals.sql": TOTALS, "above.sql": ABOVE}

    def test_a_live_view_is_left_as_it_is(self, project: Any) -> None:
        """Finding E."""
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute(EVENTS)
            run_dbt(["run"])
            changed = TOTALS.replace("count() as n", "count() as n, max(day) as last")
            write_file(changed, project.project_root, "models", "totals.sql")
            commits = "select max(number) from system.snapshots"
            before = connection.execute(commits).fetchall()
            for arguments in (["--empty"], ["--empty", "--full-refresh"], ["--sample", "1 day"]):
                _, log = run_dbt_and_capture(["run", *arguments])
                assert "refs are limited" in log, arguments
                assert connection.execute(commits).fetchall() == before, arguments
            connection.execute("insert into raw.events values ('2024-03-05', 'a')")
            model = f"select n from {project.test_schema}.above"
            assert connection.execute(model).fetchall() == [(3,)]

    def test_show_limits_a_query_that_ends_in_settings(self, project: Any) -> None:
        inline = "select number from numbers(9) order by number desc settings max_threads = 1"
        _, log = run_dbt_and_capture(["show", "--inline", inline, "--limit", "2"])
        assert "|      8 |" in log
        assert "|      6 |" not in log
        inline = "select 7 as x union all select 8 union all select 9"
        _, log = run_dbt_and_capture(["show", "--inline", inline, "--limit", "2"])
        assert "| 7 |" in log
        assert "| 9 |" not in log


BATCHES = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='day',
          begin='2024-01-01', batch_size='month', order_by='day') }}
select * from {{ source('raw', 'events') }}
"""


class TestMicrobatchUnderTrigger:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        totals = CONFIG + "select kind, count() as n from {{ ref('batches') }} group by kind"
        return {"sources.yml": SOURCES, "batches.sql": BATCHES, "totals.sql": totals}

    def test_later_batches_reach_the_trigger(self, project: Any) -> None:
        """dbt filters the refs of a batch by event time, as it does for --sample."""
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute(EVENTS)
            totals = f"select kind, n from {project.test_schema}.totals order by kind"
            february = ["--event-time-start", "2024-02-01", "--event-time-end", "2024-03-01"]
            run_dbt(["run", "--event-time-start", "2024-01-01", "--event-time-end", "2024-03-01"])
            connection.execute("insert into raw.events values ('2024-02-07', 'a')")
            run_dbt(["run", *february])
            assert connection.execute(totals).fetchall() == [("a", 2), ("b", 1)]
            connection.execute("delete from raw.events where day = '2024-02-07'")
            for limit in (["--empty"], ["--sample", "1 day"]):
                _, log = run_dbt_and_capture(["run", *february, *limit])
                assert "refs are limited" in log, limit
                assert connection.execute(totals).fetchall() == [("a", 2), ("b", 1)]
            run_dbt(["run", *february])
            assert connection.execute(totals).fetchall() == [("a", 1), ("b", 1)]


class TestSingleThreaded:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "one.sql": "{{ config(schema='one') }} select 1 as x",
            "two.sql": "{{ config(schema='two') }} select x from {{ ref('one') }}",
        }

    def test_schemas_are_created_by_the_thread_that_goes_on(self, project: Any) -> None:
        """dbt closes the connection of its one thread when it has created a schema."""
        run_dbt(["build", "--single-threaded"])
        assert project.run_sql(f"select x from {project.test_schema}_two.two", fetch="all") == [
            (1,)
        ]


class TestDetachedTriggers:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"sources.yml": SOURCES, "totals.sql": TOTALS}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+grants": {"select": ["reporter"]}}}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
        folder = tmp_path_factory.mktemp("warehouse") / "db"
        return {"type": "olapdb", "path": str(folder), "attach_triggers": False, "retries": 2}

    def test_each_run_backfills_what_has_arrived(self, project: Any) -> None:
        model = f"select sum(n) from {project.test_schema}.totals"
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute(EVENTS)
            _, log = run_dbt_and_capture(["run"])
            assert log.count("olapdb has no users: grants") == 1
            connection.execute("insert into raw.events values ('2024-03-05', 'a')")
            assert connection.execute(model).fetchall() == [(2,)]
            assert run_dbt(["run"])[0].message.startswith("BACKFILL")
            assert connection.execute(model).fetchall() == [(3,)]

    def test_a_rebuild_leaves_them_detached(self, project: Any) -> None:
        """--full-refresh failed: SYSTEM REBUILD VIEW is of triggers that fire."""
        attached = "select name from system.views where attached"
        model = f"select sum(n) from {project.test_schema}.totals"
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            before = connection.execute("select count() from raw.events").fetchall()
            assert run_dbt(["run", "--full-refresh"])[0].message.startswith("REBUILD")
            assert connection.execute(attached).fetchall() == []
            connection.execute("insert into raw.events values ('2024-03-06', 'c')")
            assert connection.execute(model).fetchall() == before
            changed = TOTALS.replace("count() as n", "count() as n, max(day) as last")
            write_file(changed, project.project_root, "models", "totals.sql")
            assert run_dbt(["run"])[0].message.startswith("REBUILD")
            assert connection.execute(attached).fetchall() == []
            after = connection.execute("select count() from raw.events").fetchall()
            assert connection.execute(model).fetchall() == after

    def test_what_a_killed_rebuild_left_attached_is_detached(self, project: Any) -> None:
        views = "select database, name from system.views where name like 'totals%'"
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            left = connection.execute(views).fetchall()
            assert len(left) > 1  # a rebuild kept the version that it replaced
            for database, name in left:
                connection.execute(f"SYSTEM START VIEW {database}.`{name}`")
            _, log = run_dbt_and_capture(["run"])
            assert connection.execute(f"{views} and attached").fetchall() == []
            assert all(f"{name} is detached" in log for _, name in left)

    def test_orphans_that_do_not_fire_are_not_said_to(self, project: Any) -> None:
        run_dbt(["run"])
        Path(project.project_root, "models", "totals.sql").unlink()
        _, log = run_dbt_and_capture(["run"])
        assert "still fire" not in log
        _, log = run_dbt_and_capture(["run-operation", "status"])
        assert "totals__mv" in log
        assert "still fire" not in log


class TestReadOnly:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        tests = "\nmodels: [{name: totals, data_tests: [reconciled, reconciles_with_source]}]"
        return {"sources.yml": SOURCES + tests, "totals.sql": TOTALS}

    @pytest.fixture(scope="class")
    def profiles_config_update(
        self, dbt_profile_target: dict[str, Any], unique_schema: str
    ) -> dict[str, Any]:
        output = {**dbt_profile_target, "schema": unique_schema}
        outputs = {"default": output, "reader": {**output, "read_only": True}}
        return {"test": {"outputs": outputs, "target": "default"}}

    def test_a_test_that_stores_its_verdict_names_the_one_that_does_not(self, project: Any) -> None:
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            connection.execute(EVENTS)
        run_dbt(["run"])
        results, log = run_dbt_and_capture(["test", "--target", "reader"], expect_pass=False)
        status = {r.node.name: str(r.status) for r in results}
        assert status == {"reconciled_totals_": "error", "reconciles_with_source_totals_": "pass"}
        assert "use reconciles_with_source, which stores nothing" in log
