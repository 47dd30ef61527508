"""Compiled kernels and their forms in numpy and Arrow give the same, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import olapdb
from olapdb.compute.context import ExecutionContext
from olapdb.compute.group_codes import encode, factorise
from olapdb.compute.hash_table import Lookup
from olapdb.compute.ordering import OrderColumn, rows_within, sort_indices
from olapdb.compute.seen_rows import SeenRows
from olapdb.compute.spill.partitions import LEVELS_MAX, partition_numbers, partition_order
from olapdb.config import tuning
from olapdb.errors import DecimalOverflow
from olapdb.execute.operators.sort import is_bound
from olapdb.functions import parse_type, resolve_scalar
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Argument, Environment, Groups
from olapdb.functions.datetime.rounding import multiples
from olapdb.functions.kernels.columns import coded_rows, true_positions, view
from olapdb.functions.kernels.hashing import hash_values
from olapdb.native import selection
from olapdb.native.library import library, without_kernels
from olapdb.observation import Counts, counting
from olapdb.storage.distinct_counts import REGISTERS, raise_registers
from olapdb.types import DataType
from olapdb.types import Decimal as DecimalType

pytestmark = [
    pytest.mark.feature("aggregates", "select"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

INTEGERS = ["Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"]
TIMES = ["Date", "Date32", "DateTime('UTC')", "DateTime64(6, 'UTC')"]
DECIMALS = ["Decimal(9, 2)", "Decimal(18, 4)", "Decimal(38, 3)"]
NUMBERS = [*INTEGERS, "Float32", "Float64", *DECIMALS]
TEXTS = ["String", "FixedString(3)", "UUID"]
"""The types whose columns have kernels; Bool and Decimal(76, 2) take the other form."""
ALL = [*NUMBERS, *TIMES, *TEXTS, "Bool", "Decimal(76, 2)"]


def integers_of(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.one_of(st.integers(low, high), st.sampled_from([low, high, 0, 1, 2, 3]))


def physical(data_type: DataType) -> st.SearchStrategy[object]:
    """Draw values for `array_of`: any number of the type's width, and often the same ones."""
    arrow = data_type.arrow
    if pa.types.is_boolean(arrow):
        return st.booleans()
    if pa.types.is_floating(arrow):
        common = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")])
        return st.one_of(common, st.floats(width=arrow.bit_width))
    if pa.types.is_decimal(arrow):
        unscaled = st.integers(-(10**arrow.precision) + 1, 10**arrow.precision - 1)
        small = st.integers(-3, 3)
        return st.one_of(unscaled, small).map(lambda n: Decimal(f"{n}e-{arrow.scale}"))
    if pa.types.is_fixed_size_binary(arrow):
        return st.binary(min_size=arrow.byte_width, max_size=arrow.byte_width)
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return st.one_of(st.sampled_from(["", "a", "ab", "abcdefgh"]), st.text(max_size=20))
    signed = not pa.types.is_unsigned_integer(arrow)
    return integers_of(arrow.bit_width, signed=signed)


def array_of(values: list[object], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(arrow):
        integers = pa.int32() if arrow.bit_width == 32 else pa.int64()
        return pa.array(values, integers).view(arrow)
    return pa.array(values, arrow)


@st.composite
def columns(draw: st.DrawFn, names: list[str], rows: int) -> pa.Array:
    """Draw a column that may have NULLs and may begin within its buffers."""
    data_type = parse_type(draw(st.sampled_from(names)))
    values = physical(data_type)
    if draw(st.booleans()):
        values = st.one_of(values, st.none())
    skipped = draw(st.integers(0, 9))
    drawn = draw(st.lists(values, min_size=rows + skipped, max_size=rows + skipped))
    return array_of(drawn, data_type.arrow).slice(skipped)


@given(st.lists(st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"\0" * 8, b"\0" * 9, None])))
def test_group_codes_of_texts_that_end_in_zeros(values: list[bytes | None]) -> None:
    """A short text is told by one number, which is that of a longer one too."""
    column = pa.array(values * 70, pa.binary())
    codes, count = encode(column)
    with without_kernels():
        expected, expected_count = encode(column)
    np.testing.assert_array_equal(codes, expected)
    assert count == expected_count


