"""The life of an `incremental_mv`: rebuilds beside the live version, chains, live DDL compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("dbt")

HOURLY = """
select shop, toStartOfHour(at) as hour, count() as sold, sum(amount) as amount
from {{ source('raw', 'orders') }} group by shop, hour
"""
DAILY = """
select shop, toDate(hour) as day, sum(sold) as sold, sum(amount) as amount
from {{ ref('hourly') }} group by shop, day
"""
SCHEMA = """
sources: [{name: raw, schema: raw, tables: [{name: orders}]}]
models:
  - {name: hourly, data_tests: [reconciled]}
  - {name: daily, data_tests: [reconciled]}
"""
ORDERS = (
    "(at DateTime, shop String, amount Int64) engine = MergeTree partition by toYYYYMM(at) "
    "order by at"
)


class Life:
    """A project of a model and one that is chained on it, with its warehouse."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hourly.sql": HOURLY, "daily.sql": DAILY, "schema.yml": SCHEMA}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"+materialized": "incremental_mv"}}}

    @pytest.fixture(scope="class")
    def shop(self, project: Any) -> Iterator[Shop]:
        with olapdb.connect(project.adapter.config.credentials.location) as connection:
            yield Shop(connection, project.test_schema, Path(project.project_root))


class Shop:
    """The warehouse of a project, over a connection beside dbt's."""

    def __init__(self, connection: Connection, schema: str, root: Path) -> None:
        self.connection, self.schema, self.root = connection, schema, root
        self.run("create database raw", f"create table raw.orders {ORDERS}")
        for month in (1, 2, 3):
            self.sell(month, 40)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def sell(self, month: int, amount: int, table: str = "raw.orders") -> None:
        self.run(
            f"insert into {table} select toDateTime('2024-{month:02}-01 00:00:00') + number * 5000,"
            f" concat('s', toString(number % 3)), {amount} from numbers(40)"
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.connection.execute(sql).fetchall()]

    def write(self, name: str, sql: str) -> None:
        write_file(sql, str(self.root), "models", f"{name}.sql")

    def names(self) -> set[str]:
        sql = f"select name from system.tables where database = '{self.schema}'"
        return {name for (name,) in self.rows(sql)}

    def daily_is(self, expression: str = "amount", table: str = "raw.orders") -> None:
        """Assert that the chained model equals its computation from the source."""
        live = f"select shop, day, sold, amount from {self.schema}.daily order by shop, day"
        assert self.rows(live) == self.rows(
            f"select shop, toDate(at) as day, count(), sum({expression}) from {table} "
            "group by shop, day order by shop, day"
        )


def message_of(results: Any, name: str = "hourly") -> str:
    return str({r.node.name: r.message for r in results}[name])


