"""One pass that numbers rows and computes counts, sums and extremes of groups gives what several passes give, bit by
bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.group_codes import factorise
from olapdb.functions import parse_type
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.kernels.decimal_width import has_short_form, shortened
from olapdb.native.group_totals import Total, first_rows, group_totals
from olapdb.native.library import library, without_kernels
from olapdb.types import UINT8, Nullable
from tests.property.test_kernels import DECIMALS, INTEGERS, NUMBERS, TIMES, array_of, columns

pytestmark = [
    pytest.mark.feature("aggregates", "select"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

RADIX_MAX = 1 << 20
OF_NUMBERS = ["count", "sum", "sumWithOverflow", "avg", "min", "max", "sumCount", "any"]
CONDITIONAL = ["countIf", "sumIf", "avgIf"]


def keys(random: np.random.Generator, rows: int) -> list[pa.Array]:
    """Return one to three columns whose values are near to each other, from any end of the type on."""
    drawn = []
    for name in random.choice([*INTEGERS, *TIMES], random.integers(1, 4)):
        arrow = parse_type(str(name)).arrow
        bits, signed = arrow.bit_width, not pa.types.is_unsigned_integer(arrow)
        low = -(1 << bits - 1) if signed else 0
        start = [low, low + (1 << bits) - 12, low + (1 << bits - 1)][random.integers(3)]
        null = 0.3 * random.integers(2)
        values = [start + int(n) for n in random.integers(0, 12, rows)]
        drawn.append(array_of([None if random.random() < null else v for v in values], arrow))
    return drawn


@pytest.mark.parametrize("start", [0, 1, 7, 8, 13])
@pytest.mark.parametrize("in_runs", [False, True])
def test_rows_without_value_wherever_their_bits_begin(start: int, *, in_runs: bool) -> None:
    """Several steps of the kernel, whose bits begin within a byte, and rows that are no multiple of eight."""
    random = np.random.default_rng(start)
    rows = 3 * 1_024 + 517
    by = np.sort(random.integers(0, 9, rows)) if in_runs else random.integers(0, 9, rows)
    valid = random.random(rows + start) < 0.6
    numbers = random.integers(0, 1 << 16, rows + start).astype(np.uint16)
    column = pa.array(numbers, mask=~valid).slice(start)
    floats = pa.array(numbers.astype(np.float64), mask=~valid).slice(start)
    wanted = [Total("count", column), Total("sum", column), Total("sum", floats)]
    wanted += [Total("least", column), Total("largest", column)]
    found = group_totals([pa.array(by)], wanted, RADIX_MAX)
    assert found is not None
    firsts, (counts, sums, float_sums, least, largest) = found
    for at, key in enumerate(by[firsts]):
        own = numbers[start:][valid[start:] & (by == key)]
        assert counts[at] == len(own)
        assert sums[at] == float_sums[at] == own.sum()
        assert (least[at], largest[at]) == (own.min(), own.max())


@pytest.mark.parametrize("run", [1, 2, 15, 16, 17, 33, 700])
@pytest.mark.parametrize("start", range(0, 17, 4))
def test_runs_of_keys(run: int, start: int) -> None:
    """Runs of about as many rows as the kernel compares at once, which begin anywhere in these, and runs about as many
    as it adds up run by run."""
    random = np.random.default_rng(run)
    rows = 2 * 1_024 + 77
    lengths = random.integers(max(run - 1, 1), run + 2, rows)
    by = np.repeat(random.integers(0, 5, rows), lengths)[start : start + rows]
    numbers = random.integers(-(1 << 50), 1 << 50, rows)
    small = numbers.astype(np.uint32)
    wanted = [Total("count"), Total("sum", pa.array(numbers)), Total("sum", pa.array(small))]
    found = group_totals([pa.array(by)], wanted, RADIX_MAX)
    assert found is not None
    firsts, (counts, sums, small_sums) = found
    assert firsts.tolist() == sorted(np.unique(by, return_index=True)[1].tolist())
    for at, key in enumerate(by[firsts]):
        assert counts[at] == (by == key).sum()
        assert sums[at].astype(np.int64) == numbers[by == key].sum()
        assert small_sums[at] == small[by == key].sum(dtype=np.uint64)


@given(st.data())
def test_states(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 12))
    by = keys(np.random.default_rng(data.draw(st.integers(0, 1 << 32))), rows)
    name = data.draw(st.sampled_from([*NUMBERS, *TIMES]))
    values = data.draw(columns([name], rows))
    data_type = parse_type(name)
    kinds = ["count", "min", "max", "any"] if name in TIMES else [*OF_NUMBERS, *CONDITIONAL]
    kind = data.draw(st.sampled_from(kinds))
    types = [Nullable(data_type) if values.null_count else data_type]
    arguments = [values]
    if kind == "countIf":
        types, arguments = [], []
    if kind in CONDITIONAL:
        types.append(UINT8)
        flags = data.draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
        arguments.append(pa.array(flags, pa.uint8()))
    aggregate = resolve_aggregate(kind, (), types)
    given_arguments = list(arguments)
    if kind in CONDITIONAL and data.draw(st.booleans()):
        assert aggregate.takes_mask
        given_arguments[-1] = arguments[-1].cast(pa.bool_())
    if name in DECIMALS and has_short_form(data_type.arrow) and aggregate.takes_short_decimals:
        given_arguments = [shortened(a) if a is values else a for a in arguments]
    made = aggregate.totals(given_arguments)
    if made is None:
        return
    found = group_totals(by, made.totals, RADIX_MAX)
    if found is None:
        return
    with without_kernels():
        groups = factorise(by, rows)
        expected = aggregate.state(arguments, groups.groups)
    np.testing.assert_array_equal(found[0], groups.first)
    states = made.states(found[1])
    assert states.type == expected.type
    assert bits_of(states) == bits_of(expected)


def bits_of(states: pa.Array) -> list[object]:
    """Return states so that NaN equals NaN, and -0.0 differs from 0.0."""
    if pa.types.is_struct(states.type):
        return [bits for field in states.flatten() for bits in bits_of(field)]
    if pa.types.is_temporal(states.type):
        states = states.view(pa.int32() if states.type.bit_width == 32 else pa.int64())
    return [repr(value) for value in states.to_pylist()]


@pytest.mark.parametrize("distinct", [1, 7, 300, 1_024, 3_000, 20_000])
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("name", INTEGERS)
def test_many_rows(name: str, *, is_sorted: bool, distinct: int) -> None:
    """Packed words are emptied before they are full, and lanes are added up."""
    random = np.random.default_rng(distinct)
    rows = 70_001
    codes = random.integers(0, distinct, rows)
    by = pa.array(np.sort(codes) if is_sorted else codes)
    dtype = np.dtype(name.lower())
    limits = np.iinfo(dtype)
    values = pa.array(random.choice(np.array([limits.min, limits.max, 1], dtype), rows))
    wanted = [Total("sum", values), Total("count"), Total("least", values), Total("sum", by)]
    found = group_totals([by], wanted, RADIX_MAX)
    assert found is not None
    with without_kernels():
        groups = factorise([by], rows)
    np.testing.assert_array_equal(found[0], groups.first)
    np.testing.assert_array_equal(first_rows([by], RADIX_MAX), groups.first)
    numbers, order = values.to_numpy(), np.argsort(groups.codes, kind="stable")
    starts = np.searchsorted(groups.codes[order], np.arange(groups.count))
    sums = np.add.reduceat(numbers.astype(np.int64).view(np.uint64)[order], starts)
    np.testing.assert_array_equal(found[1][0], sums)
    np.testing.assert_array_equal(found[1][1], np.bincount(groups.codes))
    np.testing.assert_array_equal(found[1][2], np.minimum.reduceat(numbers[order], starts))
    np.testing.assert_array_equal(
        found[1][3], np.add.reduceat(by.to_numpy()[order], starts).view(np.uint64)
    )


def test_keys_of_too_many_values_are_refused() -> None:
    assert group_totals([pa.array([0, 99, 100])], [], 100) is None
    assert group_totals([pa.array([0, 99])], [], 100) is not None
    assert group_totals([pa.array([], pa.int64())], [], 100) is None
    assert group_totals([pa.array(["a"])], [], 100) is None


def test_a_sum_of_decimals_that_may_need_more_bits_is_refused() -> None:
    largest = pa.array([10**18 - 1] * 10, pa.int64()).view(pa.decimal64(18, 0))
    by = pa.array([1] * 10)
    assert group_totals([by], [Total("sum", largest)], 100) is None


@pytest.mark.parametrize("step", [3, 3600, 86_400, 1_000_003])
@pytest.mark.parametrize("name", ["Int64", "UInt64", "Int32", "UInt32"])
@pytest.mark.parametrize("is_exact", [True, False])
def test_keys_in_steps(name: str, step: int, is_exact: bool) -> None:
    """Keys that are multiples of a number, as times rounded to hours are, have a place for each step."""
    rows, arrow = 5_000, parse_type(name).arrow
    low = {"Int64": -(10**12), "UInt64": (1 << 63) + 5, "Int32": -(1 << 31), "UInt32": 7}[name]
    steps = np.random.default_rng(step).integers(0, 500, rows)
    values = [low + int(n) * step for n in steps]
    if not is_exact:
        values[-2] += 1
    keys_in_steps = pa.array(values, arrow)
    groups = factorise([keys_in_steps], rows)
    with without_kernels():
        expected = factorise([keys_in_steps], rows)
    np.testing.assert_array_equal(groups.codes, expected.codes)
    np.testing.assert_array_equal(groups.first, expected.first)
    found = group_totals([keys_in_steps], [Total("count")], 1 << 10)
    assert (found is not None) == is_exact
    if found is not None:
        np.testing.assert_array_equal(found[0], groups.first)
        assert found[1][0].tolist() == np.bincount(groups.codes).tolist()
