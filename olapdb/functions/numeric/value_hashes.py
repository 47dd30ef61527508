"""Functions that hash any number of values of any types, equal to ClickHouse's bit for bit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, UnsupportedMethod
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.numeric import farm_hashes, murmur_hashes, sip_hashes, xx_hash128, xx_hashes
from olapdb.functions.numeric.any_hashes import AnyHash, column_of, require_hashable
from olapdb.functions.numeric.byte_hashes import (
    U64,
    HashedValues,
    city_combined,
    city_hash64,
    int_hash32,
    int_hash64,
    pairs_of,
    xx_hash64,
)
from olapdb.functions.numeric.sip_hashes import Key
from olapdb.types import (
    UINT32,
    UINT64,
    DataType,
    Date,
    FixedString,
    Integer,
    Time,
    Time64,
    Tuple,
    wide_number,
)

_INT32 = Integer(32, True)
_WIDE = FixedString(16)
_Unkeyed = Callable[[HashedValues], np.ndarray]
_Keyed = Callable[[HashedValues, Key], np.ndarray]


def _unkeyed(hashed: _Unkeyed) -> _Keyed:
    """Return `hashed` as a function with a key, which it ignores."""
    return lambda values, key: hashed(values)


def _by_city(first: np.ndarray, second: np.ndarray, key: Key) -> np.ndarray:
    """Join two hashes as CityHash does; the key does not count."""
    return city_combined(first, second)


def _by_murmur(first: np.ndarray, second: np.ndarray, key: Key) -> np.ndarray:
    """Join two hashes of 32 or 64 bits by an exclusive or with the first one mixed."""
    if first.dtype == np.uint32:
        return np.asarray(int_hash32(first.astype(U64)) ^ second)
    return np.asarray(int_hash64(first ^ U64(0x4CF2D2BAAE6DA887)) ^ second)


def _by_itself(hashed: _Keyed) -> Callable[[np.ndarray, np.ndarray, Key], np.ndarray]:
    """Return the join of two hashes that hashes their bytes, one behind the other, by `hashed`."""
    return lambda first, second, key: hashed(pairs_of(first, second), key)


def _half_md5(values: HashedValues) -> np.ndarray:
    """Return the first 8 bytes of MD5, big-endian; uint64. Each distinct value is hashed once."""
    ends = values.starts + values.lengths
    data = values.data.tobytes()
    texts = [data[a:b] for a, b in zip(values.starts.tolist(), ends.tolist(), strict=True)]
    known = {t: hashlib.md5(t, usedforsecurity=False).digest()[:8] for t in set(texts)}
    return np.frombuffer(b"".join(known[t] for t in texts), ">u8").astype(U64)


def _refused(language: str) -> Callable[[np.ndarray, np.ndarray, Key], np.ndarray]:
    """Return the join of a hash that takes one value only: it raises UnsupportedMethod. `language` names the hash."""

    def joined(first: np.ndarray, second: np.ndarray, key: Key) -> np.ndarray:
        """Raise UnsupportedMethod, since the hash takes one value only."""
        raise UnsupportedMethod(f"{language} hash is not combineable for multiple arguments.")

    return joined


def _java_number(array: pa.Array, data_type: DataType) -> np.ndarray | None:
    """Return Java's hash of integers as uint32; None for other types.

    Raises UnsupportedMethod for unsigned ones.
    """
    unsigned = isinstance(data_type, Date) or (
        pa.types.is_unsigned_integer(array.type) or pa.types.is_boolean(array.type)
    )
    if unsigned or (pa.types.is_timestamp(array.type) and array.type.unit == "s"):
        raise UnsupportedMethod("Unsigned types are not supported by javaHash.")
    signed = pa.types.is_signed_integer(array.type) or pa.types.is_date32(array.type)
    if not signed or isinstance(data_type, Time | Time64):
        return None
    values = columns.numpy_values(array)
    if values.dtype.itemsize < 8:
        return values.astype(np.int32).view(np.uint32)
    bits = values.view(U64)
    return np.asarray((bits ^ (bits >> U64(32))).astype(np.uint32))


def _java_utf16(values: HashedValues) -> np.ndarray:
    """Return Java's hash of UTF-16 texts, without their byte order mark; uint32.

    Raises BadArguments for an odd number of bytes."""
    marked = (values.lengths >= 2) & (values.word(0, 2) == U64(0xFEFF))
    skipped = np.where(marked, 2, 0)
    values = HashedValues(values.data, values.starts + skipped, values.lengths - skipped)
    if (values.lengths % 2).any():
        raise BadArguments("Arguments for javaHashUTF16LE must be in the form of UTF-16.")
    return murmur_hashes.java_hash(values, 2)


def _hive(values: HashedValues) -> np.ndarray:
    """Return Hive's hash of each value: Java's hash without the sign bit; uint32."""
    return murmur_hashes.java_hash(values) & np.uint32(0x7FFFFFFF)


def _of(
    hashed: _Unkeyed,
    joined: Callable[[np.ndarray, np.ndarray, Key], np.ndarray],
    result: DataType = UINT64,
) -> AnyHash:
    """Return the hash of any values, without a key, from the hash of byte strings and the join of two hashes."""
    return AnyHash(_unkeyed(hashed), joined, result=result)


_SIPS = {
    "sipHash64": AnyHash(sip_hashes.sip_hash64, _by_itself(sip_hashes.sip_hash64)),
    "sipHash128": AnyHash(sip_hashes.sip_hash128, _by_itself(sip_hashes.sip_hash128), result=_WIDE),
    "sipHash128Reference": AnyHash(
        sip_hashes.sip_hash128_reference, _by_itself(sip_hashes.sip_hash128_reference), result=_WIDE
    ),
}
_HASHES = {
    "cityHash64": replace(_of(city_hash64, _by_city), by_value=True),
    "farmHash64": replace(_of(farm_hashes.farm_hash64, _by_city), by_value=True),
    "farmFingerprint64": replace(
        _of(farm_hashes.fingerprint64, lambda a, b, key: farm_hashes.fingerprint_of(a, b)),
        by_value=True,
    ),
    "metroHash64": replace(_of(murmur_hashes.metro_hash64, _by_city), by_value=True),
    "xxHash64": _of(xx_hash64, _by_city),
    "xxHash32": _of(xx_hashes.xx_hash32, _by_murmur, UINT32),
    "xxh3": _of(xx_hashes.xxh3, _by_city),
    "xxh3_128": _of(
        xx_hash128.xxh3_128, _by_itself(_unkeyed(xx_hash128.xxh3_128)), wide_number(128, False)
    ),
    "halfMD5": _of(_half_md5, _by_itself(_unkeyed(_half_md5))),
    "murmurHash2_32": _of(murmur_hashes.murmur_hash2_32, _by_murmur, UINT32),
    "murmurHash2_64": _of(murmur_hashes.murmur_hash2_64, _by_murmur),
    "gccMurmurHash": _of(murmur_hashes.gcc_murmur_hash, _by_murmur),
    "kafkaMurmurHash": _of(murmur_hashes.kafka_murmur_hash, _by_murmur, UINT32),
    "murmurHash3_32": _of(murmur_hashes.murmur_hash3_32, _by_murmur, UINT32),
    "murmurHash3_64": _of(murmur_hashes.murmur_hash3_64, _by_murmur),
    "murmurHash3_128": _of(
        murmur_hashes.murmur_hash3_128, _by_itself(_unkeyed(murmur_hashes.murmur_hash3_128)), _WIDE
    ),
    "javaHash": replace(_of(murmur_hashes.java_hash, _refused("Java"), _INT32), leaf=_java_number),
    "javaHashUTF16LE": _of(_java_utf16, _refused("Java"), _INT32),
    "hiveHash": _of(_hive, _refused("Hive"), _INT32),
    "wyHash64": _of(xx_hashes.wy_hash64, _by_itself(_unkeyed(xx_hashes.wy_hash64))),
    **_SIPS,
}


def _define(name: str, hash_of: AnyHash) -> scalar.ScalarDefinition:
    """Define a hash function of any number of arguments."""

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result; raise IllegalTypeOfArgument for types without a hash."""
        for data_type in types:
            require_hashable(spelt, data_type)
        return hash_of.result

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Hash the rows of all arguments together."""
        return column_of(hash_of, arrays, call)

    return scalar.define(name, rule, kernel, count=(0, None))


def _define_keyed(name: str, hash_of: AnyHash) -> scalar.ScalarDefinition:
    """Define a hash function of a key, a tuple of two UInt64, and any number of arguments. Without any argument,
    not even a key, it returns a constant."""

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result; raise BadArguments for another key, IllegalTypeOfArgument for types
        without a hash."""
        key = types[0] if types else Tuple((UINT64, UINT64))
        if not isinstance(key, Tuple) or tuple(key.elements) != (UINT64, UINT64):
            raise BadArguments(f"The key of {spelt} must be of type Tuple(UInt64, UInt64).")
        for data_type in types[1:]:
            require_hashable(spelt, data_type)
        return hash_of.result

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Hash the rows of all arguments but the key together."""
        halves = columns.struct_fields(arrays[0]) if arrays else []
        key = (columns.numpy_values(halves[0]), columns.numpy_values(halves[1])) if halves else None
        return hash_of.column(hash_of.of_rows(arrays[1:], call.types[1:], call.rows, key))

    return scalar.define(name, rule, kernel, count=(0, None))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(_define(name, hash_of) for name, hash_of in _HASHES.items()),
    *(_define_keyed(f"{name}Keyed", hash_of) for name, hash_of in _SIPS.items()),
)
