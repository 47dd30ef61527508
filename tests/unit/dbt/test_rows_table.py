"""The table that holds the rows of a Python model, and which models take its files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from dbt.adapters.olapdb.python_models.rows_table import create_statement, is_whole_table
from dbt.adapters.olapdb.relation import OlapdbRelation

pytestmark = pytest.mark.feature("dbt")

ROWS = OlapdbRelation.create(schema="s", identifier="m__dbt_python")
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.date32())])


def model(**config: Any) -> dict[str, Any]:
    return {"name": "m", "config": {"materialized": "table", **config}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, True),
        ({"engine": "ReplacingMergeTree(v)"}, True),
        ({"contract": {"enforced": False}}, True),
        ({"contract": {"enforced": True}}, False),
        ({"query_settings": {"max_threads": 1}}, False),
        ({"engine": "Log"}, False),
        ({"materialized": "incremental"}, False),
    ],
)
def test_models_that_are_their_rows_table(config: dict[str, Any], expected: bool) -> None:
    assert is_whole_table(model(**config)) == expected


def test_a_table_that_is_shared_has_the_models_storage() -> None:
    shared = create_statement(
        ROWS,
        SCHEMA,
        model(order_by="day", partition_by="toYYYYMM(day)", settings={"index_granularity": 9}),
    )
    for clause in ("ORDER BY day", "PARTITION BY toYYYYMM(day)", "index_granularity = 9"):
        assert clause in shared
    assert "`day` Date32" in shared  # a key is never Nullable
    copied = create_statement(ROWS, SCHEMA, model(materialized="incremental", order_by="day"))
    assert copied.endswith("ENGINE = MergeTree ORDER BY tuple()")
