"""URLHash, and HMAC: hashes of texts by more than their bytes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from olapdb.errors import BadArguments, IllegalColumn, UnsupportedMethod
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.numeric.byte_hashes import city_hash64, values_of
from olapdb.functions.numeric.digests import md4
from olapdb.functions.strings.arguments import TEXT_TYPES, text_rule
from olapdb.functions.strings.urls import levels_of
from olapdb.types import STRING, UINT64, DataType

_ALGORITHMS = {
    **{name: name for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "ripemd160")},
    **{f"sha3-{bits}": f"sha3_{bits}" for bits in (224, 256, 384, 512)},
    "sha512-224": "sha512_224",
    "sha512-256": "sha512_256",
    "blake2b512": "blake2b",
    "blake2s256": "blake2s",
}
"""Python's names of the algorithms by OpenSSL's; MD4 is our own."""
_OTHERS = frozenset({"md5-sha1", "mdc2", "sm3", "whirlpool", "ripemd", "rmd160"})


def _level(url: bytes, level: int) -> bytes:
    """Return a URL cut at its level number `level`, counted from 0; b"" if it has no such level."""
    levels = levels_of(url)
    return levels[level] if 0 <= level < len(levels) else b""


def _url_hash(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return CityHash64 of URLs, with a second argument of URLs cut at that level, in each case without a `/`, `?`
    or `#` at the end: the kernel of URLHash."""
    urls = columns.text(arrays[0])
    if len(arrays) > 1:
        urls = values_by_row(arrays, _level, pa.string())
    urls = regexes.replaced(columns.text(urls), "[/?#]$", "")
    return columns.from_values(city_hash64(values_of(urls)), pa.uint64())


def _mac_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise an error unless a constant algorithm, then two texts."""
    scalar.require(name, types, TEXT_TYPES, "a String")
    if arguments[0].constant is None:
        raise IllegalColumn(f"The algorithm of {name} must be a constant.")
    mode = scalar.constant_text(name, arguments, 0, "the algorithm").lower()
    if mode in _OTHERS:
        raise UnsupportedMethod(f"{name} by {mode} is not supported.")
    if mode != "md4" and mode not in _ALGORITHMS:
        known = ", ".join(sorted({*_ALGORITHMS, "md4"}))
        raise BadArguments(f"Invalid hash algorithm: '{mode}'.", hint=f"There are {known}.")
    return STRING


def _mac(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the authentication codes of messages by keys; each distinct pair once, in Python."""
    mode = str(call.constant(0)).lower()
    digest: Callable[[bytes, bytes], bytes] = (
        _md4_mac if mode == "md4" else partial(_openssl_mac, _ALGORITHMS[mode])
    )
    return values_by_row(arrays[1:], digest, pa.string())


def _md4_mac(message: bytes, key: bytes) -> bytes:
    """Return HMAC-MD4 of a message, as RFC 2104 defines it."""
    padded = (md4(key) if len(key) > 64 else key).ljust(64, b"\0")
    inner = md4(bytes(byte ^ 0x36 for byte in padded) + message)
    return md4(bytes(byte ^ 0x5C for byte in padded) + inner)


def _openssl_mac(name: str, message: bytes, key: bytes) -> bytes:
    """Return HMAC of a message by hashlib's algorithm `name`; raise UnsupportedMethod if OpenSSL lacks it."""
    if name not in hashlib.algorithms_available:
        raise UnsupportedMethod(f"This Python's OpenSSL has no {name}.")
    return hmac.new(key, message, name).digest()


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("URLHash", text_rule(UINT64), _url_hash, count=(1, 2)),
    scalar.define("HMAC", _mac_rule, _mac, count=3, insensitive=True),
)
