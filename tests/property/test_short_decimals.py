"""Decimals with 64 bits, and what is computed of them, are those with 128 bits, value by value."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.compute.batches import filter_rows
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.short_decimals import program_of
from olapdb.config import tuning
from olapdb.errors import DecimalOverflow
from olapdb.functions import parse_type, resolve_scalar
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Argument, Environment, Groups
from olapdb.functions.kernels.decimal_width import (
    decimals_of_integers,
    is_short,
    lengthened,
    shortened,
)
from olapdb.native.library import library, without_kernels
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression

pytestmark = pytest.mark.feature("select", "aggregates")

COLUMNS = {
    "a": "Decimal(18, 2)",
    "b": "Decimal(9, 2)",
    "c": "Decimal(15, 4)",
    "d": "Nullable(Decimal(12, 1))",
    "i": "Int32",
    "u": "UInt64",
    "n": "Nullable(Int8)",
}
CONSTANTS = [("UInt8", 1), ("Int16", -300), ("UInt64", 2**64 - 1)]


def column_of(name: str, digits: int, rows: int, seed: np.random.Generator) -> pa.Array:
    """Return numbers of up to so many digits, with NULLs if the type has them, as a slice."""
    data_type = parse_type(name)
    arrow = data_type.arrow
    limit = min(10**digits, 10**18 - 1)
    if pa.types.is_integer(arrow):
        low, high = (0, 2**63 - 1) if arrow == pa.uint64() else (-(1 << arrow.bit_width - 1), limit)
        high = min(high, limit, -low - 1 if low else high)
        values: list[object] = seed.integers(max(low, -limit), high, rows + 3).tolist()
    else:
        limit = min(limit, 10**arrow.precision - 1)
        numbers = seed.integers(-limit, limit, rows + 3, endpoint=True)
        values = [Decimal(int(number)).scaleb(-arrow.scale) for number in numbers]
    if name.startswith("Nullable"):
        values = [None if at % 3 == 0 else value for at, value in enumerate(values)]
    return pa.array(values, arrow).slice(3)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """Draw a sum, difference or product of columns and constants."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(COLUMNS)))
            return ColumnRef(parse_type(COLUMNS[name]), name)
        name, value = draw(st.sampled_from(CONSTANTS))
        return Constant(parse_type(name), pa.scalar(value, parse_type(name).arrow))
    sides = (draw(expressions(depth - 1)), draw(expressions(depth - 1)))
    name = draw(st.sampled_from(["plus", "minus", "multiply"]))
    try:
        function = resolve_scalar(name, [Argument(side.type) for side in sides])
    except olapdb.Error:  # a scale beyond the digits
        return sides[0]
    return Call(function.type, name, sides, function)


@pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare.")
@given(expressions(), st.integers(0, 700), st.integers(1, 18), st.integers(0, 99), st.booleans())
def test_expressions_in_one_pass(
    expression: Expression, rows: int, digits: int, number: int, are_short: bool
) -> None:
    program = program_of(expression)
    if program is None:
        return
    seed = np.random.default_rng(number)
    arrays = [column_of(name, digits, rows, seed) for name in COLUMNS.values()]
    plain = pa.RecordBatch.from_arrays(arrays, list(COLUMNS))
    short = [shortened(a) if pa.types.is_decimal(a.type) else a for a in arrays]
    found = program.run(pa.RecordBatch.from_arrays(short if are_short else arrays, list(COLUMNS)))
    with without_kernels():
        try:
            expected = evaluate_array(expression, plain, Environment())
        except DecimalOverflow:
            assert found is None
            return
    if found is not None:
        assert is_short(found.type)
        assert lengthened(found).equals(expected)


def test_a_value_that_does_not_fit_is_left_to_the_other_form() -> None:
    if library() is None:
        pytest.skip("There are no compiled kernels.")
    price = ColumnRef(parse_type("Decimal(18, 0)"), "price")
    function = resolve_scalar("multiply", [Argument(price.type)] * 2)
    program = program_of(Call(function.type, "multiply", (price, price), function))
    assert program is not None
    for number, fits in ((3_037_000_499, True), (3_037_000_500, False), (-(2**31), True)):
        column = pa.array([Decimal(1), Decimal(number)], pa.decimal128(18, 0))
        found = program.run(pa.RecordBatch.from_arrays([column], ["price"]))
        assert (found is not None) == fits
        assert found is None or found[1].as_py() == number * number


