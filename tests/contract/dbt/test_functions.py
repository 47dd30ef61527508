"""Functions of dbt in models: what the classes of dbt-tests-adapter leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

pytestmark = pytest.mark.feature("dbt")

FUNCTIONS_YML = """
functions:
  - name: bucket
    arguments:
      - {name: amount, data_type: Int64}
      - {name: width, data_type: Int64, default_value: 10}
    returns: {data_type: Int64}
  - name: shout
    config: {entry_point: shout, runtime_version: "3.11", volatility: deterministic, vectorized: true}
    arguments:
      - {name: word, data_type: String}
    returns: {data_type: String}
"""

SHOUT = """
import pyarrow.compute as pc

def shout(word):
    return pc.utf8_upper(word)
"""

SOURCE = """
{{ config(materialized='incremental', order_by='amount') }}
select toInt64(number) as amount, 'it\\'s' as word from numbers(30)
{% if is_incremental() %} where false {% endif %}
"""

DAILY = """
{{ config(materialized='incremental_mv') }}
select {{ function('bucket') }}(amount) as bucket, count() as orders
from {{ ref('orders') }} group by bucket
"""

LOUD = """
{{ config(materialized='view') }}
select distinct {{ function('shout') }}(word) as word, {{ function('bucket') }}(amount, 20) as bucket
from {{ ref('orders') }}
"""


class TestFunctionsInModels:
    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {
            "bucket.sql": "select intDiv(amount, width)",
            "shout.py": SHOUT,
            "functions.yml": FUNCTIONS_YML,
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": SOURCE, "buckets.sql": DAILY, "loud.sql": LOUD}

    def test_functions_in_models(self, project: Any) -> None:
        def rows(sql: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in project.run_sql(sql, fetch="all")]

        schema = project.test_schema
        run_dbt(["build"])
        assert rows(f"select bucket, orders from {schema}.buckets order by bucket") == [
            (0, 10),
            (1, 10),
            (2, 10),
        ]
        assert rows(f"select word, bucket from {schema}.loud order by bucket") == [
            ("IT'S", 0),
            ("IT'S", 1),
        ]
        # A view keeps the function that it was made with; a changed one does not reach it.
        write_file(
            "select intDiv(amount, 2 * width)", Path(project.project_root, "functions/bucket.sql")
        )
        run_dbt(["build", "--select", "bucket"])
        project.run_sql(f"insert into {schema}.orders (amount, word) values (29, 'a')")
        assert rows(f"select bucket, orders from {schema}.buckets order by bucket") == [
            (0, 10),
            (1, 10),
            (2, 11),
        ]
        assert rows(f"select {schema}.bucket(29), {schema}.bucket(29, 1)") == [(1, 14)]
        # It is a change of the model's definition, which the next run sees.
        (result,) = run_dbt(["run", "--select", "buckets"], expect_pass=False)
        assert "definition" in result.message, result.message
        run_dbt(["run", "--select", "buckets", "--full-refresh"])
        assert rows(f"select bucket, orders from {schema}.buckets order by bucket") == [
            (0, 20),
            (1, 11),
        ]
