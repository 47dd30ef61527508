"""Space-filling curves: mortonEncode, hilbertEncode and back; and jumpConsistentHash.

Sources: Morton (1966), bits of all dimensions in turn; Hilbert (1891), by the rotations of Hamilton
and Rau-Chaplin; Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm" (2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    IllegalColumn,
    TooFewArguments,
    TooManyArguments,
)
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import INT32, UINT64, DataType, Date, DateTime, Integer, IPv4, Tuple

U64 = np.uint64


def _is_natural(data_type: DataType) -> bool:
    """Return whether a type is an unsigned integer."""
    return isinstance(data_type, Integer) and not data_type.signed


def _ratios(argument: Argument | None) -> tuple[int, ...] | None:
    """Return the values of a constant tuple of integers; None for any other argument."""
    if argument is None or argument.constant is None or not isinstance(argument.type, Tuple):
        return None
    if not all(isinstance(element, Integer) for element in argument.type.elements):
        return None
    return tuple(int(value) for value in argument.constant.as_py().values())


def _check_ratios(
    name: str, ratios: tuple[int, ...] | None, dimensions: int, bounds: range
) -> None:
    """Raise ArgumentOutOfBound unless there is a ratio in the bounds for each dimension.

    Also raises IllegalColumn."""
    if ratios is None:
        raise IllegalColumn(f"The tuple of {name} must be a constant of unsigned integers.")
    if len(ratios) != dimensions:
        raise ArgumentOutOfBound(f"The tuple of {name} has a number for each of its arguments.")
    if any(ratio not in bounds for ratio in ratios):
        raise ArgumentOutOfBound(
            f"The numbers of the tuple of {name} are {bounds.start} to {bounds.stop - 1}."
        )


def _encode_rule(most: int, bounds: range) -> scalar.TypeRule:
    """Return the type rule of an encoding of at most `most` numbers, with or without a constant tuple in front,
    whose values are in `bounds`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return UInt64; raise IllegalTypeOfArgument, ArgumentOutOfBound, IllegalColumn or TooManyArguments for
        other arguments."""
        numbers = types[1:] if isinstance(types[0], Tuple) else types
        if isinstance(types[0], Tuple):
            if not types[0].elements:
                raise scalar.illegal(name, types[0], "a tuple that is not empty")
            if len(types[0].elements) != len(numbers):
                raise ArgumentOutOfBound(
                    f"The tuple of {name} has a number for each of its arguments."
                )
            for data_type in types[0].elements:
                if not _is_natural(data_type):
                    raise scalar.illegal(name, data_type, "a tuple of unsigned integers")
            _check_ratios(name, _ratios(arguments[0]), len(numbers), bounds)
        for data_type in numbers:
            if not _is_natural(data_type):
                raise scalar.illegal(name, data_type, "an unsigned integer")
        if len(numbers) > most:
            raise TooManyArguments(f"{name} takes at most {most} numbers.")
        return UINT64

    return rule


def _decode_rule(most: int, bounds: range) -> scalar.TypeRule:
    """Return the type rule of a decoding (dimensions or tuple, code) to at most `most` numbers; the tuple's values
    are in `bounds`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return a tuple of UInt64, one a dimension; raise IllegalColumn, IllegalTypeOfArgument or
        ArgumentOutOfBound for other arguments."""
        if arguments[0].constant is None:
            raise IllegalColumn(f"The first argument of {name} must be a constant.")
        if not _is_natural(types[1]):
            raise IllegalColumn(f"The code that {name} takes is an unsigned integer.")
        if isinstance(types[0], Tuple):
            dimensions = len(types[0].elements)
            for data_type in types[0].elements:
                if not _is_natural(data_type):
                    raise scalar.illegal(name, data_type, "a tuple of unsigned integers")
            _check_ratios(name, _ratios(arguments[0]), dimensions, bounds)
        else:
            dimensions = scalar.constant_integer(name, arguments, 0, "the number of dimensions")
        if not 1 <= dimensions <= most:
            raise ArgumentOutOfBound(f"{name} gives 1 to {most} numbers.")
        return Tuple((UINT64,) * dimensions)

    return rule


def _numbers(
    arrays: list[pa.Array], call: scalar.Invocation
) -> tuple[list[np.ndarray], list[int] | None]:
    """Return the numbers to encode as uint64, and the values of the constant tuple before them; None without a
    tuple."""
    ratios = None
    if isinstance(call.types[0], Tuple):
        first = call.constants[0]
        assert first is not None
        ratios, arrays = [int(v) for v in first.as_py().values()], arrays[1:]
    return [columns.numpy_values(a).astype(U64) for a in arrays], ratios


def _spread(value: np.ndarray, bits: int, step: int, first: int) -> np.ndarray:
    """Return numbers whose lowest `bits` bits are moved to the bits `first`, `first` + `step`, …; those beyond 64
    bits drop."""
    result = np.zeros(len(value), U64)
    for bit in range(bits):
        place = bit * step + first
        if place < 64:
            result |= ((value >> U64(bit)) & U64(1)) << U64(place)
    return result


def _gathered(value: np.ndarray, step: int, first: int) -> np.ndarray:
    """Return the bits at `first`, `first` + `step`, … as a number."""
    result = np.zeros(len(value), U64)
    for bit, place in enumerate(range(first, 64 // step * step, step)):
        result |= ((value >> U64(place)) & U64(1)) << U64(bit)
    return result


def _morton_encode(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the Morton code of each row: the bits of all numbers interleaved. A tuple in front first spreads each
    number by its ratio."""
    values, ratios = _numbers(arrays, call)
    if ratios is not None:
        values = [_spread(v, 64, r, r - 1) for v, r in zip(values, ratios, strict=True)]
    count = len(values)
    code = np.zeros(call.rows, U64)
    for at, value in enumerate(values):
        code |= _spread(value, 64 // count, count, at)
    return columns.from_values(code, pa.uint64())


def _morton_decode(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the numbers whose interleaved bits make up each code, shrunk again by a tuple's ratios."""
    code = columns.numpy_values(arrays[1]).astype(U64)
    first = call.constants[0]
    assert isinstance(call.result, Tuple)
    assert first is not None
    count = len(call.result.elements)
    values = [_gathered(code, count, at) for at in range(count)]
    if isinstance(call.types[0], Tuple):
        ratios = [int(r) for r in first.as_py().values()]
        values = [_gathered(v, r, r - 1) for v, r in zip(values, ratios, strict=True)]
    return _tuples(values, call)


def _tuples(values: list[np.ndarray], call: scalar.Invocation) -> pa.Array:
    """Return numbers as tuples of the result's type."""
    fields = [columns.from_values(value, pa.uint64()) for value in values]
    return columns.structs_from(fields, call.result.arrow)


def _hilbert_encode(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the position of points on Hilbert's curve of 32 levels. A tuple shifts the numbers to the left first.

    A point with a number of more than 32 bits has the position 0; a single number is its own code."""
    values, shifts = _numbers(arrays, call)
    if shifts is not None:
        values = [v << U64(s) for v, s in zip(values, shifts, strict=True)]
    if len(values) == 1:
        return columns.from_values(values[0], pa.uint64())
    y, x = values
    in_range = (x >> U64(32) == 0) & (y >> U64(32) == 0)
    code = np.zeros(call.rows, U64)
    one = U64(1)
    for level in range(31, -1, -1):
        right, upper = (x >> U64(level)) & one, (y >> U64(level)) & one
        code = (code << U64(2)) | ((right * U64(3)) ^ upper)
        x, y = _rotated(x, y, right, upper)
    return columns.from_values(np.where(in_range, code, U64(0)), pa.uint64())


def _rotated(
    x: np.ndarray, y: np.ndarray, right: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return points in the coordinates of the curve's next level: in the lower quarters x and y change
    places, in the right one of them after both are mirrored."""
    mirrored = (upper == 0) & (right == 1)
    x, y = np.where(mirrored, ~x, x), np.where(mirrored, ~y, y)
    return np.where(upper == 0, y, x), np.where(upper == 0, x, y)


def _hilbert_decode(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the points at positions of Hilbert's curve; a tuple shifts the numbers back to the right."""
    code = columns.numpy_values(arrays[1]).astype(U64)
    first = call.constants[0]
    assert isinstance(call.result, Tuple)
    assert first is not None
    values = [code]
    if len(call.result.elements) == 2:
        x, y = np.zeros(len(code), U64), np.zeros(len(code), U64)
        for level in range(32):
            pair = (code >> U64(2 * level)) & U64(3)
            right = pair >> U64(1)
            upper = (pair ^ right) & U64(1)
            mask = (U64(1) << U64(level)) - U64(1)
            x, y = _rotated(x, y, right, upper)
            x, y = (x & mask) | (right << U64(level)), (y & mask) | (upper << U64(level))
        values = [y, x]
    if isinstance(call.types[0], Tuple):
        shifts = first.as_py().values()
        values = [v >> U64(int(s)) for v, s in zip(values, shifts, strict=True)]
    return _tuples(values, call)


# --- consistent hashing


def _buckets_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return Int32; raise BadArguments unless the number of buckets is 1 to 2³¹ - 1."""
    scalar.require(name, types[:1], (Integer, Date, DateTime, IPv4), "an integer")
    count = scalar.constant_integer(name, arguments, 1, "the number of buckets")
    if not 0 < count < 1 << 31:
        raise BadArguments(f"The number of buckets of {name} is 1 to 2147483647, not {count}.")
    return INT32


def _jump(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return each key's bucket by the jump consistent hash; all keys are computed together until each has its
    bucket."""
    count = call.constant(1)
    assert isinstance(count, int)
    values = columns.numpy_values(arrays[0])
    keys = values.astype(U64) if values.dtype == U64 else values.astype(np.int64).view(U64)
    keys = keys.copy()
    buckets, following = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    rows = np.arange(len(keys))
    while len(rows):
        buckets[rows] = following[rows]
        with np.errstate(over="ignore"):
            keys[rows] = keys[rows] * U64(2862933555777941757) + U64(1)
        share = (1 << 31) / ((keys[rows] >> U64(33)) + U64(1)).astype(np.float64)
        following[rows] = ((buckets[rows] + 1) * share).astype(np.int64)
        rows = rows[following[rows] < count]
    return columns.from_values(buckets, pa.int32())


def _define(
    name: str,
    rule: scalar.TypeRule,
    kernel: Callable[[list[pa.Array], scalar.Invocation], pa.Array],
    count: int | tuple[int, int | None],
) -> scalar.ScalarDefinition:
    """Define a function of a space-filling curve, or of buckets, from its type rule and kernel."""
    return scalar.define(name, rule, kernel, count=count)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *scalar.with_count_errors(
        (
            _define("mortonEncode", _encode_rule(8, range(1, 9)), _morton_encode, (1, None)),
            _define("hilbertEncode", _encode_rule(2, range(33)), _hilbert_encode, (1, None)),
        ),
        few=TooFewArguments,
    ),
    _define("mortonDecode", _decode_rule(8, range(1, 9)), _morton_decode, 2),
    _define("hilbertDecode", _decode_rule(2, range(33)), _hilbert_decode, 2),
    _define("jumpConsistentHash", _buckets_rule, _jump, 2),
)
