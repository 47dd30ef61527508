"""Conditions that keep a range of stored numbers keep the rows for which the comparison is true."""

from __future__ import annotations

from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.compute.value_ranges import range_of
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.execute.operators.row_filter import RowFilter
from olapdb.functions import parse_type
from olapdb.functions.base import Environment
from olapdb.native.library import library
from olapdb.plan.conditions import all_of, any_of, scalar_call
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.types import Nullable
from tests.property.test_kernels import INTEGERS, array_of, columns, physical

pytestmark = [
    pytest.mark.feature("select"),
    pytest.mark.skipif(library() is None, reason="Ranges are kept by compiled kernels."),
]

DECIMALS = ["Decimal(9, 2)", "Decimal(18, 4)", "Decimal(38, 3)"]
FLOATS = ["Float32", "Float64"]
TIMES = ["DateTime('UTC')", "DateTime64(1, 'UTC')", "DateTime64(6, 'Asia/Tokyo')"]
DAYS = ("Date", "Date32")
COMPARED = {
    **dict.fromkeys((*INTEGERS, *DECIMALS), (*INTEGERS, *DECIMALS, *FLOATS)),
    **dict.fromkeys(FLOATS, (*INTEGERS, *FLOATS)),
    **dict.fromkeys(TIMES, (*TIMES, "Date")),
    **dict.fromkeys(DAYS, DAYS),
}
NAMES = ["equals", "notEquals", "less", "lessOrEquals", "greater", "greaterOrEquals"]
ROWS = 70


@st.composite
def comparisons(draw: st.DrawFn, name: str, column: ColumnRef, values: pa.Array) -> Expression:
    """Draw a comparison of the column with a constant, often one of its values."""
    other = parse_type(draw(st.sampled_from(COMPARED[name])))
    constant = array_of([draw(physical(other))], other.arrow)
    if draw(st.booleans()):
        try:
            constant = values.slice(draw(st.integers(0, ROWS - 1)), 1).cast(other.arrow)
        except pa.ArrowException:
            assume(False)
    sides: list[Expression] = [column, Constant(other, constant[0])]
    if draw(st.booleans()):
        sides.reverse()
    return scalar_call(draw(st.sampled_from(NAMES)), sides)


@given(st.data())
def test_ranges(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(COMPARED)))
    values = data.draw(columns([name], ROWS))
    data_type = parse_type(name)
    column = ColumnRef(Nullable(data_type) if values.null_count else data_type, "c")
    conditions = data.draw(st.lists(comparisons(name, column, values), min_size=1, max_size=4))
    condition = data.draw(st.sampled_from([all_of, any_of]))(conditions)
    rows = pa.RecordBatch.from_arrays([values], ["c"])
    try:
        expected = evaluate_predicate(condition, rows, Environment()).fill_null(False)
    except Error:
        assume(False)
    with patch.object(tuning, "RANGE_ROWS_MIN", 0):
        kept = RowFilter([condition], ExecutionContext()).mask(rows)
    assert kept is not None
    assert kept.to_pylist() == expected.to_pylist()


NEAR = [
    ("Decimal(18, 2)", "Decimal(18, 3)", ["0.06", "0.07", "-0.07"], ["0.065", "0.07", "-0.075"]),
    ("Decimal(18, 2)", "Float64", ["0.06", "0.07", "-0.07"], [0.07, 0.07000000000000001, -0.069]),
    (
        "Decimal(38, 3)",
        "Float64",
        [f"9007199254740{n}.125" for n in range(990, 999)],
        [9.0071992547409945e15],
    ),
    ("Int64", "Float64", [2**53 - 1, 2**53, 2**53 + 1, 5], [2.0**53, 4.5, 5.0, 2.0**63]),
    ("UInt8", "Decimal(9, 1)", [3, 4, 5], ["3.5", "4", "-0.1"]),
    (
        "Float32",
        "Float64",
        [0.1, 0.2, -0.1, float("nan")],
        [0.1, 0.10000000149011612, 1e300, -1e300],
    ),
    ("DateTime('UTC')", "DateTime64(3, 'UTC')", [99, 100, 101], [99_999, 100_000, 100_001]),
    ("DateTime64(3, 'UTC')", "DateTime('UTC')", [99_999, 100_000, 100_001], [100]),
]
"""Column, constant, and values of both that lie beside each other."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("column", "other", "values", "constants"), NEAR)
def test_neighbours(
    name: str, column: str, other: str, values: list[object], constants: list[object]
) -> None:
    rows = pa.RecordBatch.from_arrays([_array(column, values)], ["c"])
    for constant in _array(other, constants):
        sides = [ColumnRef(parse_type(column), "c"), Constant(parse_type(other), constant)]
        condition = scalar_call(name, sides)
        expected = evaluate_predicate(condition, rows, Environment())
        with patch.object(tuning, "RANGE_ROWS_MIN", 0):
            kept = RowFilter([condition], ExecutionContext()).mask(rows)
        assert kept is not None
        assert kept.to_pylist() == expected.to_pylist(), (name, constant)


def _array(type_name: str, values: list[object]) -> pa.Array:
    """Return values of the type; decimals are given as texts."""
    is_decimal = type_name.startswith("Decimal")
    drawn = [Decimal(str(value)) for value in values] if is_decimal else values
    return array_of(list(drawn), parse_type(type_name).arrow)


@pytest.mark.parametrize(
    ("column", "constant", "text"),
    [
        ("Int64", "Decimal(9, 2)", "5.5"),
        ("Decimal(15, 2)", "Float64", "0.07"),
        ("Float32", "Float64", "0.5"),
        ("DateTime('UTC')", "String", "2024-01-01 00:00:00"),
        ("Date", "String", "2024-01-01"),
        ("Date32", "Date", "2024-01-01"),
        ("Enum8('a' = 1, 'b' = 2)", "String", "b"),
        ("DateTime64(3, 'UTC')", "Date", "2024-01-01"),
    ],
)
def test_comparisons_with_ranges(column: str, constant: str, text: str) -> None:
    """What people write has a range, so that the property above is about something."""
    kind = parse_type(constant)
    value = pa.scalar(text) if constant == "String" else pa.scalar(text).cast(kind.arrow)
    sides = [ColumnRef(parse_type(column), "c"), Constant(kind, value)]
    for name in ("less", "greaterOrEquals"):
        assert range_of(scalar_call(name, sides), Environment()) is not None
