"""Incremental models: each strategy is one commit, of which views and triggers are told exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("dbt")

HEAD = "{{ config(materialized='incremental', "
EVENTS = " select * from {{ source('raw', 'events') }}"
CHANGED = EVENTS + "{% if is_incremental() %} where changed {% endif %}"
MODELS = {
    "keyed.sql": HEAD
    + "unique_key=['id', 'kind'], query_settings={'max_threads': 1}) }}"
    + CHANGED,
    "lowered.sql": HEAD
    + "unique_key='lower(kind)', incremental_strategy='delete_insert') }}"
    + CHANGED,
    "merged.sql": HEAD + "unique_key='id', incremental_strategy='merge', "
    "merge_exclude_columns=['n']) }}" + CHANGED,
    "overwritten.sql": HEAD + "incremental_strategy='insert_overwrite', partition_by='day', "
    "order_by='kind') }}" + CHANGED,
    "of_keyed.sql": "{{ config(materialized='incremental_mv') }} select kind, sum(n) as total "
    "from {{ ref('keyed') }} group by kind",
    "batched.sql": HEAD + "incremental_strategy='microbatch', event_time='day', batch_size='day', "
    "begin='2024-01-01', concurrent_batches=true) }} select * from {{ ref('timed') }}",
    "timed.sql": "{{ config(materialized='view', event_time='day') }}" + EVENTS,
    "schema.yml": "sources: [{name: raw, schema: raw, tables: [{name: events}]}]",
}
ROWS = (
    "(1, 'a', '2024-01-01', 10, 0), (2, 'b', '2024-01-02', 20, 0), (2, 'c', '2024-01-02', 30, 0),"
    " (NULL, 'n', '2024-01-03', 40, 0)"
)


@pytest.fixture(scope="class")
def raw(dbt_profile_target: dict[str, object]) -> Iterator[Connection]:
    with olapdb.connect(str(dbt_profile_target["path"])) as connection:
        connection.execute("CREATE DATABASE raw")
        connection.execute(
            "CREATE TABLE raw.events (id Nullable(Int64), kind String, day Date, n Int64,"
            " changed Bool) ENGINE = MergeTree ORDER BY kind"
        )
        connection.execute(f"INSERT INTO raw.events VALUES {ROWS}")
        yield connection


def commits_of(connection: Connection, table: str) -> int:
    sql = f"SELECT count() FROM system.snapshots WHERE statement ILIKE '%into%{table}`%'"
    return int(connection.execute(sql).fetchall()[0][0])


class TestHeaderAndKeys:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "schema.yml": MODELS["schema.yml"],
            "with_header.sql": "{% call set_sql_header(config) %} set max_threads = 1; {% endcall %}"
            + HEAD
            + "unique_key='id') }}"
            + EVENTS,
            "keyless.sql": HEAD + "incremental_strategy='merge') }}" + EVENTS,
        }

    def test_a_later_run_with_a_header(self, project: Any, raw: Connection) -> None:
        for _ in range(2):
            run_dbt(["run", "--select", "with_header"])
        sql = f"SELECT count() FROM {project.test_schema}.with_header"
        assert raw.execute(sql).fetchall() == [(4,)]

    def test_a_strategy_that_has_no_key_says_that_it_appends(
        self, project: Any, raw: Connection
    ) -> None:
        _, log = run_dbt_and_capture(["run", "--select", "keyless"])
        assert "has incremental_strategy='merge' and no unique_key, so that its runs append" in log


class TestStrategies:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    def read(self, project: Any, raw: Connection, model: str) -> list[tuple[Any, ...]]:
        sql = f"SELECT id, kind, n FROM {project.test_schema}.{model}"
        rows = [tuple(row) for row in raw.execute(sql).fetchall()]
        return sorted(rows, key=lambda row: (row[0] is not None, row[0] or 0, *row[1:]))

    def test_each_strategy_replaces_its_rows(self, project: Any, raw: Connection) -> None:
        end = ["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-05"]
        run_dbt(["run", *end])
        assert len(self.read(project, raw, "batched")) == 4
        raw.execute(
            "INSERT INTO raw.events VALUES (2, 'C', '2024-01-02', 31, 1), (NULL, 'n', '2024-01-03', 41, 1),"
            " (1, 'a', '2024-01-01', 10, 1), (5, 'e', '2024-01-04', 50, 1)"
        )
        run_dbt(["run", "--exclude", "batched"])
        run_dbt(["run", "-s", "batched", *end])
        known = [(1, "a", 10), (2, "b", 20), (2, "c", 30)]
        new = [(5, "e", 50)]
        assert self.read(project, raw, "keyed") == [
            (None, "n", 41), known[0], (2, "C", 31), *known[1:], *new
        ]  # fmt: skip
        assert self.read(project, raw, "lowered") == [
            (None, "n", 41), known[0], (2, "C", 31), known[1], *new
        ]  # fmt: skip
        # The merge keeps n of the rows whose key it knows; of two such rows both are updated.
        assert self.read(project, raw, "merged") == [
            (None, "n", 40), known[0], (2, "C", 20), (2, "C", 30), *new
        ]  # fmt: skip
        assert self.read(project, raw, "overwritten") == [
            (None, "n", 41), known[0], (2, "C", 31), *new
        ]  # fmt: skip
        assert len(self.read(project, raw, "batched")) == 8
        for model in ("keyed", "merged", "overwritten"):
            assert commits_of(raw, model) == 1
        left = "SELECT name FROM system.tables WHERE name LIKE '%__dbt_%'"
        assert raw.execute(left).fetchall() == []

        # The trigger over `keyed` knows which keys are stale; repeated rows are no change.
        run_dbt(["run", "-s", "keyed"])
        stale = "SELECT DISTINCT arrayJoin(keys) FROM system.view_invalidations ORDER BY 1"
        assert [key for (key,) in raw.execute(stale).fetchall()] in (["n"], ["a", "n"], [])
        run_dbt(["run-operation", "repair"])
        totals = f"SELECT kind, total FROM {project.test_schema}.of_keyed ORDER BY kind"
        assert raw.execute(totals).fetchall() == [
            ("C", 31), ("a", 10), ("b", 20), ("c", 30), ("e", 50), ("n", 41)
        ]  # fmt: skip

    def test_rows_of_another_batch_are_refused(self, project: Any, raw: Connection) -> None:
        """dbt filters only inputs with event_time; else each batch would insert all rows again."""
        path = f"{project.project_root}/models/batched.sql"
        with open(path, "w") as file:
            file.write(MODELS["batched.sql"].replace("ref('timed')", "source('raw', 'events')"))
        before = self.read(project, raw, "batched")
        end = ["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-03"]
        for refresh in ([], ["--full-refresh"]):
            _, log = run_dbt_and_capture(
                ["run", "-s", "batched", *end, *refresh], expect_pass=False
            )
            assert "has rows of another day" in log
            assert "Set event_time" in log
            assert self.read(project, raw, "batched") == before
        with open(path, "w") as file:
            file.write(MODELS["batched.sql"])

    def test_mistakes_are_told(self, project: Any, raw: Connection) -> None:
        folder = project.project_root
        mistakes = {
            "unique_key='id', incremental_strategy='append'": "means nothing to",
            "unique_key='id', incremental_predicates=['DBT_INTERNAL_SOURCE.n > 1']": "choose rows of",
            "unique_key='id', incremental_strategy='merge', merge_update_columns=['nn']": "no column nn",
            "unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.n > 1']": "",
        }
        for configs, words in mistakes.items():
            with open(f"{folder}/models/keyed.sql", "w") as file:
                file.write(f"{HEAD}{configs}) }}}}{CHANGED}")
            _, log = run_dbt_and_capture(["run", "-s", "keyed"], expect_pass=not words)
            assert words in log
        with open(f"{folder}/models/keyed.sql", "w") as file:
            file.write(
                HEAD + "unique_key='id') }} select id, kind from {{ source('raw', 'events') }}"
            )
        _, log = run_dbt_and_capture(["run", "-s", "keyed"], expect_pass=False)
        assert "no column day, n, changed" in log


class TestColumnsChangeTogether:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"synced.sql": self.model("1 as id, 'a' as kind, 5 as gone")}

    @staticmethod
    def model(columns: str) -> str:
        """Return a model of these columns whose table follows them."""
        return f"{HEAD}unique_key='id', on_schema_change='sync_all_columns') }}}} select {columns}"

    def test_a_value_that_does_not_convert_drops_no_column(
        self, project: Any, raw: Connection
    ) -> None:
        run_dbt(["run"])
        path = f"{project.project_root}/models/synced.sql"
        with open(path, "w") as file:
            file.write(self.model("2 as id, 300 as kind, 7.5 as extra"))
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert "Cannot parse 'a'" in log
        table = f"{project.test_schema}.synced"
        assert raw.execute(f"SELECT * FROM {table}").fetchall() == [(1, "a", 5)]
        raw.execute(f"DELETE FROM {table} WHERE id = 1")
        run_dbt(["run"])
        assert raw.execute(f"SELECT * FROM {table}").fetchall() == [(2, 300, 7.5)]


WRONG = {
    "wrong_key.sql": HEAD + "unique_key='idd') }}" + EVENTS,
    "wrong_part.sql": HEAD + "unique_key=['id', 'lower(kindd)']) }}" + EVENTS,
    "wrong_where.sql": HEAD + "unique_key='id', incremental_predicates=['dayy > 1']) }}" + EVENTS,
    "wrong_column.sql": HEAD + "unique_key='id', incremental_strategy='merge', "
    "merge_update_columns=['nn']) }}" + EVENTS,
    "both.sql": HEAD + "unique_key='id', incremental_strategy='merge', merge_update_columns='n', "
    "merge_exclude_columns='kind', incremental_predicates={'a': 1}) }}" + EVENTS,
    "no_merge.sql": HEAD + "unique_key='id', merge_update_columns='n') }}" + EVENTS,
    "appends.sql": HEAD + "incremental_predicates=['n > 1']) }}" + EVENTS,
    "right.sql": HEAD + "unique_key='lower(kind)', incremental_predicates="
    "['DBT_INTERNAL_DEST.n > 1']) }}" + EVENTS,
    "schema.yml": MODELS["schema.yml"],
}


class TestAWrongConfigIsToldAtTheFirstRun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return WRONG

    def test_each_mistake_before_anything_is_made(self, project: Any, raw: Connection) -> None:
        results, log = run_dbt_and_capture(["run"], expect_pass=False)
        messages = {r.node.name: str(r.message) for r in results}
        # dbt's own tests have it that a first run passes, which uses no key: a warning tells.
        for key in ("idd", "lower(kindd)"):
            assert re.search(
                rf"The next run of `\w+`.`\w+` will fail: unique_key '{re.escape(key)}' does not fit",
                log,
            )
        assert "which has the columns id, kind, day, n, changed" in log
        for model, words in {
            "wrong_where": ["incremental_predicates 'dayy > 1' does not fit"],
            "wrong_column": ["The table has no column nn"],
            "both": [
                "There are 2 mistakes",
                "incremental_predicates is a list of conditions, not {'a': 1}",
                "Set merge_update_columns or merge_exclude_columns, not both",
            ],
            "no_merge": ["are of incremental_strategy='merge', not of 'default'"],
            "appends": ["an incremental model that appends removes none"],
        }.items():
            for part in words:
                assert part in messages[model], (part, messages[model])
        tables = raw.execute(
            f"SELECT name FROM system.tables WHERE database = '{project.test_schema}'"
        ).fetchall()
        assert sorted(tables) == [("right",), ("wrong_key",), ("wrong_part",)]


class TestQuotedEventTime:
    """A column event_time with `quote: true`: dbt filters refs by its quoted name, and so do batches."""

    CONFIG = (
        "incremental_strategy='microbatch', event_time='event time', batch_size='day', "
        "begin='2024-01-01') }} "
    )

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        column = "columns: [{name: event time, quote: true}]"
        return {
            "first.sql": HEAD + self.CONFIG + "select id, day as `event time` from "
            "{{ source('raw', 'events') }}",
            "second.sql": HEAD + self.CONFIG + "select * from {{ ref('first') }}",
            "schema.yml": "sources: [{name: raw, schema: raw, tables: [{name: events, config: "
            "{event_time: day}}]}]\n"
            f"models: [{{name: first, {column}}}, {{name: second, {column}}}]",
        }

    def test_batches_replace_their_rows(self, project: Any, raw: Connection) -> None:
        days = ["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04"]
        for _ in range(2):
            run_dbt(["run", *days])
            for model in ("first", "second"):
                rows = raw.execute(f"SELECT count() FROM {project.test_schema}.{model}").fetchall()
                assert rows == [(4,)]
