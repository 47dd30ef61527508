"""Partition transforms of Apache Iceberg: icebergHash, icebergBucket and icebergTruncate.

Source: the Iceberg table specification, "Partition Transforms" and its appendix B, which defines the
bytes that MurmurHash3 of 32 bits hashes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, BadGet, IllegalColumn
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, slices, wide_numbers
from olapdb.functions.numeric.byte_hashes import HashedValues, values_of
from olapdb.functions.numeric.decimals import digits, fitted_to
from olapdb.functions.numeric.murmur_hashes import murmur_hash3_32
from olapdb.functions.strings.rendering import fixed_bytes
from olapdb.types import (
    INT32,
    STRING,
    UINT32,
    UUID,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime64,
    Decimal,
    FixedString,
    Float,
    Integer,
    String,
    WideNumber,
)

_HASHED = (
    *(Boolean, Integer, Float, Decimal, Date, Date32, DateTime64, String, FixedString, UUID),
)
_WIDEST_DECIMAL = 38
_WIDEST_CUT_DECIMAL = 18


def _hashed_type(name: str, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument or BadArguments unless Iceberg defines the hash of the type."""
    if isinstance(data_type, WideNumber):
        raise scalar.illegal(name, data_type, "an integer of at most 64 bits")
    scalar.require(name, [data_type], _HASHED, "a type that Iceberg hashes")
    if isinstance(data_type, Decimal) and data_type.precision > _WIDEST_DECIMAL:
        raise scalar.illegal(name, data_type, "a Decimal of at most 38 digits")
    if isinstance(data_type, DateTime64) and data_type.precision not in (6, 9):
        raise BadArguments(f"The DateTime64 of {name} must count micro- or nanoseconds.")


def _hash_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Int32; raise an error for types that Iceberg does not hash."""
    _hashed_type(name, types[0])
    return INT32


def _hashes(array: pa.Array, data_type: DataType) -> np.ndarray:
    """Return the hash of each value; uint32."""
    if isinstance(data_type, String):
        return murmur_hash3_32(values_of(columns.binary(array)))
    if isinstance(data_type, FixedString | UUID):
        return murmur_hash3_32(HashedValues.of_width(fixed_bytes(array)))
    if isinstance(data_type, Decimal):
        return murmur_hash3_32(_shortest(array))
    values = columns.numpy_values(array)
    if isinstance(data_type, Float):
        numbers = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        return murmur_hash3_32(HashedValues.of_width(numbers))
    numbers = values.astype(np.uint64).view(np.int64)
    if values.dtype.kind == "i":
        numbers = values.astype(np.int64)
    if isinstance(data_type, DateTime64) and data_type.precision == 9:
        numbers = numbers // 1000
    return murmur_hash3_32(HashedValues.of_width(numbers))


def _shortest(array: pa.Array) -> HashedValues:
    """Return the unscaled integers of decimals in two's complement, big-endian, each in as few bytes as hold its
    sign."""
    limbs = wide_numbers.limbs_of(array)[:, :2]
    raw = np.ascontiguousarray(limbs[:, ::-1]).byteswap().view(np.uint8).reshape(len(limbs), 16)
    sign = (raw[:, :1] >> 7) * np.uint8(255)
    lengths = np.ones(len(raw), np.int64)
    for length in range(1, 16):
        before, first = raw[:, 15 - length], raw[:, 16 - length]
        needed = (before != sign[:, 0]) | ((first >> 7) * np.uint8(255) != sign[:, 0])
        lengths = np.where(needed, length + 1, lengths)
    whole = HashedValues.of_width(raw)
    return HashedValues(whole.data, whole.starts + 16 - lengths, lengths)


def _hash(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return Iceberg's hash of each value."""
    return columns.from_values(_hashes(arrays[0], call.types[0]).view(np.int32), pa.int32())


def _constant(name: str, arguments: Sequence[Argument], meaning: str) -> object:
    """Return the value of the constant first argument; raise IllegalColumn if it is no constant. `meaning` names it."""
    constant = arguments[0].constant
    if constant is None:
        raise IllegalColumn(f"{meaning} of {name} must be a constant.")
    return constant.as_py()


def _bucket_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt32; raise an error for a number of buckets that is no Int32 above 0."""
    _hashed_type(name, types[1])
    count = _constant(name, arguments, "The number of buckets")
    if not isinstance(count, int):
        raise BadGet(f"The number of buckets of {name} must be an integer.")
    if not 0 < count < 1 << 31:
        raise BadArguments(f"The number of buckets of {name} is 1 to 2147483647, not {count}.")
    return UINT32


def _bucket(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the bucket of each value: its hash without the sign, modulo the number of buckets."""
    count = call.constant(0)
    assert isinstance(count, int)
    hashes = _hashes(arrays[1], call.types[1]) & np.uint32(0x7FFFFFFF)
    return columns.from_values(hashes % np.uint32(count), pa.uint32())


def _truncate_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String, the Decimal, or the type of the value less a number of the width's type.

    Raises IllegalTypeOfArgument, IllegalColumn and BadArguments."""
    width, value = types
    if not isinstance(width, Integer) or width.signed:
        raise scalar.illegal(name, width, "an unsigned width")
    if isinstance(value, Decimal) and value.precision > _WIDEST_CUT_DECIMAL:
        raise scalar.illegal(name, value, "a Decimal of at most 18 digits")
    kinds = (Integer, Boolean, Decimal, String, FixedString)
    scalar.require(name, [value], kinds, "an integer, a Decimal or text")
    if _constant(name, arguments, "The width") == 0:
        raise BadArguments(f"The width of {name} must be above 0.")
    if isinstance(value, Decimal):
        return value
    if isinstance(value, String | FixedString):
        return STRING
    bits = value.bits if isinstance(value, Integer) else 8
    return Integer(min(2 * max(bits, width.bits), 64), True)


def _truncate(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the largest multiple of the width up to each number, or the first characters."""
    width = call.constant(0)
    assert isinstance(width, int)
    value = call.types[1]
    if isinstance(value, String | FixedString):
        return _first_characters(columns.text(arrays[1]), width)
    if isinstance(value, Decimal):
        unscaled = np.asarray(wide_numbers.limbs_of(arrays[1])[:, 0].view(np.int64))
        kept = unscaled - np.mod(unscaled, np.int64(min(width, 2**63 - 1)))
        return fitted_to(digits(columns.from_values(kept, pa.int64())), value, "icebergTruncate")
    numbers = columns.numpy_values(arrays[1])
    with np.errstate(over="ignore"):
        if numbers.dtype.kind == "u":
            wide = numbers.astype(np.uint64)
            kept = (wide - wide % np.uint64(width)).view(np.int64)
        else:
            signed = numbers.astype(np.int64)
            kept = signed - np.mod(signed, np.int64(min(width, 2**63 - 1)))
    return columns.from_values(kept, call.result.arrow)


def _first_characters(texts: pa.Array, count: int) -> pa.Array:
    """Return the first `count` characters of each text."""
    rows = len(texts)
    lengths = np.full(rows, min(count, 2**31), np.int64)
    return slices.pieces(texts, np.zeros(rows, np.int64), lengths, utf8=True)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("icebergHash", _hash_rule, _hash),
    scalar.define("icebergBucket", _bucket_rule, _bucket, count=2),
    scalar.define("icebergTruncate", _truncate_rule, _truncate, count=2),
)
