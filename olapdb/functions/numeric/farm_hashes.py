"""FarmHash64 of byte strings, many at once: Hash64 and Fingerprint64.

Source: Pike, FarmHash (2014): its variants na (the fingerprint), xo and uo.
"""

from __future__ import annotations

import numpy as np

from olapdb.errors import UnsupportedMethod
from olapdb.functions.numeric.byte_hashes import (
    U64,
    HashedValues,
    by_length,
    rotated_right,
    weak_hash,
)

_K0, _K1 = U64(0xC3A5C85C97CB3127), U64(0xB492B66FBE98F273)
_K2, _MULTIPLIER = U64(0x9AE16A3B2F90404F), U64(0x9DDFEA08EB382D69)
_Words = tuple[np.ndarray, np.ndarray]


def fingerprint64(values: HashedValues) -> np.ndarray:
    """Return Fingerprint64 of each value; uint64."""
    return by_length(values, (*_SHORT, (33, 65, _na_to_64), (65, 1 << 62, _na_long)))


def farm_hash64(values: HashedValues) -> np.ndarray:
    """Return Hash64 of each value; uint64."""
    return by_length(
        values,
        (
            *_SHORT,
            (33, 65, _xo_to_64),
            (65, 97, _xo_to_96),
            (97, 257, _na_long),
            (257, 512, _uo_long),
            (512, 1 << 62, _refuse),
        ),
    )


def _refuse(v: HashedValues) -> np.ndarray:
    """Raise UnsupportedMethod: from 512 bytes on the authors' hash depends on the processor."""
    raise UnsupportedMethod(
        "farmHash64 of a text of 512 bytes or more is not supported.",
        hint="farmFingerprint64 hashes texts of any length.",
    )


