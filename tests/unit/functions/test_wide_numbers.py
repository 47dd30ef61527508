"""Int128 to UInt256: kernels on limbs against Python's integers, ends of ranges, users' values."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb import functions
from olapdb.errors import CannotConvertType, CannotParse, DecimalOverflow, IllegalTypeOfArgument
from olapdb.functions import Environment
from olapdb.functions.kernels import wide_numbers
from olapdb.types import FLOAT64, INT128, INT256, STRING, UINT128, UINT256, WideNumber

pytestmark = pytest.mark.feature("types", "functions")

_TYPES = (INT128, UINT128, INT256, UINT256)


def _wrapped(value: int, kind: WideNumber) -> int:
    value %= 2**kind.bits
    return value - 2**kind.bits if kind.signed and value >= 2 ** (kind.bits - 1) else value


def _limbs(values: list[int]) -> np.ndarray:
    data = b"".join((value % 2**256).to_bytes(32, "little") for value in values)
    return np.frombuffer(data, np.uint64).reshape(-1, 4)


def _integers(limbs: np.ndarray, kind: WideNumber) -> list[int]:
    return [int(value.as_py()) for value in wide_numbers.column_of(limbs, kind)]


def _numbers(seed: int) -> list[int]:
    """Random numbers of all lengths and signs, and the ends of the ranges."""
    chance = random.Random(seed)
    ends = [0, 1, -1, 2**63, -(2**63), 2**64, 2**127 - 1, -(2**127), 2**255 - 1, -(2**255)]
    return ends + [
        chance.choice((-1, 1)) * chance.getrandbits(chance.randrange(1, 256)) for _ in range(300)
    ]


@pytest.mark.parametrize("kind", [INT128, UINT128, INT256])
@pytest.mark.parametrize(
    ("kernel", "python"),
    [
        (wide_numbers.added, operator.add),
        (wide_numbers.multiplied, operator.mul),
        (lambda a, b: wide_numbers.added(a, wide_numbers.negated(b)), operator.sub),
    ],
)
def test_kernels_are_python_arithmetic_modulo_the_bits(
    kind: WideNumber,
    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray],
    python: Callable[[int, int], int],
) -> None:
    left, right = _numbers(1), _numbers(2)
    expected = [_wrapped(python(a, b), kind) for a, b in zip(left, right, strict=True)]
    assert _integers(kernel(_limbs(left), _limbs(right)), kind) == expected


def test_division_truncates_towards_zero() -> None:
    left, right = _numbers(3), [value or 7 for value in _numbers(4)[::-1]]
    quotients, rests = wide_numbers.divided(_limbs(left), _limbs(right))
    pairs = list(zip(left, right, strict=True))
    signs = [1 if (a < 0) == (b < 0) else -1 for a, b in pairs]
    wanted = [s * (abs(a) // abs(b)) for s, (a, b) in zip(signs, pairs, strict=True)]
    assert _integers(quotients, INT256) == [_wrapped(value, INT256) for value in wanted]
    assert _integers(rests, INT256) == [(abs(a) % abs(b)) * (1 if a >= 0 else -1) for a, b in pairs]


@pytest.mark.parametrize("kind", _TYPES)
def test_texts_come_back_and_too_long_ones_are_refused_by_inserts(kind: WideNumber) -> None:
    last = 2 ** (kind.bits - 1) - 1 if kind.signed or kind.bits == 256 else 2**kind.bits - 1
    first = -last - 1 if kind.signed else 0
    texts = [str(first), str(last), "0", "+5", "0" * 90 + "7"]
    values = functions.cast_column(pa.array(texts), STRING, kind, Environment(), strict=True)
    assert [int(v.as_py()) for v in values] == [first, last, 0, 5, 7]
    shown = functions.cast_column(values, kind, STRING, Environment(), strict=True)
    assert shown.to_pylist() == [str(first), str(last), "0", "5", "7"]
    for wrong in (str(last + 1), str(first - 1), "9" * 200):
        with pytest.raises((CannotParse, CannotConvertType, DecimalOverflow, olapdb.DataError)):
            functions.store_column(pa.array(["1", wrong]), STRING, kind, Environment())


def test_floats_keep_their_own_value() -> None:
    floats = [0.0, -1.9, 2.0**53 + 2, 1e30, -(2.0**126), 2.0**-60, 123456789.75]
    values = functions.cast_column(pa.array(floats), FLOAT64, INT256, Environment(), strict=True)
    assert [int(v.as_py()) for v in values] == [int(value) for value in floats]
    back = functions.cast_column(values, INT256, FLOAT64, Environment(), strict=True)
    assert back.to_pylist() == [float(int(value)) for value in floats]


def test_users_get_integers_and_arrow_decimals() -> None:
    connection = olapdb.connect(":memory:")
    connection.execute("CREATE TABLE t (a Int128, b Array(UInt256)) ENGINE = MergeTree ORDER BY a")
    connection.execute("INSERT INTO t VALUES (-170141183460469231731687303715884105728, ['9'])")
    connection.insert("t", {"a": [10**30], "b": [[7]]})
    connection.insert("t", pa.table({"a": pa.array([Decimal(5)]), "b": pa.array([[1]])}))
    cursor = connection.execute("SELECT * FROM t ORDER BY a")
    assert cursor.fetchall() == [(-(2**127), [9]), (5, [1]), (10**30, [7])]
    table = connection.execute("SELECT * FROM t").fetch_arrow_table()
    assert table.schema.types == [pa.decimal128(38, 0), pa.list_(pa.decimal256(76, 0))]
    with pytest.raises(DecimalOverflow):
        connection.execute("SELECT toUInt256(-1)")


def test_json_quotes_wide_integers_as_others() -> None:
    connection = olapdb.connect(":memory:")
    sql = "SELECT toInt128(1) AS a, [toUInt256(2)] AS b"
    assert connection.execute(sql).fetch_text("JSONEachRow") == b'{"a":1,"b":[2]}\n'
    quoted = connection.execute(f"{sql} SETTINGS output_format_json_quote_64bit_integers = 1")
    assert quoted.fetch_text("JSONEachRow") == b'{"a":"1","b":["2"]}\n'


@pytest.mark.parametrize("function", ["quantileTDigest(x)", "quantileTiming(x)"])
def test_sketches_refuse_them(function: str) -> None:
    connection = olapdb.connect(":memory:")
    with pytest.raises(IllegalTypeOfArgument):
        connection.execute(f"SELECT {function} FROM (SELECT toInt128(1) AS x)")


def test_estimates_take_them_as_floats() -> None:
    connection = olapdb.connect(":memory:")
    answer = connection.execute(
        "SELECT median(x), quantiles(0.5)(x), sumKahan(x) FROM (SELECT toInt128(number) AS x FROM numbers(3))"
    )
    assert answer.fetchall() == [(1.0, [1.0], 3.0)]
