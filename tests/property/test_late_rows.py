"""ORDER BY … LIMIT and LIMIT read few columns of few rows, and answer as if they had read all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import olapdb
from olapdb import Connection
from olapdb.config import tuning
from olapdb.native import selection
from olapdb.native.library import library, without_kernels

pytestmark = pytest.mark.feature("select")

KEYS = {
    "n": "(number * 7919) % 1000",
    "few": "toUInt8(number % 3)",
    "sorted": "number",
    "nullable": "if(number % 5 = 0, NULL, toInt32(number % 50) - 25)",
    "nulls": "CAST(NULL, 'Nullable(Int32)')",
    "float": "if(number % 7 = 0, nan, if(number % 11 = 0, inf, (number % 90) / 4 - 9))",
    "nullable_float": "if(number % 4 = 0, NULL, if(number % 7 = 0, nan, number % 60))",
    "text": "toString((number * 31) % 500)",
    "day": "toDate('2024-01-01') + number % 60",
    "time": "toDateTime('2024-01-01 00:00:00', 'UTC') - number % 100",
    "amount": "toDecimal64((number * 13) % 777, 2) - 300",
    "id": "toUUID(concat('00000000-0000-0000-0000-', leftPad(toString(number % 99), 12, '0')))",
    "list": "[number % 4, number % 9]",
    "label": "toLowCardinality(toString(number % 6))",
}
"""A column of each kind that is sorted by, and its values in a row."""

DIRECTIONS = ("ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS FIRST")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with olapdb.connect(tmp_path_factory.mktemp("late") / "warehouse") as connection:
        connection.execute("SYSTEM STOP MERGES")
        select = ", ".join(f"{value} AS {name}" for name, value in KEYS.items())
        connection.execute(
            "CREATE TABLE t ENGINE = MergeTree PARTITION BY sorted % 2 ORDER BY sorted"
            f" SETTINGS inline_bytes_max = 0, index_granularity = 64 AS SELECT {select},"
            " toString(number) AS rest FROM numbers(1000)"
        )
        connection.execute(f"INSERT INTO t SELECT {select}, 'b' FROM numbers(1000, 40)")
        connection.execute("ALTER TABLE t MODIFY SETTING inline_bytes_max = 1000000")
        connection.execute(f"INSERT INTO t SELECT {select}, 'c' FROM numbers(1040, 30)")
        connection.execute("ALTER TABLE t ADD COLUMN added String DEFAULT concat('d', rest)")
        yield connection


def answers(connection: Connection, query: str) -> tuple[str, str]:
    """Return the answer with and without late rows, as text: NaN equals no NaN."""
    late = str(connection.execute(query).fetchall())
    with patch.object(tuning, "LATE_ROWS_MAX", -1):
        return late, str(connection.execute(query).fetchall())


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("task_rows", [tuning.TASK_ROWS, 100])
def test_the_top_rows_by_any_key(connection: Connection, name: str, task_rows: int) -> None:
    with patch.multiple(
        tuning,
        TASK_ROWS=task_rows,
        LARGE_TASK_ROWS=4 * task_rows,
        READ_AT_ONCE_ROWS_MAX=0 if task_rows == 100 else tuning.READ_AT_ONCE_ROWS_MAX,
    ):
        compare_tops(connection, name)


def compare_tops(connection: Connection, name: str) -> None:
    """Assert that the top rows by a column are the same with and without late rows."""
    filters = ("", "WHERE few = 1", "WHERE rest LIKE '%9%' AND n > 100", "WHERE few = 7")
    for direction, where in itertools.product(DIRECTIONS, filters):
        limits = [f"{name} {direction} LIMIT {limit}" for limit in ("1", "10", "5 OFFSET 200")]
        for end in (*limits, f"few DESC, {name} {direction} LIMIT 10"):
            query = f"SELECT * FROM t {where} ORDER BY {end}"
            late, plain = answers(connection, query)
            assert late == plain, query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t LIMIT 10",
        "SELECT rest FROM t LIMIT 100 OFFSET 950",
        "SELECT n, added, _part, _part_offset FROM t LIMIT 1 OFFSET 1050",
        "SELECT * FROM t LIMIT 10 OFFSET 5000",
        "SELECT * FROM t LIMIT 0",
        "SELECT * FROM t WHERE few = 2 AND rest > '5' LIMIT 20 OFFSET 3",
        "SELECT rest FROM t PREWHERE few = 2 WHERE n > 900 LIMIT 20",
        "SELECT rest, n + few AS s FROM t ORDER BY s DESC, length(rest) LIMIT 7",
        "SELECT sum(n) FROM (SELECT n, sorted FROM t ORDER BY sorted DESC LIMIT 100)",
        "SELECT rest FROM t WHERE n IN (SELECT n FROM t ORDER BY n LIMIT 3) ORDER BY n LIMIT 5",
        "SELECT rest, _part FROM t ORDER BY _part DESC, _part_offset DESC LIMIT 5",
        "SELECT few, rest FROM t ORDER BY few, rest LIMIT 2 WITH TIES",
        "SELECT 1 FROM t ORDER BY n LIMIT 3",
        "SELECT * FROM t UNION ALL SELECT * FROM t LIMIT 3",
    ],
)
def test_other_limits(connection: Connection, query: str) -> None:
    late, plain = answers(connection, query)
    assert late == plain
    with patch.multiple(tuning, TASK_ROWS=100, LARGE_TASK_ROWS=400, READ_AT_ONCE_ROWS_MAX=0):
        late, plain = answers(connection, query)
        assert late == plain


def test_a_selective_filter_over_several_row_groups_keeps_a_row_together(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute(
            "CREATE TABLE t ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 1000 AS"
            " SELECT number AS k, (number * 2654435761) % 5000000000 AS v, toString(number) AS s"
            " FROM numbers(10000)"
        )
        wanted = connection.execute("SELECT v FROM t WHERE k = 7777").fetchall()[0][0]
        for order in ("", "ORDER BY v"):
            query = f"SELECT k, v, s FROM t WHERE v % 5000000001 = {wanted} {order} LIMIT 3"
            assert connection.execute(query).fetchall() == [(7777, wanted, "7777")]


def test_a_task_of_exactly_as_many_rows_as_the_limit_is_not_taken_as_sorted(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "warehouse", settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (v UInt32, s String) ENGINE = MergeTree ORDER BY tuple()"
        )
        for few, name in ((("100", "1"), "a"), (("50", "51"), "b")):
            connection.execute(
                f"INSERT INTO t SELECT multiIf(number = 5, {few[0]}, number = 900, {few[1]},"
                f" 1000 + number), '{name}' FROM numbers(70000)"
            )
        query = "SELECT v, s FROM t WHERE v < 1000 ORDER BY v LIMIT 2"
        assert connection.execute(query).fetchall() == [(1, "a"), (50, "b")]


def test_final_combines_before_the_limit(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute(
            "CREATE TABLE r (k UInt64, v UInt64) ENGINE = ReplacingMergeTree ORDER BY k"
        )
        connection.execute("INSERT INTO r SELECT number, 1 FROM numbers(10)")
        connection.execute("INSERT INTO r SELECT number, 2 FROM numbers(5)")
        query = "SELECT k, v FROM r FINAL ORDER BY k LIMIT 6"
        assert connection.execute(query).fetchall() == [*((k, 2) for k in range(5)), (5, 1)]


# --- what is read


def decoded(connection: Connection, query: str) -> dict[str, int]:
    """Return how many row groups of each column the query decodes."""
    connection.execute("SYSTEM DROP UNCOMPRESSED CACHE")
    connection.execute(query).fetchall()
    rows = connection.execute(
        "SELECT column, sum(cells) FROM system.uncompressed_cache GROUP BY column"
    )
    return {str(column): int(cells) for column, cells in rows.fetchall()}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Make a table of 40 row groups of 100 rows, sorted by `k`."""
    with olapdb.connect(
        tmp_path_factory.mktemp("log") / "warehouse", settings={"max_threads": 1}
    ) as connection:
        connection.execute(
            "CREATE TABLE log ENGINE = MergeTree ORDER BY k"
            " SETTINGS inline_bytes_max = 0, index_granularity = 100"
            " AS SELECT number AS k, (number * 7919) % 4000 AS v, toString(number) AS a,"
            " toString(number) AS b FROM numbers(4000)"
        )
        yield connection


