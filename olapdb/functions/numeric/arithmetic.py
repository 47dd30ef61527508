"""plus, minus, multiply, divide, intDiv, modulo and similar functions of numbers and decimals.

`datetime.date_arithmetic` has plus and minus of dates and intervals, `bits` the bit functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, DecimalOverflow, IllegalDivision
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.datetime import clock_arithmetic, date_arithmetic
from olapdb.functions.kernels import arrow_buffers, columns, decimal_width
from olapdb.functions.kernels.supertypes import (
    arithmetic_type,
    as_number,
    decimal_precision,
    wide_arithmetic_type,
)
from olapdb.functions.numeric import decimals, nested_arithmetic, numpy_arithmetic, wide_arithmetic
from olapdb.lazy import LazyModule
from olapdb.types import (
    FLOAT64,
    INT8,
    INT64,
    WIDE_SUM,
    AggregateFunction,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Interval,
    IPv4,
    Time,
    WideInteger,
    WideNumber,
    plain,
    wide_number,
)

_NUMBERS = (Integer, Float, Decimal, Boolean)
if TYPE_CHECKING:
    from olapdb.functions.casts import wide_numbers as wide_casts
    from olapdb.functions.numeric import state_arithmetic
else:
    wide_casts = LazyModule("olapdb.functions.casts.wide_numbers")
    state_arithmetic = LazyModule("olapdb.functions.numeric.state_arithmetic")

_TIMED = (Date, Date32, DateTime, DateTime64, Interval)


def _binary_rule(operation: str) -> Callable[..., DataType]:
    """Return the type rule of an operation on two numbers."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument unless both arguments are numbers."""
        scalar.require(name, types, (*_NUMBERS, IPv4), "a number")
        left, right = (as_number(t) for t in types)
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            return _decimal_type(name, operation, left, right)
        return arithmetic_type(operation, left, right)

    return rule


