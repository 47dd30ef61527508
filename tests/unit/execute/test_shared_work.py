"""What a GROUP BY computes once: groups of several batches, sums of one column, expressions of Decimals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import olapdb
from olapdb.compute.context import BATCH_ROWS
from olapdb.config import tuning
from olapdb.dbapi.cursor import Cursor
from olapdb.execute.operators import aggregate
from olapdb.functions.aggregates import group_kernels
from olapdb.native.library import library

pytestmark = pytest.mark.feature("aggregates")

ROWS = 400_000


@pytest.fixture(scope="module")
def cursor() -> Iterator[Cursor]:
    with olapdb.connect(":memory:", settings={"max_threads": 1}) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "CREATE TABLE t (user UInt64, x Int64, price Decimal(12, 2), discount Decimal(12, 2))"
            " ENGINE = MergeTree ORDER BY tuple()"
        )
        cursor.execute(
            f"INSERT INTO t SELECT cityHash64(number % 50000), number, number / 4, 0.25 FROM numbers({ROWS})"
        )
        yield cursor


def grouped_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the rows of each batch that is grouped, or divided by its keys."""
    sizes: list[int] = []
    for name in ("partial", "_divided"):
        made = getattr(aggregate._Grouping, name)

        def counted(
            self: aggregate._Grouping, batch: pa.RecordBatch, made: Callable[..., object] = made
        ) -> object:
            sizes.append(batch.num_rows)
            return made(self, batch)

        monkeypatch.setattr(aggregate._Grouping, name, counted)
    return sizes


def test_batches_of_many_groups_are_grouped_together(
    cursor: Cursor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = grouped_rows(monkeypatch)
    cursor.execute("SELECT count(), sum(c) FROM (SELECT user, count() AS c FROM t GROUP BY user)")
    assert cursor.fetchall() == [(50_000, ROWS)]
    of_users = [size for size in sizes if size > 50_000]
    assert max(of_users) > BATCH_ROWS
    sizes.clear()
    cursor.execute("SELECT user, count() FROM t GROUP BY user SETTINGS max_block_size = 1000")
    assert len(cursor.fetchall()) == 50_000
    assert max(sizes) <= 1_000


def test_views_group_batches_as_they_are_cut(
    cursor: Cursor, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor.execute(
        "CREATE TABLE target (user UInt64, c UInt64) ENGINE = SummingMergeTree ORDER BY user"
    )
    cursor.execute(
        "CREATE MATERIALIZED VIEW v TO target AS SELECT user, count() AS c FROM t GROUP BY user"
    )
    sizes = grouped_rows(monkeypatch)
    cursor.execute("SYSTEM BACKFILL VIEW v")
    cursor.execute("SYSTEM RECONCILE VIEW v")
    assert sizes
    assert max(sizes) <= tuning.BLOCK_BATCH_ROWS * 3 // 2


def test_a_sum_and_an_average_add_a_column_up_once(
    cursor: Cursor, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []
    sum_values = group_kernels.sum_values

    def counted(array: pa.Array, *arguments: object) -> object:
        added.append(len(array))
        return sum_values(array, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(group_kernels, "sum_values", counted)
    cursor.execute("SELECT sum(x), avg(x) FROM t WHERE x < 1000")
    assert cursor.fetchall() == [(499_500, 499.5)]
    assert [rows for rows in added if rows > 100] == [1000]  # the others merge states


@pytest.mark.skipif(library() is None, reason="There are no compiled kernels.")
def test_expressions_of_decimals_are_one_pass_with_64_bits(cursor: Cursor) -> None:
    query = "SELECT sum(price * (1 - discount)), avg(price) FROM t"
    for _ in range(2):
        cursor.execute(f"EXPLAIN ANALYZE {query}")
    text = "\n".join(str(row[0]) for row in cursor.fetchall())
    assert "compute_decimals" in text
    assert "sum_short_decimals" in text
    assert "combine_decimals" not in text
