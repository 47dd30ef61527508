"""A `materialized_view` with the config `refresh`: one relation, refreshed on a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

pytestmark = pytest.mark.feature("dbt")

SOURCE = """
{{ config(materialized='table', order_by='k') }}
select number % 3 as k, number as v from numbers(9)
"""
TOP = """
{{ config(materialized='materialized_view', order_by='k', settings={'index_granularity': 100},
          refresh='EVERY 1 HOUR OFFSET 5 MINUTE RANDOMIZE FOR 10 SECOND',
          query_settings={'join_use_nulls': 1}) }}
select k, sum(v) as s from {{ ref('base') }} group by k order by s desc limit 2
"""
AFTER = """
{{ config(materialized='materialized_view', order_by='s', refreshable={
    'interval': 'AFTER 2 HOUR', 'randomize': '1 MINUTE', 'append': true,
    'depends_on': ['top'], 'depends_on_validation': true, 'settings': {'refresh_retries': 5}}) }}
select s from {{ ref('top') }}
"""
OVER = "{{ config(materialized='view') }} select max(s) as s from {{ ref('top') }}"


class Project:
    """The project of a test: its models' files, and queries of its schema."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.schema = project.test_schema

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query; `{s}` is the schema."""
        return [
            tuple(row) for row in self.project.run_sql(sql.replace("{s}", self.schema), fetch="all")
        ]

    def do(self, sql: str) -> None:
        """Run a statement; `{s}` is the schema."""
        self.project.run_sql(sql.replace("{s}", self.schema))

    def write(self, name: str, text: str) -> None:
        """Write a model."""
        Path(self.project.project_root, "models", f"{name}.sql").write_text(text)

    def run(self, *arguments: str) -> dict[str, str]:
        """Run dbt; return the message of each node."""
        return {r.node.name: str(r.message) for r in run_dbt(["run", *arguments])}

    def refused(self, *arguments: str) -> str:
        """Run dbt, which fails; return the messages."""
        results = run_dbt(["run", *arguments], expect_pass=False)
        return "\n".join(str(r.message) for r in results if r.status.value == "error")

    def refreshes(self) -> dict[str, tuple[str, str]]:
        """Return the clause and uuid of each refreshable view."""
        rows = self.rows(
            "select view, refresh, uuid from system.view_refreshes where database = '{s}'"
        )
        return {name: (clause, uuid) for name, clause, uuid in rows}

    def relations(self) -> list[str]:
        """Return the names in the schema, without inner tables."""
        rows = self.rows(
            "select name from system.tables where database = '{s}' and name not like '.inner%' "
            "order by name"
        )
        return [name for (name,) in rows]

    def inner_tables(self) -> int:
        """Return the number of inner tables."""
        return int(
            self.rows(
                "select count() from system.tables where database = '{s}' and name like '.inner%'"
            )[0][0]
        )


@pytest.fixture
def shop(project: Any) -> Project:
    opened = Project(project)
    for name, text in (("base", SOURCE), ("top", TOP), ("after", AFTER), ("over", OVER)):
        opened.write(name, text)
    run_dbt(["run", "--full-refresh"])
    return opened


class TestRefreshable:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"base.sql": SOURCE}

    def test_first_run_and_rerun(self, shop: Project) -> None:
        assert shop.rows("select k, s from {s}.top order by k") == [(1, 12), (2, 15)]
        before = shop.refreshes()
        assert before["top"][0] == "REFRESH EVERY 1 HOUR OFFSET 5 MINUTE RANDOMIZE FOR 10 SECOND"
        assert before["after"][0] == (
            "REFRESH AFTER 2 HOUR RANDOMIZE FOR 1 MINUTE SETTINGS refresh_retries = 5 APPEND"
        )
        text = shop.rows("show create table {s}.after")[0][0]
        assert f"DEPENDS ON {shop.schema}.`top`" in text
        assert "join_use_nulls = 1" in shop.rows("show create table {s}.top")[0][0]
        assert shop.relations() == ["after", "base", "over", "top"]
        results = run_dbt(["run", "--select", "top", "after"])
        assert [r.message for r in results] == ["NO CHANGE", "NO CHANGE"]
        assert shop.refreshes() == before

    def test_changes_keep_the_readers(self, shop: Project) -> None:
        before = shop.refreshes()
        shop.write("top", TOP.replace("1 HOUR OFFSET 5 MINUTE", "2 HOUR"))
        assert shop.run("--select", "top") == {"top": "ALTER"}
        assert shop.refreshes()["top"][0] == "REFRESH EVERY 2 HOUR RANDOMIZE FOR 10 SECOND"
        changed = TOP.replace("sum(v) as s", "sum(v) + 100 as s, count() as n")
        shop.write("top", changed)
        assert shop.run("--select", "top") == {"top": "REPLACE"}
        assert shop.rows("select s from {s}.over") == [(115,)]
        # `after` depends on it by identity.
        assert shop.refreshes()["top"][1] == before["top"][1]
        assert shop.run("--select", "top", "after") == {"top": "NO CHANGE", "after": "NO CHANGE"}
        shop.write("top", changed.replace("order_by='k'", "order_by='s'"))
        assert shop.run("--select", "top") == {"top": "REPLACE"}
        assert shop.inner_tables() == 2

    def test_a_view_altered_by_hand_is_put_back(self, shop: Project) -> None:
        shop.do("alter table {s}.top modify query select toUInt8(1) as k, toUInt64(1) as s")
        shop.do("alter table {s}.after modify refresh AFTER 9 HOUR APPEND")
        assert shop.run("--select", "top", "after") == {"top": "REPLACE", "after": "ALTER"}
        assert shop.rows("select k, s from {s}.top order by k") == [(1, 12), (2, 15)]
        assert "DEPENDS ON" in shop.rows("show create table {s}.after")[0][0]

    def test_a_failing_query_leaves_the_old_view(self, shop: Project) -> None:
        shop.write("top", TOP.replace("sum(v)", "throwIf(1, 'boom')"))
        assert "boom" in shop.refused("--select", "top")
        assert shop.rows("select k, s from {s}.top order by k") == [(1, 12), (2, 15)]
        assert shop.relations() == ["after", "base", "over", "top"]

    def test_appended_rows_stay(self, shop: Project) -> None:
        shop.do("system refresh view {s}.after")
        assert shop.rows("select count() from {s}.after") == [(4,)]
        shop.write("after", AFTER.replace("select s", "select s + 1 as s"))
        assert shop.run("--select", "after") == {"after": "ALTER"}
        assert shop.rows("select count() from {s}.after") == [(4,)]
        shop.write("after", AFTER.replace("select s", "select s, 1 as extra"))
        assert "would lose the rows" in shop.refused("--select", "after")
        assert shop.run("--select", "after", "--full-refresh") == {"after": "REPLACE"}
        assert shop.rows("select count() from {s}.after") == [(2,)]

    def test_a_view_that_a_trigger_joins_keeps_its_table(self, shop: Project) -> None:
        shop.do(
            "create materialized view {s}.joins engine = MergeTree order by k as "
            "select b.k as k, t.s as s from {s}.base as b left join {s}.top as t on b.k = t.k"
        )
        shop.write("top", TOP.replace("sum(v)", "sum(v) + 1"))
        assert shop.run("--select", "top") == {"top": "ALTER"}
        assert shop.rows("select k, s from {s}.top order by k") == [(1, 13), (2, 16)]
        shop.write("top", TOP.replace("sum(v) as s", "sum(v) as s, 1 as n"))
        assert f"{shop.schema}.joins" in shop.refused("--select", "top")
        shop.do("drop view {s}.joins")

    def test_on_configuration_change(self, shop: Project) -> None:
        for choice, message in (("continue", "NO CHANGE"), ("fail", "")):
            changed = TOP.replace("refresh=", f"on_configuration_change='{choice}', refresh=")
            shop.write("top", changed.replace("1 HOUR", "3 HOUR"))
            if message:
                assert shop.run("--select", "top") == {"top": message}
            else:
                assert "schedule of the live view differ" in shop.refused("--select", "top")
            assert "1 HOUR" in shop.refreshes()["top"][0]

    def test_empty_reaches_no_live_view(self, shop: Project) -> None:
        assert shop.run("--empty", "--select", "top") == {"top": "NO CHANGE"}
        assert shop.rows("select count() from {s}.top") == [(2,)]
        shop.do("drop view {s}.after")
        shop.do("drop view {s}.top")
        assert shop.run("--empty", "--select", "top") == {"top": "CREATE"}
        assert shop.rows("select count() from {s}.top") == [(0,)]
        assert shop.run("--select", "top") == {"top": "NO CHANGE"}

    @pytest.mark.parametrize(
        "kind", ["table", "view", "incremental", "incremental_mv", "materialized_view"]
    )
    def test_other_materializations_take_its_place(self, shop: Project, kind: str) -> None:
        shop.do("drop view {s}.after")
        plain = "select k, sum(v) as s from {{ ref('base') }} group by k"
        shop.write("top", f"{{{{ config(materialized='{kind}') }}}} {plain}")
        shop.run("--select", "top")
        assert shop.rows("select k, s from {s}.top order by k") == [(0, 9), (1, 12), (2, 15)]
        assert shop.rows("select s from {s}.over") == [(15,)]
        assert shop.inner_tables() == 0
        shop.write("top", TOP)
        assert shop.run("--select", "top") == {"top": "CREATE"}
        assert shop.rows("select k, s from {s}.top order by k") == [(1, 12), (2, 15)]
        assert shop.rows("select s from {s}.over") == [(15,)]
        assert shop.relations() == ["base", "over", "top"]
        assert shop.run("--select", "top") == {"top": "NO CHANGE"}

    def test_operations_leave_it_out(self, shop: Project) -> None:
        _, log = run_dbt_and_capture(["run-operation", "status"])
        assert "top" not in log


WRONG = """
{{ config(materialized='materialized_view', engine='Memory', backfill='none', refresh={
    'interval': 'EVERY 5 PARSECS', 'random': '1 MINUTE', 'append': 'yes', 'depends_on': 7}) }}
