"""`dbt run-operation` on `incremental_mv` models: selection, tables, orphans, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.contract.dbt.test_incremental_mv import (
    CARRIER,
    DAILY,
    FROM_SOURCE,
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
  - {name: hourly, config: {tags: [base]}, data_tests: [reconciled]}
  - {name: daily, data_tests: [reconciled]}
  - {name: carrier, config: {alias: by_carrier}, data_tests: [reconciled]}
  - {name: named, data_tests: [reconciled]}
"""


def operate(operation: str, arguments: str = "{}", *, succeeds: bool = True) -> str:
    """Run an operation; return its log."""
    _, log = run_dbt_and_capture(
        ["run-operation", operation, "--args", arguments], expect_pass=succeeds
    )
    return log


class OperationsProject(IncrementalMvProject):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hourly.sql": HOURLY,
            "marts": {"daily.sql": DAILY, "carrier.sql": CARRIER},  # type: ignore[dict-item]
            "named.sql": NAMED,
            "schema.yml": SCHEMA,
        }

    @staticmethod
    def relations(warehouse: ProjectWarehouse, prefix: str = "") -> set[str]:
        """Return the names in the models' schema that begin with `prefix`."""
        rows = warehouse.rows(
            f"select name from system.tables where database = '{warehouse.schema}' "
            f"and startsWith(name, '{prefix}')"
        )
        return {name for (name,) in rows}


