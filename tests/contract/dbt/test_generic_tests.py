"""The generic tests of `incremental_mv` models: what each finds, its arguments, and what is counted."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.contract.dbt.test_incremental_mv import (
    CARRIER,
    DAILY,
    HOURLY,
    NAMED,
    IncrementalMvProject,
    ProjectWarehouse,
    flights,
)

pytestmark = pytest.mark.feature("dbt")

SCHEMA = """
sources: [{name: raw, schema: raw, tables: [{name: flights}, {name: airlines}]}]
models:
  - name: carrier
    data_tests:
      - reconciled: {name: reconciled}
      - reconciled: {name: sampled, arguments: {sample: 1}, config: {store_failures: true}}
      - reconciles_with_source: {name: values, config: {severity: warn}}
      - reconciles_with_source:
          {name: values_of_january, arguments: {partitions: ['201301']}}
      - reconciles_with_source: {name: values_of_aa, config: {where: "carrier = 'AA'"}}
      - reconciles_with_source: {name: nearly, arguments: {tolerance: 0.5, sample: 12}}
      - covers_source: {name: covers}
      - covers_source: {name: covers_most, arguments: {max_rows: 300}}
      - no_bypass_writes: {name: no_bypass}
      - not_stale: {name: not_stale}
      - proven_within: {name: proven, arguments: {interval: {count: 1, period: day}}}
  - name: hourly
    data_tests:
      - reconciles_with_source: {name: values_of_hourly}
  - name: daily
    data_tests:
      - reconciles_with_source: {name: values_of_daily}
  - name: named
    data_tests:
      - reconciles_with_source: {name: values_of_named}
