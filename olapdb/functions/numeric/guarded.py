"""Arithmetic that guards its arguments or composes other functions: …OrNull, clamp, max2, midpoint;
special functions; widthBucket; rounding to given values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.composition import Term, call, compose, literal
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.kernels.supertypes import NULL_TYPE, as_number, common_type
from olapdb.functions.numeric.maths import floats
from olapdb.types import (
    FLOAT64,
    INT8,
    STRING,
    UINT8,
    UINT16,
    UINT64,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Nothing,
    Time,
    Time64,
    Variant,
    is_nullable,
    plain,
)

_NUMBERS = (Integer, Float, Decimal, Boolean)
_NO_DECIMALS = (Integer, Float, Boolean)


def _or_null(operation: str) -> Callable[[Term, Term], Term]:
    """Return how …OrNull composes `operation`, a division: NULL for a divisor of 0, and for the least integer by -1."""

    def build(left: Term, right: Term) -> Term:
        """Return the division by the divisor, or by NULL where the division has no result."""
        divisor = call("nullIf", right, literal(0, UINT8))
        kinds = plain(left.type), plain(right.type)
        if operation != "divide" and all(isinstance(k, Integer) and k.signed for k in kinds):
            least = -(1 << (8 * kinds[0].arrow.byte_width - 1))
            without = call(
                "and",
                call("equals", right, literal(-1, INT8)),
                call("equals", left, literal(least, kinds[0])),
            )
            divisor = call("if", without, literal(None, NULL_TYPE), divisor)
        return call(operation, left, divisor)

    return build


def _middle(*values: Term) -> Term:
    """Compose midpoint: the mean of the values in their common type; that of integers and times is truncated.

    NULLs are left out; without any value the mean is NULL. Raises IllegalTypeOfArgument."""
    common = common_type([part.type for part in values])
    kind = plain(common)
    if not is_nullable(common):
        count = literal(len(values), UINT64)
    else:
        present = (call("toUInt64", call("isNotNull", part)) for part in values)
        count = functools.reduce(lambda a, b: call("plus", a, b), present)
        count = call("nullIf", count, literal(0, UINT8))
        zero = call("CAST", literal(0, UINT8), literal(kind.name, STRING))
        values = tuple(call("ifNull", part, zero) for part in values)
    if isinstance(kind, Float | Decimal):
        wide = [call("CAST", part, literal(common.name, STRING)) for part in values]
        mean = call("divide", functools.reduce(lambda a, b: call("plus", a, b), wide), count)
        return call("CAST", mean, literal(common.name, STRING))
    if isinstance(kind, Time64):
        return _middle_of_times(values, kind, common, count)
    if not isinstance(kind, Integer | Date | Date32 | DateTime | DateTime64 | Time):
        raise IllegalTypeOfArgument(f"The middle of values of type {common} is not known.")
    same = [call("CAST", part, literal(common.name, STRING)) for part in values]
    if isinstance(kind, DateTime64):
        whole = [call("reinterpretAsInt64", part) for part in same]
    elif isinstance(kind, Date | Date32 | DateTime | Time):
        whole = [call("toInt64", part) for part in same]
    elif kind.arrow.byte_width == 8:
        whole = [call("toDecimal128", part, literal(0, UINT8)) for part in same]
    else:
        whole = [call("toInt64", part) for part in same]
    total = functools.reduce(lambda a, b: call("plus", a, b), whole)
    if isinstance(plain(total.type), Decimal):
        mean = call("trunc", call("divide", total, count))
    else:
        mean = call("intDiv", total, count)
    if isinstance(kind, DateTime64):
        mean = call("reinterpret", mean, literal(kind.name, STRING))
    return call("CAST", mean, literal(common.name, STRING))


def _middle_of_times(values: Sequence[Term], kind: Time64, common: DataType, count: Term) -> Term:
    """Return the mean of Time64 values, truncated, by way of decimals of their precision."""
    decimal = literal(f"Decimal(38, {kind.precision})", STRING)
    wide = [
        call("CAST", call("CAST", part, literal(common.name, STRING)), decimal) for part in values
    ]
    total = functools.reduce(lambda a, b: call("plus", a, b), wide)
    return call("CAST", call("divide", total, count), literal(common.name, STRING))


def _modulo_legacy(left: Term, right: Term) -> Term:
    """Return the remainder of integers in a type as wide as the divisor, signed if either operand is; that of other
    numbers in the type of modulo."""
    whole = call("modulo", left, right)
    kinds = [plain(part.type) for part in (left, right)]
    if not all(isinstance(kind, Integer) for kind in kinds):
        return whole
    sign = "" if any(kind.signed for kind in kinds if isinstance(kind, Integer)) else "U"
    return call(f"to{sign}Int{8 * kinds[1].arrow.byte_width}", whole)


def _is_zero_or_null(value: Term) -> Term:
    """Compose the condition that a number is 0 or NULL. Raises BadArguments for other types."""
    kind = plain(value.type)
    if not isinstance(kind, Integer | Float | Boolean | Decimal | Nothing | Variant):
        raise BadArguments(f"The argument of isZeroOrNull is a number, not {value.type}.")
    equal = call("equals", value, literal(0, UINT8))
    return call("ifNull", equal, literal(1, UINT8)) if is_nullable(value.type) else equal


def _clamp(value: Term, least: Term, most: Term) -> Term:
    """Compose clamp: the value, at least `least` and at most `most`, in their common type; NULL if any is NULL.

    Raises BadArguments if both bounds are constants and `least` is above `most`."""
    if least.constant is not None and most.constant is not None:
        lower, upper = least.constant.as_py(), most.constant.as_py()
        if type(lower) is type(upper) and lower is not None and lower > upper:
            raise BadArguments("The least value of clamp must not be greater than the greatest.")
    shared = literal(str(common_type([value.type, least.type, most.type])), STRING)
    value, least, most = (call("CAST", part, shared) for part in (value, least, most))
    bounded = call("CAST", call("greatest", call("least", value, most), least), shared)
    return _null_with(bounded, (value, least, most))


def _null_with(whole: Term, parts: tuple[Term, ...]) -> Term:
    """Compose `whole`, a function that ignores NULL, so that it is NULL where any of `parts` is."""
    for part in parts:
        if is_nullable(part.type):
            whole = call("if", call("isNull", part), literal(None, NULL_TYPE), whole)
    return whole


def _extreme(name: str, operation: str) -> Callable[[Term, Term], Term]:
    """Return the composition of max2 or min2: the extreme of two numbers as Float64."""

    def build(left: Term, right: Term) -> Term:
        """Compose the extreme of both as Float64."""
        for side in (left, right):
            if not isinstance(plain(side.type), (*_NUMBERS, Nothing)):
                raise scalar.illegal(name, side.type, "a number")
        numbers = call("toFloat64", left), call("toFloat64", right)
        return _null_with(call(operation, *numbers), numbers)

    return build


def _square(value: Term) -> Term:
    """Return the number times itself."""
    return call("multiply", value, value)


def _first_non_default(*values: Term) -> Term:
    """Return the first value that is neither NULL nor the default of its type; without one the default of the common
    type, which is NULL where a value may be NULL. A Nullable value of 0 counts, as its type's default is NULL.

    Raises NoCommonType."""
    common = common_type([value.type for value in values])
    whole = values[-1]
    if is_nullable(common) and not is_nullable(whole.type):
        whole = call("nullIf", whole, call("defaultValueOfArgumentType", whole))
    for value in reversed(values[:-1]):
        zero = call("defaultValueOfArgumentType", value)
        differs = call("notEquals", value, zero)
        if is_nullable(value.type):
            differs = call("isNotNull", value)
        whole = call("if", differs, value, whole)
    return whole


# --- special functions


def _elementwise(function: Callable[[float], float]) -> scalar.Kernel:
    """Return the kernel of a function of one number, taken as Float64; `function` is called once for each distinct
    value."""

    def safe(value: float) -> float:
        """Return the function's value; where Python raises an error, NaN for a negative number, else infinity."""
        try:
            return function(value)
        except (OverflowError, ValueError):
            return math.nan if value < 0 else math.inf

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the function's value for each number as Float64; compute each distinct one once."""
        distinct, inverse = np.unique(floats(arrays[0]), return_inverse=True)
        values = np.array([safe(float(x)) for x in distinct], np.float64)
        return columns.from_values(values[inverse.reshape(-1)], pa.float64())

    return kernel