class TestRebuild(Life):
    def test_a_change_is_built_beside_the_live_version_and_rolled_back(self, shop: Shop) -> None:
        """Finding B, and G."""
        schema = shop.schema
        run_dbt(["build"])
        failing = HOURLY.replace("sum(amount)", "sum(intDiv(amount, amount - 41))")
        config = "{{ config(on_definition_change='rebuild') }}"
        shop.sell(2, 41)
        shop.write("hourly", config + failing)
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert f"SYSTEM CANCEL REBUILD VIEW {schema}.hourly__mv" in log
        # The candidate fails no INSERT, and a reverted model drops it.
        shop.sell(3, 41)
        shop.daily_is()
        shop.write("hourly", HOURLY)
        results, log = run_dbt_and_capture(["run"])
        assert message_of(results) == "CANCEL REBUILD"
        assert message_of(results, "daily") == "NO CHANGE"
        assert not [name for name in shop.names() if "__v" in name]

        # A rebuild that stopped goes on, whatever the policy is, when its rows are mended.
        shop.write("hourly", config + failing)
        run_dbt(["run", "-s", "hourly"], expect_pass=False)
        shop.run("alter table raw.orders delete where amount = 41")
        shop.write("hourly", failing)
        results, log = run_dbt_and_capture(["run", "-s", "hourly"])
        assert message_of(results).startswith("RESUME")
        assert "daily__mv reads the new version, and is stale" in log
        # With the upstream alone nothing freezes: INSERTs fire the chained trigger.
        shop.sell(4, 5)
        results = run_dbt(["build"])
        assert message_of(results, "daily").startswith("REPLAY 4 partitions")
        shop.daily_is("intDiv(amount, amount - 41)")

        # The previous version has every row since, and its read view.
        shop.run(f"system rollback view {schema}.hourly__mv")
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "The trigger's query is not the model's" in log
        shop.write("hourly", HOURLY)
        results = run_dbt(["build"])
        assert message_of(results).startswith("REPLAY 2 partitions")  # of the deleted rows
        assert message_of(results, "daily").startswith("REPLAY")
        shop.daily_is()

    def test_a_column_that_a_chained_model_reads_goes(self, shop: Shop) -> None:
        """The chained trigger stays with the previous version until its own run rebuilds it."""
        shop.write("hourly", HOURLY.replace("count() as sold", "count() as pieces"))
        shop.write("daily", DAILY)
        _, log = run_dbt_and_capture(["run", "--full-refresh", "-s", "hourly"])
        assert "daily__mv stays with the previous version" in log
        shop.sell(5, 6)
        shop.daily_is()
        shop.write("daily", DAILY.replace("sum(sold)", "sum(pieces)"))
        _, log = run_dbt_and_capture(["run", "-s", "daily"], expect_pass=False)
        assert f"The trigger reads {shop.schema}.hourly__target__v" in log
        run_dbt(["build", "--full-refresh", "-s", "daily"])
        shop.daily_is()

    def test_policies_replay_and_ignore(self, shop: Shop) -> None:
        double = HOURLY.replace("sum(amount)", "sum(2 * amount)")
        shop.write("daily", DAILY)
        shop.write("hourly", "{{ config(on_definition_change='ignore') }}" + double)
        run_dbt(["run", "--full-refresh"])
        shop.write("hourly", "{{ config(on_definition_change='ignore') }}" + HOURLY)
        results, log = run_dbt_and_capture(["run"])
        assert message_of(results) == "IGNORED CHANGE"
        assert "keeps its live definition" in log
        shop.daily_is("2 * amount")
        shop.write("hourly", "{{ config(on_definition_change='replay') }}" + HOURLY)
        results = run_dbt(["build"])
        assert message_of(results).startswith("MODIFY QUERY; REPLAY 5 partitions")
        shop.daily_is()
        shop.write(
            "hourly", "{{ config(on_definition_change='replay', partition_by='hour') }}" + HOURLY
        )
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "on_definition_change='replay' keeps the target" in log
        assert "PARTITION BY of hourly__target differs" in log