@pytest.mark.parametrize("spread", [1, 100_000, 1 << 61])
def test_group_codes_of_texts_beside_integers(spread: int) -> None:
    """One table, a hash of one number, and codes of each column, by how far the integers lie apart."""
    random = np.random.default_rng(spread)
    rows = tuning.MERGED_ROWS_MIN
    texts = pa.array([f"name {n}" for n in range(300)]).take(
        pa.array(random.integers(0, 300, rows))
    )
    numbers = pa.array(random.integers(-3, 4, rows) * spread, mask=random.random(rows) < 0.1)
    for keys in ([texts, numbers], [numbers, texts, texts]):
        compiled = factorise(keys, rows, threads=2)
        with without_kernels():
            expected = factorise(keys, rows)
        np.testing.assert_array_equal(compiled.codes, expected.codes)
        np.testing.assert_array_equal(compiled.first, expected.first)


@given(st.data())
def test_group_codes(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 60))
    count = data.draw(st.integers(1, 3))
    keys = [data.draw(columns(ALL, rows)) for _ in range(count)]
    compiled = factorise(keys, rows)
    with without_kernels():
        expected = factorise(keys, rows)
    np.testing.assert_array_equal(compiled.codes, expected.codes)
    np.testing.assert_array_equal(compiled.first, expected.first)


@pytest.mark.parametrize("distinct", [3, 2_600, 20_000, 60_000])
@pytest.mark.parametrize("name", ["uint64", "date32", "string", "short", "fixed", "decimal"])
def test_group_codes_of_tables_that_grow(name: str, distinct: int) -> None:
    """More keys than a table has slots at first, with NULLs between them."""
    numbers = np.random.default_rng(distinct).integers(0, distinct, 60_000)
    spread = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(1)
    columns = {
        "uint64": pa.array(spread),
        "date32": pa.array((spread >> np.uint64(32)).astype(np.int32), pa.date32()),
        "string": pa.array(spread).cast(pa.string()),
        "short": pa.array([number.tobytes()[: 1 + number % 8] for number in numbers], pa.binary()),
        "fixed": pa.array([number.tobytes() * 2 for number in spread], pa.binary(16)),
        "decimal": pa.array(numbers).cast(pa.decimal128(38, 2)),
    }
    mask = numbers % 97 == 5
    column = columns[name].take(pa.array(np.arange(len(numbers)), mask=mask))
    codes, count = encode(column)
    with without_kernels():
        expected, expected_count = encode(column)
    np.testing.assert_array_equal(codes, expected)
    assert count == expected_count


@given(st.lists(st.one_of(integers_of(64, signed=False), st.integers(0, 9)), max_size=50))
def test_registers_of_sketches(hashes: list[int]) -> None:
    raised = []
    for is_compiled in (True, False):
        registers = np.zeros(REGISTERS, np.uint8)
        registers[0] = 3
        with nullcontext() if is_compiled else without_kernels():
            raise_registers(registers, np.array(hashes, np.uint64))
        raised.append(registers)
    np.testing.assert_array_equal(raised[0], raised[1])


def new_rows(batches: Sequence[list[pa.Array]]) -> list[list[int]]:
    """Return the rows of each batch that no row before equals."""
    account = ExecutionContext().memory.account("DISTINCT")
    with account:
        seen = SeenRows(account)
        return [seen.add(batch, len(batch[0])).tolist() for batch in batches]


@given(st.data())
def test_new_rows_of_batches(data: st.DataObject) -> None:
    """Rows of few bits are keys of one set; others are looked up in several."""
    names = data.draw(
        st.lists(st.sampled_from([*INTEGERS, "Float32", *TIMES]), min_size=1, max_size=3)
    )
    sizes = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=3))
    batches = [[data.draw(columns([name], size)) for name in names] for size in sizes]
    compiled = new_rows(batches)
    with without_kernels():
        assert new_rows(batches) == compiled


def test_new_rows_of_a_set_that_grows() -> None:
    numbers = np.random.default_rng(5).integers(0, 30_000, 90_000)
    column = pa.array(numbers, pa.int64(), mask=numbers % 1_000 == 7)
    batches = [[column.slice(start, 30_000)] for start in range(0, 90_000, 30_000)]
    compiled = new_rows(batches)
    with without_kernels():
        assert new_rows(batches) == compiled


AGGREGATES = {
    "count": ALL,
    "sum": NUMBERS,
    "sumWithOverflow": INTEGERS,
    "avg": NUMBERS,
    "min": [*NUMBERS, *TIMES],
    "max": [*NUMBERS, *TIMES],
    "any": [*NUMBERS, *TIMES],
    "groupBitXor": INTEGERS,
}


