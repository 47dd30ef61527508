"""Integer arithmetic compared with Python's integers, for every pair of types at the ends of their
ranges, with operands as columns, single rows and constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from olapdb.errors import IllegalDivision
from olapdb.functions import display_array, resolve_scalar
from olapdb.functions.base import Argument, Environment
from olapdb.functions.kernels.arrow_buffers import empty, progression
from olapdb.native.memory import POOLED_BYTES_MIN
from olapdb.types import DataType, Date, Integer, Nullable

pytestmark = pytest.mark.feature("functions")

TYPES = [Integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (False, True)]
SINGLE_ROW_EVERY = 7
PAIRS = list(itertools.product(TYPES, TYPES))


def _ends(kind: Integer) -> list[int]:
    near = [-7, -3, -1, 0, 1, 3, 7, 100]
    inside = [n for n in near if kind.minimum <= n <= kind.maximum]
    return [kind.minimum, kind.minimum + 1, *inside, kind.maximum - 1, kind.maximum]


def _wrapped(value: int, kind: Integer) -> int:
    value %= 1 << kind.bits
    return value - (1 << kind.bits) if kind.signed and value >> kind.bits - 1 else value


def _rest(a: int, b: int, left: Integer, right: Integer) -> int:
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def _positive(a: int, b: int, left: Integer, right: Integer) -> int:
    rest = _rest(a, b, left, right)
    return rest + abs(b) if rest < 0 else rest


def _quotient(a: int, b: int, left: Integer, right: Integer) -> int:
    if left.signed or right.signed:  # as Int64
        a, b = _wrapped(a, Integer(64, True)), _wrapped(b, Integer(64, True))
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


MODELS: dict[str, Callable[[int, int, Integer, Integer], int]] = {
    "plus": lambda a, b, left, right: a + b,
    "minus": lambda a, b, left, right: a - b,
    "multiply": lambda a, b, left, right: a * b,
    "modulo": _rest,
    "positiveModulo": _positive,
    "intDiv": _quotient,
}


def _run(
    name: str, left: Integer, right: Integer, a: list[int] | int, b: list[int] | int
) -> list[object]:
    values = [
        pa.array(v, kind.arrow) if isinstance(v, list) else pa.scalar(v, kind.arrow)
        for v, kind in ((a, left), (b, right))
    ]
    arguments = [
        Argument(kind, value if isinstance(value, pa.Scalar) else None)
        for value, kind in zip(values, (left, right), strict=True)
    ]
    rows = next(len(v) for v in values if isinstance(v, pa.Array))
    result = resolve_scalar(name, arguments).kernel(values, rows, Environment())
    return list(result.to_pylist())


def _defined(name: str, a: int, b: int, left: Integer, right: Integer) -> bool:
    if name in ("plus", "minus", "multiply"):
        return True
    if b == 0 or (right.signed and b == right.minimum):
        return False
    # the least number divided by -1 has no quotient and is refused
    return not (a == left.minimum and _wrapped(b, Integer(64, True)) == -1)


@pytest.mark.parametrize("name", MODELS)
def test_integers_are_those_of_python_wrapped_to_the_result(name: str) -> None:
    for left, right in PAIRS:
        pairs = [
            (a, b)
            for a, b in itertools.product(_ends(left), _ends(right))
            if _defined(name, a, b, left, right)
        ]
        result = resolve_scalar(name, [Argument(left), Argument(right)]).type
        assert isinstance(result, Integer)
        expected = [_wrapped(MODELS[name](a, b, left, right), result) for a, b in pairs]
        tops, bottoms = [a for a, _ in pairs], [b for _, b in pairs]
        where = f"{name} of {left} and {right}"
        assert _run(name, left, right, tops, bottoms) == expected, where
        for (a, b), value in list(zip(pairs, expected, strict=True))[::SINGLE_ROW_EVERY]:
            assert _run(name, left, right, [a], [b]) == [value], f"{where}: {a}, {b}, one row"
            assert _run(name, left, right, [a, a], b) == [value, value], (
                f"{where}: {a}, {b} constant"
            )
            assert _run(name, left, right, a, [b, b]) == [value, value], (
                f"{where}: {a} constant, {b}"
            )


@pytest.mark.parametrize("name", ["modulo", "intDiv"])
def test_a_constant_zero_divisor_is_refused_unless_there_are_no_rows(name: str) -> None:
    kind = Integer(64, False)
    assert _run(name, kind, kind, [], 0) == []
    with pytest.raises(IllegalDivision) as caught:
        _run(name, kind, kind, [1, 2], 0)
    assert caught.value.row == 0
    with pytest.raises(IllegalDivision) as caught:
        _run(name, kind, kind, 5, [1, 2, 0, 0])
    assert caught.value.row == 2


@pytest.mark.parametrize("name", [*MODELS, "divide", "addDays", "addMonths"])
def test_a_constant_null_makes_every_row_null(name: str) -> None:
    """A NULL with the type of a number, as CAST(NULL AS …) or a scalar subquery returns it."""
    number = Nullable(Integer(16, True))
    kind: DataType = Date() if name.startswith("add") else number
    column = pa.array([1, 2, 3], pa.int32()).cast(kind.arrow)
    call = resolve_scalar(name, [Argument(kind), Argument(number)])
    nothing = pa.scalar(None, number.arrow)
    assert call.kernel([column, nothing], 3, Environment()).to_pylist() == [None] * 3
    if kind == number:
        assert call.kernel([nothing, column], 3, Environment()).to_pylist() == [None] * 3


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_texts_of_integers_are_those_of_python(kind: Integer) -> None:
    ends = [0, 5, 9, 10, 99, 100, 12_345, 4_294_967_295, kind.minimum, kind.maximum]
    for first, step in itertools.product(ends, (0, 1, 7)):
        values = [_wrapped(first + step * (i % 40), kind) for i in range(3_000)]
        shown = display_array(pa.array(values, kind.arrow), kind)
        shown.validate(full=True)
        assert shown.to_pylist() == [str(v) for v in values]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize(
    ("start", "step", "rows"),
    [
        (0, 1, 0),
        (0, 1, 1),
        (7, 3, 1_024),
        (-5, 1, 1_025),
        (0, -1, 100_000),
        ((1 << 64) - 5, 1, 3_000),
        (5, 1 << 63, 70_000),
    ],
)
def test_a_progression_wraps_at_its_width(
    dtype: type[np.generic], start: int, step: int, rows: int
) -> None:
    bits = np.dtype(dtype).itemsize * 8
    expected = np.array([(start + step * i) % (1 << bits) for i in range(rows)], f"u{bits // 8}")
    np.testing.assert_array_equal(progression(start, step, rows, dtype), expected.astype(dtype))


def test_large_arrays_use_memory_of_arrows_pool_and_release_it() -> None:
    before = pa.total_allocated_bytes()
    array = empty(POOLED_BYTES_MIN, np.uint64)
    assert array.flags.writeable
    assert pa.total_allocated_bytes() - before >= array.nbytes
    del array
    assert pa.total_allocated_bytes() == before
