"""Profiles, typed settings of models, limits of shown queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.olapdb.config_check import inherited_keys
from dbt.adapters.olapdb.credentials import OlapdbCredentials
from dbt.adapters.olapdb.incremental_checks import mistakes as incremental_mistakes
from dbt.adapters.olapdb.incremental_mv.config import (
    BackfillScope,
    ReconcilePolicy,
    mistakes,
    reconcile_policy,
    settings_of,
)
from dbt.adapters.olapdb.limited_query import with_limit
from dbt.adapters.olapdb.storage_clause import (
    query_settings,
    storage_clause,
    storage_mistakes,
    with_indexes,
)
from dbt_common.exceptions import CompilationError, DbtRuntimeError

pytestmark = pytest.mark.feature("dbt")

NODE = {"unique_id": "model.p.m", "name": "m", "unrendered_config": {}}


def test_all_mistakes_of_a_profile_are_one_error() -> None:
    profile = {
        "pth": "x",
        "schema": "s",
        "backfill_engine": "cluster",
        "read_only": "yes",
        "retries": -1,
        "settings": ["a"],
    }
    with pytest.raises(DbtRuntimeError, match="has 5 mistakes") as caught:
        OlapdbCredentials.validate(profile)
    for part in ("key pth", "backfill_engine is in_process or spark", "read_only is", "retries is"):
        assert part in str(caught.value)
    with pytest.raises(DbtRuntimeError, match="read_only needs a warehouse in a folder"):
        OlapdbCredentials(schema="s", read_only=True)
    with pytest.raises(DbtRuntimeError, match="s3://bucket/warehouse is a URL"):
        OlapdbCredentials.validate({"path": "s3://bucket/warehouse", "schema": "s"})


def test_a_relative_path_is_in_the_folder_of_the_project(tmp_path: Path) -> None:
    credentials = OlapdbCredentials(path="warehouse", schema="s")
    credentials.project_folder = str(tmp_path)
    assert credentials.location == str(tmp_path / "warehouse")
    credentials.path = "/srv/warehouse"
    assert credentials.location == "/srv/warehouse"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, BackfillScope()),
        ({"backfill": "none"}, BackfillScope(enabled=False)),
        ({"catchup": False}, BackfillScope(enabled=False)),
        ({"catchup": True}, BackfillScope()),
        (
            {"backfill": {"from": "2024-01-01", "parallel": 4}},
            BackfillScope(first="2024-01-01", parallel=4),
        ),
    ],
)
def test_backfill(config: dict[str, Any], expected: BackfillScope) -> None:
    settings = settings_of(config, NODE, OlapdbCredentials(schema="s"), {})
    assert settings.backfill == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ReconcilePolicy()),
        ("stale", ReconcilePolicy("stale")),
        (False, ReconcilePolicy("off")),
        ({"mode": "sample", "sample": 3, "tolerance": 0.1}, ReconcilePolicy("sample", 0.1, 3)),
    ],
)
def test_reconcile(value: object, expected: ReconcilePolicy) -> None:
    assert reconcile_policy({"reconcile": value}) == expected


def test_storage_of_a_table() -> None:
    config = {
        "order_by": ["a", "b"],
        "ttl": ["d + INTERVAL 1 DAY", "d + INTERVAL 2 DAY WHERE a = 1"],
        "settings": {"index_granularity": 10},
        "table_settings": {"ttl_retain": False},
        "indexes": [{"name": "i", "expression": "a", "type": "minmax", "granularity": 2}],
        "query_settings": {"max_threads": 1},
    }
    assert storage_clause(config) == (
        "ENGINE = MergeTree ORDER BY (a, b) TTL d + INTERVAL 1 DAY, d + INTERVAL 2 DAY WHERE a = 1 "
        "SETTINGS index_granularity = 10, ttl_retain = 0"
    )
    assert with_indexes("", config) == "(INDEX `i` a TYPE minmax GRANULARITY 2)"
    assert with_indexes("(a Int8)", config) == "(a Int8, INDEX `i` a TYPE minmax GRANULARITY 2)"
    assert query_settings(config) == "SETTINGS max_threads = 1"
    by_a = {"projections": [{"name": "by_a", "query": " select * order by a "}]}
    assert with_indexes("(a Int8)", by_a) == "(a Int8, PROJECTION `by_a` (select * order by a))"
    with pytest.raises(CompilationError, match="has two values"):
        storage_clause({"settings": {"x": 1}, "table_settings": {"x": 2}})


def test_sql_of_the_storage_that_does_not_parse_is_a_mistake_of_its_config() -> None:
    config = {
        "order_by": "d desc nulls",
        "partition_by": "(((d",
        "ttl": "d +",
        "indexes": [{"name": "i", "definition": "v of minmax"}],
        "projections": [{"name": "p", "query": "select * order"}],
    }
    found = storage_mistakes(config)
    starts = ("order_by is 'd desc nulls'", "partition_by is '(((d'", "ttl is 'd +'")
    assert [one.split(", which")[0] for one in found if ", which" in one] == list(starts)
    assert any(one.startswith("The entry i of indexes does not parse: ") for one in found)
    assert any(one.startswith("The entry p of projections does not parse: ") for one in found)
    assert storage_mistakes({"engine": "ReplacingMergTree(v)", "order_by": "k"}) == [
        "There is no engine ReplacingMergTree. Maybe you meant ReplacingMergeTree."
    ]
    of_model = mistakes({"partition_by": "(((d", "ttl": ")"}, OlapdbCredentials(schema="s"))
    assert [one.split()[0] for one in of_model] == ["partition_by", "ttl"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a, b", "(a, b)"),
        (["a", "b"], "(a, b)"),
        ("f(a, b)", "f(a, b)"),
        ("(a, b)", "(a, b)"),
        ("concat(a, ',)')", "concat(a, ',)')"),
        ("a != ','", "a != ','"),
        ("f(a, b), `c,`", "(f(a, b), `c,`)"),
    ],
)
def test_a_text_of_several_expressions_is_a_list(value: object, expected: str) -> None:
    assert f"ORDER BY {expected}" in storage_clause({"order_by": value})
    assert f"PARTITION BY {expected}" in storage_clause({"partition_by": value})


def test_keys_of_a_folder() -> None:
    tree = {"+a": 1, "p": {"b": 2, "marts": {"+c": {"x": 1}, "deep": {"d": 3}}}, "other": {"e": 1}}
    assert inherited_keys(tree, ["p", "marts", "m"], "table") == ({"a", "b", "c"}, set())
    tree["p"]["marts"]["+materialized"] = "table"  # type: ignore[index]
    keys, meant = inherited_keys(tree, ["p", "marts", "deep", "m"], "table")
    assert meant == {"materialized", "c", "d"}
    assert keys == meant | {"a", "b"}
    # A properties file of the model says that it is something else than its folder.
    assert inherited_keys(tree, ["p", "marts", "deep", "m"], "view") == (keys, frozenset())


def test_an_interval_of_nothing_keeps_nothing() -> None:
    assert mistakes({"retain": "0 days"}, OlapdbCredentials(schema="s")) == [
        "retain is an interval such as '13 months', not '0 days'."
    ]


def test_values_of_dbts_own_keys_that_dbt_does_not_check() -> None:
    assert incremental_mistakes({"on_schema_change": "sync_all"}) == [
        "on_schema_change is ignore, fail, append_new_columns or sync_all_columns, not 'sync_all'. "
        "Maybe you meant sync_all_columns."
    ]
    (legacy,) = incremental_mistakes({"incremental_strategy": "legacy", "unique_key": "id"})
    assert "Say 'delete+insert'" in legacy


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1 as x", "select 1 as x\nlimit 2"),
        (
            "select 1 as x settings max_threads = 1",
            "SELECT 1 AS x\nlimit 2\nSETTINGS max_threads = 1",
        ),
        ("select 1 limit 5;", "select 1 limit 5\nlimit 2"),
        ("select 1 limit 1 by 1;", "select 1 limit 1 by 1\nlimit 2"),
        (
            "select 1 union all select 2",
            "select * from (\nselect 1 union all select 2\n) as model_limit_subq\nlimit 2",
        ),
        ("not sql", "not sql\nlimit 2"),
    ],
)
def test_the_limit_of_a_shown_query(sql: str, expected: str) -> None:
    assert with_limit(sql, 2) == expected


def test_a_primary_key_sorts_a_table_without_an_order() -> None:
    assert storage_clause({"primary_key": "id"}).endswith("PRIMARY KEY id ORDER BY id")
    sorted_clause = storage_clause({"primary_key": "id", "order_by": ["id", "at"]})
    assert sorted_clause.endswith("PRIMARY KEY id ORDER BY (id, at)")