def test_sums_of_decimals_around_64_bits() -> None:
    """Sums that just fit 64 bits are added up there, and others in 128."""
    largest = (1 << 59) - 1
    arrow = pa.decimal128(38, 0)
    for values in (
        [largest] * 16,
        [largest + 1] * 16,
        [-largest - 1] * 16,
        [largest, 1, None, -1 << 70],
    ):
        column = pa.array([None if v is None else Decimal(v) for v in values], arrow)
        for codes in ([0] * len(values), [at % 2 for at in range(len(values))]):
            groups = Groups(np.array(codes, np.int64), max(codes) + 1)
            aggregate = resolve_aggregate("sum", (), (parse_type("Nullable(Decimal(38, 0))"),))
            found = aggregate.finalize(aggregate.state([column], groups)).to_pylist()
            expected = [Decimal(0)] * groups.count
            for code, value in zip(codes, values, strict=True):
                expected[code] += value or 0
            assert found == expected


def same_bits(left: pa.Array, right: pa.Array) -> bool:
    """Return whether two arrays are equal, floats by their bits. All NaNs are one: which of two
    the sum of them has is the processor's choice."""
    if pa.types.is_struct(left.type):
        return all(map(same_bits, left.flatten(), right.flatten()))
    if pa.types.is_floating(left.type):
        bits = pa.int64() if left.type.bit_width == 64 else pa.int32()
        left, right = (
            pc.if_else(pc.is_nan(side), pa.scalar(math.nan, side.type), side)
            for side in (left, right)
        )
        return same_bits(left.view(bits), right.view(bits))
    return bool(left.equals(right))


@pytest.mark.parametrize("function", AGGREGATES)
@given(data=st.data())
def test_states_and_merges_of_aggregates(function: str, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 40))
    name = data.draw(st.sampled_from(AGGREGATES[function]))
    column = data.draw(columns([name], rows))
    count = data.draw(st.integers(1, 4))
    codes = data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))
    if data.draw(st.booleans()):
        codes.sort()  # rows of one group one after the other take a path of their own
    groups = Groups(np.array(codes, np.int64), count)
    merged_groups = Groups(np.arange(count) % 2, 2)
    argument = parse_type(f"Nullable({name})" if column.null_count else name)
    aggregate = resolve_aggregate(function, (), (argument,))
    states = aggregate.state([column], groups)
    merged = aggregate.merge(states, merged_groups)
    with without_kernels():
        # `Groups` keep what they computed, so the other form gets its own.
        expected = aggregate.state([column], Groups(groups.codes, count))
        expected_merged = aggregate.merge(expected, Groups(merged_groups.codes, 2))
    assert same_bits(states, expected)
    assert same_bits(merged, expected_merged)


@given(st.data())
def test_positions_of_true_rows(data: st.DataObject) -> None:
    column = data.draw(columns(["Bool"], data.draw(st.integers(0, 300))))
    compiled = true_positions(column)
    with without_kernels():
        np.testing.assert_array_equal(compiled, true_positions(column))


@given(st.lists(st.integers(-1, 3) | st.integers(-(2**63), 2**63 - 1), max_size=200))
def test_rows_with_a_code(codes: list[int]) -> None:
    compiled = coded_rows(np.array(codes, np.int64))
    with without_kernels():
        expected = coded_rows(np.array(codes, np.int64))
    for array, other in zip(compiled, expected, strict=True):
        np.testing.assert_array_equal(array, other)


@given(st.data())
def test_moments_of_groups(data: st.DataObject) -> None:
    """Variances and correlations add up the same deviations in the same order, to the last bit."""
    rows, count = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 4))
    codes = data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))
    numbers = st.floats() | st.integers(-5, 5).map(float)
    arguments = [
        pa.array(
            data.draw(st.lists(numbers | st.none(), min_size=rows, max_size=rows)), pa.float64()
        )
        for _ in range(2)
    ]
    for function, width in (("varPop", 1), ("stddevSamp", 1), ("corr", 2), ("covarSamp", 2)):
        types = tuple(parse_type("Nullable(Float64)") for _ in range(width))
        aggregate = resolve_aggregate(function, (), types)
        compiled = aggregate.state(arguments[:width], Groups(np.array(codes, np.int64), count))
        with without_kernels():
            expected = aggregate.state(arguments[:width], Groups(np.array(codes, np.int64), count))
        assert same_bits(compiled, expected)


