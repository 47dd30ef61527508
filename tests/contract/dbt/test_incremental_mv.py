"""`incremental_mv` through dbt: first build, live rows, drift, repair, changes, chains."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb

pytestmark = pytest.mark.feature("dbt")

HOURLY = """
select origin, toStartOfHour(ts) as hour, count() as departures, sum(delay) as delay_sum,
    max(delay) as worst, uniq(tail) as tails, sum(delay) / count() as mean_delay
from {{ source('raw', 'flights') }} group by origin, hour
"""
DAILY = """
with h as (select * from {{ ref('hourly') }})
select origin, toDate(hour) as day, sum(departures) as departures, max(worst) as worst,
    uniqMerge(tails) as tails
from h group by 1, 2
"""
CARRIER = """
select carrier, flight_date, avg(delay) as mean_delay, quantile(0.9)(delay) as p90,
    uniqExact(tail) as tails
from {{ source('raw', 'flights') }} where delay is not null group by all
"""
NAMED = """
{{ config(order_by=['origin', 'ts']) }}
select f.origin as origin, f.ts as ts, f.delay as delay, f.flight_date as flight_date,
    a.name as name
from {{ source('raw', 'flights') }} f
left join {{ source('raw', 'airlines') }} a on a.carrier = f.carrier
"""
SCHEMA = """
sources: [{name: raw, schema: raw, tables: [{name: flights}, {name: airlines}]}]
models:
  - {name: hourly, data_tests: [reconciled]}
  - {name: daily, data_tests: [reconciled]}
  - {name: carrier, data_tests: [reconciled]}
  - {name: named, data_tests: [reconciled]}
