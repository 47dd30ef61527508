"""Rows of FINAL that memory does not take are sorted and combined on disk, and answer the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("settings", "engines")

ROWS = 60_000
LIMIT_BYTES = 3_000_000
LIMITED = f"max_memory_usage = {LIMIT_BYTES}, max_threads = 2, max_block_size = 2000"
TABLES = {
    "replacing": (
        "k UInt64, v UInt64, s String",
        "ReplacingMergeTree(v) ORDER BY k",
        "intHash64(number) % 20000, intHash32(number), toString(number)",
    ),
    "deleted": (
        "k UInt64, v UInt64, d UInt8",
        "ReplacingMergeTree(v, d) PARTITION BY v % 3 ORDER BY (k % 100, -toInt64(k)) SETTINGS allow_nullable_key = 1",
        "intHash64(number) % 20000, intHash32(number), number % 4 = 0",
    ),
    "replacing_rows": (
        "k Nullable(String), v UInt64",
        "ReplacingMergeTree ORDER BY k DESC SETTINGS allow_nullable_key = 1,"
        " allow_experimental_reverse_key = 1",
        "if(number % 50 = 0, NULL, toString(intHash64(number) % 20000)), number",
    ),
    "summing": (
        "k UInt64, v Int64",
        "SummingMergeTree ORDER BY k",
        "intHash64(number) % 20000, toInt64(number % 5) - 2",
    ),
    "aggregating": (
        "k UInt64, m SimpleAggregateFunction(max, UInt64), u AggregateFunction(uniqExact, UInt64)",
        "AggregatingMergeTree ORDER BY k",
        "intHash64(number) % 20000 AS key, number, initializeAggregation('uniqExactState', number)",
    ),
    "collapsing": (
        "k UInt64, v UInt64, sign Int8",
        "CollapsingMergeTree(sign) ORDER BY k",
        "intHash64(number) % 20000, number, if(number % 3 = 0, -1, 1)",
    ),
    "coalescing": (
        "k UInt64, a Nullable(UInt64), b Nullable(String)",
        "CoalescingMergeTree ORDER BY k",
        "intHash64(number) % 20000, if(number % 2 = 0, NULL, number), if(number % 3 = 0, NULL, toString(number))",
    ),
    "few_keys": (
        "k UInt64, v UInt64, s String",
        "ReplacingMergeTree(v) ORDER BY k",
        "number % 2, intHash32(number), toString(number)",
    ),
    "few_sums": (
        "k UInt64, v Int64, w Nullable(Int8), d Decimal(9, 2), s String",
        "SummingMergeTree ORDER BY k",
        "number % 3, if(number % 3 = 1, 1 - toInt64(number % 2) * 2, number), if(number % 3 = 1, NULL, 1),"
        " if(number % 3 = 1, 0, if(number < 30000, 500, -500)), toString(number)",
    ),
    "few_wide_sums": (
        "k UInt64, v Decimal(9, 0), m Int256",
        "SummingMergeTree ORDER BY k",
        "number % 2, if(number < 30000, 99999, -99998), number",
    ),
    "few_summed_maps": (
        "k UInt64, mMap Nested(a UInt64, v Int64)",
        "SummingMergeTree ORDER BY k",
        "intHash64(number) % 2000, [number % 5], [toInt64(number % 3) - 1]",
    ),
    "few_states": (
        "k UInt64, m SimpleAggregateFunction(max, UInt64), a AggregateFunction(avg, UInt64)",
        "AggregatingMergeTree ORDER BY k",
        "number % 2, number, initializeAggregation('avgState', number)",
    ),
    "few_summed_states": (
        "k UInt64, v Int64, a AggregateFunction(avg, UInt64)",
        "SummingMergeTree ORDER BY k",
        "number % 2, toInt64(number % 4) - 2, initializeAggregation('avgState', number)",
    ),
    **{
        f"few_collapsing_{name}": (
            "k UInt64, v UInt64, sign Int8",
            "CollapsingMergeTree(sign) ORDER BY k",
            f"number < 1000 OR number >= 59000 OR number % 3, number, {sign}",
        )
        for name, sign in {
            "states": "1",
            "cancels": "-1",
            "pairs": "if(intDiv(number, 3) % 2, -1, 1)",
            "more_states": "if(intHash32(number) % 3, 1, -1)",
            "state_at_end": "if(number < 30000, -1, 1)",
            "cancel_at_end": "if(number < 30000, 1, -1)",
        }.items()
    },
    "few_versioned": (
        "k UInt64, v UInt64, sign Int8, version UInt8",
        "VersionedCollapsingMergeTree(sign, version) ORDER BY k",
        "number % 2, number, if(intDiv(number, 4) % 2, -1, 1), 1",
    ),
}
READ = {
    "aggregating": "k, m, finalizeAggregation(u)",
    "few_states": "k, m, finalizeAggregation(a)",
    "few_summed_states": "k, v, finalizeAggregation(a)",
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Connect to a warehouse with a table of each engine that combines rows, of several parts each."""
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        for name, (columns, engine, values) in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns}) ENGINE = {engine}")
            for part in range(3):
                source = f"numbers({part * ROWS // 3}, {ROWS // 3})"
                connection.execute(
                    f"INSERT INTO {name} SELECT {values} FROM {source} SETTINGS optimize_on_insert = 0"
                )
        yield connection


def rows_and_spilled_bytes(connection: Connection, sql: str) -> tuple[list[object], int]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall(), cursor.statistics.spilled_bytes


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("more", ["", ", do_not_merge_across_partitions_select_final = 1"])
def test_final_past_memory(connection: Connection, name: str, more: str) -> None:
    sql = f"SELECT {READ.get(name, '*')} FROM {name} FINAL"
    expected, nothing = rows_and_spilled_bytes(connection, f"{sql} SETTINGS max_threads = 2{more}")
    rows, spilled_bytes = rows_and_spilled_bytes(connection, f"{sql} SETTINGS {LIMITED}{more}")
    assert nothing == 0
    assert spilled_bytes > 0 or more  # a partition alone may fit the memory
    assert rows == expected


def test_final_past_memory_with_conditions(connection: Connection) -> None:
    sql = "SELECT count(), sum(v), max(s) FROM replacing FINAL WHERE v % 3 = 0 AND k > 100"
    expected, _ = rows_and_spilled_bytes(connection, sql)
    rows, spilled_bytes = rows_and_spilled_bytes(connection, f"{sql} SETTINGS {LIMITED}")
    assert spilled_bytes > 0
    assert rows == expected
