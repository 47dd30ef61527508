"""Conditions that keep a range of a column's values: `price < 5`, `day >= '2024-01-01'`, `code = 7`.

The constant becomes a number of the kind that the column stores, once for a query.  A kernel then compares
the stored numbers: neither side is cast for each row, and no column of booleans is made for each condition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal as Number
from fractions import Fraction

import numpy as np
import pyarrow as pa

from olapdb.compute.evaluate import evaluate_predicate
from olapdb.errors import Error
from olapdb.functions import cast_column
from olapdb.functions.base import Argument, Environment
from olapdb.functions.kernels.decimal_width import is_short
from olapdb.functions.numeric.comparison import comparison_type
from olapdb.plan.conditions import MIRRORED, scalar_call
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression
from olapdb.records import dataclass
from olapdb.types import (
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Enum,
    Float,
    Integer,
    plain,
)
from olapdb.types.arrow_values import array_of, to_numpy

_INT64 = np.iinfo(np.int64)
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_INTEGER_BITS_MAX = 64
_DECIMAL_DIGITS_MAX = 38
_EXACT_FLOAT = 2**50
"""Below this, neighbouring digits of a decimal are different Float64 numbers."""
_PROBED = 2
"""Digits beside a float that are compared with it."""


@dataclass(frozen=True)
class ValueRange:
    """The values of a column from `low` to `high`, both included, as the column stores them: numbers,
    days, ticks, digits of a decimal. No value lies in it where `low` is greater. `outside`: all other values."""

    column: str
    low: int | float
    high: int | float
    outside: bool = False

    def within(self, other: ValueRange) -> ValueRange:
        """Return the range of values that lie in both ranges, which are of one column."""
        return ValueRange(self.column, max(self.low, other.low), min(self.high, other.high))


def intersected(ranges: Iterable[ValueRange]) -> list[ValueRange]:
    """Return one range for each column, the intersection of those that it must lie in; then, unchanged, the ranges that
    it must lie outside of."""
    by_column: dict[str, ValueRange] = {}
    outside = []
    for value_range in ranges:
        known = by_column.get(value_range.column)
        if value_range.outside:
            outside.append(value_range)
        else:
            by_column[value_range.column] = (
                value_range if known is None else known.within(value_range)
            )
    return [*by_column.values(), *outside]


def range_of(condition: Expression, environment: Environment) -> ValueRange | None:
    """Return the values for which the condition is true; None where it compares no column with a constant,
    or columns of its type are not stored as numbers of up to 128 bits."""
    match condition:
        case Call(name="notEquals", arguments=(ColumnRef() | Constant(), ColumnRef() | Constant())):
            equal = range_of(scalar_call("equals", condition.arguments), environment)
            return None if equal is None else replace(equal, outside=True)
        case Call(name=name, arguments=(ColumnRef() as column, Constant() as constant)):
            pass
        case Call(name=mirrored, arguments=(Constant() as constant, ColumnRef() as column)):
            name = MIRRORED.get(mirrored, "")
        case _:
            return None
    kind = plain(column.type)
    if name not in MIRRORED or not constant.value.is_valid:
        return None
    if isinstance(kind, Float):
        return _float_range(name, column, constant)
    limits = _limits(kind)
    if limits is None:
        return None
    if isinstance(kind, Decimal) and isinstance(plain(constant.type), Float):
        return _probed_range(condition, column.name, kind, constant, environment)
    bound = _stored_number(column.type, constant, environment)
    if bound is None:
        return None
    low, high = limits
    if name in ("equals", "greaterOrEquals"):
        low = max(low, math.ceil(bound))
    if name in ("equals", "lessOrEquals"):
        high = min(high, math.floor(bound))
    if name == "greater":
        low = max(low, math.floor(bound) + 1)
    if name == "less":
        high = min(high, math.ceil(bound) - 1)
    return ValueRange(column.name, low, high)


def _limits(kind: DataType) -> tuple[int, int] | None:
    """Return the least and the greatest integer that a column of the type may store; None for types
    that are not stored as integers of up to 128 bits, or as booleans."""
    arrow = kind.arrow
    if isinstance(kind, Decimal):
        within = kind.precision <= _DECIMAL_DIGITS_MAX
        return (-(1 << 127), (1 << 127) - 1) if within else None
    if not isinstance(kind, Integer | Date | Date32 | DateTime | DateTime64 | Enum):
        return None
    if pa.types.is_boolean(arrow) or arrow.bit_width > _INTEGER_BITS_MAX:
        return None
    if pa.types.is_unsigned_integer(arrow):
        return 0, (1 << arrow.bit_width) - 1
    return -(1 << arrow.bit_width - 1), (1 << arrow.bit_width - 1) - 1


def _stored_number(
    column_type: DataType, constant: Constant, environment: Environment
) -> Fraction | None:
    """Return the constant, exactly, in the units in which the column is stored. None where the comparison is not one of
    two exact numbers, dates or times."""
    kind, other = plain(column_type), plain(constant.type)
    if isinstance(kind, Integer | Decimal):
        if not isinstance(other, Integer | Decimal | Float):
            return None
        scale = kind.scale if isinstance(kind, Decimal) else 0
        number = _exact(constant.value)
        return None if number is None else number * 10**scale
    try:
        target = comparison_type("less", Argument(kind), Argument(other, constant.value))
        value = cast_column(constant.value, other, target, environment, strict=True)
    except Error:  # the condition itself says what is wrong
        return None
    if not isinstance(value, pa.Scalar) or not value.is_valid:
        return None
    ticks = _ticks(value)
    stored, compared = kind.arrow, target.arrow
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(compared):
        return Fraction(ticks * _TICKS[stored.unit], _TICKS[compared.unit])
    is_same = target == kind or (stored == compared and pa.types.is_date(stored))
    return Fraction(ticks) if is_same else None


def _ticks(value: pa.Scalar) -> int:
    """Return the integer that Arrow stores for a date, a time or an integer."""
    integers = pa.int32() if value.type.bit_width == 32 else pa.int64()
    return int(value.as_py() if pa.types.is_integer(value.type) else value.cast(integers).as_py())


def _exact(value: pa.Scalar) -> Fraction | None:
    """Return a number exactly; None for infinity, NaN and values that are not numbers."""
    number = value.as_py()
    if not isinstance(number, int | float | Number) or isinstance(number, bool):
        return None
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return Fraction(number)


def _float_range(name: str, column: ColumnRef, constant: Constant) -> ValueRange | None:
    """Return the floats of the column's width that the comparison keeps; None where the constant is not
    a finite float exactly."""
    exact = _exact(constant.value) if isinstance(plain(constant.type), Integer | Float) else None
    if exact is None or abs(exact) > 2**1000 or Fraction(float(exact)) != exact:
        return None
    number_type = column.type.arrow.to_pandas_dtype()
    bound = float(exact)
    low, high = -math.inf, math.inf
    if name in ("equals", "greaterOrEquals", "greater"):
        low = _rounded(bound, number_type, up=True, strict=name == "greater")
    if name in ("equals", "lessOrEquals", "less"):
        high = _rounded(bound, number_type, up=False, strict=name == "less")
    return ValueRange(column.name, low, high)


def _rounded(bound: float, number_type: type[np.floating], *, up: bool, strict: bool) -> float:
    """Return the nearest float of the type that is not below (`up`) or not above the bound, or beyond it
    (`strict`)."""
    with np.errstate(over="ignore"):
        nearest = number_type(bound)
    towards = number_type(math.inf if up else -math.inf)
    is_outside = float(nearest) < bound if up else float(nearest) > bound
    if is_outside or (strict and float(nearest) == bound):
        nearest = np.nextafter(nearest, towards)
    return float(nearest)


def _probed_range(
    condition: Expression, column: str, kind: Decimal, constant: Constant, environment: Environment
) -> ValueRange | None:
    """Return the decimals that a comparison of a column with a float keeps. They are compared as floats: what the
    comparison says of the digits beside the constant gives the bounds."""
    limits, exact = _limits(kind), _exact(constant.value)
    if limits is None or exact is None or abs(exact * 10**kind.scale) > _EXACT_FLOAT:
        return None
    nearest = math.floor(exact * 10**kind.scale)
    probes = range(nearest - _PROBED, nearest + _PROBED + 2)
    values = [Number(probe).scaleb(-kind.scale) for probe in probes]
    try:
        rows = pa.RecordBatch.from_arrays([array_of(values, kind.arrow)], [column])
        kept = np.flatnonzero(to_numpy(evaluate_predicate(condition, rows, environment)))
    except (Error, pa.ArrowException):
        return None
    if not len(kept) or len(kept) == len(probes) or kept[-1] - kept[0] + 1 != len(kept):
        return None
    low = limits[0] if kept[0] == 0 else probes[int(kept[0])]
    high = limits[1] if kept[-1] == len(probes) - 1 else probes[int(kept[-1])]
    return ValueRange(column, low, high)


def bounds_as_stored(
    bounds: ValueRange, arrow: pa.DataType
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return both bounds as a kernel reads them, in numbers of the column's width. None where no value
    lies in the range, or the column cannot store a bound."""
    if bounds.low > bounds.high:
        return None
    if pa.types.is_decimal128(arrow):
        low, high = (
            np.frombuffer(int(bound).to_bytes(16, "little", signed=True), np.uint8)
            for bound in (bounds.low, bounds.high)
        )
        return low, high
    if is_short(arrow):
        least, largest = max(bounds.low, _INT64.min), min(bounds.high, _INT64.max)
        return None if least > largest else (np.array([least]), np.array([largest]))
    number_type = (
        arrow.to_pandas_dtype()
        if pa.types.is_floating(arrow) or pa.types.is_integer(arrow)
        else np.dtype(f"i{arrow.bit_width // 8}").type
    )
    return np.array([bounds.low], number_type), np.array([bounds.high], number_type)
