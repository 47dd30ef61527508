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
