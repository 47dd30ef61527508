"""The arithmetic of Decimals and integers beside ClickHouse, and beside exact fractions where
ClickHouse's own integers overflow."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from fractions import Fraction
from math import trunc

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb.functions.numeric import decimals
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("types")

CASES = 300
OVERFLOWS, OUT_OF_BOUND = 407, 69
DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
OPERATIONS = (
    "divide",
    "divide",
    "intDiv",
    "intDivOrZero",
    "plus",
    "minus",
    "multiply",
    "modulo",
    "positiveModulo",
)


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


class Draws:
    """A generator of operands, as SQL and value: of every width, at the ends of types, near powers
    of ten."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def operand(self) -> tuple[str, Fraction]:
        text, value = self._decimal() if self.draw.random() < 0.7 else self._integer()
        return (f"materialize({text})" if self.draw.random() < 0.5 else text), value

    def _decimal(self) -> tuple[str, Fraction]:
        draw, bits = self.draw, self.draw.choice((32, 64, 128, 256))
        held = DIGITS[bits]
        scale = draw.choice((0, 0, 1, 2, 4, min(10, held), held // 2, held))
        power = 10 ** draw.randint(0, held)
        size = power - draw.randint(0, 1) if draw.random() < 0.2 else draw.randint(0, power)
        unscaled = min(size, 10**held - 1) * draw.choice((1, -1))
        text = f"{Decimal(unscaled).scaleb(-scale):f}" if held < 28 else _placed(unscaled, scale)
        return f"toDecimal{bits}('{text}', {scale})", Fraction(unscaled, 10**scale)

    def _integer(self) -> tuple[str, Fraction]:
        draw, bits = self.draw, self.draw.choice((8, 16, 32, 64))
        if draw.random() < 0.5:
            value = draw.choice((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, draw.randint(-9, 9)))
            return f"toInt{bits}({value})", Fraction(value)
        value = draw.choice((0, 2**bits - 1, draw.randint(0, 2**bits - 1), draw.randint(0, 9)))
        return f"toUInt{bits}({value})", Fraction(value)


def _placed(unscaled: int, scale: int) -> str:
    text = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{text[:-scale]}.{text[-scale:]}" if scale else sign + text


def exact(operation: str, left: Fraction, right: Fraction, scale: int) -> Fraction:
    match operation:
        case "plus":
            return left + right
        case "minus":
            return left - right
        case "multiply":
            return left * right
        case _ if not right:
            return Fraction(0)
        case "divide":
            return Fraction(trunc(left / right * 10**scale), 10**scale)
        case "intDiv" | "intDivOrZero":
            return Fraction(trunc(left / right))
    rest = left - trunc(left / right) * right
    return rest + abs(right) if operation == "positiveModulo" and rest < 0 else rest


def test_random_operands(connection: olapdb.Connection, oracle: Oracle) -> None:
    """olapdb gives ClickHouse's right answers, within 76 digits and 64 bits of a whole quotient.
    Where ClickHouse is wrong, olapdb is right or refuses."""
    draws, answered = Draws(7), 0
    for _ in range(CASES):
        operation = draws.draw.choice(OPERATIONS)
        (left, left_value), (right, right_value) = draws.operand(), draws.operand()
        if "Decimal" not in left + right:
            continue
        query = f"SELECT {operation}({left}, {right}) AS v, toString(v)"
        code, there, data_type = _of_oracle(oracle, query)
        refused, here, ours = _of_olapdb(connection, query)
        if here is not None:
            assert here == exact(operation, left_value, right_value, _scale(ours)), query
            assert code in (0, OVERFLOWS, OUT_OF_BOUND), query
            answered += 1
            continue
        wide = data_type.startswith("Int") and int(data_type[3:]) > 64
        wanted = exact(operation, left_value, right_value, _scale(data_type))
        assert wide or code or there != wanted or _is_long(query, left_value, right_value), query
        assert code in (0, refused, OUT_OF_BOUND, OVERFLOWS), query
    assert answered > CASES / 3


def _of_oracle(oracle: Oracle, query: str) -> tuple[int, Fraction | None, str]:
    try:
        made = oracle.query(query)
    except OracleError as error:
        return error.code, None, ""
    return 0, Fraction(made.rows[0][1] or "0"), made.types[0]


def _of_olapdb(connection: olapdb.Connection, query: str) -> tuple[int, Fraction | None, str]:
    try:
        cursor = connection.execute(query)
    except olapdb.Error as error:
        return error.code, None, ""
    ((_, text),) = cursor.fetchall()
    return 0, Fraction(text), str((cursor.description or ())[0][1])


def _scale(data_type: str) -> int:
    return int(data_type.split(",")[1].strip(" )")) if data_type.startswith("Decimal") else 0


def _is_long(query: str, *values: Fraction) -> bool:
    """Return whether one common scale may need more than 76 digits."""
    places = max(int(scale) for scale in re.findall(r"', (\d+)\)", query))
    return max(len(str(abs(trunc(v)))) for v in values) + 2 * places > 76


REFUSED = (
    "toDecimal64(5, 2) / toDecimal64(0, 2)",
    "toDecimal64(5, 2) / 0",
    "intDiv(toDecimal128(5, 2), 0)",
    "materialize(toDecimal256(5, 2)) % toDecimal256(0, 3)",
    "toInt8(5) / materialize(toDecimal32(0, 1))",
    "toDecimal32(200000, 4) / toDecimal32('0.5', 1)",
    "toDecimal32(99999, 1) * toDecimal32(2200, 1)",
    "toDecimal64('999999999999999999', 0) * 10",
    "toDecimal32(536870912, 0) * toDecimal32(4, 0)",
    "CAST(toDecimal256('2202757978230861784136134766810189950387921114750700496990884683884319.1', 1) AS Decimal(76, 9))",
    "CAST(toDecimal128('2202757978230861784136134766810189950.1', 1) AS Decimal(76, 50))",
    "toInt64(1) / toDecimal256('0.1', 76)",
)


@pytest.mark.parametrize("expression", REFUSED)
def test_what_has_no_result_is_refused(connection: olapdb.Connection, expression: str) -> None:
    with pytest.raises(olapdb.Error) as raised:
        connection.execute(f"SELECT {expression}").fetchall()
    assert raised.value.code in (153, OVERFLOWS)


WITHIN_BITS = (
    "toDecimal64('999999999999999999', 0) * 9",
    "toDecimal32(99999999, 1) + toDecimal32(99999999, 1)",
    "-(toDecimal64('999999999999999999', 0) * 9)",
    "toDecimal64('999999999999999999', 0) * 9 / 9",
    "intDivOrZero(toDecimal64('0.9', 1), toDecimal64('0', 1))",
    "toInt64(0) / toDecimal256('0.1', 76)",
    "intDiv(toDecimal64('-7', 4), toInt64(-9223372036854775808))",
    "toDecimal32(-536870912, 0) * toDecimal32(4, 0)",
    "materialize(toDecimal64(-2305843009213693952, 0)) * toDecimal64(4, 0)",
)


@pytest.mark.parametrize("expression", WITHIN_BITS)
def test_more_digits_than_the_precision(
    connection: olapdb.Connection, oracle: Oracle, expression: str
) -> None:
    query = f"SELECT toString({expression})"
    assert connection.execute(query).fetchall() == oracle.query(query).rows


def test_quotients_of_76_digits() -> None:
    draw = random.Random(5)
    tops, bottoms = [], []
    for _ in range(4_000):
        bottom = draw.randint(1, 10 ** draw.choice((1, 18, 40, 76))) * draw.choice((1, -1))
        near = abs(bottom) * draw.randint(1, 101) + draw.randint(-1, 1)
        top = draw.choice((near, draw.randint(0, 10 ** draw.randint(1, 76))))
        tops.append(min(top, 10**76 - 1) * draw.choice((1, -1)))
        bottoms.append(bottom if abs(bottom) < 10**76 else 1)
    left, right = ([Decimal(v) for v in values] for values in (tops, bottoms))
    wide = pa.decimal256(76, 0)
    made = decimals._divided(pa.array(left, wide), pa.array(right, wide)).to_pylist()
    assert [int(v) for v in made] == [
        trunc(Fraction(t, b)) for t, b in zip(tops, bottoms, strict=True)
    ]


def test_blocks_of_every_width(connection: olapdb.Connection) -> None:
    """Rows, constants and NULL computed in one pass equal those computed one by one."""
    connection.execute(
        "CREATE TABLE widths (k UInt64, a Decimal(9, 2), b Nullable(Decimal(18, 4)),"
        " c Decimal(38, 10), d Decimal(76, 20)) ORDER BY k"
    )
    connection.execute(
        "INSERT INTO widths SELECT number, round(number / 7 - 5, 2), if(number % 5 = 0, NULL, number + 0.5),"
        " toDecimal128(number + 1, 10) * 3 - 100, toDecimal256(number + 1, 20) / 7 FROM numbers(200)"
    )
    pairs = ("b, a", "c, a", "d, c", "a, 3", "c, 7", "7, a", "d, 11", "b, 0.5::Decimal(9, 1)")
    calls = [
        f"{name}({pair})" for pair in pairs for name in ("divide", "modulo", "plus", "multiply")
    ]
    for call in calls:
        whole = connection.execute(f"SELECT toString({call}) FROM widths WHERE a != 0 ORDER BY k")
        single = connection.execute(
            f"SELECT toString({call}) FROM widths WHERE a != 0 ORDER BY k LIMIT 3 OFFSET 50"
        )
        assert whole.fetchall()[50:53] == single.fetchall(), call
    connection.execute("DROP TABLE widths")


def test_no_rows(connection: olapdb.Connection) -> None:
    for call in ("v / 3", "intDiv(v, v)", "v % v", "intDivOrZero(3, v)", "v * v", "3 - v"):
        rows = connection.execute(
            f"SELECT {call} FROM (SELECT toDecimal128(1, 3) AS v) WHERE v > 9"
        )
        assert rows.fetchall() == [], call


def test_digits_of_a_slice() -> None:
    whole = pa.array([Decimal(n) for n in range(-5, 5)], pa.decimal128(38, 0))
    assert decimals.digits(whole.slice(3, 4)).tolist() == [-2, -1, 0, 1]
    assert np.array_equal(decimals.not_zero(whole.slice(5, 1)), [False])
