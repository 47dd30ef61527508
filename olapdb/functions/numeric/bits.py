"""Bits of integers: and, or, xor, not, shifts, count and test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, ParameterOutOfBound, TooFewArguments
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.composition import as_call, call, parts_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.kernels.supertypes import arithmetic_type, as_number
from olapdb.functions.numeric import bit_strings, wide_bits
from olapdb.functions.scalar import (
    Invocation,
    Kernel,
    ScalarDefinition,
    custom,
    define,
    fixed_rule,
    illegal,
    null_safe,
    require,
    standard_call,
    with_count_errors,
)
from olapdb.types import (
    UINT8,
    UINT16,
    UINT64,
    Boolean,
    DataType,
    FixedString,
    Float,
    Integer,
    IPv4,
    Nothing,
    String,
    WideNumber,
    plain,
)


def _count_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of bitCount: UInt8 of numbers, a wider integer of strings."""
    match types[0]:
        case Integer() | Float() | Boolean():
            return UINT8
        case String():
            return UINT64
        case FixedString():
            return UINT16
    raise illegal(name, types[0], "a number or a string")


def _count(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the number of set bits; of a string those of all bytes."""
    if isinstance(call.types[0], String | FixedString):
        offsets, data = columns.bytes_of(columns.text(arrays[0]))
        total = columns.offsets_from_counts(np.bitwise_count(data))
        return columns.from_values(np.diff(total[offsets]), call.result.arrow)
    values = columns.numpy_values(arrays[0])
    bits = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    return columns.from_values(np.bitwise_count(bits), pa.uint8())


def _testing(together: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Kernel:
    """Return the kernel of bitTest, bitTestAll or bitTestAny: `together` combines the tested bits of a row into one.

    Positions count from the lowest bit, 0. The kernel raises ParameterOutOfBound for a position beyond the width."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Test the bits at all positions; raise ParameterOutOfBound if any is outside the type's
        width.
        """
        values = columns.numpy_values(arrays[0])
        width = values.dtype.itemsize * 8
        wide = values.view(np.dtype(f"u{values.dtype.itemsize}")).astype(np.uint64)
        result: np.ndarray | None = None
        for argument in arrays[1:]:
            positions = columns.numpy_values(argument)
            if len(positions) and (positions.min() < 0 or positions.max() >= width):
                raise ParameterOutOfBound(
                    f"The bits of {call.types[0]} have the numbers from 0 to {width - 1}."
                )
            bit = (wide >> positions.astype(np.uint64)) & np.uint64(1)
            result = bit if result is None else together(result, bit)
        assert result is not None
        return columns.from_values(result, pa.uint8())

    return kernel


def _joined_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of bitAnd, bitOr and bitXor: that of the arguments if both are FixedStrings of one
    length, else as `bit_rule` says."""
    if isinstance(types[0], FixedString) and types[0] == types[1]:
        return types[0]
    return bit_rule(name, types, arguments)


def bit_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of bitAnd, bitOr and bitXor: the wider integer, signed if one is."""
    require(name, types, (Integer, Boolean, IPv4), "an integer")
    left, right = (as_number(t) for t in types)
    return arithmetic_type("bit", left, right)


def _bitwise(
    function: Callable[[Column, Column], Column], of_bytes: np.ufunc
) -> Callable[[list[Column], Invocation], Column]:
    """Return the kernel of bitAnd, bitOr or bitXor: `function` combines integers at the result's width, `of_bytes`
    the bytes of FixedStrings."""
    texts = bit_strings.combined(of_bytes)

    def kernel(values: list[Column], call: Invocation) -> Column:
        """Cast both operands to the result's type, wrapping, and combine them."""
        if isinstance(call.result, FixedString):
            return null_safe(texts, values, call)
        left, right = (columns.wrapped(v, call.result.arrow) for v in values)
        return function(left, right)

    return kernel


def _shift_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of shifts, as for bitAnd, and of bitNot, the argument's: of a float an integer."""
    if len(types) > 1:
        return bit_rule(name, types, arguments)
    if isinstance(types[0], String | FixedString):
        return types[0]
    if isinstance(types[0], Float):
        return Integer(types[0].bits, True)
    require(name, types, (Integer, Boolean, IPv4), "an integer or a text")
    return as_number(types[0])


def _shift(*, left: bool) -> Callable[[list[pa.Array], Invocation], pa.Array]:
    """Return the kernel of bitShiftLeft, or without `left` of bitShiftRight; it raises ArgumentOutOfBound for
    positions below 0."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Shift the first argument's bits; a shift by the whole width or more gives 0.

        Raises ArgumentOutOfBound for positions below 0."""
        if isinstance(call.types[0], String | FixedString):
            return bit_strings.shifted(arrays, call, left=left)
        value, positions = (columns.numpy_values(a) for a in arrays)
        bits = value.dtype.itemsize * 8  # as in ClickHouse, also where the result is wider
        value = value.astype(columns.dtype_of(call.result.arrow))
        if len(positions) and positions.min() < 0:
            raise ArgumentOutOfBound("The number of shift positions is not negative.")
        all_shifted_out = positions >= bits
        shift = np.where(all_shifted_out, 0, positions).astype(value.dtype)
        moved = value << shift if left else value >> shift
        return columns.from_values(np.where(all_shifted_out, 0, moved), call.result.arrow)

    return kernel


def _shift_rule_of_all(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the type of a shift: the text's own type for a text, else that of shifted integers."""
    texts = isinstance(types[0], String | FixedString)
    return (bit_strings.shift_rule if texts else _shift_rule)(name, types, arguments)


def _complement(values: list[Column], call: Invocation) -> Column:
    """Return all bits inverted: the kernel of bitNot."""
    if isinstance(call.result, String | FixedString):
        return null_safe(bit_strings.inverted, values, call)
    if isinstance(call.types[0], Float):
        return null_safe(_of_whole_part, values, call)
    return pc.bit_wise_not(columns.wrapped(values[0], call.result.arrow))


def _of_whole_part(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the inverted bits of floats cut to integers; a float beyond the integer type counts as the type's least
    number."""
    values, target = columns.numpy_values(arrays[0]), columns.dtype_of(call.result.arrow)
    inside = np.abs(values) < float(np.iinfo(target).max)
    whole = np.where(inside, values, 0).astype(target)
    return columns.from_values(~np.where(inside, whole, np.iinfo(target).min), call.result.arrow)


def _hamming(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve bitHammingDistance: the number of bits in which two Strings, or two numbers taken as UInt64, differ.

    Wide integers and FixedStrings are compared at their own width. Raises IllegalTypeOfArgument for other types."""
    types = tuple(plain(argument.type) for argument in arguments)
    if all(isinstance(t, String) for t in types):
        return standard_call(name, arguments, UINT64, bit_strings.differing_bits)
    left, right = parts_of(arguments)
    whole = (FixedString, WideNumber, Nothing)
    if not any(isinstance(t, whole) for t in types):
        require(name, types, (Integer, Float), "a number or a text")
        left, right = call("toUInt64", left), call("toUInt64", right)
    return as_call(name, call("bitCount", call("bitXor", left, right)))


_TEST_RULE = fixed_rule(UINT8, (Integer, Boolean), "an integer")

_PLAIN: tuple[ScalarDefinition, ...] = (
    define("bitAnd", _joined_rule, native=_bitwise(pc.bit_wise_and, np.bitwise_and), count=2),
    define("bitOr", _joined_rule, native=_bitwise(pc.bit_wise_or, np.bitwise_or), count=2),
    define("bitXor", _joined_rule, native=_bitwise(pc.bit_wise_xor, np.bitwise_xor), count=2),
    define("bitNot", _shift_rule, native=_complement),
    define("bitShiftLeft", _shift_rule_of_all, _shift(left=True), count=2),
    define("bitShiftRight", _shift_rule_of_all, _shift(left=False), count=2),
    define_by_value("bitSlice", bit_strings.slice_rule, bit_strings.slice_of, count=(2, 3)),
    define("bitCount", _count_rule, _count),
    custom("bitHammingDistance", _hamming, count=2),
    define("bitTest", _TEST_RULE, _testing(np.bitwise_and), count=2),
    *with_count_errors(
        (
            define("bitTestAll", _TEST_RULE, _testing(np.bitwise_and), count=(2, None)),
            define("bitTestAny", _TEST_RULE, _testing(np.bitwise_or), count=(2, None)),
        ),
        few=TooFewArguments,
    ),
)

DEFINITIONS = tuple(wide_bits.with_wide(definition) for definition in _PLAIN)
