"""Rows that go to disk in fewer bytes come back as they were, and hashes are sorted alike with and without kernels."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.context import ExecutionContext
from olapdb.compute.hash_index import _buckets, sort_by_hash
from olapdb.compute.ordering import OrderColumn, sort_indices
from olapdb.compute.spill.fixed_rows import divided
from olapdb.compute.spill.narrowing import narrowed, widened
from olapdb.compute.spill.partitions import PARTITIONS, PartitionedRows
from olapdb.functions.kernels.hashing import mix
from olapdb.native.library import library, without_kernels
from olapdb.result import QueryStatistics

pytestmark = pytest.mark.feature("select")

needs_kernels = pytest.mark.skipif(library() is None, reason="There are no compiled kernels.")
INTEGERS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32())
TYPES = (
    *INTEGERS,
    *(pa.int64(), pa.uint64(), pa.date32(), pa.timestamp("us"), pa.float32(), pa.float64()),
)


def values_of_type(arrow: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_floating(arrow):
        return st.floats(width=arrow.bit_width, allow_nan=False)
    signed = not pa.types.is_unsigned_integer(arrow)
    low, high = (-(1 << arrow.bit_width - 1), (1 << arrow.bit_width - 1) - 1)
    if not signed:
        low, high = 0, (1 << arrow.bit_width) - 1
    middle = (low + high) // 2
    return st.one_of(
        st.integers(low, high), st.integers(middle, middle + 3), st.sampled_from([low, high])
    )


@st.composite
def columns(draw: st.DrawFn, *, nulls: bool) -> pa.Array:
    arrow = draw(st.sampled_from(TYPES))
    value = values_of_type(arrow)
    rows = draw(st.lists(st.one_of(value, st.none()) if nulls else value, max_size=40))
    physical = pa.int32() if pa.types.is_date32(arrow) else arrow
    physical = pa.int64() if pa.types.is_timestamp(arrow) else physical
    offset = draw(st.integers(0, len(rows)))
    return pa.array(rows, physical).view(arrow).slice(offset)


@pytest.mark.parametrize("kernels", [True, False])
@given(columns(nulls=True))
def test_integers_in_fewer_bytes_come_back(kernels: bool, column: pa.Array) -> None:
    with nullcontext() if kernels else without_kernels():
        batch = pa.RecordBatch.from_arrays([column], names=["v"])
        short, changed = narrowed(batch)
        again = widened(short, changed)
    assert again.schema == batch.schema
    assert again.column(0).equals(column)


@needs_kernels
def test_integers_that_are_near_each_other_take_a_byte() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1 << 60, (1 << 60) + 255])], names=["v"])
    short, _ = narrowed(batch)
    assert short.column(0).type == pa.uint8()


@given(
    st.lists(st.tuples(st.integers(0, 1 << 63), st.integers(-5, 5), st.floats(allow_nan=False))),
    st.booleans(),
    st.integers(1, 9),
)
def test_partitions_have_the_rows_in_their_order(
    rows: list[tuple[int, int, float]], has_kernels: bool, step: int
) -> None:
    types = (pa.uint64(), pa.int16(), pa.float64())
    arrays = [pa.array([row[at] for row in rows], t) for at, t in enumerate(types)]
    batch = pa.RecordBatch.from_arrays(arrays, names=["a", "b", "c"])
    context = ExecutionContext(statistics=QueryStatistics())
    with (
        nullcontext() if has_kernels else without_kernels(),
        context.temporary().file("Join") as file,
    ):
        partitions = PartitionedRows(file)
        pieces = [batch.slice(start, step) for start in range(0, len(rows), step)]
        partitions.add_all(pieces, lambda piece: [piece.column("b")], context)
        found = [
            [tuple(row.values()) for piece in partitions.read(n, 1000) for row in piece.to_pylist()]
            for n in range(PARTITIONS)
        ]
    context.close()
    assert sorted(row for own in found for row in own) == sorted(rows)
    for own in found:
        # each key is in one partition, and its rows are in their order
        keys = {b for _, b, _ in own}
        assert own == [row for row in rows if row[1] in keys]


@needs_kernels
def test_only_numbers_without_null_are_divided_in_one_pass() -> None:
    numbers = [np.zeros(2, np.uint8)]

    def takes(column: pa.Array) -> bool:
        batch = pa.RecordBatch.from_arrays([column], names=["v"])
        return divided([batch], numbers, PARTITIONS) is not None

    assert takes(pa.array([1, 2]))
    assert takes(pa.array([1.5, 2]))
    assert not takes(pa.array([1, None]))
    assert not takes(pa.array(["a", "b"]))


@needs_kernels
@pytest.mark.parametrize("rows", [0, 1, 5, 3_000, 40_000, 300_000])
@pytest.mark.parametrize("share_of_one", [0, 0.5, 1])
def test_hashes_are_sorted_alike(rows: int, share_of_one: float) -> None:
    values = np.random.default_rng(rows).integers(0, max(rows, 1), rows).astype(np.uint64)
    values[: int(rows * share_of_one)] = 7
    hashes = mix(np.random.default_rng(1).permutation(values))
    compiled, other = hashes.copy(), hashes.copy()
    order, buckets = sort_by_hash(compiled, 1), _buckets(np.sort(hashes))
    with without_kernels():
        assert order.tolist() == sort_by_hash(other, 1).tolist()
        assert buckets.tolist() == _buckets(np.sort(hashes)).tolist()
    assert compiled.tolist() == other.tolist() == sorted(hashes.tolist())


@needs_kernels
@pytest.mark.parametrize("rows", [3_000, 70_000])
@pytest.mark.parametrize("distinct", [1, 3, 1_000, 1 << 40])
@pytest.mark.parametrize("further", [2, 1 << 20, 1 << 23])
def test_keys_of_one_word_are_sorted_alike(rows: int, distinct: int, further: int) -> None:
    """Row numbers do not fit the word of two wide keys; the keys' upper bits decide, or do not."""
    random = np.random.default_rng(rows + distinct)
    first, second = random.integers(0, distinct, rows), random.integers(0, further, rows)
    columns = [OrderColumn(pa.array(first)), OrderColumn(pa.array(second), descending=True)]
    assert sort_indices(columns, rows).to_pylist() == np.lexsort((-second, first)).tolist()


@needs_kernels
@pytest.mark.parametrize("runs", [2, 5, 40])
def test_sorted_runs_are_merged(runs: int) -> None:
    random = np.random.default_rng(runs)
    sizes = random.integers(1, 900, runs)
    values = np.concatenate([np.sort(random.integers(0, 10_000, size)) for size in [4_000, *sizes]])
    order = sort_indices([OrderColumn(pa.array(values))], len(values))
    assert order.to_pylist() == np.argsort(values, kind="stable").tolist()
