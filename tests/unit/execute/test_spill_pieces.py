"""Batches that are large beside the memory are taken piece by piece, so that operators can spill between."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import olapdb
from olapdb.compute.context import ExecutionContext
from olapdb.compute.spill.budget import PIECE_BYTES_MIN, PIECES_OF_MEMORY, SpillBudget
from olapdb.config import Settings
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("settings")

# 40 MB of 200 texts, of which 100 differ. They come in one batch.
TEXTS = "(SELECT repeat(toString(number % 100 + 1000), 50000) AS s, number AS n FROM numbers(200))"
LARGE = {
    "GROUP BY of large texts": (f"SELECT count(), sum(l) FROM (SELECT length(any(s)) AS l FROM {TEXTS} GROUP BY s)", 24),
    "groups of many values": (
        "SELECT count(), sum(length(g)) FROM (SELECT groupArray(number) AS g FROM numbers(400000) GROUP BY number % 70000)",
        8,
    ),
    "DISTINCT": (f"SELECT count(), sum(length(s)) FROM (SELECT DISTINCT s FROM {TEXTS})", 24),
    "EXCEPT": (f"SELECT count() FROM (SELECT s FROM {TEXTS} EXCEPT SELECT s FROM {TEXTS} WHERE n % 2)", 24),
    "INTERSECT": (
        f"SELECT count() FROM (SELECT s FROM {TEXTS} INTERSECT DISTINCT SELECT s FROM {TEXTS} WHERE n % 2)",
        24,
    ),
    "LIMIT BY": (f"SELECT count(), sum(length(s)) FROM (SELECT s FROM {TEXTS} LIMIT 1 BY s)", 32),
    "ORDER BY": (f"SELECT n FROM {TEXTS} ORDER BY s, n DESC", 24),
    "a join that holds large texts": (
        f"SELECT count(), sum(length(r.s)) FROM numbers(100) AS l JOIN {TEXTS} AS r ON l.number = r.n",
        24,
    ),
    "a join of few keys, whose partitions are large": (
        "SELECT count(), sum(l.number) FROM numbers(20) AS l JOIN (SELECT number % 3 AS k FROM numbers(400000)) AS r"
        " ON l.number % 3 = r.k",
        8,
    ),
    "windows of many partitions": (
        "SELECT max(s), sum(s) FROM (SELECT sum(number) OVER (PARTITION BY number % 9000 ORDER BY number) AS s"
        " FROM numbers(400000))",
        12,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        yield opened


@pytest.mark.parametrize(("query", "limit_mib"), LARGE.values(), ids=LARGE)
def test_a_batch_may_be_larger_than_the_memory(
    connection: Connection, query: str, limit_mib: int
) -> None:
    expected = connection.execute(query).fetchall()
    with connection.cursor() as cursor:
        cursor.execute(f"{query} SETTINGS max_memory_usage = {limit_mib << 20}")
        assert cursor.fetchall() == expected
        assert cursor.statistics.spilled_bytes > 0


def pieces(
    batch: pa.RecordBatch, limit_bytes: int, row_bytes: int, **settings: object
) -> list[int]:
    """Return the rows of the pieces of a batch."""
    context = ExecutionContext(settings=Settings({"max_memory_usage": limit_bytes, **settings}))
    with context.memory.account("JOIN") as account:
        budget = SpillBudget("join", context, account)
        cut = list(budget.pieces(batch, row_bytes))
    assert pa.Table.from_batches(cut).equals(pa.Table.from_batches([batch]))
    return [piece.num_rows for piece in cut]


def test_pieces_take_a_small_part_of_the_memory() -> None:
    limit = PIECES_OF_MEMORY * PIECE_BYTES_MIN
    batch = pa.record_batch({"v": pa.array(range(PIECE_BYTES_MIN // 4), pa.int64())})
    rows = batch.num_rows
    assert pieces(batch, 2 * limit, 0) == [rows]
    assert pieces(batch, limit, 0) == [rows // 2, rows // 2]
    assert pieces(batch, limit, 8) == [rows // 4] * 4
    assert pieces(batch, 2, 8) == [rows // 4] * 4
    assert pieces(batch, limit, 0, max_bytes_ratio_before_external_join=0) == [rows]


def test_a_dictionary_is_not_cut() -> None:
    codes = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.int32()), pa.array(["a" * 500_000, "b"])
    )
    assert pieces(pa.record_batch({"v": codes}), 2, 0) == [3]


def test_a_row_that_is_too_large_is_a_piece() -> None:
    batch = pa.record_batch({"v": pa.array(["a" * 300_000, "b" * 300_000])})
    assert pieces(batch, 2, 0) == [1, 1]
