"""Python models on Spark and in process: what the classes of dbt-tests-adapter omit."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

pytestmark = pytest.mark.feature("dbt")

ORDERS = """
{{ config(materialized='table', order_by='id') }}
select toUInt32(number) as id, toDate('2025-01-01') + number as day,
       if(number % 2 = 0, null, number * 1.5) as amount, toLowCardinality('eu') as region
from numbers(6)
"""

FILTERED = """
import pyarrow.compute as pc

def model(dbt, session):
    dbt.config(materialized='table', submission_method='arrow', order_by='day')
    orders = dbt.ref('orders')
    return orders.filter(pc.greater(orders['id'], 2))
"""

BATCHES = """
import pyarrow as pa

def model(dbt, session):
    dbt.config(submission_method='arrow', arrow_input='reader')
    orders = dbt.ref('orders')
    def batches():
        for batch in orders:
            yield batch.slice(1)
    return pa.RecordBatchReader.from_batches(orders.schema, batches())
"""

PANDAS = """
import pandas as pd

def model(dbt, session):
    dbt.config(submission_method='arrow')
    days = session.execute('select count() from numbers(7)').fetchone()[0]
    return pd.DataFrame({'name': ['a', None], 'rows': [days, 2]})
"""

APPENDING = """
def model(dbt, session):
    dbt.config(materialized='incremental', submission_method='arrow')
    orders = dbt.ref('orders')
    return orders.slice(5) if dbt.is_incremental else orders.slice(0, 5)
"""

FAILING = """
def helper(value):
    return 1 / value

def model(dbt, session):
    dbt.config(submission_method='arrow')
    return helper(0)
"""

BAD_KEY = """
def model(dbt, session):
    dbt.config(submission_method='arrow', order_by='no_column')
    return dbt.ref('orders')
"""

NOTHING = """
def model(dbt, session):
    dbt.config(submission_method='arrow')
    return None
"""

OF_A_VIEW = """
def model(dbt, session):
    dbt.config(submission_method='spark')
    return dbt.ref('view_of_orders').groupBy('region').count()
"""

TYPES_YML = """
models:
  - name: pandas_frame
    config: {materialized: table}
    columns:
      - {name: rows, data_type: UInt16}
"""


def rows_written(project: Any) -> dict[str, int]:
    """Return how many rows INSERTs have written into each table, by name."""
    log = "select table, sum(rows) from system.part_log where event_type = 'NewPart' group by table"
    return {str(name): int(count) for name, count in project.run_sql(log, fetch="all")}


def clones(log: str) -> set[str]:
    """Return the models that took the files of their rows' table, from dbt's log of statements."""
    return set(re.findall(r"create or replace table \S+`(\w+)` clone as", log))


class TestPythonModels:
    """Arrow in process, types of columns, errors, what stays behind."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "view_of_orders.sql": "select * from {{ ref('orders') }}",
            "filtered.py": FILTERED,
            "batches.py": BATCHES,
            "pandas_frame.py": PANDAS,
            "appending.py": APPENDING,
            "failing.py": FAILING,
            "nothing.py": NOTHING,
            "bad_key.py": BAD_KEY,
            "of_a_view.py": OF_A_VIEW,
            "types.yml": TYPES_YML,
        }

    def test_models(self, project: Any) -> None:
        results, log = run_dbt_and_capture(
            ["--debug", "run", "--exclude", "failing", "nothing", "bad_key"]
        )
        assert clones(log) == {"of_a_view"}
        assert {r.status.value for r in results} == {"success"}

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in project.run_sql(sql, fetch="all")]

        def types(table: str) -> dict[str, str]:
            columns = rows(
                "select name, type from system.columns "
                f"where database = '{project.test_schema}' and table = '{table}'"
            )
            return dict(columns)

        schema = project.test_schema
        assert rows(f"select id, amount from {schema}.filtered order by id") == [
            (3, 4.5),
            (4, None),
            (5, 7.5),
        ]
        # A column that came from the warehouse keeps its type.
        assert types("filtered") == types("orders")
        assert rows(f"select count() from {schema}.batches") == [(5,)]
        assert types("pandas_frame") == {"name": "Nullable(String)", "rows": "UInt16"}
        assert rows(f"select rows from {schema}.pandas_frame where name is null") == [(2,)]
        assert rows(f"select region, count from {schema}.of_a_view") == [("eu", 6)]
        assert rows(f"select max(id) from {schema}.appending") == [(4,)]
        assert rows("select name from system.tables where name like '%dbt\\_%'") == []

        run_dbt(["run", "--select", "appending"])
        assert rows(f"select count(), max(id) from {schema}.appending") == [(6, 5)]

        # Rows in process are written once, into the model.
        written = rows_written(project)
        once = {"filtered": 3, "batches": 5, "pandas_frame": 2, "appending": 6}
        assert {name: written[name] for name in once} == once
        # Dropped tables have no name: Spark's copy of the view, and the rows that its tasks wrote,
        # whose files are the model's now.
        assert written[""] == 6 + 1

    def test_more_rows_than_memory_may_hold_go_through_a_table(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run", "--select", "orders"])
        before = rows_written(project).get("", 0)
        monkeypatch.setattr("dbt.adapters.olapdb.python_models.rows_table.MEMORY_BYTES_MAX", 0)
        _, log = run_dbt_and_capture(["--debug", "run", "--select", "filtered", "batches"])
        # The staged rows, whose files are the models' now, and those of the tables that they replaced.
        assert rows_written(project).get("", 0) - before == 2 * (3 + 5)
        assert clones(log) == {"filtered", "batches"}
        rows = "select count(), sum(id) from {schema}.filtered"
        assert tuple(project.run_sql(rows, fetch="one")) == (3, 12)
        assert (
            "order by day"
            in str(project.run_sql("show create table {schema}.filtered", fetch="one")[0]).lower()
        )

    def test_a_trigger_is_told_of_the_rows_that_changed(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run", "--select", "orders", "filtered"])
        project.run_sql(
            "create materialized view {schema}.over engine = MergeTree order by id as "
            "select id from {schema}.filtered"
        )
        project.run_sql("system backfill view {schema}.over")
        monkeypatch.setattr("dbt.adapters.olapdb.python_models.rows_table.MEMORY_BYTES_MAX", 0)
        _, log = run_dbt_and_capture(["--debug", "run", "--select", "filtered"])
        assert clones(log) == set()
        stale = "select verdict, stale_slices from system.views where name = 'over'"
        assert tuple(project.run_sql(stale, fetch="one"))[1] == 0
        assert tuple(project.run_sql("select count() from {schema}.over", fetch="one")) == (3,)
        project.run_sql("drop view {schema}.over")
        left = project.run_sql(
            "select name from system.tables where name like '%dbt%'", fetch="all"
        )
        assert list(left) == []

    def test_show_says_how_its_rows_are_shown(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="filtered is a Python model"):
            run_dbt(["show", "--select", "filtered"])

    def test_a_failing_model_shows_its_own_lines(self, project: Any) -> None:
        run_dbt(["run", "--select", "orders"])
        results = run_dbt(["run", "--select", "failing", "nothing", "bad_key"], expect_pass=False)
        messages = {r.node.name: r.message for r in results}
        assert "return 1 / value" in messages["failing"]
        assert "ZeroDivisionError" in messages["failing"]
        assert "impl.py" not in messages["failing"]
        assert "returned nothing" in messages["nothing"]
        assert "no_column" in messages["bad_key"]
        left = project.run_sql(
            "select name from system.tables where name like '%dbt%'", fetch="all"
        )
        assert list(left) == []
