"""Several `incremental_mv` models that write one target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("dbt")

COLUMNS = "day, count() as visits, uniq(user) as users"
WEB = "{{ config(on_definition_change='rebuild') }}\nselect " + COLUMNS
WEB += " from {{ source('raw', 'web') }} group by day"
APP = "{{ config(target='visits', on_definition_change='rebuild') }}\n"
APP += "-- depends_on: {{ ref('visits') }}\nselect " + COLUMNS
APP += " from {{ source('raw', 'app') }} group by day"
TESTS = "[reconciled, reconciles_with_source, covers_source, no_bypass_writes, not_stale]"
SCHEMA = f"""
sources: [{{name: raw, schema: raw, tables: [{{name: web}}, {{name: app}}]}}]
models: [{{name: visits, data_tests: {TESTS}}}, {{name: visits_app, data_tests: {TESTS}}}]
"""
TRUTH = "SELECT day, count(), uniqExact(user) FROM ({}) GROUP BY day ORDER BY day"
BOTH = "SELECT * FROM raw.web UNION ALL SELECT * FROM raw.app"


@pytest.fixture(scope="class")
def raw(dbt_profile_target: dict[str, object]) -> Iterator[Connection]:
    with olapdb.connect(str(dbt_profile_target["path"])) as connection:
        connection.execute("CREATE DATABASE raw")
        for table in ("web", "app"):
            connection.execute(
                f"CREATE TABLE raw.{table} (day Date, user String) ENGINE = MergeTree"
                " PARTITION BY toYYYYMM(day) ORDER BY day"
            )
            connection.execute(
                f"INSERT INTO raw.{table} SELECT toDate('2024-01-01') + number,"
                f" concat('{table}', toString(number % 7)) FROM numbers(60)"
            )
        yield connection


class Shared:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        return {"models": {"+materialized": "incremental_mv"}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"visits.sql": WEB, "visits_app.sql": APP, "schema.yml": SCHEMA}

    def require_answer(self, project: Any, raw: Connection, rows: str = BOTH) -> None:
        """Require that every read view answers for the rows of both sources."""
        truth = raw.execute(TRUTH.format(rows)).fetchall()
        for model in ("visits", "visits_app"):
            live = f"SELECT * FROM {project.test_schema}.{model} ORDER BY day"
            assert raw.execute(live).fetchall() == truth, model

    def write(self, project: Any, model: str, text: str) -> None:
        (Path(project.project_root) / "models" / f"{model}.sql").write_text(text)


class TestOneAnswer(Shared):
    def test_a_run_an_insert_a_change_and_a_full_refresh(
        self, project: Any, raw: Connection
    ) -> None:
        run_dbt(["build"])
        self.require_answer(project, raw)
        raw.execute("INSERT INTO raw.app VALUES ('2024-01-05', 'new'), ('2024-06-01', 'new')")
        raw.execute("INSERT INTO raw.web VALUES ('2024-01-05', 'new')")
        self.require_answer(project, raw)
        messages = {r.node.name: r.message for r in run_dbt(["run"])}
        assert set(messages.values()) == {"NO CHANGE"}

        without = "from {{ source('raw', 'app') }} where user <> 'app1'"
        self.write(project, "visits_app", APP.replace("from {{ source('raw', 'app') }}", without))
        messages = {
            r.node.name: r.message for r in run_dbt(["build", "--exclude", "test_type:data"])
        }
        assert messages["visits_app"].startswith("MODIFY QUERY; REPLAY")
        rows = BOTH + " WHERE user <> 'app1'"
        self.require_answer(project, raw, rows)
        messages = {r.node.name: r.message for r in run_dbt(["run", "--full-refresh"])}
        assert all(message.startswith("REPLAY") for message in messages.values())
        self.require_answer(project, raw, rows)
        raw.execute("DELETE FROM raw.web WHERE day = '2024-01-03'")
        run_dbt(["build"])
        self.require_answer(project, raw, rows)

    def test_the_target_stays_when_a_model_goes(self, project: Any, raw: Connection) -> None:
        _, log = run_dbt_and_capture(["run-operation", "plan"])
        assert "NO CHANGE" in log
        self.write(project, "visits", "{{ config(materialized='table') }} select 1 as a")
        _, log = run_dbt_and_capture(["run", "-s", "visits"], expect_pass=False)
        assert "visits_app__mv read it or write its target" in log
        self.write(project, "visits", WEB)
        table = "{{ config(materialized='table') }} select 1 as a"
        self.write(project, "visits_app", table)
        run_dbt(["run", "-s", "visits_app"])
        names = raw.execute(
            f"SELECT name FROM system.tables WHERE database = '{project.test_schema}' ORDER BY 1"
        ).fetchall()
        assert [name for (name,) in names] == [
            "visits", "visits__mv", "visits__target", "visits_app"
        ]  # fmt: skip


class TestRefused(Shared):
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (APP.replace("-- depends_on: {{ ref('visits') }}\n", ""), "Add the line -- depends_on"),
            (APP.replace("count() as", "toInt64(sum(1)) as"), "do not fit the target of visits"),
            (APP.replace("uniq(user)", "uniqExact(user)"), "do not fit the target of visits"),
            (
                APP.replace("day, ", "day, user as u, ", 1).replace("by day", "by day, u"),
                "the target of visits is sorted by (day)",
            ),
            (
                APP.replace("target='visits'", "target='visits', partition_by='day'"),
                "belongs to visits",
            ),
            (APP.replace("target='visits'", "target=7"), "target is the name of an incremental_mv"),
        ],
    )
    def test_what_would_not_fit(self, project: Any, raw: Connection, text: str, words: str) -> None:
        self.write(project, "visits", WEB)
        self.write(project, "visits_app", text)
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert words in log
        assert raw.execute("EXISTS " + f"{project.test_schema}.visits_app__mv").fetchall() == [(0,)]

    def test_another_target_of_a_live_model(self, project: Any, raw: Connection) -> None:
        schema = project.test_schema
        self.write(project, "visits_app", APP.replace("target='visits', ", ""))
        run_dbt(["run"])
        self.write(project, "visits_app", APP)
        _, log = run_dbt_and_capture(["run", "-s", "visits_app"], expect_pass=False)
        statement = (
            f"DROP TABLE {schema}.visits_app__mv, {schema}.visits_app, {schema}.visits_app__target"
        )
        assert statement in log
        raw.execute(statement)
        run_dbt(["run"])
        self.require_answer(project, raw)
        self.write(project, "visits_app", APP.replace("target='visits', ", ""))
        _, log = run_dbt_and_capture(["run", "-s", "visits_app"], expect_pass=False)
        assert f"SYSTEM REPLAY VIEW {schema}.visits__mv DISCARD BYPASS" in log
        raw.execute(f"DROP TABLE {schema}.visits_app__mv, {schema}.visits_app")
        raw.execute(f"SYSTEM REPLAY VIEW {schema}.visits__mv DISCARD BYPASS")
        run_dbt(["build"])
        truth = raw.execute(TRUTH.format("SELECT * FROM raw.web")).fetchall()
        live = raw.execute(f"SELECT * FROM {schema}.visits ORDER BY day").fetchall()
        assert live == truth


class TestDroppedAndMadeAgain(Shared):
    def test_rows_of_a_dropped_trigger_are_never_counted_twice(
        self, project: Any, raw: Connection
    ) -> None:
        schema = project.test_schema
        run_dbt(["run"])
        raw.execute(f"DROP TABLE {schema}.visits_app__mv, {schema}.visits_app")
        _, log = run_dbt_and_capture(["run-operation", "plan"])
        assert "visits_app FAIL" in " ".join(log.split())
        _, log = run_dbt_and_capture(["run", "-s", "visits_app"], expect_pass=False)
        assert f"SYSTEM REPLAY VIEW {schema}.visits__mv DISCARD BYPASS" in log
        assert "--full-refresh" in log
        assert raw.execute(f"EXISTS {schema}.visits_app__mv").fetchall() == [(0,)]

        run_dbt(["run", "-s", "visits_app", "--full-refresh"])
        self.require_answer(project, raw)
        run_dbt(["build"])

        raw.execute(f"DROP TABLE {schema}.visits_app__mv, {schema}.visits_app")
        raw.execute(f"SYSTEM REPLAY VIEW {schema}.visits__mv DISCARD BYPASS")
        run_dbt(["build"])
        self.require_answer(project, raw)

    def test_rows_of_an_orphan_are_named_when_it_is_dropped(
        self, project: Any, raw: Connection
    ) -> None:
        schema, model = project.test_schema, Path(project.project_root) / "models/visits_app.sql"
        run_dbt(["run"])
        text = model.read_text()
        model.rename(model.with_name("visits_ios.sql"))
        _, log = run_dbt_and_capture(["run-operation", "drop_orphans", "--args", "{confirm: true}"])
        replay = f"SYSTEM REPLAY VIEW {schema}.visits__mv DISCARD BYPASS"
        assert f"{schema}.visits_app__mv wrote visits__target, which stays with 60 rows" in log
        assert f"{replay} removes them" in log
        raw.execute(replay)
        model.with_name("visits_ios.sql").unlink()
        model.write_text(text)
        run_dbt(["build"])
        self.require_answer(project, raw)

    def test_the_source_of_the_owner_is_exchanged(self, project: Any, raw: Connection) -> None:
        """The message names all statements; after them the model gets another target."""
        schema = project.test_schema
        run_dbt(["run"])
        raw.execute("CREATE TABLE raw.loaded AS raw.web")
        raw.execute("INSERT INTO raw.loaded VALUES ('2024-03-01', 'x')")
        raw.execute("EXCHANGE TABLES raw.web AND raw.loaded")
        _, log = run_dbt_and_capture(["run", "-s", "visits"], expect_pass=False)
        drop, replay = (
            f"DROP VIEW {schema}.visits_app__mv",
            f"SYSTEM REPLAY VIEW {schema}.visits__mv DISCARD BYPASS",
        )
        assert f"{drop}; {replay}" in log
        raw.execute(drop)
        raw.execute(replay)
        run_dbt(["run", "-s", "visits", "--full-refresh"])
        run_dbt(["build"])
        self.require_answer(project, raw)

    def test_the_owner_is_made_again(self, project: Any, raw: Connection) -> None:
        schema = project.test_schema
        raw.execute(f"DROP TABLE {schema}.visits__mv, {schema}.visits")
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert f"SYSTEM REPLAY VIEW {schema}.visits_app__mv DISCARD BYPASS" in log
        run_dbt(["run", "--full-refresh"])
        self.require_answer(project, raw)
        run_dbt(["build"])


class TestSourcesThatArePartitionedOtherwise(Shared):
    def test_the_targets_partitions_are_those_of_its_owner(
        self, project: Any, raw: Connection
    ) -> None:
        raw.execute(
            "CREATE TABLE raw.whole (day Date, user String) ENGINE = MergeTree ORDER BY day; "
            "INSERT INTO raw.whole SELECT * FROM raw.web; DROP TABLE raw.web; "
            "RENAME TABLE raw.whole TO raw.web"
        )
        run_dbt(["build"])
        self.require_answer(project, raw)
        results = run_dbt(["run"])
        assert {r.message for r in results} == {"NO CHANGE"}


class TestTypesOfTheOwner(Shared):
    """A column of the other model may have a type whose values the owner's type holds."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        web = WEB.partition("select ")[0] + (
            "select user as who, count() as visits, max(length(user)) as longest "
            "from {{ source('raw', 'web') }} group by who"
        )
        app = APP.partition("select ")[0] + (
            "select toLowCardinality(user) as who, count() as visits, "
            "max(toUInt8(length(user))) as longest from {{ source('raw', 'app') }} group by who"
        )
        return {"visits.sql": web, "visits_app.sql": app, "schema.yml": SCHEMA}

    def test_a_narrower_type_is_stored_as_the_owners(self, project: Any, raw: Connection) -> None:
        run_dbt(["build"])
        raw.execute("INSERT INTO raw.app VALUES ('2024-02-01', 'web0'), ('2024-02-01', 'new')")
        truth = raw.execute(
            f"SELECT user, count(), max(length(user)) FROM ({BOTH}) GROUP BY user ORDER BY user"
        ).fetchall()
        for model in ("visits", "visits_app"):
            live = f"SELECT * FROM {project.test_schema}.{model} ORDER BY who"
            assert raw.execute(live).fetchall() == truth, model
        messages = {r.message for r in run_dbt(["build", "--exclude", "resource_type:test"])}
        assert messages == {"NO CHANGE"}


