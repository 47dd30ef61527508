"""Hashes equal to ClickHouse's, bit for bit, and base64.

Functions that are not here, such as farmHash64, are unknown rather than different.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.errors import IncorrectData
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.numeric.byte_hashes import (
    HashedValues,
    city_combined,
    city_hash64,
    pairs_of,
    rotated_right,
    sip_hash64,
    values_of,
    xx_hash64,
)
from olapdb.functions.scalar import (
    Invocation,
    Kernel,
    ScalarDefinition,
    TypeRule,
    define,
    fixed_rule,
    require,
)
from olapdb.types import (
    STRING,
    UINT32,
    UINT64,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    Enum,
    FixedString,
    Float,
    Integer,
    IPv4,
    IPv6,
    String,
    Tuple,
)

_TEXT = (String, FixedString)


def _per_distinct(
    array: pa.Array, function: Callable[[bytes], bytes], arrow: pa.DataType
) -> pa.Array:
    """Apply a function of one value, such as hashlib's, to each distinct value once."""
    encoded = columns.binary(array).dictionary_encode()
    results = pa.array([function(v) for v in encoded.dictionary.to_pylist()], arrow)
    return results.take(encoded.indices)


def _digest(name: str, function: Callable[[bytes], bytes], length: int) -> ScalarDefinition:
    """Define a hash function of a string with a result of `length` bytes."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Hash each distinct string once."""
        return _per_distinct(arrays[0], function, pa.binary(length))

    return define(name, _string_rule(FixedString(length)), kernel)


