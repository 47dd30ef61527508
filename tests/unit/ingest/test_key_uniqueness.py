"""Blocks of views in which each sorting key of the target is known to appear once."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.bind.entry import bind_query
from olapdb.bind.scope import BindScope
from olapdb.ingest.key_uniqueness import gives_each_key_once
from olapdb.model.schema import Table
from olapdb.sql.parser import parse_query

pytestmark = pytest.mark.feature("views")


@pytest.mark.parametrize(
    ("made", "stored", "once"),
    [
        ("toUInt8(k)", "UInt8", True),
        ("toUInt8(k)", "UInt32", True),
        ("toUInt8(k)", "Int16", True),
        ("toInt8(k)", "Int64", True),
        ("toString(k)", "String", True),
        ("toUInt8(k)", "Int8", False),
        ("toInt8(k)", "UInt64", False),
        ("toUInt32(k)", "UInt8", False),
        ("toFloat64(k)", "Float64", False),
        ("toUInt8(k)", "String", False),
    ],
)
def test_keys_that_stay_distinct_in_the_target(made: str, stored: str, once: bool) -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE s (k Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            f"CREATE TABLE t (g {stored}, n SimpleAggregateFunction(sum, UInt64))"
            " ENGINE = AggregatingMergeTree ORDER BY g"
        )
        snapshot = connection.database.services.catalog.snapshot()
        target = snapshot.find("default", "t")
        assert isinstance(target, Table)
        query = parse_query(f"SELECT {made} AS g, count() AS n FROM s GROUP BY g")
        plan = bind_query(query, BindScope(snapshot=snapshot, database="default"))
        assert gives_each_key_once(plan, target) is once
