"""Arithmetic with Int128, UInt128, Int256 and UInt256, which wraps at the result's bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import DecimalOverflow, IllegalDivision
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.functions.kernels.decimal_width import floats_of_decimals
from olapdb.functions.kernels.supertypes import as_number, wide_arithmetic_type
from olapdb.functions.scalar import Invocation, ScalarDefinition
from olapdb.types import FLOAT64, INT8, DataType, Float, Integer, WideNumber, plain, wide_number

BINARY = (
    *("plus", "minus", "multiply", "divide", "intDiv", "modulo", "positiveModulo"),
    *("intDivOrZero", "moduloOrZero"),
)
UNARY = ("negate", "abs", "sign")


def with_wide(definition: ScalarDefinition) -> ScalarDefinition:
    """Return the definition of an arithmetic function that takes wide integers too; a function not in BINARY or
    UNARY as given."""
    if definition.name not in BINARY + UNARY:
        return definition
    rule = _unary_rule if definition.name in UNARY else _binary_rule
    kernel = _unary if definition.name in UNARY else _binary
    operation = definition.name

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call with wide arithmetic if an argument is a wide integer, else as the given definition does."""
        if not any(isinstance(plain(a.type), WideNumber) for a in arguments):
            return definition.resolver(name, arguments)
        return scalar.standard_call(name, arguments, rule(operation), kernel(operation))

    return replace(definition, resolver=resolve)


def _binary_rule(operation: str) -> Callable[..., DataType]:
    """Return the type rule of an operation on two integers of which one is wide."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument if the other operand is no integer, but for divide
        also a float."""
        if operation == "divide" and any(isinstance(t, Float) for t in types):
            return FLOAT64
        result = wide_arithmetic_type(
            operation.removesuffix("OrZero"), as_number(types[0]), as_number(types[1])
        )
        if result is None:
            other = types[1] if isinstance(types[0], WideNumber) else types[0]
            raise scalar.illegal(name, other, "an integer beside a wide integer")
        return result

    return rule


def _unary_rule(operation: str) -> Callable[..., DataType]:
    """Return the type rule of negate (signed), abs (unsigned) or sign (Int8)."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type: Int8 for sign, else an integer of the argument's width."""
        assert isinstance(types[0], WideNumber)
        if operation == "sign":
            return INT8
        return wide_number(types[0].bits, operation == "negate")

    return rule


def _unary(operation: str) -> Callable[[list[pa.Array], Invocation], pa.Array]:
    """Return the kernel of `operation`, which is negate, abs or sign, on wide integers."""
    change = wide_numbers.negated if operation == "negate" else wide_numbers.magnitudes

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Negate the numbers, or return their absolute values or signs; the least number wraps."""
        if operation == "sign":
            limbs = wide_numbers.limbs_of(arrays[0])
            signs = np.where(wide_numbers.is_negative(limbs), -1, limbs.any(axis=1))
            return columns.from_values(signs, call.result.arrow)
        return _column(change(wide_numbers.limbs_of(arrays[0])), call.result)

    return kernel


def _binary(operation: str) -> Callable[[list[pa.Array], Invocation], pa.Array]:
    """Return the kernel of an arithmetic operation on two integers, one of them wide."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Compute in 256 bits and wrap; raise IllegalDivision for a divisor of 0."""
        whole = [a.cast(pa.uint8()) if pa.types.is_boolean(a.type) else a for a in arrays]
        left, right = (wide_numbers.limbs_of(a) for a in whole)
        if operation == "plus":
            return _column(wide_numbers.added(left, right), call.result)
        if operation == "minus":
            return _column(wide_numbers.added(left, wide_numbers.negated(right)), call.result)
        if operation == "multiply":
            return _column(wide_numbers.multiplied(left, right), call.result)
        if operation == "divide":
            return _quotients(whole)
        zero = np.asarray(~right.any(axis=1))
        if operation.endswith("OrZero"):
            left, right = np.where(zero[:, None], 0, left), np.where(zero[:, None], 1, right)
            right = right.astype(np.uint64)
            left = left.astype(np.uint64)
        elif zero.any():
            raise IllegalDivision("Division by zero.").at_row(int(np.argmax(zero)))
        if _meets_in_128_bits(call.types):
            left, right = (wide_numbers.extended(limbs[:, :2]) for limbs in (left, right))
        quotient, rest = wide_numbers.divided(left, right)
        if operation.startswith("intDiv"):
            return _column(quotient, call.result)
        if operation == "positiveModulo":
            lifted = wide_numbers.added(rest, wide_numbers.magnitudes(right))
            rest = np.where(wide_numbers.is_negative(rest)[:, None], lifted, rest)
        return _column(rest, call.result)

    return kernel


def by_python_integers(
    function: np.ufunc, arrays: Sequence[pa.Array], result: WideNumber
) -> pa.Array:
    """Return `function` of two integers of any width, such as numpy's gcd, computed on Python's integers.

    Raises IllegalDivision for a 0, and DecimalOverflow for the least number of the result's type."""
    sides = [wide_numbers.python_integers(wide_numbers.limbs_of(array)) for array in arrays]
    for side in sides:
        if (side == 0).any():
            raise IllegalDivision("Division by zero.").at_row(int(np.argmax(side == 0)))
        if result.signed and (side == -(1 << (result.bits - 1))).any():
            raise DecimalOverflow(f"{function.__name__} of the least {result} is beyond {result}.")
    return wide_numbers.column_of(wide_numbers.limbs_from_python(function(*sides)), result)


def _meets_in_128_bits(types: Sequence[DataType]) -> bool:
    """Return whether ClickHouse divides two numbers as Int128: the wider one has 128 bits, and at least one is
    signed."""
    kinds = [t for t in types if isinstance(t, Integer | WideNumber)]
    return max(t.bits for t in kinds) == 128 and any(t.signed for t in kinds)


def _quotients(arrays: list[pa.Array]) -> pa.Array:
    """Return quotients as Float64; infinite or NaN for a divisor of 0."""
    left, right = (
        columns.numpy_values(
            floats_of_decimals(a)
            if pa.types.is_decimal(a.type)
            else a.cast(pa.float64(), safe=False)
        )
        for a in arrays
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return columns.from_values(left / right, FLOAT64.arrow)


def _column(limbs: np.ndarray, result: DataType) -> pa.Array:
    """Return limbs, the 64-bit words of integers, as a column of the result's type."""
    if isinstance(result, WideNumber):
        return wide_numbers.column_of(limbs, result)
    assert isinstance(result, Integer)
    return columns.from_values(np.ascontiguousarray(limbs[:, 0]), result.arrow)
