"""The dispatch of packages, and the settings of their tests and of views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.olapdb.packages import PACKAGES, look_up_here, query_of_test
from dbt.adapters.olapdb.query_settings import has_outer_join, reads_missing_rows, with_settings

pytestmark = pytest.mark.feature("dbt")
NULLS = {"join_use_nulls": 1}


def dispatch(*entries: dict[str, Any]) -> dict[str, list[str]]:
    """Return the search order of each package, after the adapter has seen the project's."""
    config = SimpleNamespace(project_name="shop", dispatch=list(entries))
    look_up_here(config)
    look_up_here(config)  # of one config, several adapters
    return {entry["macro_namespace"]: entry["search_order"] for entry in config.dispatch}


def test_the_adapter_comes_after_what_the_project_names() -> None:
    own = {"macro_namespace": "dbt_utils", "search_order": ["shop", "spark_utils", "dbt_utils"]}
    set_by_user = {"macro_namespace": "dbt_date", "search_order": ["dbt", "shop", "dbt_date"]}
    other = {"macro_namespace": "elementary", "search_order": ["shop", "elementary"]}
    orders = dispatch(own, set_by_user, other)
    assert orders["dbt_utils"] == ["shop", "spark_utils", "dbt", "dbt_utils"]
    assert orders["dbt_date"] == ["dbt", "shop", "dbt_date"]
    assert orders["elementary"] == ["shop", "elementary"]
    assert orders["dbt_expectations"] == ["shop", "dbt", "dbt_expectations"]
    assert set(PACKAGES) < set(orders)


def test_a_profile_alone_has_no_dispatch() -> None:
    look_up_here(SimpleNamespace())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1;", "select 1\nSETTINGS join_use_nulls = 1"),
        ("select 1 -- end", "select 1 -- end\nSETTINGS join_use_nulls = 1"),
        ("select 1 settings join_use_nulls = 0", "select 1 settings join_use_nulls = 0"),
        (
            "select 1 settings max_threads = 2",
            "SELECT 1\nSETTINGS max_threads = 2, join_use_nulls = 1",
        ),
        (
            "select 1 union all select 2",
            "select * from (\nselect 1 union all select 2\n)\nSETTINGS join_use_nulls = 1",
        ),
        ("no sql", "no sql"),
    ],
)
def test_settings_are_added_to_a_query_that_lacks_them(sql: str, expected: str) -> None:
    assert with_settings(sql, NULLS) == expected


@pytest.mark.parametrize(
    ("sql", "joins", "misses"),
    [
        ("select 1", False, False),
        ("select * from a left join b on a.x = b.x", True, True),
        ("with c as (select * from a full join b using (x)) select * from c", True, True),
        ("select (select 1 from a right join b using (x))", True, True),
        ("select * from a join b using (x)", False, False),
        ("select * from a left anti join b using (x)", False, False),
        ("select LAG(x) over (order by x) from a", False, True),
        ("select lag(x, 1, 0) over (order by x), rank() over (order by x) from a", False, False),
        ("select nth_value(x, 2) over (order by x) from a", False, True),
        ("no sql left join", False, False),
    ],
)
def test_queries_that_read_rows_which_may_not_be_there(sql: str, joins: bool, misses: bool) -> None:
    assert has_outer_join(sql) == joins
    assert reads_missing_rows(sql) == misses


def test_only_tests_of_packages_get_the_standards_nulls() -> None:
    sql = "select * from a left join b using (x)"
    assert query_of_test(sql, {"test_metadata": {"namespace": None}}) == sql
    assert query_of_test(sql, {}) == sql
    of_package = {"test_metadata": {"namespace": "dbt_utils"}}
    assert query_of_test(sql, of_package).endswith("join_use_nulls = 1, window_use_nulls = 1")
    assert query_of_test("select 1", of_package) == "select 1"