def _sigmoid(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return 1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return columns.from_values(1 / (1 + np.exp(-floats(arrays[0]))), pa.float64())


def _integer_power(base: int, last: int) -> scalar.Kernel:
    """Return the kernel of intExp2 or intExp10: `base` to the power x as UInt64; 0 for a negative x, 2^64 - 1 for an
    x above `last`."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the powers as UInt64: exponents are cut to integers, too small ones give 0, too large
        ones 2^64 - 1. Raises BadArguments for NaN."""
        exponents = floats(arrays[0])
        if np.isnan(exponents).any():
            raise BadArguments(f"intExp{base} takes no NaN.")
        powers = np.array([0, *(base**n for n in range(last + 1)), 2**64 - 1], np.uint64)
        at = np.clip(np.trunc(np.clip(exponents, -1e6, 1e6)), -1, last + 1).astype(np.int64)
        return columns.from_values(powers[at + 1], pa.uint64())

    return kernel


def _factorial(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return n! as UInt64, 1 for a negative n; raise BadArguments for an n above 20."""
    numbers = columns.numpy_values(arrays[0])
    if len(numbers) and numbers.max() > 20:
        raise BadArguments("factorial takes a number of at most 20.")
    table = np.array([math.factorial(n) for n in range(21)], np.uint64)
    return columns.from_values(table[np.maximum(numbers, 0).astype(np.int64)], pa.uint64())


def _bucket_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return an unsigned integer of twice the width of the number of buckets, at most 64 bits.

    Raises IllegalTypeOfArgument unless three numbers and an unsigned integer are given."""
    scalar.require(name, types[:3], (Integer, Float, Boolean), "a number")
    count = types[3]
    if not isinstance(count, Integer) or count.signed:
        raise scalar.illegal(name, count, "an unsigned integer")
    return Integer(min(count.bits * 2, 64), False)


def _width_bucket(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the number, from 1, of the bucket of equal width between two bounds: 0 below, n + 1 above the last, and 0
    for a lower bound that is not below the upper one.

    Raises BadArguments."""
    value, low, high = (floats(a) for a in arrays[:3])
    count = columns.numpy_values(arrays[3])
    if not (np.isfinite(low) & np.isfinite(high)).all() or np.isnan(value).any():
        raise BadArguments("The numbers of widthBucket are finite.")
    if (count == 0).any():
        raise BadArguments("The number of buckets of widthBucket is positive.")
    with np.errstate(all="ignore"):
        inside = np.floor((value - low) * count / (high - low)) + 1
    buckets = np.where(value < low, 0, np.where(value >= high, count + 1.0, inside))
    buckets = np.where(low >= high, 0, buckets)
    return columns.from_values(buckets, call.result.arrow)


# --- rounding


def _steps(limits: Sequence[int], values: Sequence[int], result: DataType) -> scalar.Kernel:
    """Return a kernel that gives values[i] where limits[i - 1] <= x < limits[i]; the first and last step are
    unbounded."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return for each number the value of the step in which it lies."""
        at = np.searchsorted(np.array(limits, np.float64), floats(arrays[0]), side="right")
        return columns.from_values(np.array(values)[at], result.arrow)

    return kernel


_AGES, _AGE_VALUES = (1, 18, 25, 35, 45, 55), (0, 17, 18, 25, 35, 45, 55)
_DURATIONS = (1, 10, 30, 60, 120, 180, 240, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000)


def _round_to_power(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the greatest power of two that is not above each number; 0 for an integer of at most 0."""
    if isinstance(call.result, Float):
        numbers = floats(arrays[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.exp2(np.floor(np.log2(np.abs(numbers))))
        rounded = np.where(numbers == 0, 0, np.copysign(powers, numbers))
        unlimited = np.where(np.isnan(numbers), np.inf, numbers)  # a NaN counts as infinite
        return columns.from_values(
            np.where(np.isfinite(numbers), rounded, unlimited), call.result.arrow
        )
    numbers = columns.numpy_values(arrays[0])
    sizes = np.maximum(numbers, 0).astype(np.uint64)
    for places in (1, 2, 4, 8, 16, 32):
        sizes |= sizes >> np.uint64(places)
    return columns.from_values(sizes - (sizes >> np.uint64(1)), call.result.arrow)


def _same_number(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the number's own type; raise IllegalTypeOfArgument for anything else."""
    scalar.require(name, types[:1], (Integer, Float, Boolean), "a number")
    return as_number(types[0])


def _round_down_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the common type of the number and the array's elements."""
    from olapdb.functions.arrays.type_rules import element_type

    inner = element_type(name, types[1])
    scalar.require(name, [types[0], inner], _NUMBERS, "a number")
    return common_type([types[0], inner])


def _round_down(value: float, choices: list[float]) -> float:
    """Return the largest choice that is not above the value, or the smallest choice.

    Raises BadArguments."""
    if not choices:
        raise BadArguments("The array of roundDown must not be empty.")
    if value != value:
        return value
    return max((c for c in choices if c <= value), default=min(choices))


_NUMBER = scalar.fixed_rule(FLOAT64, _NUMBERS, "a number")
_INTEGER = scalar.fixed_rule(UINT64, (Integer,), "an integer")

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    compose("avg2", _middle, count=2, insensitive=True),
    compose("midpoint", _middle, count=(1, None), insensitive=True),
    compose("divideOrNull", _or_null("divide"), count=2, standard=True),
    compose("intDivOrNull", _or_null("intDiv"), count=2, standard=True),
    compose(
        "moduloOrNull",
        _or_null("modulo"),
        count=2,
        aliases=("modOrNull", "MODORNULL"),
        standard=True,
    ),
    compose(
        "positiveModuloOrNull",
        _or_null("positiveModulo"),
        count=2,
        aliases=("positive_modulo_or_null", "pmodOrNull"),
        insensitive=True,
        standard=True,
    ),
    compose("moduloLegacy", _modulo_legacy, count=2),
    compose("isZeroOrNull", _is_zero_or_null, count=1),
    compose("clamp", _clamp, count=3, standard=True),
    compose("max2", _extreme("max2", "greatest"), count=2, insensitive=True, standard=True),
    compose("min2", _extreme("min2", "least"), count=2, insensitive=True, standard=True),
    compose("sqr", _square, count=1, insensitive=True),
    compose("firstNonDefault", _first_non_default, count=(1, None), insensitive=True),
    scalar.define("erf", _NUMBER, _elementwise(math.erf), insensitive=True),
    scalar.define("erfc", _NUMBER, _elementwise(math.erfc), insensitive=True),
    scalar.define("lgamma", _NUMBER, _elementwise(math.lgamma), insensitive=True),
    scalar.define("tgamma", _NUMBER, _elementwise(math.gamma), insensitive=True),
    scalar.define("sigmoid", _NUMBER, _sigmoid),
    scalar.define(
        "intExp2", scalar.fixed_rule(UINT64, _NUMBERS, "a number"), _integer_power(2, 63)
    ),
    scalar.define(
        "intExp10", scalar.fixed_rule(UINT64, _NUMBERS, "a number"), _integer_power(10, 19)
    ),
    scalar.define("factorial", _INTEGER, _factorial, insensitive=True),
    scalar.define(
        "widthBucket",
        _bucket_rule,
        _width_bucket,
        count=4,
        aliases=("width_bucket",),
        insensitive=True,
    ),
    scalar.define(
        "roundAge",
        scalar.fixed_rule(UINT8, _NO_DECIMALS, "a number that is no Decimal"),
        _steps(_AGES, _AGE_VALUES, UINT8),
    ),
    scalar.define(
        "roundDuration",
        scalar.fixed_rule(UINT16, _NO_DECIMALS, "a number that is no Decimal"),
        _steps(_DURATIONS, (0, *_DURATIONS), UINT16),
    ),
    scalar.define("roundToExp2", _same_number, _round_to_power),
    define_by_value("roundDown", _round_down_rule, _round_down, count=2),
)