class TestLiveDdl(Life):
    def test_what_was_altered_by_hand_is_seen(self, shop: Shop) -> None:
        """Finding J."""
        schema = shop.schema
        run_dbt(["build"])
        shop.run(f"create or replace view {schema}.hourly as select 1 as broken")
        results, log = run_dbt_and_capture(["run"])
        assert message_of(results) == "READ VIEW"
        assert "changed or dropped by hand, and is put back" in log
        shop.run(
            f"alter table {schema}.hourly__mv modify query select shop, toStartOfHour(at) as hour,"
            " count() as sold, sum(amount + 1) as amount from raw.orders group by shop, hour"
        )
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "changed by hand (MODIFY QUERY)" in log
        results = run_dbt(["build", "--full-refresh"])
        shop.daily_is()
        shop.run(
            f"alter table {schema}.hourly__target add column note SimpleAggregateFunction(any, String)"
        )
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "note is SimpleAggregateFunction(any, String), not there in the model" in log
        shop.run(f"alter table {schema}.hourly__target drop column note")

        # Outputs that change no stored row replace the read view alone, under every policy.
        shop.write(
            "hourly", HOURLY.replace("count() as sold", "count() as sold, sold * 2 as twice")
        )
        results = run_dbt(["run", "-s", "hourly"])
        assert "REBUILD" not in message_of(results)

    def test_a_stale_model_is_replayed_and_rows_by_hand_are_told(self, shop: Shop) -> None:
        """Finding F."""
        schema = shop.schema
        shop.write("hourly", HOURLY)
        run_dbt(["run", "--full-refresh"])
        shop.run("delete from raw.orders where at < '2024-01-02'")
        results = run_dbt(["build"])
        assert message_of(results).startswith("REPLAY 1 partitions")
        assert message_of(results, "daily").startswith("REPLAY 1 partitions")
        shop.daily_is()
        shop.run(f"detach view {schema}.daily__mv")
        shop.sell(6, 3)
        shop.run(
            f"insert into {schema}.daily__target (shop, day, sold, amount) values"
            " ('x', '2024-01-01', 1, 1)"
        )
        results, log = run_dbt_and_capture(["run"])
        assert message_of(results, "daily").startswith("BACKFILL")
        assert "daily__mv is attached again" in log
        assert f"SYSTEM REPLAY VIEW {schema}.daily__mv DISCARD BYPASS" in log
        shop.run(f"system replay view {schema}.daily__mv discard bypass")
        shop.daily_is()

    def test_a_source_that_is_exchanged_or_renamed(self, shop: Shop) -> None:
        """Finding C."""
        shop.run(f"create table raw.loaded {ORDERS}")
        shop.sell(1, 9, "raw.loaded")
        shop.run("exchange tables raw.orders and raw.loaded")
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert "The trigger reads raw.loaded where the model reads raw.orders" in log
        shop.write("hourly", "{{ config(on_definition_change='rebuild') }}" + HOURLY)
        results = run_dbt(["build"])
        assert message_of(results).startswith("REBUILD")
        shop.sell(2, 8)
        shop.daily_is()


class TestFirstRun(Life):
    def test_what_is_refused_leaves_nothing_and_backfill_may_wait(self, shop: Shop) -> None:
        """Finding L."""
        source = "{{ source('raw', 'orders') }}"
        shop.write(
            "hourly",
            f"select shop, count() as sold from (select * from {source} union all "
            f"select * from {source}) group by shop",
        )
        run_dbt(["run", "-s", "hourly"], expect_pass=False)
        assert shop.names() == set()
        shop.write(
            "hourly", f"select shop, sum(intDiv(9, amount - 40)) as n from {source} group by 1"
        )
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "hourly__mv is stopped, so that no INSERT fails on it" in log
        shop.sell(4, 40)
        shop.run(*(f"drop view {shop.schema}.{n}" for n in shop.names() if n.endswith("__mv")))
        shop.write("hourly", "{{ config(backfill='none') }}" + HOURLY)
        _, log = run_dbt_and_capture(["run", "--full-refresh", "-s", "hourly"])
        assert "160 source rows are not backfilled (backfill: none)" in log
        shop.write("hourly", HOURLY)
        results = run_dbt(["build"])
        assert message_of(results).startswith("BACKFILL 4 chunks")
        shop.daily_is()


