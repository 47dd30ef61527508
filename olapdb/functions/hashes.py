"""MD5, SHA, intHash, xxHash-free: hashes that are the same as ClickHouse's, bit for bit.

cityHash64, sipHash64 and the others are left out rather than given other values.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IncorrectData
from olapdb.functions import columns
from olapdb.functions.base import Argument
from olapdb.functions.scalar import Definition, Invocation, Kernel, define, require
from olapdb.types import (
    STRING,
    UINT32,
    UINT64,
    DataType,
    Date,
    DateTime,
    FixedString,
    Integer,
    String,
)

_TEXT = (String, FixedString)


def _per_distinct(
    array: pa.Array, function: Callable[[bytes], bytes], arrow: pa.DataType
) -> pa.Array:
    """hashlib and its like take one value at a time: they are called once a distinct value."""
    encoded = columns.binary(array).dictionary_encode()
    made = pa.array([function(v) for v in encoded.dictionary.to_pylist()], arrow)
    return made.take(encoded.indices)


def _digest(name: str, function: Callable[[bytes], bytes], length: int) -> Definition:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        return _per_distinct(arrays[0], function, pa.binary(length))

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(spelt, types, _TEXT, "a String")
        return FixedString(length)

    return define(name, rule, kernel)


def _crc32(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    shown = _per_distinct(arrays[0], lambda v: zlib.crc32(v).to_bytes(4, "little"), pa.binary(4))
    buffer = shown.buffers()[1]
    return columns.from_values(
        np.frombuffer(buffer, "<u4", len(shown), shown.offset * 4), pa.uint32()
    )


def _half_md5(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    shown = _per_distinct(
        arrays[0], lambda v: hashlib.md5(v, usedforsecurity=False).digest()[:8], pa.binary(8)
    )
    buffer = shown.buffers()[1]
    return columns.from_values(
        np.frombuffer(buffer, ">u8", len(shown), shown.offset * 8), pa.uint64()
    )


def _text_to(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, _TEXT, "a String")
        return result

    return rule


def _encode(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    return columns.text(_per_distinct(arrays[0], base64.b64encode, pa.binary()))


def _decode(*, lenient: bool) -> Kernel:
    def one(value: bytes) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            if lenient:
                return b""
            raise IncorrectData(
                f"Failed to base64Decode {value.decode('utf-8', 'replace')!r}."
            ) from None

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        return columns.text(_per_distinct(arrays[0], one, pa.binary()))

    return kernel


def _integer_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, (Integer, Date, DateTime), "an integer")
        return result

    return rule


def int_hash64(values: np.ndarray) -> np.ndarray:
    """The finalizer of MurmurHash3, ClickHouse's intHash64."""
    with np.errstate(over="ignore"):
        x = values
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        return np.asarray(x ^ (x >> np.uint64(33)))


def _wide(array: pa.Array) -> np.ndarray:
    values = columns.numpy_values(array)
    return values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64)


def _int_hash64(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    return columns.from_values(
        int_hash64(_wide(arrays[0]) ^ np.uint64(0x4CF2D2BAAE6DA887)), pa.uint64()
    )


def _int_hash32(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    with np.errstate(over="ignore"):
        key = _wide(arrays[0]) ^ np.uint64(0x75D9543DE018BF45)
        key = ~key + (key << np.uint64(18))
        key = key ^ _rotated(key, 31)
        key = key * np.uint64(21)
        key = key ^ _rotated(key, 11)
        key = key + (key << np.uint64(6))
        key = key ^ _rotated(key, 22)
    return columns.from_values(key & np.uint64(0xFFFFFFFF), pa.uint32())


def _rotated(values: np.ndarray, places: int) -> np.ndarray:
    return (values >> np.uint64(places)) | (values << np.uint64(64 - places))


def _md5(value: bytes) -> bytes:
    return hashlib.md5(value, usedforsecurity=False).digest()


def _sha1(value: bytes) -> bytes:
    return hashlib.sha1(value, usedforsecurity=False).digest()


DEFINITIONS: tuple[Definition, ...] = (
    _digest("MD5", _md5, 16), _digest("SHA1", _sha1, 20),
    _digest("SHA224", lambda v: hashlib.sha224(v).digest(), 28),
    _digest("SHA256", lambda v: hashlib.sha256(v).digest(), 32),
    _digest("SHA384", lambda v: hashlib.sha384(v).digest(), 48),
    _digest("SHA512", lambda v: hashlib.sha512(v).digest(), 64),
    define("CRC32", _text_to(UINT32), _crc32, insensitive=True),
    define("halfMD5", _text_to(UINT64), _half_md5),
    define("base64Encode", _text_to(STRING), _encode, aliases=("TO_BASE64",), insensitive=True),
    define("base64Decode", _text_to(STRING), _decode(lenient=False), aliases=("FROM_BASE64",), insensitive=True),
    define("tryBase64Decode", _text_to(STRING), _decode(lenient=True)),
    define("intHash32", _integer_rule(UINT32), _int_hash32),
    define("intHash64", _integer_rule(UINT64), _int_hash64),
)  # fmt: skip
