"""Snapshots: what the classes of dbt-tests-adapter leave out. One commit a run, NULL keys, repeated
keys, columns that come, go or get NULLs, and a process that is killed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

pytestmark = pytest.mark.feature("dbt", "crashes")

MODES = ("ignore", "invalidate", "new_record")
CONFIG = """
  - name: {name}
    relation: source('raw', 'customers')
    config: {{unique_key: id, strategy: {strategy}, {compared}, hard_deletes: {mode}}}"""
SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: customers}]
snapshots:"""
KILLED = """
import sys
from olapdb.runtime.failpoints import kill_at
from dbt.cli.main import dbtRunner
kill_at(sys.argv[1], 1)
dbtRunner().invoke(["snapshot", "--select", "invalidate", "--profiles-dir", sys.argv[2]])
"""


def versions(project: Any, snapshot: str, columns: str = "id, name") -> list[tuple[Any, ...]]:
    """Return the versions with whether each is current, in the order of their beginnings."""
    deleted = ", dbt_is_deleted" if snapshot == "new_record" else ""
    query = f"""select {columns}, dbt_valid_to is null{deleted} from {{schema}}.{snapshot}
        order by id nulls first, dbt_valid_from, dbt_valid_to is null"""
    return [tuple(row) for row in project.run_sql(query, fetch="all")]


def write_source(project: Any, rows: str, columns: str = "id, name, at") -> None:
    """Replace the rows of the source."""
    project.run_sql("truncate table {schema}.customers")
    project.run_sql(f"insert into {{schema}}.customers ({columns}) values {rows}")


@pytest.fixture(scope="class")
def models() -> dict[str, str]:
    by_time = [
        CONFIG.format(name=mode, strategy="timestamp", compared="updated_at: at", mode=mode)
        for mode in MODES
    ]
    by_value = CONFIG.format(
        name="checked", strategy="check", compared="check_cols: all", mode="ignore"
    )
    return {"schema.yml": SOURCES + "".join(by_time) + by_value}


@pytest.fixture(scope="class")
def source(project: Any) -> None:
    project.run_sql(
        """create table {schema}.customers
        (id Nullable(Int32), name String, at DateTime64(3)) order by tuple()"""
    )


class TestVersions:
    def test_each_mode_of_hard_deletes(self, project: Any, source: None) -> None:
        write_source(
            project, "(1, 'a', '2024-01-01'), (2, 'b', '2024-01-01'), (NULL, 'n', '2024-01-01')"
        )
        _, log = run_dbt_and_capture(["snapshot"])
        # Milliseconds of updated_at beside microseconds of the run are no reason for a warning.
        assert "doesn't match derived column" not in log
        write_source(
            project, "(1, 'A', '2024-02-01'), (3, 'c', '2024-02-01'), (NULL, 'n', '2024-01-01')"
        )
        run_dbt(["snapshot"])
        kept = [(None, "n", 1), (1, "a", 0), (1, "A", 1)]
        assert versions(project, "ignore") == [*kept, (2, "b", 1), (3, "c", 1)]
        assert versions(project, "checked") == [*kept, (2, "b", 1), (3, "c", 1)]
        assert versions(project, "invalidate") == [*kept, (2, "b", 0), (3, "c", 1)]
        lives = [(*version, "False") for version in kept]
        gone = [(2, "b", 0, "False"), (2, "b", 1, "True")]
        assert versions(project, "new_record") == [*lives, *gone, (3, "c", 1, "False")]
        run_dbt(["snapshot"])
        assert versions(project, "new_record") == [*lives, *gone, (3, "c", 1, "False")]
        ends = (
            "select dbt_valid_to from {schema}.new_record where id = 2 and dbt_is_deleted = 'False'"
        )
        begins = "select dbt_valid_from from {schema}.new_record where dbt_is_deleted = 'True'"
        assert project.run_sql(ends, fetch="one") == project.run_sql(begins, fetch="one")

        write_source(project, "(1, 'A', '2024-02-01'), (2, 'b', '2200-03-01')")
        run_dbt(["snapshot", "--select", "new_record", "invalidate"])
        again = [(2, "b", 0, "False"), (2, "b", 0, "True"), (2, "b", 1, "False")]
        assert [v for v in versions(project, "new_record") if v[0] == 2] == again
        assert [v for v in versions(project, "invalidate") if v[0] == 2] == [
            (2, "b", 0),
            (2, "b", 1),
        ]

    def test_limited_rows_end_no_version(self, project: Any) -> None:
        """--empty: the rows that a snapshot does not see were not deleted."""
        before = {mode: versions(project, mode) for mode in MODES}
        for command in (["snapshot", "--empty"], ["build", "--empty"]):
            _, log = run_dbt_and_capture(command)
            assert "hard_deletes=new_record would end the versions of the others" in log
            assert {mode: versions(project, mode) for mode in MODES} == before

    def test_repeated_keys_are_refused_and_change_nothing(self, project: Any) -> None:
        before = versions(project, "ignore")
        write_source(project, "(1, 'x', '2200-05-01'), (1, 'y', '2200-05-01')")
        _, log = run_dbt_and_capture(["snapshot", "--select", "ignore"], expect_pass=False)
        assert "unique_key (id) of the snapshot" in log
        assert "is not unique in its query" in log
        assert versions(project, "ignore") == before

    def test_a_key_is_repeated_if_only_one_of_its_rows_changed(
        self, project: Any, source: None
    ) -> None:
        write_source(project, "(9, 'x', '2200-06-01')")
        run_dbt(["snapshot", "--select", "ignore", "checked"])
        before = versions(project, "ignore"), versions(project, "checked")
        write_source(project, "(9, 'x', '2200-06-01'), (9, 'y', '2200-07-01')")
        _, log = run_dbt_and_capture(
            ["snapshot", "--select", "ignore", "checked"], expect_pass=False
        )
        assert log.count("is not unique in its query") >= 2
        assert (versions(project, "ignore"), versions(project, "checked")) == before
        write_source(project, "(9, 'x', '2200-06-01'), (9, 'x', '2200-06-01')")
        run_dbt(["snapshot", "--select", "checked"])  # nothing of it changed

    def test_a_key_that_the_query_lacks_is_named(self, project: Any) -> None:
        project.run_sql("alter table {schema}.customers rename column id to number")
        _, log = run_dbt_and_capture(["snapshot", "--select", "ignore"], expect_pass=False)
        assert "The unique_key id of the snapshot" in log
        assert "is not a column of its query, which has number, name, at." in log