def test_a_limit_reads_the_row_groups_of_its_rows(log: Connection) -> None:
    assert decoded(log, "SELECT a, b FROM log LIMIT 5") == {"a": 1, "b": 1}
    assert decoded(log, "SELECT a FROM log LIMIT 5 OFFSET 1998") == {"a": 2}


def test_the_top_reads_other_columns_of_its_rows_alone(log: Connection) -> None:
    assert decoded(log, "SELECT v, a, b FROM log ORDER BY v LIMIT 2") == {"v": 40, "a": 2, "b": 2}


def test_the_top_by_a_sorted_key_reads_the_row_groups_that_can_hold_it(log: Connection) -> None:
    with patch.multiple(tuning, TASK_ROWS=100, LARGE_TASK_ROWS=100):
        assert decoded(log, "SELECT k, a FROM log ORDER BY k DESC LIMIT 5") == {"k": 1, "a": 1}
        below = "SELECT k, a FROM log WHERE k < 3000 ORDER BY k DESC LIMIT 50"
        assert decoded(log, below) == {"k": 1, "a": 1}


def test_a_selective_filter_reads_other_columns_of_its_row_groups(log: Connection) -> None:
    with patch.multiple(tuning, READ_AT_ONCE_ROWS_MAX=0):
        read = decoded(log, "SELECT a FROM log WHERE v = 7919 % 4000 OR v = 0")
    assert read == {"v": 40, "a": 1}