class TestColumns(Life):
    """on_schema_change: what a model does whose columns differ from the live ones."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hourly.sql": HOURLY, "schema.yml": "\n".join(SCHEMA.splitlines()[:-1])}

    def test_each_value(self, shop: Shop) -> None:
        added = HOURLY.replace("as amount", "as amount, max(at) as latest")

        def change(model: str, value: str, *, passes: bool = True) -> str:
            shop.write("hourly", f"{{{{ config(on_schema_change='{value}') }}}}{model}")
            _, log = run_dbt_and_capture(["run"], expect_pass=passes)
            return str(log)

        change(HOURLY, "fail")
        log = change(added, "fail", passes=False)
        assert "it adds latest" in log
        assert "on_schema_change is 'fail'" in log

        # A column alone is added, for the old rows too; a change of another one is not let in.
        mixed = added.replace("sum(amount)", "sum(amount + 1)")
        assert "has changed" in change(mixed, "append_new_columns", passes=False)
        assert "REBUILD" in change(added, "append_new_columns")
        hourly = f"select count() = countIf(latest >= hour), sum(amount) from {shop.schema}.hourly"
        assert shop.rows(hourly) == [(1, 3 * 40 * 40)]

        # A column is dropped by sync_all_columns only.
        assert "has changed" in change(HOURLY, "append_new_columns", passes=False)
        assert "REBUILD" in change(HOURLY, "sync_all_columns")
        columns = "select name from system.columns where table = 'hourly' order by position"
        assert shop.rows(columns) == [("shop",), ("hour",), ("sold",), ("amount",)]
        run_dbt(["test"])


class TestSettings(Life):
    """Settings of the target: changed in place, or by a rebuild where ALTER cannot."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hourly.sql": HOURLY, "schema.yml": "\n".join(SCHEMA.splitlines()[:-1])}

    def test_what_alter_can_change_and_what_not(self, shop: Shop) -> None:
        run_dbt(["run"])

        def change(setting: str) -> str:
            config = f"on_definition_change='rebuild', settings={{{setting}}}"
            shop.write("hourly", f"{{{{ config({config}) }}}}{HOURLY}")
            _, plan = run_dbt_and_capture(["run-operation", "plan"])
            results, _ = run_dbt_and_capture(["run"])
            message = str(results.results[0].message)
            assert message.split(" ")[0] in plan
            return message

        assert change("'merge_with_ttl_timeout': 60") == "ALTER SETTINGS"
        assert change("'index_granularity': 100").startswith("REBUILD")
        run_dbt(["test"])

    def test_settings_and_ttl_that_were_altered_by_hand_are_put_back(self, shop: Shop) -> None:
        config = "ttl='hour + INTERVAL 30 YEAR', settings={'parts_to_throw_insert': '500'}"
        shop.write("hourly", f"{{{{ config({config}) }}}}{HOURLY}")
        run_dbt(["run", "--full-refresh"])
        target = f"{shop.schema}.hourly__target"
        ddl = "select engine_full from system.tables where name = 'hourly__target'"
        before = shop.rows(ddl)
        for alterations in (
            ["modify ttl hour + interval 20 year", "modify setting parts_to_throw_insert = 7"],
            ["remove ttl", "reset setting parts_to_throw_insert"],
            ["modify setting old_parts_lifetime = 9, merge_with_ttl_timeout = 60"],
        ):
            shop.run(*(f"alter table {target} {action}" for action in alterations))
            _, plan = run_dbt_and_capture(["run-operation", "plan"])
            assert "ALTER TARGET" in plan
            results, log = run_dbt_and_capture(["run"])
            assert results.results[0].message == "ALTER TARGET"
            assert "hourly__target was altered by hand" in log
            assert shop.rows(ddl) == before
            results, _ = run_dbt_and_capture(["run"])
            assert results.results[0].message == "NO CHANGE"


class TestUnreadable(Life):
    """An expression over aggregates is computed by each reader: the run says if it fails for all."""

    def test_a_model_that_nobody_can_read_fails(self, shop: Shop) -> None:
        config = "{{ config(on_definition_change='rebuild') }}"
        good = HOURLY.replace("sum(amount)", "intDiv(7, 1 + 0 * min(amount))")
        bad = HOURLY.replace("sum(amount)", "intDiv(7, 0 * min(amount))")
        assert good != HOURLY
        shop.write("hourly", bad)
        for _ in range(2):
            _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
            assert "hourly cannot be read, since a column fails on the stored rows" in log
            assert "Division by zero" in log
            assert shop.names() == {"hourly__mv", "hourly__target"}
        # The rows are there: only the reading changes.
        shop.write("hourly", good)
        results = run_dbt(["build", "-s", "hourly"])
        assert message_of(results) == "READ VIEW"
        shop.write("hourly", bad)
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "The read view stays as it was" in log
        read = f"select distinct amount from {shop.schema}.hourly"
        assert shop.rows(read) == [(7,)]

        # A rebuild is swapped in, with the way back; the test fails as readers do.
        shop.write("hourly", config + bad.replace("group by", "where shop != '' group by"))
        _, log = run_dbt_and_capture(["run", "-s", "hourly"], expect_pass=False)
        assert "dbt run-operation rollback --args" in log
        _, log = run_dbt_and_capture(["test", "-s", "hourly"], expect_pass=False)
        assert "cannot be read, since a column fails on the stored rows" in log
        run_dbt(["run-operation", "rollback", "--args", "{models: [hourly]}"])
        assert shop.rows(read) == [(7,)]