select 1 as x
"""


class TestMistakes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        no_view = (
            "{{ config(materialized='materialized_view', refresh={'interval': 'EVERY 1 DAY', "
            "'depends_on': 'nothing', 'depends_on_validation': true}) }} select 1 as x"
        )
        return {
            "wrong.sql": WRONG,
            "no_interval.sql": "{{ config(materialized='materialized_view', refresh={'append': true}) }} "
            "select 1 as x",
            "no_view.sql": no_view,
            "on_table.sql": "{{ config(materialized='table', refresh='EVERY 1 DAY') }} select 1 as x",
            "on_mv.sql": "{{ config(materialized='incremental_mv', refreshable='EVERY 1 DAY') }} "
            "select 1 as x",
        }

    def test_all_mistakes_of_a_model_are_one_message(self, project: Any) -> None:
        results = run_dbt(["run"], expect_pass=False)
        messages = {r.node.name: str(r.message) for r in results}
        for text in (
            "There are 6 mistakes",
            "backfill means nothing to a materialized_view with refresh",
            "refresh has interval, offset,",
            "Maybe you meant randomize",
            "refresh.append is true or false",
            "refresh.depends_on is a list of names",
            "refresh is no schedule, REFRESH EVERY 5 PARSECS",
            "not Memory",
        ):
            assert text in messages["wrong"]
        assert "refresh has no interval" in messages["no_interval"]
        assert "no refreshable view has that name" in messages["no_view"]
        for name in ("on_table", "on_mv"):
            assert "is materialized='materialized_view'" in messages[name]
        left = project.run_sql("select view from system.view_refreshes", fetch="all")
        assert list(left) == []
