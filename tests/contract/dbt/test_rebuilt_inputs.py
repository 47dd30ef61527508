"""Seeds, tables and incremental models that `incremental_mv` models and views read: a run or a full
refresh of them keeps both, and the triggers are told of exactly the rows that changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("dbt")

SCHEMA = """
sources: [{name: raw, schema: raw, tables: [{name: events}]}]
models:
  - {name: named, data_tests: [reconciled]}
  - {name: of_seed, data_tests: [reconciled]}
  - {name: of_log, data_tests: [reconciled]}
"""
LOG = """
{{ config(materialized='incremental', order_by='id') }}
select id, kind from {{ source('raw', 'events') }}
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""
MV = "{{ config(materialized='incremental_mv') }}"
NAMES = "kind,name\na,Ann\nb,Bob\n"
FACTS = "k,v,w\na,1,\nb,2,x\nb,2,x\n"


class RebuiltInputs:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "named.sql": MV
            + "select n.name as name, count() as c from {{ source('raw', 'events') }} e "
            "join {{ ref('names') }} n on n.kind = e.kind group by name",
            "of_seed.sql": MV + "select k, sum(v) as v from {{ ref('facts') }} group by k",
            "log.sql": LOG,
            "of_log.sql": MV + "select kind, count() as c from {{ ref('log') }} group by kind",
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"names.csv": NAMES, "facts.csv": FACTS}

    @pytest.fixture(scope="class")
    def raw(self, dbt_profile_target: dict[str, object]) -> Iterator[Connection]:
        with olapdb.connect(str(dbt_profile_target["path"])) as connection:
            connection.execute("CREATE DATABASE raw")
            connection.execute(
                "CREATE TABLE raw.events (id UInt64, kind String) ENGINE = MergeTree ORDER BY id"
            )
            connection.execute("INSERT INTO raw.events VALUES (1, 'a'), (2, 'b'), (3, 'b')")
            yield connection


def temporary_tables(connection: Connection) -> list[Any]:
    sql = "SELECT name FROM system.tables WHERE name LIKE '%__dbt_%'"
    return connection.execute(sql).fetchall()


def stale_slices(connection: Connection) -> list[Any]:
    sql = "SELECT view, partition_id FROM system.view_invalidations ORDER BY view"
    return [tuple(row) for row in connection.execute(sql).fetchall()]


def commits(connection: Connection) -> int:
    """Return the number of commits that changed rows or tables."""
    sql = "SELECT count() FROM system.snapshots WHERE kind NOT IN ('MERGE', 'RECONCILE')"
    return int(connection.execute(sql).fetchall()[0][0])


def write_seed(project: Any, name: str, text: str) -> None:
    write_file(text, str(Path(project.project_root)), "seeds", f"{name}.csv")


class TestSeeds(RebuiltInputs):
    def test_an_unchanged_seed_makes_nothing_stale(self, project: Any, raw: Connection) -> None:
        """Finding F."""
        run_dbt(["build"])
        model = f"SELECT k, v FROM {project.test_schema}.of_seed ORDER BY k"
        for arguments in (["build"], ["build", "--full-refresh"]):
            results = run_dbt(arguments)
            assert {str(r.status) for r in results} == {"success", "pass"}
            assert stale_slices(raw) == []
            assert temporary_tables(raw) == []

        # Added rows fire the trigger; a changed name makes only its own slices stale.
        write_seed(project, "facts", FACTS + "b,5,y\nc,7,\nc,7,\n")
        results = run_dbt(["build"])
        assert {str(r.status) for r in results} == {"success", "pass"}
        assert raw.execute(model).fetchall() == [("a", 1), ("b", 9), ("c", 14)]

        # Changed and removed rows make just their slices stale, in one commit.
        write_seed(project, "facts", "k,v,w\na,1,\nb,2,x\nb,5,y\nc,7,\nc,8,\n")
        write_seed(project, "names", NAMES.replace("Bob", "Bert"))
        before = commits(raw)
        _, log = run_dbt_and_capture(["seed"])
        assert commits(raw) == before + 2
        assert "of_seed__mv had read: 1 of its slices are stale" in log
        assert "__v1 had read" not in log  # the version before --full-refresh is of no model's run
        keys = "SELECT view, arraySort(groupArrayArray(keys)) FROM system.view_invalidations WHERE NOT match(view, '__v1$') GROUP BY view ORDER BY view"
        assert raw.execute(keys).fetchall() == [
            ("named__mv", ["Bert", "Bob"]),
            ("of_seed__mv", ["b", "c"]),
        ]

        # The models' run replays them.
        results = run_dbt(["build"])
        messages = {r.node.name: r.message for r in results}
        assert messages["of_seed"].startswith("REPLAY")
        assert messages["named"].startswith("REPLAY")
        assert raw.execute(model).fetchall() == [("a", 1), ("b", 7), ("c", 15)]
        named = f"SELECT name, c FROM {project.test_schema}.named ORDER BY name"
        assert raw.execute(named).fetchall() == [("Ann", 1), ("Bert", 2)]
        assert temporary_tables(raw) == []

    def test_a_seed_with_other_columns_is_replaced_in_one_statement(
        self, project: Any, raw: Connection
    ) -> None:
        run_dbt(["build", "--full-refresh"])
        raw.execute(f"CREATE OR REPLACE VIEW bi AS SELECT k, v FROM {project.test_schema}.facts")
        write_seed(project, "facts", "k,v,w,more\na,1,,9\n")
        write_seed(project, "names", "kind,name,more\na,Ann,1\nb,Bob,2\n")
        run_dbt(["seed"])
        assert raw.execute("SELECT * FROM bi").fetchall() == [("a", 1)]
        run_dbt(["run-operation", "repair"])
        run_dbt(["test"])
        assert raw.execute(f"SELECT * FROM {project.test_schema}.of_seed").fetchall() == [("a", 1)]
        raw.execute(f"INSERT INTO {project.test_schema}.facts (k, v) VALUES ('n', 4)")
        model = f"SELECT k, v FROM {project.test_schema}.of_seed ORDER BY k"
        assert raw.execute(model).fetchall() == [("a", 1), ("n", 4)]
        write_seed(project, "facts", "k,more\na,1\n")
        _, log = run_dbt_and_capture(["seed"], expect_pass=False)
        assert "of_seed__mv would not fit any more" in log
        assert raw.execute("SELECT * FROM bi ORDER BY k").fetchall() == [("a", 1), ("n", 4)]