@given(st.data())
def test_both_widths_of_a_column(data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from(["Decimal(18, 2)", "Decimal(9, 2)", "Nullable(Decimal(12, 1))"])
    )
    rows = data.draw(st.integers(0, 60))
    column = column_of(name, 18, rows, np.random.default_rng(data.draw(st.integers(0, 99))))
    short = shortened(column)
    short.validate(full=True)
    assert lengthened(short).equals(column)
    cut = data.draw(st.integers(0, rows))
    assert lengthened(short.slice(cut)).equals(column.slice(cut))
    with without_kernels():
        assert shortened(column).equals(short)
        assert lengthened(short.slice(cut)).equals(column.slice(cut))


@given(st.data())
def test_sums_and_averages(data: st.DataObject) -> None:
    """Also of sums that exceed 64 bits, and of more groups than have tables of their own."""
    name = data.draw(
        st.sampled_from(["Decimal(18, 2)", "Decimal(9, 2)", "Nullable(Decimal(12, 1))"])
    )
    rows = data.draw(st.integers(0, 400))
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    column = column_of(name, data.draw(st.integers(1, 18)), rows, seed)
    count = data.draw(st.sampled_from([1, 2, 7, 300]))
    codes = seed.integers(0, count, rows)
    if data.draw(st.booleans()):
        codes.sort()
    condition = pa.array(seed.integers(0, 2, rows).astype(np.uint8))
    for function in ("sum", "avg", "sumIf", "avgOrNull", "sumCount", "count", "min", "max", "any"):
        types, extra = [parse_type(name)], []
        if function == "sumIf":
            types, extra = [*types, parse_type("UInt8")], [condition]
        aggregate = resolve_aggregate(function, (), tuple(types))
        states = aggregate.state([column, *extra], Groups(codes, count))
        if aggregate.takes_short_decimals:
            assert aggregate.state([shortened(column), *extra], Groups(codes, count)).equals(states)