class TestAllWritersAreOrphans(Shared):
    """The last writer of a target takes it along: no table without a trigger is left."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        chained = "select sum(visits) as visits from {{ ref('visits') }}"
        ios = "{{ config(enabled=true) }}" + APP.replace("'app'", "'web'")
        files = {"visits.sql": WEB, "visits_app.sql": APP, "visits_ios.sql": ios}
        return {**files, "total.sql": chained, "schema.yml": SCHEMA}

    def test_the_target_goes_with_them(self, project: Any, raw: Connection) -> None:
        schema, models = project.test_schema, Path(project.project_root) / "models"
        left = f"SELECT name FROM system.tables WHERE database = '{schema}' ORDER BY name"
        run_dbt(["run"])
        texts = {name: (models / name).read_text() for name in ("visits.sql", "visits_app.sql")}
        for model in models.glob("*.sql"):
            model.unlink()
        (models / "schema.yml").unlink()
        _, log = run_dbt_and_capture(["run-operation", "drop_orphans"])
        assert log.count("visits__target") == 1
        _, log = run_dbt_and_capture(["run-operation", "drop_orphans", "--args", "{confirm: true}"])
        assert "stays" not in log
        assert raw.execute(left).fetchall() == []

        # The owner was dropped before, and its trigger no longer names the target's table.
        for name, text in texts.items():
            (models / name).write_text(text)
        (models / "schema.yml").write_text(SCHEMA)
        run_dbt(["run"])
        raw.execute(f"DROP TABLE {schema}.visits__mv, {schema}.visits")
        for name in (*texts, "schema.yml"):
            (models / name).unlink()
        run_dbt(["run-operation", "drop_orphans", "--args", "{confirm: true}"])
        assert raw.execute(left).fetchall() == []
