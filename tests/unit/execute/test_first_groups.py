"""LIMIT without ORDER BY over GROUP BY makes the first groups alone, and makes them whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.execute.operators.partials import Partial
from olapdb.execute.spill.group_merger import GroupMerger

pytestmark = pytest.mark.feature("select", "aggregates")

ROWS = 12_000
ALL_GROUPS = "max_rows_to_group_by = 1000000"
"""A limit that counts groups: all are made."""

QUERIES = [
    "SELECT k % 1000 AS a, count(), sum(k) FROM rows GROUP BY a LIMIT 5",
    "SELECT u, t, count(), max(k) FROM rows GROUP BY u, t LIMIT 10",
    "SELECT t, count(), uniqExact(u) FROM rows GROUP BY t LIMIT 3 OFFSET 2",
    "SELECT maybe, u, sum(k) FROM rows GROUP BY maybe, u LIMIT 4",
    "SELECT maybe, count() FROM rows GROUP BY maybe LIMIT 2",
    "SELECT u, t, avg(k) FROM rows WHERE k % 3 = 0 GROUP BY u, t LIMIT 7",
    "SELECT tuple(u, t) AS both, count() FROM rows GROUP BY both LIMIT 3",
    "SELECT u, count() AS c FROM rows GROUP BY u HAVING c > 1 LIMIT 3",
    "SELECT u + 1, count() FROM rows GROUP BY u LIMIT 3",
    "SELECT t, count() FROM rows GROUP BY t LIMIT 100000",
    "SELECT f, count() FROM rows GROUP BY f LIMIT 2",
]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    with (
        patch.multiple(
            tuning, TASK_ROWS=512, LARGE_TASK_ROWS=1_024, SHARED_DICTIONARY_ROWS_MIN=100
        ),
        olapdb.connect(tmp_path, settings={"inline_bytes_max": 0}) as opened,
    ):
        opened.execute(
            "CREATE TABLE rows (k UInt32, u UInt64, t String, maybe Nullable(String), f Float64) "
            "ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 512"
        )
        opened.execute(
            "INSERT INTO rows SELECT number, intHash64(number % 300), concat('t', toString(number % 70)), "
            "if(number % 3 = 0, NULL, toString(number % 5)), if(number % 4 = 0, nan, number % 3) "
            f"FROM numbers({ROWS})"
        )
        yield opened


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_groups_are_whole(connection: olapdb.Connection, sql: str, threads: int) -> None:
    connection.execute(f"SET max_threads = {threads}")
    expected = connection.execute(f"{sql} SETTINGS {ALL_GROUPS}").fetchall()
    for _ in range(3):
        assert str(connection.execute(sql).fetchall()) == str(expected)


def test_spilled_groups_are_whole(connection: olapdb.Connection) -> None:
    sql = "SELECT t, u, count(), sum(k) FROM rows GROUP BY t, u LIMIT 60"
    expected = connection.execute(f"{sql} SETTINGS {ALL_GROUPS}").fetchall()
    spilled = connection.execute(
        f"{sql} SETTINGS max_bytes_before_external_group_by = 1"
    ).fetchall()
    assert sorted(map(str, spilled)) == sorted(map(str, expected))


def test_rows_of_other_groups_are_not_grouped(connection: olapdb.Connection) -> None:
    sql = "SELECT u, count() FROM rows GROUP BY u LIMIT 10"
    made: list[int] = []
    add = GroupMerger.add

    def counted(self: GroupMerger, partial: Partial) -> None:
        made.append(partial.groups)
        add(self, partial)

    connection.execute("SET max_threads = 1")
    with patch.object(GroupMerger, "add", counted):
        connection.execute(sql).fetchall()
    assert made[0] > 10
    assert set(made[1:]) <= set(range(11))