class TestOperations(OperationsProject):
    def test_plan_status_and_repairs(self, warehouse: ProjectWarehouse) -> None:
        schema = warehouse.schema
        before = warehouse.commits()
        log = operate("plan")
        assert warehouse.commits() == before
        assert re.search(rf"{schema}\.hourly +CREATE +3 +900 +not built yet", log), log
        assert re.search(rf"{schema}\.daily +CREATE .*reads {schema}\.hourly, not built yet", log)
        self.check_planned_statements(log, schema)
        assert "not built" in operate("status")

        run_dbt(["run"])
        self.check_progress(Path(warehouse.root))
        log = operate("plan")
        assert len(re.findall("NO CHANGE", log)) == 4

        # Names, aliases, tags, paths and graph operators choose models as in `dbt run`.
        self.check_selection(schema)

        # A chosen slice is replayed, and each way to choose it is given alone.
        warehouse.connection.execute("delete from raw.flights where flight_date = '2013-02-03'")
        assert re.search(rf"{schema}\.by_carrier +stale", operate("status"))
        assert re.search(
            r"by_carrier +REPLAY .*1 slices are stale", operate("plan", "{models: carrier}")
        )
        # A replay of what a model is chained on may make its rows stale.
        log = operate("plan")
        assert re.search(r"hourly +REPLAY .*1 slices are stale", log), log
        assert re.search(r"daily +REPLAY IF CHANGED .*hourly, replayed before", log), log
        log = operate("replay", "{models: carrier, partition: '201302'}")
        assert re.search(r"by_carrier +201302 +replayed", log)
        log = operate("reconcile", "{models: carrier, partition: '2013-02'}", succeeds=False)
        assert "has no partition 2013-02, and the source has no rows of it" in log
        log = operate("replay", "{models: carrier, partition: '2013-02'}", succeeds=False)
        assert "has no partition 2013-02, and the source has no rows of it" in log
        assert "It has 201301, 201302" in log
        operate("replay", "{models: hourly, since: '2013-02-01', stale: true}", succeeds=False)
        log = operate("replay", "{models: hourly, where: \"hour >= '2013-02-01 00:00:00'\"}")
        assert re.search(r"hourly +all +replayed", log)
        assert f"{schema}.daily__mv reads {schema}.hourly, and is stale" in log
        assert "Next: dbt run --select daily+" in log
        operate("replay")
        warehouse.assert_equal_to_source("hourly", "daily", "named")

        # Rows by hand: reconcile fails with the cause, adopt is refused, repair removes them.
        warehouse.connection.execute(
            f"insert into {schema}.daily__target (origin, day, departures) values "
            "('XXX', '2013-01-01', 5)"
        )
        log = operate("reconcile", succeeds=False)
        assert f"{schema}.daily differs from its source" in log
        assert re.search(rf"{schema}\.hourly +equal to its source", log)
        assert "reconcile: 1 failed" in log
        log = operate("adopt", "{models: daily}", succeeds=False)
        assert "BYPASS_ROWS" in log
        operate("repair", "{models: daily, discard_bypass: true}")
        warehouse.assert_equal_to_source("daily")
        assert "equal to its source" in operate("reconcile")

        # A gap is filled by `backfill`.
        warehouse.connection.execute(f"system stop view {schema}.named__mv")
        warehouse.connection.insert("raw.flights", flights(4))
        warehouse.connection.execute(f"system start view {schema}.named__mv")
        assert re.search(r"named +BACKFILL +1 +300", operate("plan", "{models: named}"))
        assert re.search(r"named +backfilled +1 +300", operate("backfill"))
        warehouse.assert_equal_to_source("named")

    @staticmethod
    def check_planned_statements(log: str, schema: str) -> None:
        """Check that the plan shows the one statement of a first run, whole and without its comment."""
        begin = f"CREATE MATERIALIZED VIEW `{schema}`.`hourly__mv` TO `{schema}`.`hourly__target` ("
        lines = [line for line in log.splitlines() if "`hourly__target`" in line]
        assert [begin in line for line in lines] == [True], log
        for clause in (
            " ENGINE = ",
            f" READ VIEW `{schema}`.`hourly` AS (",
            " POPULATE AS SELECT ",
        ):
            assert clause in lines[0]
        assert "COMMENT" not in lines[0]

    @staticmethod
    def check_progress(root: Path) -> None:
        """Check that the chunks of a backfill are in run_results.json."""
        results = json.loads((root / "target" / "run_results.json").read_text())["results"]
        response = {r["unique_id"]: r["adapter_response"] for r in results}["model.test.carrier"]
        assert response["backfill"]["chunks"] == 3
        assert response["backfill"]["source_rows"] == 900
        assert [c["rows"] for c in response["backfill"]["published"]] == [300, 300, 300]

    @staticmethod
    def check_selection(schema: str) -> None:
        """Check that each selection chooses these models, an upstream before what reads it."""
        for arguments, names in (
            ("{models: [by_carrier]}", ["by_carrier"]),
            ("{models: model.test.carrier}", ["by_carrier"]),
            ("{select: 'tag:base'}", ["hourly"]),
            ("{select: 'tag:base+'}", ["hourly", "daily"]),
            ("{select: 'path:models/marts', exclude: daily}", ["by_carrier"]),
            ("{select: 'named +daily,marts.*'}", ["daily", "named"]),
        ):
            log = operate("status", arguments)
            assert re.findall(rf"{schema}\.(\w+) +covered", log) == names, arguments
        log = operate("status", "{models: missing}", succeeds=False)
        assert "missing is no incremental_mv model; there are: carrier, daily, hourly, named" in log


