"""Lookups beside a dictionary in plain Python: each row finds the rows that equal it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute import hash_index, hash_table
from olapdb.compute.hash_table import Lookup
from olapdb.compute.row_hash import row_hashes
from olapdb.config import tuning
from tests.unit.execute.test_codes import KINDS, distinct_columns, normal

pytestmark = pytest.mark.feature("select")

Rows = list[list[int]]


def python_values(column: pa.Array) -> list[object]:
    """Return times as ticks: those of the tests are beyond Python's years."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return [normal(value) for value in column.to_pylist()]


def equal_rows(
    ours: list[pa.Array], theirs: list[pa.Array], *, matches_null: bool, threads: int = 1
) -> Rows:
    """Return for each of their rows the numbers of our equal rows."""
    made = Lookup(ours, len(ours[0]), matches_null=matches_null, keeps_rows=True, threads=threads)
    assert made.order is not None
    assert int(made.sizes.sum()) == len(made.order)
    starts = list(range(made.count + 1)) if made.starts is None else made.starts.tolist()
    order = made.order.tolist()
    codes = made.find(theirs, len(theirs[0])).tolist()
    set_only = Lookup(ours, len(ours[0]), matches_null=matches_null)
    assert (set_only.find(theirs, len(theirs[0])) >= 0).tolist() == [c >= 0 for c in codes]
    assert made.contains(theirs, len(theirs[0])).to_pylist() == [c >= 0 for c in codes]
    for at, column in enumerate(ours):
        assert set(python_values(set_only.values(at))) <= set(python_values(column))
    return [order[starts[c] : starts[c + 1]] if c >= 0 else [] for c in codes]


def expected(ours: list[pa.Array], theirs: list[pa.Array], *, matches_null: bool) -> Rows:
    known: dict[object, list[int]] = {}
    for at, row in enumerate(zip(*map(python_values, ours), strict=True)):
        if matches_null or all(value is not None for value in row):
            known.setdefault(row, []).append(at)
    return [known.get(row, []) for row in zip(*map(python_values, theirs), strict=True)]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("matches_null", [False, True])
@given(data=st.data())
def test_a_few_rows(kind: str, matches_null: bool, data: st.DataObject) -> None:
    arrow, element = KINDS[kind]
    values = st.lists(st.one_of(st.none(), element), max_size=8)
    ours, theirs = ([pa.array(data.draw(values), arrow)] for _ in range(2))
    found = equal_rows(ours, theirs, matches_null=matches_null)
    assert found == expected(ours, theirs, matches_null=matches_null)


@pytest.mark.parametrize("indexed_min", [10, 1 << 14])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("beside", [None, "few", "many"])
@pytest.mark.parametrize("matches_null", [False, True])
@pytest.mark.parametrize("kind", sorted(distinct_columns(1)))
def test_many_rows(
    kind: str,
    matches_null: bool,
    beside: str | None,
    threads: int,
    indexed_min: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most of them distinct, or few with a second column, found by an index or by Arrow."""
    monkeypatch.setattr(tuning, "INDEXED_VALUES_MIN", indexed_min)
    monkeypatch.setattr(tuning, "HASHED_ROWS", 200)
    column = distinct_columns(1_500)[kind]
    columns = [column]
    if beside is not None:
        modulus = 2 if beside == "few" else 700
        columns.append(pa.array([n % modulus for n in range(1_500)]))
    if beside == "many":  # most rows twice and more
        columns = [pa.concat_arrays([c.slice(0, 500)] * 3) for c in columns]
    ours = [c.slice(3, 1_000) for c in columns]
    theirs = [c.slice(700) for c in columns]
    found = equal_rows(ours, theirs, matches_null=matches_null, threads=threads)
    assert found == expected(ours, theirs, matches_null=matches_null)


@pytest.mark.parametrize("bits", [3, 9])
@pytest.mark.parametrize("matches_null", [False, True])
@pytest.mark.parametrize("kind", ["integers", "nullable texts", "structs", "nullable"])
def test_rows_that_differ_and_have_one_hash(
    kind: str, matches_null: bool, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poor(leaves: list[pa.Array], rows: int) -> object:
        return row_hashes(leaves, rows) >> (64 - bits) << (64 - bits)

    for module in (hash_table, hash_index):
        monkeypatch.setattr(module, "row_hashes", poor)
    monkeypatch.setattr(hash_index, "has_distinct_hashes", lambda arrow: False)
    monkeypatch.setattr(tuning, "INDEXED_VALUES_MIN", 10)
    column = distinct_columns(1_500)[kind]
    ours, theirs = [column.slice(3, 1_000)], [column.slice(700)]
    found = equal_rows(ours, theirs, matches_null=matches_null)
    assert found == expected(ours, theirs, matches_null=matches_null)


@pytest.mark.parametrize("indexed_min", [10, 1 << 14])
@pytest.mark.parametrize("arrow", [pa.float32(), pa.float64()])
def test_a_nan_finds_those_of_its_bits(
    arrow: pa.DataType, indexed_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 / 0 is another NaN than `nan`, for few rows and for many."""
    monkeypatch.setattr(tuning, "INDEXED_VALUES_MIN", indexed_min)
    written, divided = float("nan"), -float("nan")
    ours = [pa.array([written, *range(1, 50), divided, 0.0, -0.0], arrow)]
    theirs = [pa.array([divided, written, -0.0, 0.0, 7.0], arrow)]
    assert equal_rows(ours, theirs, matches_null=False) == [[50], [0], [52], [51], [7]]


def test_very_many_rows_with_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """256-bit numbers that differ in the upper half have equal hashes."""
    monkeypatch.setattr(tuning, "INDEXED_VALUES_MIN", 10)
    numbers = [Decimal(n << 128) for n in range(3_000)]
    column = pa.array(numbers, pa.decimal256(76, 0))
    ours, theirs = [column.slice(0, 2_000)], [column.slice(1_000)]
    assert Lookup(ours, 2_000).rescans_for_each_batch
    found = equal_rows(ours, theirs, matches_null=False)
    assert found == expected(ours, theirs, matches_null=False)


def test_two_columns_need_both_to_match() -> None:
    ours = [pa.array([1, 1, 2]), pa.array(["a", "b", "a"])]
    theirs = [pa.array([1, 2, 2, 1]), pa.array(["b", "b", "a", "a"])]
    assert equal_rows(ours, theirs, matches_null=False) == [[1], [], [2], [0]]


def test_structs_with_and_without_nulls_find_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "INDEXED_VALUES_MIN", 10)
    whole = pa.array([{"a": n, "b": str(n)} for n in range(50)])
    holed = pa.array([None if n % 3 else {"a": n, "b": str(n)} for n in range(50)], whole.type)
    for ours, theirs in (([whole], [holed]), ([holed], [whole])):
        found = equal_rows(ours, theirs, matches_null=True)
        assert found == expected(ours, theirs, matches_null=True)