"""


class TestGenericTests(IncrementalMvProject):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hourly.sql": HOURLY,
            "daily.sql": DAILY,
            "carrier.sql": CARRIER,
            "named.sql": NAMED,
            "schema.yml": SCHEMA,
        }

    def failing(self, *arguments: str) -> dict[str, tuple[str, int]]:
        """Run the tests; return status and failures of those that do not pass, by name."""
        results = run_dbt(["test", *arguments], expect_pass=None)
        return {
            r.node.name: (str(r.status), r.failures) for r in results if str(r.status) != "pass"
        }

    def test_each_finds_its_defect(self, warehouse: ProjectWarehouse) -> None:
        execute, schema = warehouse.connection.execute, warehouse.schema
        run_dbt(["run"])
        # No partition has been compared yet; once `reconciled` has, all are proven.
        assert self.failing("--select", "proven") == {"proven": ("fail", 3)}
        assert self.failing("--select", "reconciled") == {}
        assert self.failing() == {}

        # A changed row of the source: its partition is stale, not proven, and what users read
        # differs.
        execute(
            "alter table raw.flights update delay = 1000 where carrier = 'AA' "
            "and flight_date = '2013-01-05'"
        )
        failing = self.failing("--select", "carrier", "--exclude", "sampled")
        assert failing == {
            "reconciled": ("fail", 1),
            "values": ("warn", 1),
            "values_of_january": ("fail", 1),
            "values_of_aa": ("fail", 1),
            "nearly": ("fail", 1),
            "not_stale": ("fail", 1),
            "proven": ("fail", 1),
        }
        run_dbt(["run-operation", "replay", "--args", "{models: [carrier]}"])
        run_dbt(["run-operation", "reconcile", "--args", "{models: [carrier]}"])
        assert self.failing("--select", "carrier") == {}

        self.check_gap_and_bypass(warehouse)

        # Somebody replaces the read view, whose target is right: readers read something else.
        execute(
            f"create or replace view {schema}.carrier as select carrier, flight_date, "
            f"mean_delay + 1 as mean_delay, p90, tails from (select states.carrier as carrier, "
            "states.flight_date as flight_date, avgMerge(states.mean_delay) as mean_delay, "
            "quantileMerge(0.9)(states.p90) as p90, uniqExactMerge(states.tails) as tails "
            f"from {schema}.carrier__target as states group by carrier, flight_date)"
        )
        _, log = run_dbt_and_capture(["test", "--select", "reconciled"], expect_pass=False)
        assert "the read view" in log
        assert "is not the one that belongs to its trigger" in log
        # The mean of a delay differs by one: by less than half of it only where it is large.
        failing = self.failing("--select", "values", "not_stale", "nearly")
        assert failing["not_stale"] == ("fail", 1)
        assert failing["values"][0] == "warn"
        execute(f"create or replace view {schema}.carrier as select 1 as broken")
        assert set(self.failing("--select", "reconciled", "values")) == {"reconciled", "values"}
        run_dbt(["run-operation", "repair", "--args", "{models: [carrier]}"])
        assert self.failing("--select", "reconciled", "values") == {}

        # So does a trigger that was altered and replayed, so that the ledger finds nothing wrong.
        query = warehouse.rows(
            f"select as_select from system.views where database = '{schema}' "
            "and name = 'carrier__mv'"
        )[0][0]
        execute(
            f"alter table {schema}.carrier__mv modify query "
            + query.replace("avgState(delay)", "avgState(cast(delay + 1, 'Nullable(Int32)'))")
        )
        execute(f"system replay view {schema}.carrier__mv stale")
        _, log = run_dbt_and_capture(["test", "--select", "reconciled"], expect_pass=False)
        assert "the trigger carrier__mv was altered after the model's last run" in log
        assert set(self.failing("--select", "values")) == {"values"}

    def check_gap_and_bypass(self, warehouse: ProjectWarehouse) -> None:
        execute, schema = warehouse.connection.execute, warehouse.schema
        execute(f"system stop view {schema}.carrier__mv")
        warehouse.connection.insert("raw.flights", flights(4))
        execute(f"system start view {schema}.carrier__mv")
        failing = self.failing("--select", "covers", "covers_most", "no_bypass", "values")
        assert failing == {"covers": ("fail", 1), "values": ("warn", 1)}
        run_dbt(["run", "--select", "carrier"])

        execute(
            f"insert into {schema}.carrier__target (carrier, flight_date) "
            "values ('XX', '2013-03-01')"
        )
        failing = self.failing("--select", "no_bypass", "not_stale", "values_of_january", "values")
        assert failing == {"no_bypass": ("fail", 1), "values": ("warn", 1)}
        arguments = "{models: [carrier], discard_bypass: true}"
        run_dbt(["run-operation", "repair", "--args", arguments])
        assert self.failing("--select", "no_bypass", "values") == {}

    def test_arguments_that_a_test_cannot_follow(self, warehouse: ProjectWarehouse) -> None:
        for text, message in (
            ("reconciled: {config: {where: 'origin = 1'}}", "use reconciles_with_source"),
            ("proven_within: {arguments: {interval: 3 fortnights}}", "the period is minute"),
            ("reconciled: {arguments: {sample: 0.5}}", "a whole number of partitions"),
            ("reconciles_with_source: {arguments: {sample: 1}}", "Use where"),
        ):
            schema = SCHEMA.replace("reconciles_with_source: {name: values_of_hourly}", text)
            write_file(schema, str(warehouse.root), "models", "schema.yml")
            log: Any
            _, log = run_dbt_and_capture(["test", "--select", "hourly"], expect_pass=False)
            assert message in log, text

    def test_compile_and_docs_start_no_recomputation(self, warehouse: ProjectWarehouse) -> None:
        write_file(SCHEMA, str(warehouse.root), "models", "schema.yml")
        before = warehouse.commits()
        run_dbt(["compile"])
        assert warehouse.commits() == before


class TestReconcilePolicy(IncrementalMvProject):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        schema = SCHEMA[: SCHEMA.index("  - name: carrier")]
        tests = "  - {name: carrier, data_tests: [reconciled: {name: policy}]}"
        return {"carrier.sql": CARRIER, "schema.yml": schema + tests}

    def test_the_model_says_how_it_is_compared(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run"])
        # One of the 96 keys of a partition differs until it is replayed.
        warehouse.connection.execute(
            "alter table raw.flights update delay = 1000 where carrier = 'AA' "
            "and flight_date = '2013-01-05'"
        )
        for policy, status in (
            ("'stale'", "fail"),
            ("'off'", "pass"),
            ("{'mode': 'full', 'tolerance': 0.05}", "pass"),
            ("{'mode': 'sample', 'sample': 3, 'tolerance': 0.001}", "fail"),
        ):
            warehouse.write("carrier", f"{{{{ config(reconcile={policy}) }}}}" + CARRIER)
            results = run_dbt(["test"], expect_pass=status == "pass")
            assert [r.status for r in results] == [status], policy


FURTHER = """{{ config(materialized='incremental_mv', backfill={'from': '2013-01-01'}) }}
select day, origin, sum(flights) as flights from {{ ref('by_day') }} group by day, origin
"""


class TestPlaceholders(IncrementalMvProject):
    """The replay of a model leaves a part without rows, and without a partition, in the target of
    the model over it."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "by_hour.sql": "{{ config(materialized='incremental_mv') }} select toDate(ts) as day, "
            "toHour(ts) as hour, origin, count() as flights from {{ source('raw', 'flights') }} "
            "group by day, hour, origin",
            "by_day.sql": "{{ config(materialized='incremental_mv', partition_by='toYYYYMM(day)') }} "
            "select day, origin, sum(flights) as flights from {{ ref('by_hour') }} "
            "group by day, origin",
            "schema.yml": """
sources: [{name: raw, schema: raw, tables: [{name: flights}]}]
models:
  - name: by_day
    data_tests: [reconciled, {proven_within: {arguments: {interval: 1 day}}}]
""",
        }

    def test_a_placeholder_is_no_partition(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run"])
        run_dbt(["run-operation", "replay", "--args", "{models: [by_hour], all: true}"])
        count = "select count() as n from system.parts where rows = 0 and table = 'by_day__target'"
        assert warehouse.rows(count)[0][0] > 0
        run_dbt(["test", "--select", "test_name:reconciled"])
        run_dbt(["test", "--select", "test_name:proven_within"])
        warehouse.write("further", FURTHER)
        run_dbt(["run", "--select", "further"])
        total = f"select sum(flights) as n from {warehouse.schema}."
        assert warehouse.rows(total + "further") == warehouse.rows(total + "by_day")
