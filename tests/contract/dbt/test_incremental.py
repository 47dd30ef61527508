"""Incremental models: each strategy is one commit, of which views and triggers are told exactly."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


KILLED = """
import sys
from dbt.cli.main import dbtRunner
from olapdb.runtime.failpoints import kill_at
kill_at(sys.argv[1], int(sys.argv[2]))
dbtRunner().invoke(["run" if sys.argv[3] == "incremental" else "seed", "--profiles-dir", sys.argv[4],
                    *sys.argv[5:]])
"""
STATEMENTS = {
    "seed": (),
    "seed with another column": (),
    "incremental": ("--select", "latest"),
    "full refresh": ("--select", "latest", "--full-refresh"),
}


class TestKilled:
    """A process that is killed while it changes a seed or an incremental model, beside a writer."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        mv = "{{ config(materialized='incremental_mv') }} "
        return {
            "latest.sql": HEAD + "unique_key='id') }} select id, max(n) as n "
            "from {{ source('raw', 'events') }} where id is not null group by id",
            "of_latest.sql": mv + "select id % 3 as rest, count() as c from {{ ref('latest') }} "
            "group by rest",
            "of_facts.sql": mv + "select k, sum(v) as v from {{ ref('facts') }} group by k",
            "schema.yml": MODELS["schema.yml"],
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"facts.csv": "k,v\na,1\nb,2\nb,3\n"}

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any, raw: Connection) -> None:
        run_dbt(["build"])

    @pytest.mark.parametrize(
        ("statement", "point"), [("seed", "insert.staged"), ("incremental", "catalog.committed")]
    )
    def test_at_the_statement(
        self, project: Any, raw: Connection, statement: str, point: str
    ) -> None:
        self.kill(project, raw, statement, point, 1)

    @pytest.mark.soak
    @pytest.mark.timeout(3_600)
    @pytest.mark.parametrize(
        "point", ["insert.staged", "catalog.before_commit", "catalog.committed"]
    )
    @pytest.mark.parametrize("statement", sorted(STATEMENTS))
    def test_at_every_statement(
        self, project: Any, raw: Connection, statement: str, point: str
    ) -> None:
        count = 1
        while self.kill(project, raw, statement, point, count):
            count += 1
        assert count > 1

    def kill(self, project: Any, raw: Connection, statement: str, point: str, count: int) -> bool:
        """Kill the statement at the point, and check what the next run makes of it. Return whether
        the process reached the point so often."""
        number = int(raw.execute("SELECT count() FROM raw.events").fetchall()[0][0])
        raw.execute(
            "INSERT INTO raw.events SELECT id, kind, day, n + 1, 1 FROM raw.events WHERE id = 1"
        )
        more = ",more" if statement == "seed with another column" and count % 2 else ""
        rows = [f"a,{number}", "b,2", f"n{number},7"]
        lines = [f"k,v{more}", *(f"{row},1" if more else row for row in rows)]
        (Path(project.project_root) / "seeds" / "facts.csv").write_text("\n".join(lines) + "\n")
        mode = "seed" if statement.startswith("seed") else "incremental"
        command = [sys.executable, "-c", KILLED, point, str(count), mode, str(project.profiles_dir)]
        with writing(str(project.adapter.config.credentials.location)):
            child = subprocess.run(
                [*command, *STATEMENTS[statement]],
                cwd=project.project_root,
                capture_output=True,
                timeout=120,
                check=False,
            )
        run_dbt(["seed"])
        run_dbt(["run"])
        run_dbt(["run-operation", "repair"])
        self.check(project, raw, number)
        return child.returncode == -signal.SIGKILL

    def check(self, project: Any, raw: Connection, number: int) -> None:
        """Require that tables and triggers hold what their inputs say, and that nothing is left."""
        schema = project.test_schema
        latest = raw.execute(f"SELECT id, n FROM {schema}.latest ORDER BY id").fetchall()
        events = "SELECT id, max(n) FROM raw.events WHERE id IS NOT NULL GROUP BY id ORDER BY id"
        assert latest == raw.execute(events).fetchall()
        counts = f"SELECT rest, c FROM {schema}.of_latest ORDER BY rest"
        expected = (
            f"SELECT id % 3 AS rest, count() FROM {schema}.latest GROUP BY rest ORDER BY rest"
        )
        assert raw.execute(counts).fetchall() == raw.execute(expected).fetchall()
        facts = [("a", number), ("b", 2), (f"n{number}", 7)]
        assert raw.execute(f"SELECT k, v FROM {schema}.facts ORDER BY k").fetchall() == facts
        assert raw.execute(f"SELECT k, v FROM {schema}.of_facts ORDER BY k").fetchall() == facts
        left = "SELECT name FROM system.tables WHERE name LIKE '%__dbt_%'"
        assert raw.execute(left).fetchall() == []


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Insert rows into raw.events in a thread while the body runs."""
    stopped = threading.Event()
    written: list[int] = []

    def write() -> None:
        with olapdb.connect(path) as own:
            number = 1_000
            while not stopped.is_set():
                number += 1
                own.execute(
                    f"INSERT INTO raw.events VALUES ({number}, 'w', '2024-01-01', {number}, 1)"
                )
                written.append(number)
                stopped.wait(0.05)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    assert written
