"""Rounding, roots, logarithms, trigonometry, and tests for NaN and infinity."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, DecimalOverflow
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import numbers
from olapdb.functions.kernels import columns, decimal_width
from olapdb.functions.kernels.arrow_buffers import empty
from olapdb.functions.kernels.decimal_width import has_short_form, lengthened, shortened
from olapdb.functions.kernels.supertypes import as_number
from olapdb.functions.registry import resolve_scalar
from olapdb.types import FLOAT64, UINT8, Boolean, DataType, Decimal, Float, Integer, Nothing, plain
from olapdb.types.arrow_values import from_numpy

_NUMBERS = (Integer, Float, Decimal, Boolean)


def floats(array: pa.Array) -> np.ndarray:
    """Return any number as float64."""
    if pa.types.is_decimal(array.type):
        return columns.numpy_values(decimal_width.floats_of_decimals(array))
    return columns.numpy_values(array.cast(pa.float64(), safe=False))


def _function(
    name: str,
    ufunc: Callable[..., np.ndarray],
    aliases: tuple[str, ...] = (),
    count: int = 1,
    insensitive: bool = True,
) -> scalar.ScalarDefinition:
    """Define a function of numbers as Float64, computed by a numpy function."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Apply the ufunc to the arguments as Float64; errors give NaN or infinity."""
        with np.errstate(all="ignore"):
            return columns.from_values(ufunc(*(floats(a) for a in arrays)), pa.float64())

    rule = scalar.fixed_rule(FLOAT64, _NUMBERS, "a number")
    return scalar.define(name, rule, kernel, count=count, aliases=aliases, insensitive=insensitive)


def _cube_root(values: np.ndarray) -> np.ndarray:
    """Return the cube roots, exact where they are: the C library's may be off by the last bit, which one step of
    Newton's method in more digits mends."""
    roots = np.cbrt(values)
    wide = roots.astype(np.longdouble)
    mended = (wide - (wide * wide * wide - values) / (3 * wide * wide)).astype(np.float64)
    return np.asarray(np.where(np.isfinite(mended) & (roots != 0), mended, roots))


_TENS = np.array([float(f"1e{exponent}") for exponent in range(-324, 309)])


def _power_of_ten(exponents: np.ndarray) -> np.ndarray:
    """Return ten to each power, to the last bit as musl's exp10 and ClickHouse: 10 to the whole part of the power, from
    a table, times 2 to the rest in binary digits."""
    whole = np.trunc(exponents)
    in_table = np.clip(np.nan_to_num(whole), -324, 308).astype(np.int64)
    powers = np.exp2((exponents - whole) * 3.32192809488736234787031942948939017586)
    exact = in_table == whole
    return np.asarray(np.where(exact, powers * _TENS[in_table + 324], np.power(10.0, exponents)))


def _constant(name: str, value: float) -> scalar.ScalarDefinition:
    """Define a function without arguments that returns `value`."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call, which has no arguments."""
        return ScalarCall(spelt, FLOAT64, lambda v, r, e: pa.scalar(value))

    return scalar.custom(name, resolve, count=0, insensitive=True)


def _test(function: Callable[[np.ndarray], np.ndarray]) -> scalar.Kernel:
    """Return the kernel of a test such as np.isnan on numbers taken as Float64: 1 where it holds, else 0."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return 1 where the test holds for the number, else 0."""
        return columns.from_values(function(floats(arrays[0])), pa.uint8())

    return kernel


