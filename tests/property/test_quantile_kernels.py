"""Quantiles: the compiled kernels and numpy give the same states, bit by bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.functions import parse_type
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Aggregate, Groups
from olapdb.native.library import library, without_kernels
from tests.property.test_kernels import INTEGERS, TIMES, columns, same_bits

pytestmark = [
    pytest.mark.feature("aggregates"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

FLOATS = ["Float32", "Float64"]
DECIMALS = ["Decimal(9, 2)", "Decimal(18, 4)", "Decimal(38, 3)"]
FUNCTIONS = {
    "quantile": [*INTEGERS, *TIMES, *FLOATS, *DECIMALS],
    "quantileTDigest": [*INTEGERS, *FLOATS],
    "quantileTiming": [*INTEGERS, *FLOATS],
    "quantileExact": [*INTEGERS, *TIMES, *FLOATS, *DECIMALS],
    "quantileExactInclusive": [*INTEGERS, *TIMES, *FLOATS],
}


def steps(aggregate: Aggregate, column: pa.Array, groups: Groups) -> list[pa.Array]:
    """Return the states, two states of each group merged, and the answer."""
    states = aggregate.state([column], groups)
    owners = np.concatenate([np.arange(groups.count)] * 2)
    merged = aggregate.merge(pa.concat_arrays([states, states]), Groups(owners, groups.count))
    return [states, merged, aggregate.finalize(merged)]


def check(function: str, name: str, column: pa.Array, codes: np.ndarray, count: int) -> None:
    argument = parse_type(f"Nullable({name})" if column.null_count else name)
    aggregate = resolve_aggregate(function, (0.3,), (argument,))
    compiled = steps(aggregate, column, Groups(codes, count))
    with without_kernels():
        expected = steps(aggregate, column, Groups(codes, count))
    for left, right in zip(compiled, expected, strict=True):
        left.validate(full=True)
        assert same_bits(left, right)


@pytest.mark.parametrize("function", FUNCTIONS)
@given(data=st.data())
def test_states_and_merges(function: str, data: st.DataObject) -> None:
    rows, count = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 4))
    name = data.draw(st.sampled_from(FUNCTIONS[function]))
    column = data.draw(columns([name], rows))
    codes = data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))
    check(function, name, column, np.array(codes, np.int64), count)


@pytest.mark.parametrize("groups", [1, 3, 900])
@pytest.mark.parametrize("span", [5, 20_000, 1 << 60])
@pytest.mark.parametrize("name", ["Int64", "UInt64", "Float64", "DateTime64(6, 'UTC')"])
@pytest.mark.parametrize("function", ["quantile", "quantileExact"])
def test_many_rows(function: str, name: str, span: int, groups: int) -> None:
    """Groups of more values than a state keeps singly, of a narrow and of a wide range, with NULLs."""
    random = np.random.default_rng(span % 97 + groups)
    numbers = random.integers(0, span, 40_000)
    if name in ("Int64", "Float64"):
        numbers = numbers - span // 2
    column = pa.array(numbers, mask=random.random(40_000) < 0.1)
    arrow = parse_type(name).arrow
    column = column.view(arrow) if pa.types.is_timestamp(arrow) else column.cast(arrow, safe=False)
    check(function, name, column, random.integers(0, groups, 40_000), groups)


@pytest.mark.parametrize("groups", [1, 2, 30])
@pytest.mark.parametrize("span", [1, 2, 700, 100_000])
@pytest.mark.parametrize("name", [*INTEGERS, "Date", "DateTime('UTC')"])
def test_merges_of_long_runs(name: str, span: int, groups: int) -> None:
    """States of several batches, some of them empty, whose lists repeat their values, and slices of such."""
    random = np.random.default_rng(span + groups)
    argument = parse_type(name)
    bits = int(argument.arrow.bit_width)
    span = min(span, 1 << (bits - 1))
    numbers = random.integers(0, span, 20_000) - (span // 2 if name.startswith("Int") else 0)
    column = pa.array(numbers.astype(f"{argument.arrow}" if name in INTEGERS else f"i{bits // 8}"))
    column = column if name in INTEGERS else column.view(argument.arrow)
    aggregate = resolve_aggregate("quantileExact", (0.3,), (argument,))
    owners = random.integers(0, groups, 5 * groups + 3)
    codes = random.integers(0, len(owners) // 2, 20_000)
    states = aggregate.state([column], Groups(codes, len(owners)))
    for start in (0, 3):
        cut = states.slice(start)
        united = Groups(owners[start:], groups)
        compiled = aggregate.merge(cut, united)
        with without_kernels():
            expected = aggregate.merge(cut, united)
        compiled.validate(full=True)
        assert same_bits(compiled, expected)
        counts_runs = aggregate.merge_runs(cut, united) is not None
        assert counts_runs or groups * span > len(column) // 2


def test_merging_lists_in_no_order() -> None:
    """A state from elsewhere may have values in another order: runs are not taken as whole."""
    aggregate = resolve_aggregate("quantileExact", (0.3,), (parse_type("UInt8"),))
    lists = [[1, 1, 1, 2, 1, 1, 1, 1, 1], [3, 1], [], [1, 1, 2]]
    states = pa.array(lists, pa.list_(pa.uint8()))
    groups = Groups(np.array([0, 1, 1, 0]), 2)
    assert aggregate.merge_runs(states, groups) is None
    assert aggregate.merge(states, groups).to_pylist() == [[1] * 10 + [2, 2], [1, 3]]