class TestOrphans(OperationsProject):
    def test_models_that_are_renamed_deleted_or_materialized_otherwise(
        self, warehouse: ProjectWarehouse
    ) -> None:
        """Finding I."""
        schema, models = warehouse.schema, Path(warehouse.root) / "models"
        run_dbt(["run"])
        # The trigger of another project, and one that a person made, are no orphans.
        comment = warehouse.rows(
            f"select comment from system.tables where database = '{schema}' and name = 'named__mv'"
        )[0][0].replace("model.test.", "model.other.")
        for name, text in (("others", comment), ("mine", "a note")):
            warehouse.connection.execute(
                f"create table {schema}.{name}_t (origin String) engine = MergeTree order by origin"
            )
            warehouse.connection.execute(
                f"create materialized view {schema}.{name} to {schema}.{name}_t as select origin "
                f"from raw.flights comment '{text.replace(chr(39), chr(92) + chr(39))}'"
            )

        # Materialized as a table: trigger and target go along in the same run.
        warehouse.write("named", "{{ config(materialized='table', order_by='origin') }}" + NAMED)
        run_dbt(["run", "--select", "named"])
        assert self.relations(warehouse, "named") == {"named"}

        # Renamed by file and by alias, and deleted with a model that is chained on it.
        (models / "schema.yml").write_text(SCHEMA.replace("by_carrier", "carriers"))
        (models / "hourly.sql").unlink()
        (models / "marts" / "daily.sql").unlink()
        (models / "schema.yml").write_text(
            re.sub(r"  - \{name: (hourly|daily).*\n", "", (models / "schema.yml").read_text())
        )
        _, log = run_dbt_and_capture(["run"])
        assert "no model any more for 2 triggers, which still fire at each INSERT" in log
        assert f"{schema}.daily__mv, {schema}.hourly__mv. dbt run-operation drop_orphans" in log
        log = operate("status")
        assert re.search(
            rf"{schema}\.by_carrier__mv +model\.test\.carrier +the model is .*now", log
        )
        assert re.search(r"daily__mv +model\.test\.daily +the project has no such model", log)
        assert "drop_orphans" in operate("plan")

        before = self.relations(warehouse)
        log = operate("drop_orphans")
        assert "this is a dry run" in log
        assert log.index("daily__mv") < log.index("hourly__mv")
        assert self.relations(warehouse) == before

        # What a living trigger reads stays, with the reason; the rest is dropped.
        warehouse.connection.execute(
            f"create materialized view {schema}.reader to {schema}.mine_t as select origin "
            f"from {schema}.hourly__target"
        )
        log = operate("drop_orphans", "{confirm: true}", succeeds=False)
        assert f"{schema}.hourly__mv stays: {schema}.reader reads it" in log
        assert self.relations(warehouse, "hourly") == {"hourly", "hourly__mv", "hourly__target"}
        assert self.relations(warehouse, "daily") == set()
        assert self.relations(warehouse, "by_carrier") == set()

        warehouse.connection.execute(f"drop view {schema}.reader")
        operate("drop_orphans", "{dry_run: false}")
        assert "There are no orphans" in operate("drop_orphans")
        kept = {"named", "carriers", "carriers__mv", "carriers__target"}
        assert self.relations(warehouse) == kept | {"others", "others_t", "mine", "mine_t"}
        warehouse.connection.insert("raw.flights", flights(5))


class TestOrphansBelowAKeptVersion(OperationsProject):
    def test_a_kept_version_is_dropped_with_its_view_or_named(
        self, warehouse: ProjectWarehouse
    ) -> None:
        schema, models = warehouse.schema, Path(warehouse.root) / "models"
        run_dbt(["run", "--select", "hourly", "daily"])
        # The rebuilt model reads the source; the version that the rebuild keeps reads hourly.
        (models / "marts" / "daily.sql").write_text(
            "{{ config(materialized='incremental_mv', on_definition_change='rebuild') }}"
            "select origin, flight_date as day, count() as departures"
            " from {{ source('raw', 'flights') }} group by origin, day"
        )
        (models / "hourly.sql").unlink()
        (models / "schema.yml").write_text(re.sub(r"  - \{name: hourly.*\n", "", SCHEMA))
        run_dbt(["run", "--select", "daily"])
        assert f"{schema}.hourly__mv stays: {schema}.daily__mv__v1 reads" in operate("drop_orphans")
        log = operate("drop_orphans", "{confirm: true}", succeeds=False)
        assert f"previous version of {schema}.daily__mv" in log
        assert f"DROP VIEW {schema}.daily__mv__v1;" in log

        (models / "marts" / "daily.sql").unlink()
        (models / "schema.yml").write_text(re.sub(r"  - \{name: (hourly|daily).*\n", "", SCHEMA))
        assert " stays: " not in operate("drop_orphans")  # since its reader is dropped before
        log = operate("drop_orphans", "{confirm: true}")
        assert log.index(f"dropped  {schema}.daily__mv") < log.index(f"{schema}.hourly__mv")
        assert self.relations(warehouse, "daily") == self.relations(warehouse, "hourly") == set()