def _if_not_finite(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve ifNotFinite(value, other) as if(isFinite(value), value, other)."""
    test = resolve_scalar("isFinite", arguments[:1])
    chosen = resolve_scalar("if", [Argument(test.type), *arguments])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the first argument where it is finite, else the second."""
        return chosen.kernel(
            [test.kernel(values[:1], rows, environment), *values], rows, environment
        )

    return ScalarCall(name, chosen.type, kernel)


# --- rounding -----------------------------------------------------------------------------------


def _rounding(mode: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of round, floor, ceil or trunc (x[, digits]); `mode` says which.

    The type stays, and decimals keep their scale."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for a number and a number of digits, which is 0 if absent; digits that are no constant go to
        `_rounded_by_row`.

        Raises ArgumentOutOfBound."""
        if any(isinstance(plain(a.type), Nothing) for a in arguments):
            return scalar.standard_call(name, arguments, FLOAT64, None)
        if len(arguments) > 1 and arguments[1].constant is None:
            return _rounded_by_row(name, arguments, mode)
        places = (
            scalar.constant_integer(name, arguments, 1, "the number of digits")
            if len(arguments) > 1
            else 0
        )
        number_type = plain(arguments[0].type)
        scalar.require(name, [number_type], _NUMBERS, "a number")
        if not -(2**15) <= places < 2**15:
            raise ArgumentOutOfBound(f"{name} takes up to 32767 digits, not {places}.")

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Round the first argument to `places` digits."""
            if isinstance(number_type, Boolean):
                whole = arrays[0].cast(pa.uint8())
                return _rounded(whole, UINT8, places, mode).cast(pa.bool_())
            return _rounded(arrays[0], number_type, places, mode)

        may_wrap = isinstance(as_number(number_type), Integer) and places < 0
        return scalar.standard_call(name, arguments, number_type, kernel, monotonic=not may_wrap)

    return resolve


def _rounded_by_row(name: str, arguments: Sequence[Argument], mode: str) -> ScalarCall:
    """Resolve round(x, digits) with a number of digits for each row."""
    number_type = as_number(plain(arguments[0].type))
    is_bool = isinstance(plain(arguments[0].type), Boolean)
    scalar.require(name, [plain(arguments[0].type)], _NUMBERS, "a number")
    scalar.require(name, [plain(arguments[1].type)], Integer, "an integer number of digits")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Round together the rows that have the same number of digits. Raises ArgumentOutOfBound."""
        digits, group = np.unique(columns.numpy_values(arrays[1]), return_inverse=True)
        if not len(digits):
            return pa.array([], call.result.arrow)
        if not -(2**15) <= digits[0] <= digits[-1] < 2**15:
            raise ArgumentOutOfBound(f"{name} takes up to 32767 digits.")
        array = arrays[0].cast(pa.uint8()) if is_bool else arrays[0]
        order = np.argsort(group, kind="stable")
        bounds = np.cumsum(np.bincount(group, minlength=len(digits)))
        parts = [
            _rounded(array.take(pa.array(rows)), number_type, int(places), mode)
            for places, rows in zip(digits, np.split(order, bounds[:-1]), strict=True)
        ]
        rounded = pa.concat_arrays(parts).take(pa.array(np.argsort(order, kind="stable")))
        return rounded.cast(pa.bool_()) if is_bool else rounded

    return scalar.standard_call(
        name, arguments, plain(arguments[0].type) if is_bool else number_type, kernel
    )


def _rounded(array: pa.Array, data_type: DataType, places: int, mode: str) -> pa.Array:
    """Return numbers rounded to `places` digits behind the point, by `mode`; a negative `places` rounds before the
    point, to multiples of 10 ** -places."""
    if isinstance(data_type, Integer):
        if places >= 0:
            return array.cast(data_type.arrow)
        return _round_integers(columns.numpy_values(array), data_type, 10**-places, mode)
    if isinstance(data_type, Decimal):
        return _round_decimals(array, data_type, places, mode)
    return columns.from_values(
        _round_floats(columns.numpy_values(array), places, mode), data_type.arrow
    )


def _round_floats(values: np.ndarray, places: int, mode: str) -> np.ndarray:
    """Round floats by `mode` to `places` digits: the value times a power of ten becomes a whole number, "round" half to
    even, and is divided again.

    A value whose product is not finite stays as it is."""
    function = {
        "round": np.rint,
        "bankers": np.rint,
        "floor": np.floor,
        "ceil": np.ceil,
        "trunc": np.trunc,
    }[mode]
    if places == 0:
        return np.asarray(function(values, out=empty(len(values), values.dtype)))
    with np.errstate(over="ignore", invalid="ignore"):
        scale = values.dtype.type(10.0 ** min(abs(places), 400) if abs(places) < 309 else np.inf)
        if np.isinf(scale) and places < 0:
            return np.where(np.isfinite(values), 0, values).astype(values.dtype)
        if places > 0:
            scaled = function(values * scale) / scale
        else:
            scaled = function(values / scale) * scale
    return np.where(np.isfinite(scaled), scaled, values)


def _round_integers(values: np.ndarray, data_type: Integer, step: int, mode: str) -> pa.Array:
    """Round integers by `mode` to multiples of `step`, a power of ten; "round" rounds half away from zero. All are 0
    if the step exceeds the type's maximum."""
    if step > data_type.maximum:
        return columns.from_values(np.zeros(len(values), np.int64), data_type.arrow)
    step_value = values.dtype.type(step)
    quotient, remainder = np.divmod(values, step_value)
    if mode == "ceil":
        quotient = quotient + (remainder != 0)
    elif mode == "trunc":
        quotient = quotient + ((remainder != 0) & (values < 0))
    elif mode in ("round", "bankers"):
        half = values.dtype.type(step // 2)
        odd = quotient % 2 != 0
        up = (remainder > half) | ((remainder == half) & ((values > 0) if mode == "round" else odd))
        quotient = quotient + up
    return columns.from_values(quotient * step_value, data_type.arrow)


def _round_decimals(array: pa.Array, data_type: Decimal, places: int, mode: str) -> pa.Array:
    """Round decimals by `mode` at `places` digits; "round" rounds half away from zero. All are 0 if
    a step has more digits than a number of the type's width.

    Raises DecimalOverflow if any does not fit the type.
    """
    if places >= data_type.scale:
        return array
    widest = next(digits for digits in (9, 18, 38, 76) if data_type.precision <= digits)
    if data_type.scale - places > widest:
        return pa.repeat(pa.scalar(0, array.type), len(array))
    if has_short_form(array.type) and not array.null_count:
        rounded = _round_short(array, 10 ** (data_type.scale - places), 10**widest, mode)
        if rounded is not None:
            return rounded
    names = {
        "round": "half_towards_infinity",
        "bankers": "half_to_even",
        "floor": "down",
        "ceil": "up",
        "trunc": "towards_zero",
    }
    wide = array.cast(pa.decimal256(76, data_type.scale))
    if data_type.precision > 38:
        _refuse_round(wide, data_type, places)
    return numbers.fitted(pc.round(wide, places, round_mode=names[mode]), data_type, array)


def _round_short(array: pa.Array, step: int, limit: int, mode: str) -> pa.Array | None:
    """Round decimals of at most 18 digits by `mode` to multiples of `step`, a power of ten up to `limit`, by their
    integers. None where one of them is beyond `limit`, so that its multiple may not fit."""
    short = shortened(array)
    values = columns.numpy_values(columns.view(short, pa.int64()))
    if len(values) and not -limit <= values.min() <= values.max() <= limit:
        return None
    if mode == "floor":
        quotient = values // step
    elif mode == "ceil":
        quotient = (values + (step - 1)) // step
    elif mode == "trunc":
        quotient = (values + (values >> 63 & (step - 1))) // step
    else:
        # Halves go up, those of negative numbers down: away from zero.
        quotient = (values + (step // 2) + (values >> 63)) // step
        if mode == "bankers":
            is_half = np.abs(values - quotient * step) == step // 2
            quotient -= (is_half & (quotient & 1 == 1)) * np.sign(values)
    quotient *= step
    return lengthened(columns.view(from_numpy(quotient), short.type))


def _refuse_round(wide: pa.Array, data_type: Decimal, places: int) -> None:
    """Raise DecimalOverflow if rounding the largest of `wide` could need more than 76 digits, for which Arrow
    returns 0."""
    with decimal.localcontext(prec=100):
        limit = decimal.Decimal(10) ** (76 - data_type.scale) - decimal.Decimal(10) ** -places
    largest = pc.max(pc.abs(wide)).as_py()
    if largest is not None and largest > max(limit, 0):
        raise DecimalOverflow(
            f"Decimal math overflow: {largest} rounded to {places} digits does not fit {data_type}."
        )


_TEST_RULE = scalar.fixed_rule(UINT8, (Integer, Float, Boolean), "a number that is no Decimal")

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("round", _rounding("round"), count=(1, 2), insensitive=True),
    scalar.custom("roundBankers", _rounding("bankers"), count=(1, 2)),
    scalar.custom("floor", _rounding("floor"), count=(1, 2), insensitive=True),
    scalar.custom("ceil", _rounding("ceil"), count=(1, 2), aliases=("ceiling",), insensitive=True),
    scalar.custom(
        "trunc", _rounding("trunc"), count=(1, 2), aliases=("truncate",), insensitive=True
    ),
    _function("sqrt", np.sqrt),
    _function("cbrt", _cube_root),
    _function("exp", np.exp),
    _function("exp2", np.exp2, insensitive=False),
    _function("exp10", _power_of_ten, insensitive=False),
    _function("log", np.log, ("ln",)),
    _function("log2", np.log2),
    _function("log10", np.log10),
    _function("log1p", np.log1p, insensitive=False),
    _function("pow", np.power, ("power",), 2),
    _function("hypot", np.hypot, (), 2),
    _function("sin", np.sin),
    _function("cos", np.cos),
    _function("tan", np.tan),
    _function("asin", np.arcsin),
    _function("acos", np.arccos),
    _function("atan", np.arctan),
    _function("sinh", np.sinh, (), 1, False),
    _function("cosh", np.cosh, (), 1, False),
    _function("tanh", np.tanh),
    _function("asinh", np.arcsinh, (), 1, False),
    _function("acosh", np.arccosh, (), 1, False),
    _function("atanh", np.arctanh, (), 1, False),
    _function("atan2", np.arctan2, (), 2),
    _function("degrees", np.degrees),
    _function("radians", np.radians),
    _constant("e", float(np.e)),
    _constant("pi", float(np.pi)),
    scalar.define("isNaN", _TEST_RULE, _test(np.isnan)),
    scalar.define("isFinite", _TEST_RULE, _test(np.isfinite)),
    scalar.define("isInfinite", _TEST_RULE, _test(np.isinf)),
    scalar.custom("ifNotFinite", _if_not_finite, count=2),
)
