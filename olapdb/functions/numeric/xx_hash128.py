"""XXH3 of 128 bits of byte strings, many at once.

Source: Collet, xxHash specification (XXH3 of 128 bits).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from olapdb.functions.numeric.byte_hashes import U64, HashedValues
from olapdb.functions.numeric.xx_hashes import (
    P1,
    P2,
    P4,
    avalanche,
    avalanche64,
    folded_product,
    long_lanes,
    merged_lanes,
    mixed_16,
    secret_word,
)

_MASK32 = U64(0xFFFFFFFF)
_XX_PRIME32_2 = U64(2246822519)
_MX2 = U64(0x9FB21C651E98DF25)


def _product(a: np.ndarray, b: np.ndarray | np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Return the low and the high half of 128-bit products."""
    low = np.asarray(a * b)
    return low, np.asarray(folded_product(a, np.asarray(b)) ^ low)


def xxh3_128(values: HashedValues) -> np.ndarray:
    """Return XXH3 of 128 bits of each value with the seed 0; uint64 of shape (values, 2), low first."""
    hashes = np.zeros((values.count, 2), U64)
    ranges: tuple[tuple[int, int, Callable[[HashedValues], tuple[np.ndarray, np.ndarray]]], ...] = (
        (0, 1, _empty),
        (1, 4, _to_3),
        (4, 9, _to_8),
        (9, 17, _to_16),
        (17, 129, _to_128),
        (129, 241, _to_240),
        (241, 1 << 62, _long),
    )
    with np.errstate(over="ignore"):
        for low, high, hash_function in ranges:
            rows = np.flatnonzero((values.lengths >= low) & (values.lengths < high))
            if len(rows):
                hashes[rows, 0], hashes[rows, 1] = hash_function(values.chosen(rows))
    return hashes


def _empty(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of the empty value."""
    low = np.full(v.count, secret_word(64) ^ secret_word(72))
    high = np.full(v.count, secret_word(80) ^ secret_word(88))
    return avalanche64(low), avalanche64(high)


def _to_3(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of values of 1 to 3 bytes."""
    first, middle, last = v.byte(0), v.byte(v.lengths >> 1), v.byte(v.lengths - 1)
    low = (first << U64(16)) | (middle << U64(24)) | last | (v.lengths.astype(U64) << U64(8))
    swapped = low.astype(np.uint32).byteswap()
    high = ((swapped << np.uint32(13)) | (swapped >> np.uint32(19))).astype(U64)
    low_key = secret_word(0, 4) ^ secret_word(4, 4)
    high_key = secret_word(8, 4) ^ secret_word(12, 4)
    return avalanche64(low ^ low_key), avalanche64(high ^ high_key)


def _to_8(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of values of 4 to 8 bytes."""
    word = v.word(0, 4) + (v.word(v.lengths - 4, 4) << U64(32))
    keyed = word ^ (secret_word(16) ^ secret_word(24))
    low, high = _product(keyed, P1 + (v.lengths.astype(U64) << U64(2)))
    high = high + (low << U64(1))
    low = low ^ (high >> U64(3))
    low = (low ^ (low >> U64(35))) * _MX2
    return low ^ (low >> U64(28)), avalanche(high)


def _to_16(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of values of 9 to 16 bytes."""
    low_key, high_key = secret_word(32) ^ secret_word(40), secret_word(48) ^ secret_word(56)
    first, last = v.word(0), v.word(v.lengths - 8)
    low, high = _product(first ^ last ^ low_key, P1)
    low = low + ((v.lengths.astype(U64) - U64(1)) << U64(54))
    last = last ^ high_key
    high = high + last + (last & _MASK32) * (_XX_PRIME32_2 - U64(1))
    low = low ^ high.byteswap()
    mixed, above = _product(low, P2)
    return avalanche(mixed), avalanche(above + high * P2)


def _mixed(
    state: tuple[np.ndarray, np.ndarray],
    v: HashedValues,
    first: int | np.ndarray,
    second: int | np.ndarray,
    secret: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two halves of the state after the 16 bytes at `first` and those at `second`."""
    low, high = state
    low = (low + mixed_16(v, first, secret)) ^ (v.word(second) + v.word(second + 8))
    high = (high + mixed_16(v, second, secret + 16)) ^ (v.word(first) + v.word(first + 8))
    return np.asarray(low), np.asarray(high)


def _joined(v: HashedValues, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the final hash, of values of 17 to 240 bytes, from the two halves of the state."""
    length = v.lengths.astype(U64)
    return avalanche(low + high), U64(0) - avalanche(low * P1 + high * P4 + length * P2)


def _to_128(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of values of 17 to 128 bytes."""
    low, high = v.lengths.astype(U64) * P1, np.zeros(v.count, U64)
    for step in (3, 2, 1, 0):
        rows = np.flatnonzero(v.lengths > 32 * step)
        if len(rows):
            part = v.chosen(rows)
            end = part.lengths - 16 * (step + 1)
            state = _mixed((low[rows], high[rows]), part, 16 * step, end, 32 * step)
            low[rows], high[rows] = state
    return _joined(v, low, high)


def _to_240(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of values of 129 to 240 bytes."""
    state = (v.lengths.astype(U64) * P1, np.zeros(v.count, U64))
    for step in range(4):
        state = _mixed(state, v, 32 * step, 32 * step + 16, 32 * step)
    low, high = avalanche(state[0]), avalanche(state[1])
    for rows, block, at in v.blocks(32):
        if at >= 128:
            low[rows], high[rows] = _mixed(
                (low[rows], high[rows]), block, at, at + 16, 3 + at - 128
            )
    low, high = _mixed((low, high), v, v.lengths - 16, v.lengths - 32, 136 - 17 - 16)
    return _joined(v, low, high)


def _long(v: HashedValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of values of more than 240 bytes."""
    lanes, length = long_lanes(v), v.lengths.astype(U64)
    low = merged_lanes(lanes, 11, length * P1)
    return low, merged_lanes(lanes, 192 - 64 - 11, ~(length * P2))