@pytest.mark.skipif(library() is None, reason="kernels are counted")
@pytest.mark.parametrize(
    ("query", "kernel"),
    [
        ("SELECT corr(number, number % 3) FROM numbers(9)", "sum_deviations"),
        ("SELECT varPop(number) FROM numbers(9)", "sum_deviations"),
        (
            "SELECT count() FROM numbers(9) AS a JOIN (SELECT number AS k FROM numbers(5, 9)) AS b ON a.number = b.k"
            " WHERE a.number + b.k > 0",
            "coded_rows",
        ),
    ],
)
def test_moments_and_joins_call_their_kernels(query: str, kernel: str) -> None:
    counts = Counts()
    with olapdb.connect() as connection, counting(counts):
        connection.execute(query).fetchall()
    assert kernel in {name.removeprefix("olapdb_") for name in counts.kernels}


@pytest.mark.parametrize("share", [0.0, 0.02, 0.17, 0.2, 0.4, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 1_000])
@pytest.mark.parametrize("name", [*NUMBERS, *TIMES])
def test_values_that_a_mask_keeps(name: str, rows: int, share: float) -> None:
    """Words of a mask with few, many and all bits, of columns and masks that begin anywhere."""
    random = np.random.default_rng(rows)
    arrow, before = parse_type(name).arrow, 8
    width = arrow.bit_width // 8
    data = pa.py_buffer(random.bytes((rows + before) * width))
    column = pa.Array.from_buffers(arrow, rows + before, [None, data]).slice(3, rows)
    mask = pa.array(random.random(rows + before) < share).slice(before)
    kept = selection.kept_values(column, mask, mask.true_count)
    assert kept is not None
    expected = np.frombuffer(data, f"V{width}")[3 : 3 + rows][mask.to_numpy(zero_copy_only=False)]
    assert kept.buffers()[1].to_pybytes() == expected.tobytes()


@given(
    st.lists(integers_of(32, signed=False) | integers_of(64, signed=True), max_size=9),
    st.integers(1, 1 << 31) | st.sampled_from([60, 3_600, 86_400]),
)
def test_multiples_of_a_step(values: list[int], step: int) -> None:
    """Times are rounded down as floor division does, beyond 32 bits and before 1970 too."""
    # The product of the least numbers wraps around in both forms.
    given = np.array([max(value, -(1 << 62)) for value in values], np.int64)
    for numbers in (given, given & 0xFFFF_FFFF, np.repeat(given, 2)[::2]):
        assert multiples(numbers, step).tolist() == [n // step * step for n in numbers.tolist()]


@given(st.data())
def test_rows_whose_code_has_a_flag(data: st.DataObject) -> None:
    rows, codes = data.draw(st.integers(0, 200)), data.draw(st.integers(1, 100))
    arrow = parse_type(data.draw(st.sampled_from(INTEGERS))).arrow
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    numbers, flags = seed.integers(0, codes, rows + 3), seed.integers(0, 2, codes + 1, np.uint8)
    is_null = seed.integers(0, 3, rows + 3) == 0 if data.draw(st.booleans()) else None
    before = seed.integers(0, 2, rows).astype(bool)
    kept = selection.kept_rows(pa.array(np.append([True] * 3, before)).slice(3), rows)
    selection.keep_flagged(
        pa.array(numbers.astype(arrow.to_pandas_dtype()), mask=is_null).slice(3), flags, kept
    )
    expected = flags[np.where(False if is_null is None else is_null, codes, numbers)[3:]] == 1
    assert selection.as_mask(kept, rows).to_pylist() == (expected & before).tolist()


@given(st.data())
def test_hashes_of_values(data: st.DataObject) -> None:
    """They are stored in states, so they may never differ."""
    column = data.draw(columns(ALL, data.draw(st.integers(0, 40))))
    compiled = hash_values(column)
    with without_kernels():
        np.testing.assert_array_equal(compiled, hash_values(column))


@pytest.mark.parametrize("matches_null", [True, False])
@given(data=st.data())
def test_rows_that_are_looked_up(matches_null: bool, data: st.DataObject) -> None:
    names = [data.draw(st.sampled_from(ALL)) for _ in range(data.draw(st.integers(1, 2)))]
    rows, searched = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 40))
    known = [data.draw(columns([name], rows)) for name in names]
    other = [data.draw(columns([name], searched)) for name in names]
    both = [pa.concat_arrays(pair) for pair in zip(known, other, strict=True)]
    with patch.multiple(tuning, INDEXED_VALUES_MIN=1):
        compiled = Lookup(known, rows, matches_null=matches_null).find(both, rows + searched)
        with without_kernels():
            expected = Lookup(known, rows, matches_null=matches_null).find(both, rows + searched)
    np.testing.assert_array_equal(compiled, expected)


