"""Hashes equal to ClickHouse's, bit for bit, and base64.

Those of any values are in `value_hashes`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from olapdb.errors import IncorrectData
from olapdb.functions.kernels import columns
from olapdb.functions.numeric import digests
from olapdb.functions.numeric.byte_hashes import int_hash32, int_hash64
from olapdb.functions.scalar import (
    Invocation,
    Kernel,
    ScalarDefinition,
    TypeRule,
    define,
    fixed_rule,
)
from olapdb.types import (
    STRING,
    UINT32,
    UINT64,
    DataType,
    Date,
    DateTime,
    FixedString,
    Integer,
    IPv4,
    String,
)

_TEXT = (String, FixedString)


def _per_distinct(
    array: pa.Array, function: Callable[[bytes], bytes], arrow: pa.DataType
) -> pa.Array:
    """Return `function` of each value as an array of type `arrow`; it is called once for each distinct value."""
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


def _string_rule(result: DataType) -> TypeRule:
    """Return the type rule of a function of one string, whose result type is `result`."""
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
            if len(value) % 4:
                raise binascii.Error  # Python's decoder takes a further "=" at the end
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


_INT_HASH_64 = np.uint64(0x4CF2D2BAAE6DA887)


def _integer_rule(result: DataType) -> TypeRule:
    """Return the type rule of a function of one integer, Date, DateTime or IPv4, whose result type is `result`."""
    return fixed_rule(result, (Integer, Date, DateTime, IPv4), "an integer")


def _wide(array: pa.Array) -> np.ndarray:
    """Return integers of any width as 64-bit two's complement, uint64."""
    values = columns.numpy_values(array)
    return values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64)


def _int_hash64(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return ClickHouse's intHash64 of each integer."""
    return columns.from_values(int_hash64(_wide(arrays[0]) ^ _INT_HASH_64), pa.uint64())


def _int_hash32(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return ClickHouse's intHash32, the low 32 bits of a mixed 64-bit key."""
    return columns.from_values(int_hash32(_wide(arrays[0])), pa.uint32())


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
    _digest("MD4", digests.md4, 16),
    _digest("RIPEMD160", digests.ripemd160, 20),
    _digest("keccak256", digests.keccak256, 32),
    _digest("SHA512_256", digests.sha512_256, 32),
    _digest("SHA512", lambda v: hashlib.sha512(v).digest(), 64),
    define("CRC32", _string_rule(UINT32), _crc32, insensitive=True),
    define("base64Encode", _string_rule(STRING), _encode, aliases=("TO_BASE64",), insensitive=True),
    define(
        "base64Decode",
        _string_rule(STRING),
        _decode(lenient=False),
        aliases=("FROM_BASE64",),
        insensitive=True,
    ),
    define("tryBase64Decode", _string_rule(STRING), _decode(lenient=True)),
    define("intHash32", _integer_rule(UINT32), _int_hash32),
    define("intHash64", _integer_rule(UINT64), _int_hash64),
)
