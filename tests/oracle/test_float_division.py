"""Whole quotients and remainders of floats beside ClickHouse: the quotient is truncated, not its
operands."""

from __future__ import annotations

import pytest

import olapdb
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("functions")


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


@pytest.mark.parametrize(
    "expression",
    [
        "intDiv(7.9, 1.9)",
        "intDiv(7, 0.5)",
        "intDiv(-7.9, 2)",
        "intDiv(7.9, 0.1)",
        "intDiv(toFloat32(7.9), 2)",
        "intDiv(toFloat32(7.9), toFloat32(0.1))",
        "intDiv(1e30, 1)",
        "intDiv(5, 0.0)",
        "intDiv(5, nan)",
        "intDiv(5, inf)",
        "intDiv(nan, 5)",
        "intDivOrZero(5, 0.0)",
        "intDivOrZero(5, 0.5)",
        "intDivOrZero(nan, 1)",
        "intDivOrZero(7.9, 1.9)",
        "intDiv(toUInt64(18446744073709551615), 1.0)",
        "intDiv(300, 0.5)",
        "intDiv(toUInt8(200), 0.5)",
        "intDiv(toDecimal32(7.5, 1), 0.5)",
        "intDiv(0.5, toDecimal32(7.5, 1))",
        "intDiv(materialize(toUInt8(200)), materialize(0.5))",
        "intDiv(9223372036854775807., 1)",
        "modulo(-1, 0.1)",
        "modulo(1, 0.1)",
        "modulo(1.0, 0.1)",
        "modulo(toFloat64(-1), materialize(0.1))",
        "modulo(5.5, inf)",
        "modulo(-1, -inf)",
        "modulo(5.5, 2)",
        "modulo(-5.5, 2)",
        "modulo(1e20, 3)",
        "modulo(5, 0.0)",
        "modulo(toFloat32(5.3), toFloat32(0.1))",
        "modulo(toFloat32(5.3), 2)",
        "modulo(toUInt64(18446744073709551615), 3.0)",
        "modulo(toDecimal32(5.5,1), 2.0)",
        "positiveModulo(-5.5, 2)",
        "positiveModulo(-1, 0.3)",
        "positiveModulo(-1.5, -0.4)",
        "positiveModulo(-5, inf)",
        "moduloOrZero(1, 0.1)",
        "moduloOrZero(1.5, 0.)",
        "moduloOrZero(-1.5, 0.4)",
    ],
)
def test_divided_and_left(connection: olapdb.Connection, oracle: Oracle, expression: str) -> None:
    assert_same(connection, oracle, f"SELECT {expression} AS v")