WRONG = {
    "checked": "strategy: check, check_cols: [name, nme, Name]",
    "timed": "strategy: timestamp, updated_at: att",
    "keyed": "strategy: check, check_cols: all, unique_key: [id, idd]",
}


class TestAWrongConfig:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        configs = [
            f"\n  - {{name: {name}, relation: \"source('raw', 'customers')\", "
            f"config: {{{'' if 'unique_key' in config else 'unique_key: id, '}{config}}}}}"
            for name, config in WRONG.items()
        ]
        return {"schema.yml": SOURCES + "".join(configs)}

    def test_the_first_run_refuses_columns_that_the_query_lacks(
        self, project: Any, source: None
    ) -> None:
        results = run_dbt(["snapshot"], expect_pass=False)
        messages = {r.node.name: str(r.message) for r in results}
        assert "There are 2 mistakes" in messages["checked"]
        for snapshot, problem in (
            ("checked", "The check_cols nme of the snapshot"),
            ("checked", "The check_cols Name of the snapshot"),
            ("timed", "The updated_at att of the snapshot"),
            ("keyed", "The unique_key idd of the snapshot"),
        ):
            assert problem in messages[snapshot], messages[snapshot]


class TestColumns:
    def test_columns_come_go_and_get_nulls(self, project: Any, source: None) -> None:
        write_source(project, "(1, 'a', '2024-01-01'), (2, 'b', '2024-01-01')")
        run_dbt(["snapshot", "--select", "ignore", "checked"])
        project.run_sql(
            """alter table {schema}.customers
            add column city LowCardinality(String) default 'Ulm', drop column name"""
        )
        write_source(project, "(1, 'Bonn', '2024-02-01')", "id, city, at")
        run_dbt(["snapshot", "--select", "ignore", "checked"])
        expected = [(1, "a", None, 0), (1, None, "Bonn", 1), (2, "b", None, 1)]
        for snapshot in ("ignore", "checked"):
            assert versions(project, snapshot, "id, name, city") == expected


class TestKilled:
    @pytest.mark.parametrize("point", ["insert.staged", "insert.committed"])
    def test_a_killed_run_changes_all_or_nothing(self, project: Any, point: str) -> None:
        project.run_sql(
            """create or replace table {schema}.customers
            (id Nullable(Int32), name String, at DateTime64(3)) order by tuple()"""
        )
        project.run_sql("drop table if exists {schema}.invalidate")
        write_source(project, "(1, 'a', '2024-01-01'), (2, 'b', '2024-01-01')")
        run_dbt(["snapshot", "--select", "invalidate"])
        before = versions(project, "invalidate")
        write_source(project, "(1, 'A', '2024-02-01'), (3, 'c', '2024-02-01')")
        command = [sys.executable, "-c", KILLED, point, str(project.profiles_dir)]
        killed = subprocess.run(command, cwd=project.project_root, capture_output=True, timeout=120)
        assert killed.returncode == -9, killed.stdout[-2000:]
        after = [(1, "a", 0), (1, "A", 1), (2, "b", 0), (3, "c", 1)]
        assert versions(project, "invalidate") == (before if point == "insert.staged" else after)
        run_dbt(["snapshot", "--select", "invalidate"])
        assert versions(project, "invalidate") == after