class TestIncremental(RebuiltInputs):
    def test_a_full_refresh_keeps_triggers_and_views(self, project: Any, raw: Connection) -> None:
        rows = f"SELECT kind, c FROM {project.test_schema}.of_log ORDER BY kind"
        run_dbt(["build"])
        raw.execute("INSERT INTO raw.events VALUES (4, 'c')")
        run_dbt(["build"])
        assert raw.execute(rows).fetchall() == [("a", 1), ("b", 2), ("c", 1)]

        # A trigger and a view of somebody else go on.
        raw.execute("CREATE TABLE other (kind String) ENGINE = MergeTree ORDER BY kind")
        raw.execute(
            f"CREATE MATERIALIZED VIEW other_mv TO other AS SELECT kind FROM {project.test_schema}.log"
        )
        raw.execute("SYSTEM BACKFILL VIEW other_mv")
        raw.execute(f"CREATE VIEW bi AS SELECT max(id) AS last FROM {project.test_schema}.log")
        raw.execute("DELETE FROM raw.events WHERE id = 3")
        raw.execute("INSERT INTO raw.events VALUES (5, 'd')")
        run_dbt(["run", "--full-refresh", "-s", "log"])
        assert raw.execute("SELECT last FROM bi").fetchall() == [(5,)]
        raw.execute("SYSTEM REPLAY VIEW other_mv STALE")
        expected = [("a",), ("b",), ("c",), ("d",)]
        assert raw.execute("SELECT kind FROM other ORDER BY kind").fetchall() == expected
        run_dbt(["run-operation", "repair"])
        run_dbt(["build"])
        assert raw.execute(rows).fetchall() == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
        assert temporary_tables(raw) == []

    def test_a_table_stays_the_source_of_triggers_and_a_view_cannot(
        self, project: Any, raw: Connection
    ) -> None:
        rows = f"SELECT kind, c FROM {project.test_schema}.of_log ORDER BY kind"
        raw.execute("DROP VIEW IF EXISTS other_mv")
        run_dbt(["build"])
        table = LOG.replace("'incremental'", "'table'")
        write_file(table, str(project.project_root), "models", "log.sql")
        raw.execute("INSERT INTO raw.events VALUES (6, 'e')")
        run_dbt(["run", "-s", "log"])
        assert raw.execute(rows).fetchall()[-1] == ("e", 1)
        assert stale_slices(raw) == []
        view = LOG.replace("'incremental'", "'view'")
        write_file(view, str(project.project_root), "models", "log.sql")
        _, log = run_dbt_and_capture(["run", "-s", "log"], expect_pass=False)
        assert "log` cannot become a view" in log
        assert "of_log__mv" in log
        assert temporary_tables(raw) == []


class TestJoined(RebuiltInputs):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        source = "from {{ source('raw', 'events') }}"
        return {
            "last.sql": MV + f"select kind, max(id) as bound {source} group by kind",
            "older.sql": MV + f"select e.kind as kind, countIf(e.id < l.bound) as c {source} e "
            "join {{ ref('last') }} l on l.kind = e.kind group by kind",
            "schema.yml": "sources: [{name: raw, schema: raw, tables: [{name: events}]}]",
        }

    def test_a_model_that_joins_a_rebuilt_one_is_rebuilt(
        self, project: Any, raw: Connection
    ) -> None:
        rows = f"SELECT kind, c FROM {project.test_schema}.older ORDER BY kind"
        run_dbt(["run"])
        assert raw.execute(rows).fetchall() == [("a", 0), ("b", 1)]
        _, log = run_dbt_and_capture(["run", "--full-refresh"])
        assert "older__mv reads the new version, and is stale" in log
        changed = "select kind, min(id) as bound from {{ source('raw', 'events') }} group by kind"
        write_file(MV + changed, str(project.project_root), "models", "last.sql")
        run_dbt(["run", "--full-refresh", "-s", "last"])
        results = run_dbt(["run"])
        assert results[-1].message.startswith("REPLAY")
        assert raw.execute(rows).fetchall() == [("a", 0), ("b", 0)]
        assert temporary_tables(raw) == []