@given(st.data())
def test_rows_that_a_mask_keeps(data: st.DataObject) -> None:
    """Columns of every width, with NULLs and without, and dictionaries, are filtered as Arrow does."""
    rows = data.draw(st.integers(1, 300))
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    offset = data.draw(st.sampled_from([0, 3, 8]))
    keep = pa.array(
        seed.random(rows + offset) < data.draw(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1]))
    )
    numbers = seed.integers(0, 100, rows)
    decimals = pa.array([Decimal(int(n)) for n in numbers], pa.decimal128(18, 2))
    texts = pa.array([str(n) for n in numbers])
    arrays = [
        *(pa.array(numbers.astype(f"i{width}")) for width in (1, 2, 4, 8)),
        pa.array(numbers.astype(float)),
        decimals,
        shortened(decimals),
        decimals.cast(pa.decimal256(40, 2)),
        pa.array([None if n % 2 else int(n) for n in numbers], pa.int32()),
        pa.array(numbers % 2 == 0),
        texts,
        texts.dictionary_encode(),
        pa.array(numbers).slice(rows // 2),
    ]
    mask = keep.slice(offset)
    for array in arrays:
        batch = pa.RecordBatch.from_arrays([array], ["x"])
        own = mask.slice(len(mask) - len(array))
        found = filter_rows(batch, own).column(0)
        found.validate(full=True)
        assert found.to_pylist() == array.filter(own).to_pylist()
        assert found.type == array.type


def test_tables_with_decimals_of_all_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts in files and in the catalog, columns that were added and changed, conditions and sums."""
    monkeypatch.setattr(tuning, "RANGE_ROWS_MIN", 1)
    with olapdb.connect(":memory:") as connection:
        cursor = connection.cursor()
        for statement in (
            "CREATE TABLE t (k UInt32, a Decimal(12, 2), b Nullable(Decimal(9, 3)), w Decimal(38, 2))"
            " ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 1024",
            "INSERT INTO t SELECT number, number / 4, if(number % 5 = 0, NULL, number / 8), number"
            " FROM numbers(5000)",
            "INSERT INTO t SELECT number, -number, 1.125, 1 FROM numbers(3)",
            "ALTER TABLE t ADD COLUMN c Decimal(9, 1) DEFAULT k / 2",
            "ALTER TABLE t ADD COLUMN e Decimal(12, 4) DEFAULT a",
            "INSERT INTO t SELECT number, 1, 2, 3, 4, 5 FROM numbers(2000)",
            "ALTER TABLE t MODIFY COLUMN b Nullable(Decimal(18, 4))",
        ):
            cursor.execute(statement)
        for query in (
            "SELECT sum(a), avg(a), sum(b), count(b), sum(w), sum(c), sum(e), max(a) FROM t",
            "SELECT k % 7 AS g, sum(a * (1 - c)), sum(a * (1 - c) * (1 + e)), avg(a), sum(b)"
            " FROM t WHERE k < 1900 GROUP BY g ORDER BY g",
            "SELECT count(), sum(b + a) FROM t WHERE a BETWEEN 100 AND 1000.5 AND b < 90",
            "SELECT count() FROM t WHERE a = 1 AND w > 2.5 AND a != e",
            "SELECT a, count() FROM t WHERE a > 1240 GROUP BY a ORDER BY a",
            "SELECT a, b FROM t WHERE k = 77 ORDER BY ALL",
            "SELECT sum(t.a * r.c), avg(r.a) FROM t JOIN t AS r ON t.k = r.k WHERE r.c < 20",
            "SELECT sumIf(a, b > 2), avgOrNullIf(a, k = 5001), sumCount(a) FROM t",
        ):
            for _ in range(3):  # from files, then from the cache
                found = cursor.execute(query) or cursor.fetchall()
                with without_kernels():
                    expected = cursor.execute(query) or cursor.fetchall()
                assert found == expected, query


ROUNDINGS = {
    "round": ROUND_HALF_UP,
    "roundBankers": ROUND_HALF_EVEN,
    "floor": ROUND_FLOOR,
    "ceil": ROUND_CEILING,
    "trunc": ROUND_DOWN,
}


@pytest.mark.parametrize("function", ROUNDINGS)
@given(
    unscaled=st.lists(st.integers(-(10**18), 10**18) | st.integers(-300, 300), max_size=20),
    places=st.integers(-14, 4),
)
def test_rounded_decimals(function: str, unscaled: list[int], places: int) -> None:
    data_type = parse_type("Decimal(18, 4)")
    values = [Decimal(number).scaleb(-4) for number in unscaled]
    column = decimals_of_integers(np.array(unscaled, np.int64), data_type.arrow)
    digits = Argument(parse_type("Int8"), pa.scalar(places, pa.int8()))
    call = resolve_scalar(function, [Argument(data_type), digits])
    rounded = call.kernel([column, digits.constant], len(column), Environment())
    expected = [value.quantize(Decimal(1).scaleb(-places), ROUNDINGS[function]) for value in values]
    assert unscaled_of(rounded) == [int(value.scaleb(4)) for value in expected]


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(-99, 99) | st.integers(1 - 10**18, 10**18 - 1))
    )
)
def test_distinct_decimals(rows: list[tuple[int, int]]) -> None:
    codes = np.array([code for code, _ in rows], np.int64)
    numbers = np.array([number for _, number in rows], np.int64)
    data_type = parse_type("Decimal(18, 4)")
    aggregate = resolve_aggregate("uniqExact", (), (data_type,))
    column = decimals_of_integers(numbers, data_type.arrow)
    states = aggregate.state([column], Groups(codes, 3))
    states.validate(full=True)
    offsets = np.asarray(states.offsets)
    found = unscaled_of(states.values)
    for code in range(3):
        own = sorted({number for group, number in rows if group == code})
        assert found[offsets[code] : offsets[code + 1]] == own


def unscaled_of(column: pa.Array) -> list[int]:
    """Return the integers of decimals, which may have more digits than their type."""
    view = shortened(column)
    return np.frombuffer(view.buffers()[1], np.int64, len(view)).tolist()