"""
FROM_SOURCE = {
    "hourly": """select origin, toStartOfHour(ts) as hour, count(), sum(delay), max(delay),
        uniq(tail), sum(delay) / count() from raw.flights group by origin, hour""",
    "daily": """select origin, toDate(ts) as day, count(), max(delay), uniq(tail)
        from raw.flights group by origin, day""",
    "carrier": """select carrier, flight_date, avg(delay), quantile(0.9)(delay), uniqExact(tail)
        from raw.flights where delay is not null group by carrier, flight_date""",
    "named": """select f.origin, f.ts, f.delay, f.flight_date, a.name from raw.flights f
        left join raw.airlines a on a.carrier = f.carrier""",
}


def flights(month: int, count: int = 300) -> pa.Table:
    """Return flights of a month, with ties and NULLs, the same at each call."""
    rows = range(count)
    times = [datetime.datetime(2013, month, 1 + i % 27, i % 24, i % 60) for i in rows]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "flight_date": [t.date() for t in times],
            "origin": [("JFK", "EWR", "LGA")[i % 3] for i in rows],
            "carrier": [("AA", "UA", "B6", "DL")[i * 7 % 4] for i in rows],
            "tail": [None if i % 11 == 0 else f"N{i % 13}" for i in rows],
            "delay": pa.array([None if i % 9 == 0 else i % 60 - 5 for i in rows], pa.int32()),
        }
    )


class ProjectWarehouse:
    """A project's warehouse over a connection beside dbt's."""

    def __init__(self, path: str, schema: str, root: Path) -> None:
        self.connection = olapdb.connect(path)
        self.schema = schema
        self.root = root

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def model(self, name: str) -> list[str]:
        return sorted(map(repr, self.rows(f"select * from {self.schema}.{name}")))

    def assert_equal_to_source(self, *names: str) -> None:
        for name in names:
            expected = sorted(map(repr, self.rows(FROM_SOURCE[name])))
            assert self.model(name) == expected, name

    def commits(self) -> int:
        return int(self.rows("select max(number) from system.snapshots")[0][0])

    def write(self, name: str, sql: str) -> None:
        write_file(sql, str(self.root), "models", f"{name}.sql")


class IncrementalMvProject:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hourly.sql": HOURLY,
            "daily.sql": DAILY,
            "carrier.sql": CARRIER,
            "named.sql": NAMED,
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"+materialized": "incremental_mv"}}}

    @pytest.fixture(scope="class")
    def warehouse(self, project: Any) -> Iterator[ProjectWarehouse]:
        credentials = project.adapter.config.credentials
        warehouse = ProjectWarehouse(
            credentials.location, project.test_schema, Path(project.project_root)
        )
        connection = warehouse.connection
        connection.execute("create database raw")
        connection.execute(
            "create table raw.flights (ts DateTime, flight_date Date, origin String, "
            "carrier String, tail Nullable(String), delay Nullable(Int32)) engine = MergeTree "
            "partition by toYYYYMM(flight_date) order by (origin, ts)"
        )
        connection.execute(
            "create table raw.airlines (carrier String, name String) engine = MergeTree "
            "order by carrier"
        )
        connection.execute("insert into raw.airlines values ('AA', 'American'), ('UA', 'United')")
        for month in (1, 2, 3):
            connection.insert("raw.flights", flights(month))
        yield warehouse
        connection.close()


class TestLife(IncrementalMvProject):
    def test_from_first_build_to_repair(self, warehouse: ProjectWarehouse) -> None:
        results, log = run_dbt_and_capture(["build"])
        assert {r.status for r in results} == {"success", "pass"}
        assert "carrier: chunk 3 of 3" in log
        warehouse.assert_equal_to_source("hourly", "daily", "carrier", "named")

        # A second run has nothing to do and makes no commit.
        before = warehouse.commits()
        results = run_dbt(["run"])
        assert {r.message for r in results} == {"NO CHANGE"}
        assert warehouse.commits() == before

        # Triggers fire, that of the chained model through its upstream's target.
        warehouse.connection.insert("raw.flights", flights(4))
        warehouse.assert_equal_to_source("hourly", "daily", "carrier", "named")
        run_dbt(["test"])

        self.check_drift(warehouse)

    def check_drift(self, warehouse: ProjectWarehouse) -> None:
        target = f"{warehouse.schema}.daily__target"
        warehouse.rows("select 1")
        warehouse.connection.execute(
            f"insert into {target} (origin, day, departures) values ('XXX', '2013-01-01', 5)"
        )
        warehouse.connection.execute("delete from raw.flights where flight_date = '2013-02-03'")
        results, log = run_dbt_and_capture(["test"], expect_pass=False)
        assert {r.status for r in results} == {"fail"}
        assert "carrier, partition 201302: DELETE" in log
        assert "2013-02-03" in log
        assert "1 bypass rows" in log

        _, log = run_dbt_and_capture(["run-operation", "repair"])
        assert re.search(r"carrier +201302 +replayed", log)
        assert "discard_bypass: true removes them" in log
        warehouse.assert_equal_to_source("hourly", "carrier", "named")
        assert any("XXX" in row for row in warehouse.model("daily"))
        run_dbt(["test"], expect_pass=False)

        arguments = "{models: [daily], discard_bypass: true}"
        run_dbt(["run-operation", "repair", "--args", arguments])
        run_dbt(["test"])
        warehouse.assert_equal_to_source("hourly", "daily", "carrier", "named")


class TestChanges(IncrementalMvProject):
    def test_a_changed_definition_needs_a_rebuild(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run"])
        warehouse.write("carrier", CARRIER.replace("quantile(0.9)", "quantile(0.5)"))
        results, log = run_dbt_and_capture(["run", "--select", "carrier"], expect_pass=False)
        assert "has changed since its target was built" in log
        results = run_dbt(["run", "--select", "carrier", "--full-refresh"])
        assert results[0].message.startswith("REBUILD 3 chunks")
        expected = FROM_SOURCE["carrier"].replace("0.9", "0.5")
        assert warehouse.model("carrier") == sorted(map(repr, warehouse.rows(expected)))
        warehouse.connection.insert("raw.flights", flights(5))
        assert warehouse.model("carrier") == sorted(map(repr, warehouse.rows(expected)))

        # After a rebuild of an upstream to another type, the chained model is rebuilt at its run.
        changed = HOURLY.replace("max(delay) as worst", "max(delay + 1) as worst")
        warehouse.write("hourly", "{{ config(on_definition_change='rebuild') }}" + changed)
        results, log = run_dbt_and_capture(["run", "--select", "hourly"])
        assert "daily__mv reads the new version, and is stale" in log
        warehouse.connection.insert("raw.flights", flights(7))
        results = run_dbt(["run", "--select", "daily"])
        assert results[0].message.startswith("REBUILD")
        warehouse.connection.insert("raw.flights", flights(6))
        shifted = FROM_SOURCE["daily"].replace("max(delay)", "max(delay + 1)")
        assert warehouse.model("daily") == sorted(map(repr, warehouse.rows(shifted)))
        run_dbt(["test"])
        temporary = warehouse.rows(
            f"select name from system.tables where database = '{warehouse.schema}' "
            "and (name like '%dbt_new%' or name like '%dbt_old%')"
        )
        assert temporary == []

        # Another materialization drops trigger and target.
        warehouse.write("named", "{{ config(materialized='view') }}" + NAMED)
        run_dbt(["run", "--select", "named"])
        names = {
            n
            for (n,) in warehouse.rows(
                f"select name from system.tables where database = '{warehouse.schema}'"
            )
        }
        assert "named" in names
        assert not {"named__mv", "named__target"} & names
        warehouse.write("named", NAMED)
        run_dbt(["run", "--select", "named"])
        warehouse.assert_equal_to_source("named")


class TestLimits(IncrementalMvProject):
    def test_empty_is_never_in_the_trigger(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run", "--empty"])
        assert warehouse.model("hourly") == []
        warehouse.connection.insert("raw.flights", flights(7))
        assert len(warehouse.model("hourly")) > 0
        run_dbt(["run"])
        warehouse.assert_equal_to_source("hourly", "daily", "carrier", "named")

    def test_an_untested_model_is_warned_about_and_its_test_generated(
        self, warehouse: ProjectWarehouse
    ) -> None:
        warehouse.write(
            "plain",
            "select origin, count() as n from {{ source('raw', 'flights') }} group by origin",
        )
        _, log = run_dbt_and_capture(["run", "--select", "plain"])
        assert "plain has no test that reconciles it" in log
        run_dbt(["run-operation", "generate_reconciliation_tests"])
        assert (warehouse.root / "tests" / "reconciled" / "reconciled_plain.sql").exists()
        results = run_dbt(["test", "--select", "plain"])
        assert [r.status for r in results] == ["pass"]

    def test_a_model_that_a_trigger_cannot_maintain_is_refused(
        self, warehouse: ProjectWarehouse
    ) -> None:
        warehouse.write(
            "late",
            "select origin, count() as n from {{ source('raw', 'flights') }} "
            "group by origin having n > 5",
        )
        _, log = run_dbt_and_capture(["run", "--select", "late"], expect_pass=False)
        assert "HAVING would be answered for each inserted block by itself" in log
        warehouse.write(
            "late", "select origin, count() as n from {{ ref('hourly') }} group by origin"
        )
        _, log = run_dbt_and_capture(["run", "--select", "late"], expect_pass=False)
        assert "would count the partial rows of hourly" in log
        warehouse.write(
            "late",
            "select origin, uniqq(tail) as n from {{ source('raw', 'flights') }} group by origin",
        )
        _, log = run_dbt_and_capture(["run", "--select", "late"], expect_pass=False)
        assert "Function with name uniqq does not exist" in log
        assert "Maybe you meant uniq" in log


class TestInterrupted(IncrementalMvProject):
    def test_the_next_run_finishes_a_killed_one(self, warehouse: ProjectWarehouse) -> None:
        execute = warehouse.connection.execute
        run_dbt(["run", "--select", "carrier"])
        schema = warehouse.schema

        # Killed before the read view was created.
        execute(f"drop view {schema}.carrier")
        run_dbt(["run", "--select", "carrier"])
        warehouse.assert_equal_to_source("carrier")

        # A trigger dropped by hand fails the test, and the next run makes its rows anew.
        execute(f"drop view {schema}.carrier__mv")
        _, log = run_dbt_and_capture(["test", "--select", "carrier"], expect_pass=False)
        assert "the trigger carrier__mv does not exist" in log
        warehouse.connection.insert("raw.flights", flights(8))
        results = run_dbt(["run", "--select", "carrier"])
        assert results[0].message.startswith("CREATE 4 chunks")
        warehouse.assert_equal_to_source("carrier")


HOOKED = """
{{ config(pre_hook="PRE", post_hook=[
    "insert into {{ this }} (origin, departures) select 'all', sum(departures) from {{ this }}",
    "create table if not exists raw.log (n UInt64) engine = MergeTree order by n",
    "insert into raw.log select count() from {{ this }}"]) }}
select origin, count() as departures from {{ source('raw', 'flights') }} group by origin
"""


class TestHooks(IncrementalMvProject):
    """What hooks write into `{{ this }}` goes to the target; what they read is finished."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hooked.sql": HOOKED.replace("PRE", "select 1"),
            "schema.yml": SCHEMA.partition("models:")[0],
        }

    def test_writes_go_to_the_target(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run"])
        flown = warehouse.rows("select count() from raw.flights")
        table = f"{warehouse.schema}.hooked"
        assert warehouse.rows(f"select departures from {table} where origin = 'all'") == flown
        origins = warehouse.rows("select uniqExact(origin) + 1 from raw.flights")
        assert warehouse.rows("select n from raw.log") == origins
        pre = "optimize table {{ this }} final; delete from {{ this }} where origin = 'all'"
        warehouse.write("hooked", HOOKED.replace("PRE", pre))
        run_dbt(["run"])
        assert warehouse.rows(f"select departures from {table} where origin = 'all'") == flown
