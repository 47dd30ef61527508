"""What a caller does to its arrays after an INSERT changes no row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb.ingest.block_parts import has_own_memory

pytestmark = pytest.mark.feature("insert")

ROWS = 10_000


@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_an_array_that_changes_after_its_insert(tmp_path: Path, order: str) -> None:
    numbers = np.arange(ROWS, dtype=np.int64)
    if order == "unsorted":
        numbers = numbers[::-1].copy()
    with olapdb.connect(str(tmp_path / "warehouse")) as connection:
        connection.execute("CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY n")
        connection.insert(
            "t",
            pa.table({"n": pa.Array.from_buffers(pa.int64(), ROWS, [None, pa.py_buffer(numbers)])}),
        )
        numbers[:] = -1
        answer = connection.execute("SELECT min(n), max(n), sum(n) FROM t").fetchall()
    assert answer == [(0, ROWS - 1, ROWS * (ROWS - 1) // 2)]


def test_rows_share_memory_with_a_block_or_not() -> None:
    block = pa.table({"a": np.arange(1_000), "s": [str(n) for n in range(1_000)]})
    other = pa.table({"a": np.arange(1_000), "s": [str(n) for n in range(1_000)]})
    assert not has_own_memory(block.slice(990), block)
    assert not has_own_memory(other.set_column(1, "s", block["s"]), block)
    inside = block["a"].chunk(0).buffers()[1].slice(80, 80)
    view = pa.table({"a": pa.Array.from_buffers(pa.int64(), 10, [None, inside])})
    assert not has_own_memory(view, block)
    assert has_own_memory(block.take(pa.array([3, 1])), block)
    assert has_own_memory(other, block)
    assert has_own_memory(block.slice(0, 0).take(pa.array([], pa.int64())), block)
