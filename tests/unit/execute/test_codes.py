"""Group codes agree with equality of rows in plain Python, for every kind of column."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.group_codes import factorise
from olapdb.config import tuning

pytestmark = pytest.mark.feature("select")

KINDS = {
    "integers": (pa.int64(), st.integers(-3, 3)),
    "floats": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])),
    "texts": (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    "lists": (pa.list_(pa.int32()), st.lists(st.one_of(st.none(), st.integers(0, 2)), max_size=3)),
    "nested": (
        pa.list_(pa.list_(pa.string())),
        st.lists(st.lists(st.sampled_from(["x", "y"]), max_size=2), max_size=2),
    ),
    "structs": (
        pa.struct([("a", pa.int8()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 1), "b": st.sampled_from(["p", "q"])}),
    ),
    "maps": (
        pa.map_(pa.string(), pa.int8()),
        st.lists(st.tuples(st.sampled_from(["k", "l"]), st.integers(0, 1)), max_size=2),
    ),
}


def normal(value: object) -> object:
    """Return a hashable key: NaN equals NaN, -0.0 differs from 0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return tuple(normal(v) for v in value.values())
    if isinstance(value, list | tuple):
        return tuple(normal(v) for v in value)
    return value


def python_codes(rows: list[object]) -> list[int]:
    seen: dict[object, int] = {}
    return [seen.setdefault(row, len(seen)) for row in rows]


WHOLE = {
    "int8": (pa.int8(), -(1 << 7), (1 << 7) - 1),
    "uint8": (pa.uint8(), 0, (1 << 8) - 1),
    "int32": (pa.int32(), -(1 << 31), (1 << 31) - 1),
    "int64": (pa.int64(), -(1 << 63), (1 << 63) - 1),
    "uint64": (pa.uint64(), 0, (1 << 64) - 1),
    "dates": (pa.date32(), -(1 << 31), (1 << 31) - 1),
    "times": (pa.timestamp("us", "UTC"), -(1 << 63) + 1, (1 << 63) - 1),
}


@pytest.mark.parametrize("kind", sorted(WHOLE))
@given(data=st.data())
def test_whole_numbers_that_lie_near_to_each_other(kind: str, data: st.DataObject) -> None:
    """At both ends of the type, and around the number of values that a table of them may have."""
    arrow, least, largest = WHOLE[kind]
    span = data.draw(st.sampled_from([0, 3, 255, 4_095, 4_096, 1 << 40]))
    low = data.draw(st.sampled_from([least, max(least, -2), largest - min(span, largest - least)]))
    high = min(low + span, largest)
    rows = data.draw(st.integers(1, 12))
    columns = [
        data.draw(
            st.lists(st.sampled_from([low, high, (low + high) // 2]), min_size=rows, max_size=rows)
        )
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    storage = pa.int32() if pa.types.is_date32(arrow) else pa.int64()
    temporal = pa.types.is_temporal(arrow)
    arrays = [
        pa.array(column, storage).view(arrow) if temporal else pa.array(column, arrow)
        for column in columns
    ]
    found = factorise(arrays, rows)
    expected = python_codes(list(zip(*columns, strict=True)))
    assert found.codes.tolist() == expected
    assert found.first.tolist() == [expected.index(c) for c in range(found.count)]


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_factorise_numbers_rows_by_first_appearance(kind: str, data: st.DataObject) -> None:
    arrow, element = KINDS[kind]
    drawn = data.draw(st.lists(st.one_of(st.none(), element), max_size=12))
    column = pa.array(drawn, arrow)
    found = factorise([column], len(drawn))
    expected = python_codes([normal(v) for v in column.to_pylist()])
    assert found.codes.tolist() == expected
    assert found.first.tolist() == [expected.index(c) for c in range(found.count)]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 2)), st.sampled_from(["", "a"]), st.booleans()
        ),
        max_size=20,
    )
)
def test_factorise_of_several_columns(rows: list[tuple[object, ...]]) -> None:
    columns = [
        pa.array([r[at] for r in rows], t)
        for at, t in enumerate((pa.int64(), pa.string(), pa.bool_()))
    ]
    assert factorise(columns, len(rows)).codes.tolist() == python_codes(list(rows))


def test_without_columns_all_rows_are_one_group() -> None:
    assert factorise([], 3).codes.tolist() == [0, 0, 0]
    assert factorise([], 0).count == 0


def test_many_wide_columns_do_not_overflow_the_packed_code() -> None:
    rows = 100_000
    columns = [pa.array(np.random.default_rng(seed).permutation(rows)) for seed in range(5)]
    assert factorise(columns, rows).count == rows
    assert factorise([*columns, *columns], rows).count == rows


def distinct_columns(rows: int) -> dict[str, pa.Array]:
    """Return values that are mostly distinct and far apart, each of them twice."""
    chance = np.random.default_rng(7)
    numbers = chance.integers(0, 1 << 62, rows)
    again = rows // 4
    numbers[rows - again :] = chance.permutation(numbers[:again])
    holes = chance.random(rows) < 0.1
    floats = numbers / 3
    floats[::50], floats[1::50], floats[2::50] = math.nan, 0.0, -0.0
    text = pa.array(numbers).cast(pa.string())
    return {
        "integers": pa.array(numbers),
        "unsigned": pa.array(numbers.astype(np.uint64) * np.uint64(3)),
        "nullable": pa.array(numbers, mask=holes),
        "floats": pa.array(floats),
        "texts": text,
        "nullable texts": pa.array(text.to_pylist(), pa.string(), mask=holes),
        "times": pa.array(numbers).view(pa.timestamp("us", "UTC")),
        "decimals": pa.array(numbers).cast(pa.decimal128(38, 2)),
        "wide decimals": pa.array(numbers).cast(pa.decimal256(60, 2)),
        "fixed": pa.array([str(n)[:4].encode() for n in numbers], pa.binary(4)),
        "structs": pa.StructArray.from_arrays(
            [pa.array(numbers % 5), text], ["a", "b"], mask=pa.array(holes)
        ),
        "lists": pa.array([[n % 3, n] for n in numbers.tolist()]),
    }


@pytest.mark.parametrize("kind", sorted(distinct_columns(1)))
def test_many_distinct_rows_are_grouped_slice_by_slice(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices give the groups of one pass, in the same order; the limits are lowered for the test."""
    rows = 5_000
    column = distinct_columns(rows)[kind].slice(3)
    beside = pa.array(np.arange(len(column)) % 2)
    for columns in ([column], [column, beside]):
        whole = factorise(columns, len(column))
        with monkeypatch.context() as patched:
            patched.setattr(tuning, "SLICED_ROWS_MIN", 1_000)
            patched.setattr(tuning, "SLICE_ROWS", 300)
            sliced = factorise(columns, len(column))
        assert sliced.count == whole.count
        assert (sliced.codes == whole.codes).all()
        assert (sliced.first == whole.first).all()


def test_a_million_distinct_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuning.SLICED_ROWS_MIN + 5
    numbers = np.random.default_rng(1).integers(0, rows, rows).astype(np.uint64)
    column = pa.array(numbers << np.uint64(40))
    sliced = factorise([column], rows)
    monkeypatch.setattr(tuning, "SLICED_ROWS_MIN", rows + 1)
    whole = factorise([column], rows)
    assert (sliced.codes == whole.codes).all()
    assert (sliced.first == whole.first).all()