@pytest.mark.parametrize("distinct", [50, 40_000])
def test_many_texts_that_are_looked_up(distinct: int) -> None:
    """Equal hashes are compared by value: each text is found as itself, or not at all."""
    numbers = np.random.default_rng(5).integers(0, distinct, 40_000)
    known = pa.array(numbers).cast(pa.string())
    searched = pa.array(np.arange(-5, distinct)).cast(pa.string())
    lookup = Lookup([known], len(known))
    codes = lookup.find([searched], len(searched))
    present = np.isin(np.arange(-5, distinct), numbers)
    np.testing.assert_array_equal(codes >= 0, present)
    found = lookup.values(0).take(pa.array(codes[present]))
    assert found.equals(searched.filter(pa.array(present)))


@given(st.data())
def test_rows_up_to_a_bound(data: st.DataObject) -> None:
    column = data.draw(columns([*NUMBERS, *TIMES, "String", "Bool", "UUID"], 30))
    bound = column[data.draw(st.integers(0, 29))]
    if not is_bound(bound):
        return
    key = OrderColumn(column, data.draw(st.booleans()), data.draw(st.booleans()))
    compiled = rows_within(key, bound)
    with without_kernels():
        np.testing.assert_array_equal(compiled, rows_within(key, bound))


SORTED = [*INTEGERS, *TIMES, "Float32", "Float64", *DECIMALS, "Bool", "String"]