def _modulo_rule(operation: str) -> Callable[..., DataType]:
    """Return the type rule of modulo. A Date, DateTime or Time in front of an integer or Bool gives the divisor's type,
    in front of a float Float64; other operands follow the rule of `operation`."""
    rule = _binary_rule(operation)

    def of_times(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type, as `_modulo_rule` says; raise IllegalTypeOfArgument unless both are numbers or a
        Date, DateTime or Time leads."""
        counted = isinstance(types[0], Date | DateTime | Time)
        if counted and isinstance(types[1], Integer | Boolean):
            return as_number(types[1])
        return FLOAT64 if counted and isinstance(types[1], Float) else rule(name, types, arguments)

    return of_times


def _decimal_type(name: str, operation: str, left: DataType, right: DataType) -> DataType:
    """Return the result type where an operand is a Decimal or WideInteger: Float64 beside a float, an integer for
    intDiv.

    plus, minus and modulo keep the larger scale, multiply adds the scales, divide keeps the dividend's. Raises
    ArgumentOutOfBound for a scale above the precision, or below the divisor's in a division."""
    if all(isinstance(t, WideInteger | Integer) for t in (left, right)):
        return _wide_type(operation)
    if operation == "intDiv":
        bits = _whole_bits(left)
        return Integer(bits, True) if bits <= 64 else wide_number(bits, True)
    if isinstance(left, Float) or isinstance(right, Float):
        return FLOAT64
    scales = [t.scale if isinstance(t, Decimal) else 0 for t in (left, right)]
    precisions = [t.precision for t in (left, right) if isinstance(t, Decimal)]
    precision = precisions[0]  # a decimal beside an integer keeps its own
    if len(precisions) > 1:
        precision = decimal_precision(max(precisions))
    if operation in ("plus", "minus", "modulo", "positiveModulo"):
        return Decimal(precision, max(scales))
    if operation == "multiply":
        scale = sum(scales)
    else:
        scale = scales[0] if isinstance(left, Decimal) else scales[1]
        if scales[1] > scale:
            raise ArgumentOutOfBound(
                f"Decimal result's scale of {name} is less than the divisor's."
            )
    if scale > precision:
        raise ArgumentOutOfBound(f"Scale {scale} of {name}'s result is out of bound {precision}.")
    return Decimal(precision, scale)


def _wide_type(operation: str) -> DataType:
    """Return the result type of an operation on integers of which at least one is wider than 64 bits."""
    if operation == "intDiv":
        return INT64
    return FLOAT64 if operation == "divide" else WIDE_SUM


def _whole_bits(dividend: DataType) -> int:
    """Return the bits of the integer that intDiv gives: the dividend's width, that of a Decimal's digits too."""
    if isinstance(dividend, Decimal):
        return {9: 32, 18: 64, 38: 128, 76: 256}[decimal_precision(dividend.precision)]
    return dividend.bits if isinstance(dividend, Integer | Float) else 64


_OPERATIONS: dict[str, Callable[[Column, Column], Column]] = {
    "plus": pc.add,
    "minus": pc.subtract,
    "multiply": pc.multiply,
}


def _native_kernel(operation: str) -> Callable[[list[Column], scalar.Invocation], Column]:
    """Return the kernel of "plus", "minus" or "multiply": Decimals are computed exactly and raise
    DecimalOverflow, integers wrap at the result's width, floats are rounded."""

    def kernel(values: list[Column], call: scalar.Invocation) -> Column:
        """Compute the result in numpy for plain columns, else in Arrow."""
        if isinstance(call.result, Decimal):
            return decimals.combine_decimals(operation, values, call.result, call.rows)
        arrow = call.result.arrow
        if _is_plain(values):
            left, right = (columns.operand(v) for v in values)
            dtype = columns.dtype_of(arrow)
            result = numpy_arithmetic.apply_ufunc(
                numpy_arithmetic.UFUNCS[operation], left, right, call.rows, dtype
            )
            return columns.from_values(result, arrow)
        left, right = (_as_number_type(v, arrow) for v in values)
        return _OPERATIONS[operation](left, right)

    return kernel


def _is_plain(values: list[Column]) -> bool:
    """Return whether the operands are numbers without NULL, not all constants, so that numpy
    computes them.
    """
    arrays = [v for v in values if isinstance(v, pa.Array)]
    return (
        bool(arrays)
        and not any(a.null_count for a in arrays)
        and all(v.is_valid for v in values if isinstance(v, pa.Scalar))
        and not any(pa.types.is_decimal(v.type) for v in values)
    )


def _as_number_type(column: Column, arrow: pa.DataType) -> Column:
    """Return a number column or constant as the Arrow type `arrow`; integers wrap."""
    if pa.types.is_decimal(column.type) and pa.types.is_floating(arrow):
        return pc.cast(decimal_width.floats_of_decimals(column), arrow)
    return columns.wrapped(column, arrow)


def _divide(values: list[Column], call: scalar.Invocation) -> pa.Array:
    """Return the quotient as Float64, or as a Decimal if that is the result's type: the kernel of divide."""
    if isinstance(call.result, Decimal):
        return decimals.divide(values, call.result, call.rows)
    dividend, divisor = (columns.operand(_without_point(v)) for v in values)
    return columns.from_values(
        numpy_arithmetic.float_quotient(dividend, divisor, call.rows), pa.float64()
    )


def _without_point(column: Column) -> Column:
    """Return a decimal as Float64, other numbers as given."""
    return decimal_width.floats_of_decimals(column) if pa.types.is_decimal(column.type) else column


def _integer_operands(arrays: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Return both operands as int64, or as uint64 if both are unsigned.

    UInt64 with a signed number becomes Int64, as in ClickHouse.
    """
    left, right = (columns.numpy_values(a) for a in arrays)
    unsigned = left.dtype.kind == "u" and right.dtype.kind == "u"
    dtype = np.uint64 if unsigned else np.int64
    return left.astype(dtype), right.astype(dtype)


def _int_div(values: list[Column], call: scalar.Invocation) -> pa.Array:
    """Return the quotient truncated to an integer: the kernel of intDiv.

    Raises IllegalDivision if any divisor is 0 or any float quotient does not fit, and
    DecimalOverflow if a Decimal's does not.
    """
    if isinstance(call.result, WideNumber):
        return _wide_int_div(values, call, call.result)
    assert isinstance(call.result, Integer)
    if any(isinstance(t, Float) for t in call.types):
        decimals.refuse_zero(values[1])
        left, right = (columns.operand(_without_point(v)) for v in values)
        quotient = _whole_float_quotient(left, right, call.result, call.rows)
    elif any(isinstance(t, Decimal) for t in call.types):
        quotient = decimals.whole_quotient(values, call.result, call.rows)
    else:
        left, right = (columns.operand(v) for v in values)
        quotient = numpy_arithmetic.whole_quotient(left, right, call.rows)
    return columns.from_values(quotient, call.result.arrow)


def _wide_int_div(values: list[Column], call: scalar.Invocation, result: WideNumber) -> pa.Array:
    """Return the quotient of a Decimal of more than 18 digits truncated to an Int128 or Int256. Raises the errors of
    `_int_div`."""
    if not any(isinstance(t, Float) for t in call.types):
        return decimals.wide_whole_quotient(values, result, call.rows)
    decimals.refuse_zero(values[1])
    left, right = (columns.operand(_without_point(v)) for v in values)
    quotient = numpy_arithmetic.float_quotient(left, right, call.rows)
    valid = np.isfinite(left) & np.isfinite(right) & (np.abs(quotient) < 2.0 ** (result.bits - 1))
    if not valid.all():
        raise _too_large().at_row(int(np.argmin(valid)))
    return wide_casts.to_wide(columns.from_values(quotient, pa.float64()), FLOAT64, result)


def _too_large() -> IllegalDivision:
    """Return the error about a quotient of floats that no integer of the result's type holds."""
    return IllegalDivision("Cannot perform integer division on infinite or too large numbers.")


def _whole_float_quotient(
    left: np.ndarray, right: np.ndarray, result: Integer, rows: int
) -> np.ndarray:
    """Return quotients truncated to int64.

    Raises IllegalDivision if an operand is not finite or the quotient out of the result's range.
    """
    float32_only = np.float64 not in (left.dtype, right.dtype)
    dtype = np.float32 if float32_only else np.float64
    quotient = np.trunc(numpy_arithmetic.apply_ufunc(np.true_divide, left, right, rows, dtype))
    quotient = quotient.astype(np.float64)
    low, high = float(result.minimum), float(result.maximum)
    valid = (quotient >= low) & ((quotient <= high) if high < _INT64_FLOAT else (quotient < high))
    valid &= np.isfinite(left) & np.isfinite(right)
    if not valid.all():
        raise _too_large().at_row(int(np.argmin(valid)))
    return np.asarray(quotient.astype(np.int64))


_INT64_FLOAT = 2.0**63


def _zero_by_zero(
    divided: Callable[[list[Column], scalar.Invocation], pa.Array],
    arrays: list[pa.Array],
    call: scalar.Invocation,
) -> pa.Array:
    """Return what `divided` gives for rows with a divisor other than 0, and 0 for rows whose divisor is 0."""
    divides = decimals.not_zero(arrays[1])
    rows: list[Column] = [a.filter(pa.array(divides)) for a in arrays]
    result = divided(rows, replace(call, rows=len(rows[0])))
    return columns.scatter(result, divides).fill_null(0)


def _int_div_or_zero(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the truncated quotient, 0 where the divisor is 0: the kernel of intDivOrZero.

    Also 0 where the least signed number is divided by -1.
    """
    if any(isinstance(t, Decimal) for t in call.types):
        return _zero_by_zero(_int_div, arrays, call)
    divisor = columns.numpy_values(arrays[1])
    valid = _may_divide(columns.numpy_values(arrays[0]), divisor)
    safe = columns.from_values(np.where(valid, divisor, 1), arrays[1].type)
    quotient = columns.numpy_values(_int_div([arrays[0], safe], call))
    return columns.from_values(np.where(valid, quotient, 0), call.result.arrow)


def _modulo(values: list[Column], call: scalar.Invocation) -> pa.Array:
    """Return the remainder with the dividend's sign: the kernel of modulo.

    Raises IllegalDivision if any divisor is 0, unless an operand is a float.
    """
    if isinstance(call.result, Decimal):
        return decimals.remainder(values, call.result, call.rows, positive=False)
    left, right = (columns.operand(_without_point(v)) for v in values)
    if isinstance(call.result, Float):
        return columns.from_values(_float_remainder(left, right, call.rows), pa.float64())
    dtype = columns.dtype_of(call.result.arrow)
    remainder = numpy_arithmetic.remainder(left, right, call.rows, dtype)
    return columns.from_values(remainder, call.result.arrow)


def _float_remainder(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Return the dividend minus whole multiples of the divisor.

    ClickHouse computes it the same way, so that 1 % 0.1 is 0.
    """
    whole = np.trunc(numpy_arithmetic.float_quotient(left, right, rows))
    with np.errstate(all="ignore"):
        return np.asarray(left - whole * right, np.float64)


def _no_decimals(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of moduloOrZero, that of modulo; raise IllegalTypeOfArgument unless both are integers of any
    width, floats or Bools."""
    scalar.require(
        name, types, (Integer, Float, Boolean, WideInteger), "a number that is no Decimal"
    )
    return _binary_rule("modulo")(name, types, arguments)


def _may_divide(dividend: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Return in which rows an integer division has a result: the divisor is not 0, nor -1 under the least signed
    number."""
    valid: np.ndarray = divisor != 0
    if dividend.dtype.kind == "i":
        valid &= (divisor != -1) | (dividend != np.iinfo(dividend.dtype).min)
    return valid


def _modulo_or_zero(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the remainder, 0 where the divisor is 0: the kernel of moduloOrZero.

    Also 0 where the least signed integer is divided by -1. If either operand is a float, the
    remainder of a division by 0 is NaN.
    """
    if isinstance(call.result, Float):
        return _modulo(list(arrays), call)
    if any(isinstance(t, WideInteger) for t in call.types):
        return _zero_by_zero(_modulo, arrays, call)
    divisor = columns.numpy_values(arrays[1])
    valid = _may_divide(columns.numpy_values(arrays[0]), divisor)
    safe = columns.from_values(np.where(valid, divisor, 1), arrays[1].type)
    remainder = columns.numpy_values(_modulo([arrays[0], safe], call))
    return columns.from_values(np.where(valid, remainder, 0), call.result.arrow)


def _positive_modulo(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the remainder; a negative one plus the divisor's absolute value: the kernel of positiveModulo."""
    if isinstance(call.result, Decimal):
        return decimals.remainder(list(arrays), call.result, call.rows, positive=True)
    left, right = (columns.numpy_values(_without_point(a)) for a in arrays)
    if isinstance(call.result, Float):
        remainder = _float_remainder(left, right, call.rows)
        return columns.from_values(
            np.where(remainder < 0, remainder + np.abs(right), remainder), pa.float64()
        )
    dtype = columns.dtype_of(call.result.arrow)
    remainder = numpy_arithmetic.remainder(left, right, call.rows, dtype)
    if remainder.dtype.kind == "i":
        step = np.where(remainder < 0, numpy_arithmetic.magnitudes(right), np.uint64(0))
        remainder = arrow_buffers.converted(remainder, np.uint64) + step
    return columns.from_values(remainder, call.result.arrow)


def _negate_type(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of negate: unsigned integers become signed at twice the width, at most 64
    bits.
    """
    scalar.require(name, types, (*_NUMBERS, Interval), "a number")
    operand = as_number(types[0])
    if isinstance(operand, Integer) and not operand.signed:
        return Integer(min(2 * operand.bits, 64), True)
    return operand


def _negate(values: list[Column], call: scalar.Invocation) -> Column:
    """Return the numbers negated at the result's width; the least signed number wraps."""
    return pc.negate(columns.wrapped(values[0], call.result.arrow))


def _abs_type(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of abs: signed integers become unsigned, other numbers stay. Raises
    IllegalTypeOfArgument for anything else."""
    scalar.require(name, types, _NUMBERS, "a number")
    operand = as_number(types[0])
    return Integer(operand.bits, False) if isinstance(operand, Integer) else operand


def _abs(values: list[Column], call: scalar.Invocation) -> Column:
    """Return the absolute values of numbers; a Bool as UInt8."""
    if pa.types.is_boolean(values[0].type):
        return columns.wrapped(values[0], pa.uint8())
    return columns.wrapped(pc.abs(values[0]), call.result.arrow)


def _sign(values: list[Column], call: scalar.Invocation) -> Column:
    """Return -1, 0 or 1 as Int8 for numbers below, equal to and above 0; NaN gives 1."""
    column = (
        columns.wrapped(values[0], pa.float64())
        if pa.types.is_decimal(values[0].type)
        else values[0]
    )
    if pa.types.is_boolean(column.type):
        column = columns.wrapped(column, pa.uint8())
    sign = pc.cast(pc.sign(column), pa.int8(), safe=False)
    if pa.types.is_floating(column.type):  # NaN counts as above 0
        return pc.if_else(pc.is_nan(column), pa.scalar(1, pa.int8()), sign)
    return sign


def _gcd_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of gcd and lcm, that of plus; raise IllegalTypeOfArgument unless both are
    integers.
    """
    scalar.require(name, types, (Integer, WideNumber), "an integer")
    if any(isinstance(t, WideNumber) for t in types):
        wide = wide_arithmetic_type("plus", types[0], types[1])
        assert wide is not None
        return wide
    return arithmetic_type("plus", types[0], types[1])


def _pairwise(function: np.ufunc) -> Callable[[list[pa.Array], scalar.Invocation], pa.Array]:
    """Return the kernel of gcd or lcm: `function` applied to both integers, which have at most 64 bits."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Apply the function to both integers and wrap the result to its type.

        As in ClickHouse, raises IllegalDivision if either is 0, and DecimalOverflow for the least signed number,
        whose positive does not fit."""
        if isinstance(call.result, WideNumber):
            return wide_arithmetic.by_python_integers(function, arrays, call.result)
        left, right = _integer_operands(arrays)
        assert isinstance(call.result, Integer)
        if call.result.signed and call.result.bits == 64:
            least = (left == -(2**63)) | (right == -(2**63))
            if least.any():
                raise DecimalOverflow(f"{function.__name__} of -2 ** 63 is beyond Int64.").at_row(
                    int(np.argmax(least))
                )
        zero = (left == 0) | (right == 0)
        if zero.any():
            raise IllegalDivision("Division by zero.").at_row(int(np.argmax(zero)))
        return columns.from_values(function(left, right), call.result.arrow)

    return kernel


def _plus_or_minus(operation: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of plus or minus. Calls with dates or intervals go to `date_arithmetic`, others to the
    arithmetic of numbers."""
    rule, kernel = _binary_rule(operation), _native_kernel(operation)

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call by `date_arithmetic` if an argument is a date, time or interval, else as that of numbers."""
        types = [plain(a.type) for a in arguments]
        if any(isinstance(t, AggregateFunction) for t in types):
            return state_arithmetic.resolve(name, operation, arguments)
        if any(isinstance(t, clock_arithmetic.CLOCKS) for t in types):
            return clock_arithmetic.resolve(name, operation, arguments)
        if any(isinstance(t, _TIMED) for t in types):
            return date_arithmetic.resolve(name, operation, arguments)
        return scalar.standard_call(name, arguments, rule, None, kernel)

    return resolve


def _multiply(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve multiply of numbers, or of a state of an aggregate and a number."""
    if any(isinstance(a.type, AggregateFunction) for a in arguments):
        return state_arithmetic.resolve(name, "multiply", arguments)
    return scalar.standard_call(
        name, arguments, _binary_rule("multiply"), None, _native_kernel("multiply")
    )


_OF_NUMBERS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("plus", _plus_or_minus("plus"), count=2),
    scalar.custom("minus", _plus_or_minus("minus"), count=2),
    scalar.custom("multiply", _multiply, count=2),
    scalar.define("divide", _binary_rule("divide"), _divide, count=2, keeps_constants=True),
    scalar.define("intDiv", _binary_rule("intDiv"), _int_div, count=2, keeps_constants=True),
    scalar.define("intDivOrZero", _binary_rule("intDiv"), _int_div_or_zero, count=2),
    scalar.define(
        "modulo",
        _modulo_rule("modulo"),
        _modulo,
        count=2,
        aliases=("mod",),
        insensitive=True,
        keeps_constants=True,
    ),
    scalar.define("moduloOrZero", _no_decimals, _modulo_or_zero, count=2),
    scalar.define(
        "positiveModulo",
        _modulo_rule("positiveModulo"),
        _positive_modulo,
        count=2,
        aliases=("positive_modulo", "pmod"),
        insensitive=True,
    ),
    scalar.define("negate", _negate_type, native=_negate),
    scalar.define("abs", _abs_type, native=_abs, insensitive=True),
    scalar.define(
        "sign", scalar.fixed_rule(INT8, _NUMBERS, "a number"), native=_sign, insensitive=True
    ),
    scalar.define("gcd", _gcd_rule, _pairwise(np.gcd), count=2),
    scalar.define("lcm", _gcd_rule, _pairwise(np.lcm), count=2),
)
DEFINITIONS = tuple(
    nested_arithmetic.with_nested(wide_arithmetic.with_wide(definition))
    for definition in _OF_NUMBERS
)