def test_bound_without_kernels(connection: Connection) -> None:
    """A bound that an earlier task made is compared by Arrow where there are no kernels."""
    query = "SELECT n, rest FROM t ORDER BY n DESC, sorted LIMIT 5"
    with without_kernels():
        late, whole = answers(connection, query)
    assert late == whole == answers(connection, query)[0]


@pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare.")
@pytest.mark.parametrize("name", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("descending", [False, True])
@given(data=st.data())
@settings(max_examples=30)
def test_best_rows_kernel(name: str, descending: bool, data: st.DataObject) -> None:
    """The kernel keeps what numpy's partition does: rows no worse than the bound and the last of the best."""
    ends = np.iinfo(name)
    numbers = st.one_of(
        st.integers(int(ends.min), int(ends.max)),
        st.sampled_from([int(ends.min), int(ends.max), 0, 1, 2]),
    )
    drawn = data.draw(st.lists(numbers, min_size=1, max_size=40))
    values = np.resize(np.array(drawn, name), data.draw(st.integers(1, 200)))
    offset = data.draw(st.integers(0, len(values) - 1))
    values = values[offset:]
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=1, max_size=20)))
    kept = np.resize(kept, len(values))
    limit = data.draw(st.integers(1, 70))
    bound = data.draw(st.none() | numbers)
    expected = kept.copy()
    if bound is not None:
        expected &= values >= bound if descending else values <= bound
    candidates = np.sort(values[expected])[:: -1 if descending else 1]
    if len(candidates) >= limit:
        last = candidates[limit - 1]
        expected &= values >= last if descending else values <= last
    words = selection.kept_rows(pa.array(kept), len(values))
    bounds = None if bound is None else pa.array(np.array([bound], name))
    assert selection.keep_best(pa.array(values), bounds, limit, words, descending=descending)
    assert selection.as_mask(words, len(values)).to_numpy(zero_copy_only=False).tolist() == (
        expected.tolist()
    )