def fingerprint_of(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return FarmHash's fingerprint of a 128-bit number, given as two words."""
    with np.errstate(over="ignore"):
        a = (low ^ high) * _MULTIPLIER
        a ^= a >> U64(47)
        b = (high ^ a) * _MULTIPLIER
        b ^= b >> U64(44)
        b *= _MULTIPLIER
        b ^= b >> U64(41)
        return np.asarray(b * _MULTIPLIER)


def _mixed(value: np.ndarray) -> np.ndarray:
    """Return FarmHash's mix: each number xor itself shifted right by 47 bits."""
    return np.asarray(value ^ (value >> U64(47)))


def _of_16(u: np.ndarray, v: np.ndarray, factor: np.ndarray | np.uint64) -> np.ndarray:
    """Return FarmHash's HashLen16 of two words, with the multiplier `factor`."""
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor


def _to_3(v: HashedValues) -> np.ndarray:
    """Return the hash of values of 1 to 3 bytes."""
    y = v.byte(0) + (v.byte(v.lengths >> 1) << U64(8))
    z = v.lengths.astype(U64) + (v.byte(v.lengths - 1) << U64(2))
    return _mixed(y * _K2 ^ z * _K0) * _K2


def _to_7(v: HashedValues) -> np.ndarray:
    """Return the hash of values of 4 to 7 bytes."""
    length = v.lengths.astype(U64)
    factor = _K2 + length * U64(2)
    return _of_16(length + (v.word(0, 4) << U64(3)), v.word(v.lengths - 4, 4), factor)


def _to_16(v: HashedValues) -> np.ndarray:
    """Return the hash of values of 8 to 16 bytes."""
    factor = _K2 + v.lengths.astype(U64) * U64(2)
    a, b = v.word(0) + _K2, v.word(v.lengths - 8)
    c = rotated_right(b, 37) * factor + a
    return _of_16(c, (rotated_right(a, 25) + b) * factor, factor)


def _to_32(v: HashedValues) -> np.ndarray:
    """Return the hash of values of 17 to 32 bytes."""
    factor = _K2 + v.lengths.astype(U64) * U64(2)
    a, b = v.word(0) * _K1, v.word(8)
    c, d = v.word(v.lengths - 8) * factor, v.word(v.lengths - 16) * _K2
    u = rotated_right(a + b, 43) + rotated_right(c, 30) + d
    return _of_16(u, a + rotated_right(b + _K2, 18) + c, factor)


def _na_to_64(v: HashedValues) -> np.ndarray:
    """Return the fingerprint of values of 33 to 64 bytes."""
    end = v.lengths
    factor = _K2 + end.astype(U64) * U64(2)
    a, b = v.word(0) * _K2, v.word(8)
    c, d = v.word(end - 8) * factor, v.word(end - 16) * _K2
    y = rotated_right(a + b, 43) + rotated_right(c, 30) + d
    z = _of_16(y, a + rotated_right(b + _K2, 18) + c, factor)
    e, f = v.word(16) * factor, v.word(24)
    g, h = (y + v.word(end - 32)) * factor, (z + v.word(end - 24)) * factor
    u = rotated_right(e + f, 43) + rotated_right(g, 30) + h
    return _of_16(u, e + rotated_right(f + a, 18) + g, factor)


_SHORT = (
    (0, 1, lambda v: np.full(v.count, _K2)),
    (1, 4, _to_3),
    (4, 8, _to_7),
    (8, 17, _to_16),
    (17, 33, _to_32),
)


def _na_long(v: HashedValues) -> np.ndarray:
    """Return the fingerprint of values of more than 64 bytes."""
    y = np.full(v.count, U64(81) * _K1 + U64(113))
    x = U64(81) * _K2 + v.word(0)
    zero = np.zeros(v.count, U64)
    state = [x, y, _mixed(y * _K2 + U64(113)) * _K2, zero, zero.copy(), zero.copy(), zero.copy()]
    for rows, block, at in _whole_blocks(v):
        new = _na_block(block, at, [part[rows] for part in state], _K1, U64(1))
        for part, changed in zip(state, new, strict=True):
            part[rows] = changed
    x, y, z, v0, v1, w0, w1 = state
    factor = _K1 + ((z & U64(0xFF)) << U64(1))
    w0 = w0 + ((v.lengths - 1) & 63).astype(U64)
    v0 = v0 + w0
    w0 = w0 + v0
    state = _na_block(v, v.lengths - 64, [x, y, z, v0, v1, w0, w1], factor, U64(9))
    x, y, z, v0, v1, w0, w1 = state
    u = _of_16(v0, w0, factor) + _mixed(y) * _K0 + z
    return _of_16(u, _of_16(v1, w1, factor) + x, factor)


def _whole_blocks(v: HashedValues) -> list[tuple[np.ndarray, HashedValues, int]]:
    """Return the blocks of 64 bytes before the last 1 to 64 bytes, as `HashedValues.blocks`."""
    return list(HashedValues(v.data, v.starts, v.lengths - 1).blocks(64))


def _na_block(
    v: HashedValues,
    at: int | np.ndarray,
    state: list[np.ndarray],
    factor: np.ndarray | np.uint64,
    weight: np.uint64,
) -> list[np.ndarray]:
    """Return the seven words of the fingerprint's state after the 64 bytes at `at`."""
    x, y, z, v0, v1, w0, w1 = state
    x = rotated_right(x + y + v0 + v.word(at + 8), 37) * factor
    y = rotated_right(y + v1 + v.word(at + 48), 42) * factor
    x = x ^ w1 * weight
    y = y + v0 * weight + v.word(at + 40)
    z = rotated_right(z + w0, 33) * factor
    v0, v1 = weak_hash(v, at, v1 * factor, x + w0)
    w0, w1 = weak_hash(v, at + 32, z + w1, y + v.word(at + 16))
    return [z, y, x, v0, v1, w0, w1]


def _xo_half(
    v: HashedValues,
    at: int | np.ndarray,
    factor: np.ndarray | np.uint64,
    seeds: _Words | None = None,
) -> np.ndarray:
    """Return the hash of the 32 bytes at `at` by FarmHash's variant xo, with the multiplier `factor`."""
    a, b = v.word(at) * _K1, v.word(at + 8)
    c, d = v.word(at + 24) * factor, v.word(at + 16) * _K2
    first, second = seeds if seeds is not None else (U64(0), U64(0))
    u = rotated_right(a + b, 43) + rotated_right(c, 30) + d + first
    w = a + rotated_right(b + _K2, 18) + c + second
    return _mixed((w ^ _mixed((u ^ w) * factor)) * factor)


def _xo_to_64(v: HashedValues) -> np.ndarray:
    """Return the hash of values of 33 to 64 bytes."""
    first = np.full(v.count, _K2 - U64(30))
    second = first + v.lengths.astype(U64) * U64(2)
    h0, h1 = _xo_half(v, 0, first), _xo_half(v, v.lengths - 32, second)
    return np.asarray((h1 * second + h0) * second)


def _xo_to_96(v: HashedValues) -> np.ndarray:
    """Return the hash of values of 65 to 96 bytes."""
    first = np.full(v.count, _K2 - U64(114))
    second = first + v.lengths.astype(U64) * U64(2)
    h0, h1 = _xo_half(v, 0, first), _xo_half(v, 32, second)
    h2 = _xo_half(v, v.lengths - 32, second, (h0, h1))
    return np.asarray((h2 * U64(9) + (h0 >> U64(17)) + (h1 >> U64(21))) * second)


def _uo_hash(
    x: np.ndarray, y: np.ndarray, factor: np.ndarray | np.uint64, places: int
) -> np.ndarray:
    """Return the hash of two words by FarmHash's variant uo: multiply by `factor`, rotate by `places`."""
    a = _mixed((x ^ y) * factor)
    return rotated_right((y ^ a) * factor, places) * factor


def _uo_long(v: HashedValues) -> np.ndarray:
    """Return the hash of values of more than 256 bytes."""
    seed, zero = np.full(v.count, U64(81)), np.zeros(v.count, U64)
    y = np.full(v.count, U64(113))
    z = _mixed(y * _K2) * _K2
    u = seed - z
    factor = _K2 + (u & U64(0x82))
    state = [seed * _K2, y, z, u, seed.copy(), zero, zero.copy(), zero.copy()]
    for rows, block, at in _whole_blocks(v):
        new = _uo_block(block, at, [part[rows] for part in state], factor[rows])
        for part, changed in zip(state, new, strict=True):
            part[rows] = changed
    x, y, z, u, v0, v1, w0, w1 = state
    u = u * U64(9)
    v1, v0 = rotated_right(v1, 28), rotated_right(v0, 20)
    w0 = w0 + ((v.lengths - 1) & 63).astype(U64)
    u = u + y
    y = y + u
    end = v.lengths - 64
    x = rotated_right(y - x + v0 + v.word(end + 8), 37) * factor
    y = rotated_right(y ^ v1 ^ v.word(end + 48), 42) * factor
    x = x ^ w1 * U64(9)
    y = y + v0 + v.word(end + 40)
    z = rotated_right(z + w0, 33) * factor
    v0, v1 = weak_hash(v, end, v1 * factor, x + w0)
    w0, w1 = weak_hash(v, end + 32, z + w1, y + v.word(end + 16))
    first = _of_16(v0 + x, w0 ^ y, factor) + z - u
    return _uo_hash(first, _uo_hash(v1 + y, w1 + z, _K2, 30) ^ x, _K2, 31)


def _uo_block(
    v: HashedValues, at: int, state: list[np.ndarray], factor: np.ndarray
) -> list[np.ndarray]:
    """Return the eight words of uo's state after the 64 bytes at `at`."""
    x, y, z, u, v0, v1, w0, w1 = state
    a = [v.word(at + 8 * step) for step in range(8)]
    x, y, z = x + a[0] + a[1], y + a[2], z + a[3]
    v0, v1, w0, w1 = v0 + a[4], v1 + a[5] + a[1], w0 + a[6], w1 + a[7]
    x = rotated_right(x, 26) * U64(9)
    y, z = rotated_right(y, 29), z * factor
    v0, v1 = rotated_right(v0, 33), rotated_right(v1, 30)
    w0 = (w0 ^ x) * U64(9)
    z = rotated_right(z, 32) + w1
    w1 = w1 + z
    z = z * U64(9)
    u, y = y, u
    z, v0, v1 = z + a[0] + a[6], v0 + a[2], v1 + a[3]
    w0, w1 = w0 + a[4], w1 + a[5] + a[6]
    x, y = x + a[1], y + a[7]
    y = y + v0
    v0 = v0 + x - y
    v1 = v1 + w0
    w0 = w0 + v1
    w1 = w1 + x - y
    x = x + w1
    w1 = rotated_right(w1, 34)
    return [x, y, u, z, v0, v1, w0, w1]