class TestRollback(OperationsProject):
    def test_the_previous_version_comes_back_with_its_read_view(
        self, warehouse: ProjectWarehouse
    ) -> None:
        schema = warehouse.schema
        run_dbt(["run", "--select", "carrier"])
        before = warehouse.model("by_carrier")
        _rebuild_by_engine(warehouse)
        log = operate("rollback", "{models: carrier}")
        assert re.search(rf"{schema}\.by_carrier +rolled back", log)
        assert warehouse.model("by_carrier") == before
        assert "the repository has the definition of this version" in log
        log = operate("rollback", "{models: named}", succeeds=False)
        assert f"{schema}.named is not built" in log
        assert "needs the models" in operate("rollback", succeeds=False)

    def test_arguments_that_are_true_or_false(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run", "--select", "carrier"])
        log = operate("replay", "{models: carrier, all: 'no'}", succeeds=False)
        assert "replay: all is true or false, not 'no'." in log
        log = operate("drop_orphans", "{confirm: 'false'}", succeeds=False)
        assert "drop_orphans: confirm is true or false, not 'false'." in log

    def test_arguments_that_choose_nothing_or_say_more(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run", "--select", "carrier"])
        for arguments in ("{models: []}", "{models: carrier, partitions: []}", "{select: ''}"):
            log = operate("reconcile", arguments, succeeds=False)
            assert "is empty. Leave it out, or give what it is to choose." in log, arguments
        # 0 is the id of a partition, and no flag.
        log = operate("replay", "{models: carrier, partition: 0}", succeeds=False)
        assert "has no partition 0, and the source has no rows of it" in log
        log = operate("reconcile", "{models: carrier, partition: 0}", succeeds=False)
        assert "has no partition 0, and the source has no rows of it" in log
        where = "1; DROP TABLE raw.flights"
        log = operate("replay", f"{{models: carrier, where: '{where}'}}", succeeds=False)
        assert "replay: where is no condition" in log
        count = warehouse.connection.execute("SELECT count() FROM raw.flights").fetchall()
        assert count[0][0] > 0
        log = operate("generate_reconciliation_tests", "{folder: ../elsewhere}", succeeds=False)
        assert "the folder ../elsewhere is outside of the project" in log

    def test_models_over_it_are_named_with_the_command_that_mends_them(
        self, warehouse: ProjectWarehouse
    ) -> None:
        run_dbt(["run", "--select", "hourly", "daily"])
        config = "{{ config(on_definition_change='rebuild') }}"
        changed = HOURLY.replace("max(delay) as worst", "max(-delay) as worst")
        assert changed != HOURLY
        warehouse.write("hourly", config + changed)
        run_dbt(["run", "--select", "hourly", "daily"])
        log = operate("rollback", "{models: hourly}")
        assert "the repository still has another definition" in log
        line = "daily__mv reads this version now, and is stale. Next: dbt run --select daily+"
        assert line in log
        warehouse.write("hourly", HOURLY)
        results = run_dbt(["run", "--select", "daily+"])
        assert results[0].message.startswith("REPLAY")
        # A model that does not compile is a reason to roll back.
        warehouse.write("hourly", config + changed)
        _, log = run_dbt_and_capture(["run", "--select", "hourly+"])
        assert "was rebuilt" in log
        assert "__v" not in log.partition("was rebuilt")[2].partition("\n")[0]
        warehouse.write("hourly", HOURLY.replace("max(delay)", "max(sum(delay))"))
        log = operate("rollback", "{models: hourly}")
        assert re.search(r"hourly +rolled back", log)
        assert "the repository's model fails" in log
        warehouse.write("hourly", HOURLY)
        run_dbt(["run", "--select", "hourly+"])
        assert not operate("status", "{models: daily}").count("stale:")


def _rebuild_by_engine(warehouse: Any) -> None:
    """Make another version of the trigger in the engine, as a rebuild does."""
    warehouse.connection.execute(f"system rebuild view {warehouse.schema}.by_carrier__mv")


class TestCommandsForAliasesAndVersions(OperationsProject):
    """The commands that messages name: dbt selects by the model's name and version, not by its alias."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hourly = "{name: hourly, latest_version: 1, data_tests: [reconciled], versions: [{v: 1}, {v: 2}]}"
        aliased = (
            "{name: carrier, config: {alias: by_carrier}, data_tests: [reconciled, not_stale]}"
        )
        sources = "sources: [{name: raw, tables: [{name: flights}]}]"
        return {
            "hourly_v1.sql": HOURLY,
            "hourly_v2.sql": HOURLY,
            "carrier.sql": CARRIER,
            "schema.yml": f"{sources}\nmodels: [{hourly}, {aliased}]",
        }

    def test_they_choose_the_model(self, warehouse: ProjectWarehouse) -> None:
        _, log = run_dbt_and_capture(["test", "-s", "carrier", "hourly.v2"], expect_pass=False)
        lines = set(re.findall(r"Repair: (dbt run .*?)(?:\x1b|\n|$)", log))
        assert lines == {"dbt run --select carrier", "dbt run --select hourly.v2"}
        log = operate("status")
        for name in ("carrier", "hourly.v1", "hourly.v2"):
            assert f"dbt run --select {name}" in log
        log = operate("reconcile", "{models: [hourly.v2]}", succeeds=False)
        assert "Repair: dbt run --select hourly.v2" in log
        assert "hourly_v1__mv" not in log
        run_dbt(["run"])
        assert "by_carrier" in operate("reconcile", "{models: [carrier]}")
        warehouse.connection.execute(f"DROP VIEW {warehouse.schema}.by_carrier")
        _, log = run_dbt_and_capture(["test", "-s", "carrier"], expect_pass=False)
        assert "repair --args '{models: [carrier]}'" in log


class TestDocs(OperationsProject):
    def test_a_model_has_statistics_verdict_and_lineage(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run", "--select", "hourly", "daily"])
        warehouse.connection.execute(f"create table {warehouse.schema}.t (a Int64) engine = Memory")
        catalog = run_dbt(["docs", "generate"])
        stats = catalog.nodes["model.test.daily"].stats
        rows = warehouse.rows(f"select count() from {warehouse.schema}.daily__target")[0][0]
        assert stats["row_count"].value == rows
        assert stats["bytes"].value > 0
        assert stats["last_modified"].value.endswith(" UTC")
        assert stats["verdict"].value == "covered"
        schema = warehouse.schema
        assert stats["lineage"].value == (
            f"{schema}.hourly__target → {schema}.daily__mv → {schema}.daily__target"
        )
        source = catalog.sources["source.test.raw.flights"].stats
        assert source["row_count"].value == 900
        assert "verdict" not in source


UNIT_TESTS = """
unit_tests:
  - name: days
    model: daily
    given:
      - input: ref('hourly')
        format: sql
        rows: |
          select 'JFK' as origin, toDateTime('2013-01-01 01:00:00') as hour,
              toUInt64(2) as departures, toNullable(toInt32(7)) as worst,
              uniqState(toNullable(tail)) as tails
          from (select arrayJoin(['a', 'b']) as tail)
          union all
          select 'JFK', toDateTime('2013-01-01 02:00:00'), toUInt64(1), toNullable(toInt32(9)),
              uniqState(toNullable(tail))
          from (select arrayJoin(['b', 'c']) as tail)
    expect:
      rows: [{origin: JFK, day: '2013-01-01', departures: 3, worst: 9, tails: 3}]
"""


class TestChainedModels(OperationsProject):
    def test_their_sql_answers_in_show_and_in_unit_tests(self, warehouse: ProjectWarehouse) -> None:
        run_dbt(["run", "--select", "hourly", "daily"])
        # dbt show runs the SQL of the model over the upstream's read view.
        shown = run_dbt(["show", "--select", "daily", "--limit", "1000"])
        rows = sorted(map(repr, map(tuple, shown.results[0].agate_table.rows)))
        assert len(rows) == len(warehouse.model("daily"))
        tails = sorted(int(row[4]) for row in shown.results[0].agate_table.rows)
        assert tails == sorted(row[4] for row in warehouse.rows(FROM_SOURCE["daily"]))
        (Path(warehouse.root) / "models" / "unit.yml").write_text(UNIT_TESTS)
        results = run_dbt(["test", "--select", "days"])
        assert [r.status for r in results] == ["pass"]
