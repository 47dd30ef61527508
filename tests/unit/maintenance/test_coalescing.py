"""CoalescingMergeTree: which value of each column a merge, FINAL and an INSERT keep."""

from __future__ import annotations

import random

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import dicts, rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (k UInt32, a Nullable(Int32), b LowCardinality(Nullable(String)), n Int32)"
        " ENGINE = CoalescingMergeTree ORDER BY k",
        merges=False,
    ),
    pytest.mark.feature("engines"),
]


def test_any_cut_into_parts_and_any_merges_leave_the_same(connection: Connection) -> None:
    draw = random.Random(5)
    kept: dict[int, list[object]] = {}
    expected: list[tuple[object, ...]] = []
    for block in range(12):
        values = []
        for at in range(7):
            key = draw.randrange(5)
            row: list[object] = [
                draw.choice((None, block * 100 + at)),
                draw.choice((None, f"{block}-{at}")),
                block * 10 + at,
            ]
            values.append((key, *row))
            before = kept.setdefault(key, [None, None, 0])
            kept[key] = [
                new if new is not None else old for new, old in zip(row, before, strict=True)
            ]
        text = ", ".join(str(value).replace("None", "NULL") for value in values)
        connection.execute(f"INSERT INTO t VALUES {text}")
        if draw.random() < 0.3:
            connection.execute("OPTIMIZE TABLE t")
        expected = [(key, *row) for key, row in sorted(kept.items())]
        assert rows(connection, "SELECT * FROM t FINAL ORDER BY k") == expected
        assert rows(connection, "SELECT a FROM t FINAL ORDER BY k") == [(e[1],) for e in expected]
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT * FROM t ORDER BY k") == expected


def test_a_filter_of_final_sees_the_kept_value(connection: Connection) -> None:
    connection.execute("INSERT INTO t VALUES (1, 5, 'x', 1)")
    connection.execute("INSERT INTO t VALUES (1, NULL, 'y', 2)")
    assert rows(connection, "SELECT k FROM t FINAL WHERE a = 5 AND b = 'y'") == [(1,)]
    assert rows(connection, "SELECT k FROM t FINAL WHERE b = 'x'") == []


def test_named_columns_and_refused_ones(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE u (k UInt32, a Nullable(Int32), b Nullable(Int32))"
        " ENGINE = CoalescingMergeTree(a) ORDER BY k"
    )
    for values in ("(1, 1, 1)", "(1, NULL, 2)", "(1, 3, NULL)"):
        connection.execute(f"INSERT INTO u VALUES {values}")
    assert rows(connection, "SELECT * FROM u FINAL") == [(1, 3, 1)]
    for arguments in ("k", "zz"):
        with pytest.raises(olapdb.Error, match=arguments):
            connection.execute(
                "CREATE TABLE w (k UInt32, a Nullable(Int32))"
                f" ENGINE = CoalescingMergeTree({arguments}) ORDER BY k"
            )


def test_a_view_that_reads_it_is_not_proven(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY k AS"
        " SELECT k, sum(n) AS n FROM t GROUP BY k"
    )
    items = dicts(connection, "EXPLAIN VIEW v")
    assert any("merges" in str(item) for item in items)