def _crc32(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return CRC-32 of each string; UInt32."""
    digests = _per_distinct(arrays[0], lambda v: zlib.crc32(v).to_bytes(4, "little"), pa.binary(4))
    buffer = digests.buffers()[1]
    return columns.from_values(
        np.frombuffer(buffer, "<u4", len(digests), digests.offset * 4), pa.uint32()
    )


def _half_md5(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the first 8 bytes of MD5, big-endian, as UInt64."""
    digests = _per_distinct(
        arrays[0], lambda v: hashlib.md5(v, usedforsecurity=False).digest()[:8], pa.binary(8)
    )
    buffer = digests.buffers()[1]
    return columns.from_values(
        np.frombuffer(buffer, ">u8", len(digests), digests.offset * 8), pa.uint64()
    )


def _string_rule(result: DataType) -> TypeRule:
    """Return the type rule of a function of one string."""
    return fixed_rule(result, _TEXT, "a String")


def _encode(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the base64 text of each string."""
    return columns.text(_per_distinct(arrays[0], base64.b64encode, pa.binary()))


def _decode(*, lenient: bool) -> Kernel:
    """Return the kernel of base64Decode, or with `lenient` of tryBase64Decode.

    An invalid text raises IncorrectData, or with `lenient` gives "".
    """

    def decode(value: bytes) -> bytes:
        """Decode one value; raise IncorrectData for invalid base64 unless `lenient`."""
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            if lenient:
                return b""
            raise IncorrectData(
                f"Failed to base64Decode {value.decode('utf-8', 'replace')!r}."
            ) from None

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Decode each distinct base64 text once."""
        return columns.text(_per_distinct(arrays[0], decode, pa.binary()))

    return kernel


# --- hashes of any values


@dataclass(frozen=True)
class _AnyHash:
    """A hash of several arguments of any types: each is hashed, then joined to the hash so far.

    Tuples count as their elements. `by_value`: numbers are hashed by intHash64 of their bits
    instead of as bytes.
    """

    hashed: Callable[[HashedValues], np.ndarray]
    joined: Callable[[np.ndarray, np.ndarray], np.ndarray]
    by_value: bool

    def of_column(self, array: pa.Array) -> np.ndarray:
        """Return the hash of each value of one column, which is no tuple."""
        if pa.types.is_fixed_size_binary(array.type):
            array = array.cast(pa.binary())
        text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
        if text or not self.by_value:
            return self.hashed(values_of(_in_memory(array)))
        raw = columns.numpy_values(_in_memory(array))
        bits = raw.view(np.dtype(f"u{raw.dtype.itemsize}")).astype(np.uint64)
        return int_hash64(bits ^ _INT_HASH_64)

    def of_columns(self, arrays: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Return the hash of each row of all columns."""
        leaves = [leaf for array in arrays for leaf in _leaves(array)]
        if not leaves:
            return np.full(rows, _HASH_OF_NO_ARGUMENTS, np.uint64)
        total = self.of_column(leaves[0])
        for leaf in leaves[1:]:
            total = self.joined(total, self.of_column(leaf))
        return total


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the column, or for a tuple the leaves of its elements in order."""
    if not pa.types.is_struct(array.type):
        yield array
        return
    for field in columns.struct_fields(array):
        yield from _leaves(field)


def _in_memory(array: pa.Array) -> pa.Array:
    """Return a column whose values are bytes in memory: Bool as UInt8."""
    if pa.types.is_boolean(array.type):
        return array.cast(pa.uint8())
    return array


def _any_hash(name: str, hash_of: _AnyHash) -> ScalarDefinition:
    """Define a hash function of any number of arguments."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Hash the rows of all arguments together; UInt64."""
        converted = [_of_width(a, t) for a, t in zip(arrays, call.types, strict=True)]
        return columns.from_values(hash_of.of_columns(converted, call.rows), pa.uint64())

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return UInt64; raise IllegalTypeOfArgument for types without ClickHouse's hash."""
        for data_type in types:
            _require_hashable(spelt, data_type)
        return UINT64

    return define(name, rule, kernel, count=(0, None))


_HASHABLE = (
    *(Integer, Enum, Float, Boolean, String, FixedString, Date, Date32, DateTime),
    *(IPv4, IPv6),
)


def _require_hashable(name: str, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument unless a type, or each element of a tuple, has ClickHouse's hash."""
    if isinstance(data_type, Tuple):
        for element in data_type.elements:
            _require_hashable(name, element)
        return
    require(name, [data_type], _HASHABLE, "a number, a string, a date, or a tuple of these")


def _of_width(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return the column at ClickHouse's width: Date in 16 bits, DateTime in 32."""
    match data_type:
        case Date():
            return columns.from_values(columns.numpy_values(array), pa.uint16())
        case DateTime():
            return columns.from_values(columns.numpy_values(array), pa.uint32())
        case Tuple(elements=elements):
            fields = columns.struct_fields(array)
            converted = [_of_width(f, t) for f, t in zip(fields, elements, strict=True)]
            return pa.StructArray.from_arrays(converted, [str(at) for at in range(len(converted))])
        case _:
            return array


_CITY = _AnyHash(city_hash64, city_combined, True)
_SIP = _AnyHash(sip_hash64, lambda a, b: sip_hash64(pairs_of(a, b)), False)
_XX = _AnyHash(xx_hash64, city_combined, False)
_HASH_OF_NO_ARGUMENTS = 0xE28DBDE7FE22E41C
_INT_HASH_64 = np.uint64(0x4CF2D2BAAE6DA887)


def _integer_rule(result: DataType) -> TypeRule:
    """Return the type rule of a function of one integer, Date or DateTime."""
    return fixed_rule(result, (Integer, Date, DateTime, IPv4), "an integer")


def int_hash64(values: np.ndarray) -> np.ndarray:
    """Return the finalizer of MurmurHash3, which is ClickHouse's intHash64 without its key."""
    with np.errstate(over="ignore"):
        x = values
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        return np.asarray(x ^ (x >> np.uint64(33)))


def _wide(array: pa.Array) -> np.ndarray:
    """Return integers of any width as 64-bit two's complement, uint64."""
    values = columns.numpy_values(array)
    return values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64)


def _int_hash64(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return ClickHouse's intHash64 of each integer."""
    return columns.from_values(int_hash64(_wide(arrays[0]) ^ _INT_HASH_64), pa.uint64())


def _int_hash32(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return ClickHouse's intHash32, the low 32 bits of a mixed 64-bit key."""
    with np.errstate(over="ignore"):
        key = _wide(arrays[0]) ^ np.uint64(0x75D9543DE018BF45)
        key = ~key + (key << np.uint64(18))
        key = key ^ rotated_right(key, 31)
        key = key * np.uint64(21)
        key = key ^ rotated_right(key, 11)
        key = key + (key << np.uint64(6))
        key = key ^ rotated_right(key, 22)
    return columns.from_values(key & np.uint64(0xFFFFFFFF), pa.uint32())


def _md5(value: bytes) -> bytes:
    """Return the MD5 digest."""
    return hashlib.md5(value, usedforsecurity=False).digest()


def _sha1(value: bytes) -> bytes:
    """Return the SHA-1 digest."""
    return hashlib.sha1(value, usedforsecurity=False).digest()


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    _digest("MD5", _md5, 16),
    _digest("SHA1", _sha1, 20),
    _digest("SHA224", lambda v: hashlib.sha224(v).digest(), 28),
    _digest("SHA256", lambda v: hashlib.sha256(v).digest(), 32),
    _digest("SHA384", lambda v: hashlib.sha384(v).digest(), 48),
    _digest("SHA512", lambda v: hashlib.sha512(v).digest(), 64),
    define("CRC32", _string_rule(UINT32), _crc32, insensitive=True),
    define("halfMD5", _string_rule(UINT64), _half_md5),
    define("base64Encode", _string_rule(STRING), _encode, aliases=("TO_BASE64",), insensitive=True),
    define(
        "base64Decode",
        _string_rule(STRING),
        _decode(lenient=False),
        aliases=("FROM_BASE64",),
        insensitive=True,
    ),
    define("tryBase64Decode", _string_rule(STRING), _decode(lenient=True)),
    _any_hash("cityHash64", _CITY),
    _any_hash("sipHash64", _SIP),
    _any_hash("xxHash64", _XX),
    define("intHash32", _integer_rule(UINT32), _int_hash32),
    define("intHash64", _integer_rule(UINT64), _int_hash64),
)