@given(st.data())
def test_sorted_orders(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 40))
    keys = [
        OrderColumn(
            data.draw(columns(SORTED, rows)), data.draw(st.booleans()), data.draw(st.booleans())
        )
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    sample = data.draw(st.sampled_from([1, 8, 1_024]))
    with patch.multiple(tuning, RADIX_SORT_ROWS_MIN=2, SORTED_TEXTS_SAMPLE=sample):
        compiled = sort_indices(keys, rows)
    with without_kernels():
        assert compiled.equals(sort_indices(keys, rows))


@pytest.mark.parametrize("distinct", [3, 700, 1 << 40])
@pytest.mark.parametrize("name", ["Float32", "Float64", "Decimal(18, 4)", "String"])
def test_sorted_orders_of_many_values(name: str, distinct: int) -> None:
    """Texts go by their places where they repeat, and by themselves where they do not."""
    numbers = np.random.default_rng(3).integers(-distinct, distinct, 30_000)
    if name == "String":
        column = pa.array(numbers).cast(pa.string())
    elif name.startswith("Float"):
        column = pa.array((numbers / 8).astype(parse_type(name).arrow.to_pandas_dtype()))
    else:
        column = pa.array([Decimal(n).scaleb(-4) for n in numbers.tolist()], pa.decimal128(18, 4))
    with_nulls = pc.if_else(pa.array(numbers % 5 == 0), None, column)
    keys = [OrderColumn(pa.array(numbers % 7)), OrderColumn(with_nulls, True, True)]
    compiled = sort_indices(keys, len(numbers))
    with without_kernels():
        assert compiled.equals(sort_indices(keys, len(numbers)))


@pytest.mark.parametrize("name", INTEGERS)
def test_sorted_orders_of_many_rows(name: str) -> None:
    """With all digits of the type, and with a second column that only equal rows reach."""
    numbers = np.random.default_rng(3).integers(0, 1 << 63, 30_000, np.uint64)
    column = pa.array((numbers * np.uint64(3)).astype(parse_type(name).arrow.to_pandas_dtype()))
    keys = [OrderColumn(pa.array(numbers % 7)), OrderColumn(column, descending=True)]
    compiled = sort_indices(keys, len(numbers))
    with without_kernels():
        assert compiled.equals(sort_indices(keys, len(numbers)))


@pytest.mark.parametrize("high", [0, 1, 37, 1 << 30])
@pytest.mark.parametrize("low", [1, 1 << 22, 1 << 33])
def test_sorted_orders_of_parts(high: int, low: int) -> None:
    """Many rows are divided by their uppermost bits first: evenly, or nearly all in one part."""
    seed = np.random.default_rng(4)
    first = np.where(seed.integers(0, 50, 70_000) == 0, seed.integers(0, high + 1, 70_000), high)
    keys = [
        OrderColumn(pa.array(first), descending=True),
        OrderColumn(pa.array(seed.integers(0, low, 70_000))),
    ]
    compiled = sort_indices(keys, 70_000)
    with without_kernels():
        assert compiled.equals(sort_indices(keys, 70_000))


@given(st.data())
def test_partitions_of_rows(data: st.DataObject) -> None:
    """Rows are divided alike at each level; a partition keeps their order."""
    rows, level = data.draw(st.integers(0, 40)), data.draw(st.integers(0, LEVELS_MAX - 1))
    keys = [data.draw(columns(ALL, rows)) for _ in range(data.draw(st.integers(1, 3)))]
    compiled = partition_numbers(keys, rows, level)
    order, ends = partition_order(compiled)
    with without_kernels():
        np.testing.assert_array_equal(compiled, partition_numbers(keys, rows, level))
        expected_order, expected_ends = partition_order(compiled)
    np.testing.assert_array_equal(order, expected_order)
    np.testing.assert_array_equal(ends, expected_ends)


@pytest.mark.parametrize("runs", [1, 2, 3, 7, 8, 60, 64, 65, 66, 1000])
@pytest.mark.parametrize("distinct", [1, 5, 1 << 20, 1 << 45])
def test_sorted_orders_of_runs(runs: int, distinct: int) -> None:
    """As the rows of parts that are merged come: ascending runs, with equal keys across them."""
    numbers = np.random.default_rng(runs).integers(0, distinct, (runs, 12_000 // runs), np.int64)
    values = np.sort(numbers, axis=1).ravel()
    spread = values * ((1 << 62) // distinct)  # key and row number do not fit one word
    for keys in ([OrderColumn(pa.array(values))], [OrderColumn(pa.array(spread))]):
        compiled = sort_indices(keys, numbers.size)
        with without_kernels():
            assert compiled.equals(sort_indices(keys, numbers.size))


@given(st.data())
def test_decimal_arithmetic(data: st.DataObject) -> None:
    """Sums, differences and products of columns and constants, with their errors."""
    rows = data.draw(st.integers(1, 40))
    operands: list[pa.Array | pa.Scalar] = []
    types = []
    for _ in range(2):
        name = data.draw(st.sampled_from([*DECIMALS, *INTEGERS]))
        column = data.draw(columns([name], rows))
        operands.append(column[0] if data.draw(st.booleans()) else column)
        types.append(parse_type(name))
    assume(any(isinstance(data_type, DecimalType) for data_type in types))
    operation = data.draw(st.sampled_from(["plus", "minus", "multiply"]))
    compiled = decimal_outcome(operation, types, operands, rows)
    with without_kernels():
        assert decimal_outcome(operation, types, operands, rows) == compiled


@pytest.mark.parametrize(
    ("operation", "left", "right"),
    [
        ("multiply", ("Decimal(18, 0)", 4 * 10**9), ("Decimal(18, 0)", 4 * 10**9)),
        ("multiply", ("Decimal(9, 0)", 50_000), ("Decimal(9, 0)", 50_000)),
        ("multiply", ("Decimal(38, 0)", 10**18), ("Decimal(18, 0)", 10**17)),
        ("plus", ("Decimal(18, 0)", 9 * 10**18), ("Decimal(18, 0)", 9 * 10**18)),
        ("plus", ("UInt64", 2**64 - 1), ("Decimal(9, 2)", 1)),
        ("minus", ("Decimal(18, 4)", 1), ("Int64", 2**62)),
        ("minus", ("Decimal(38, 4)", -1), ("Int64", 2**62)),
    ],
)
def test_decimal_arithmetic_near_its_limits(
    operation: str, left: tuple[str, int], right: tuple[str, int]
) -> None:
    types = [parse_type(name) for name, _ in (left, right)]
    operands = [pa.array([1, digits], pa.decimal128(38, 0)) for _, digits in (left, right)]
    for at, data_type in enumerate(types):
        if isinstance(data_type, DecimalType):
            operands[at] = view(operands[at], data_type.arrow)
        else:
            operands[at] = operands[at].cast(data_type.arrow)
    compiled = decimal_outcome(operation, types, operands, 2)
    with without_kernels():
        assert decimal_outcome(operation, types, operands, 2) == compiled


def decimal_outcome(
    operation: str, types: list[DataType], operands: Sequence[pa.Array | pa.Scalar], rows: int
) -> object:
    """Return type and values of the operation, or the text of its error."""
    call = resolve_scalar(operation, [Argument(data_type) for data_type in types])
    try:
        value = call.kernel(operands, rows, Environment())
    except DecimalOverflow as error:
        return str(error)
    return value.type, value.to_pylist() if isinstance(value, pa.Array) else value.as_py()
