"""Hashes of byte strings, many at once: CityHash64 1.0.2 and XXH64, bit for bit.

All values advance side by side: a step of the algorithm is one numpy operation on the values that
are long enough for it.  So the number of Python steps grows with the longest value, not with the
number of values.  Sources: Pike and Alakuijala, CityHash 1.0.2 (2011); Collet, xxHash
specification (XXH64).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns
from olapdb.records import dataclass

U64 = np.uint64


@dataclass(frozen=True)
class HashedValues:
    """Byte strings in one buffer.

    `data` holds them one after the other with padding at the end; value i has `lengths[i]` bytes
    from `starts[i]`. Both are int64 of shape (values,).
    """

    data: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of_width(cls, raw: np.ndarray) -> HashedValues:
        """Return the rows of an array, as their bytes in memory."""
        data = np.ascontiguousarray(raw).view(np.uint8).reshape(-1)
        width = len(data) // max(len(raw), 1)
        starts = np.arange(len(raw), dtype=np.int64) * width
        return cls(_padded(data), starts, np.full(len(raw), width, np.int64))

    @property
    def count(self) -> int:
        """The number of values."""
        return len(self.starts)

    def chosen(self, rows: np.ndarray) -> HashedValues:
        """Return the values at these positions."""
        return HashedValues(self.data, self.starts[rows], self.lengths[rows])

    def blocks(self, size: int) -> Iterator[tuple[np.ndarray, HashedValues, int]]:
        """Yield each whole block of `size` bytes: the positions of the values that have it, these
        values, and where it begins in them."""
        counts = self.lengths // size
        for block in range(int(counts.max(initial=0))):
            rows = np.flatnonzero(counts > block)
            yield rows, self.chosen(rows), block * size

    def word(self, at: np.ndarray | int, size: int = 8) -> np.ndarray:
        """Return the little-endian word of `size` bytes from `at` in each value, as uint64."""
        places = (self.starts + at)[:, None] + np.arange(size)
        words = np.zeros((self.count, 8), np.uint8)
        words[:, :size] = self.data[places]
        return np.asarray(words.view("<u8").reshape(-1))

    def byte(self, at: np.ndarray | int) -> np.ndarray:
        """Return the byte at `at` of each value, as uint64."""
        return np.asarray(self.data[self.starts + at].astype(U64))


def values_of(array: pa.Array) -> HashedValues:
    """Return the values of a string or binary array without nulls."""
    offsets, data = columns.bytes_of(array)
    return HashedValues(_padded(data), offsets[:-1], np.diff(offsets))


def pairs_of(first: np.ndarray, second: np.ndarray) -> HashedValues:
    """Return two hashes of each row as one value; hashes have shape (rows,) or (rows, words)."""
    return HashedValues.of_width(
        np.hstack([h if h.ndim == 2 else h[:, None] for h in (first, second)])
    )


def _padded(data: np.ndarray) -> np.ndarray:
    """Return the bytes with 64 zeros behind, so that words may be read past the end."""
    return np.concatenate((data, np.zeros(64, np.uint8)))


def by_length(
    values: HashedValues, ranges: tuple[tuple[int, int, Callable[[HashedValues], np.ndarray]], ...]
) -> np.ndarray:
    """Hash each value by the function for its length; `ranges` holds (low, high, function).

    A function hashes the values with low <= length < high.
    """
    hashes = np.zeros(values.count, U64)
    with np.errstate(over="ignore"):
        for low, high, hash_function in ranges:
            rows = np.flatnonzero((values.lengths >= low) & (values.lengths < high))
            if len(rows):
                hashes[rows] = hash_function(values.chosen(rows))
    return hashes


def rotated_right(value: np.ndarray, places: int | np.ndarray) -> np.ndarray:
    """Return words rotated to the right by `places` bits, one number for all or one for each."""
    shift = np.asarray(places, U64)
    left = (U64(64) - shift) & U64(63)
    return np.asarray((value >> shift) | (value << left) * (shift > 0))


def rotated_left(value: np.ndarray, places: int) -> np.ndarray:
    """Return words rotated to the left by 1 to 63 places."""
    return np.asarray((value << U64(places)) | (value >> U64(64 - places)))


def tail_word(values: HashedValues, size: int, skipped: int = 0) -> np.ndarray:
    """Return the bytes behind the last whole block of `size` bytes of each value, as uint64.

    Of more than 8 bytes these are the first; `skipped` bytes before them are left out.
    """
    begin = values.lengths // size * size + skipped
    remaining = np.clip(values.lengths - begin, 0, 8)
    word = values.word(np.minimum(begin, values.lengths))
    kept = np.where(remaining < 8, remaining, 0).astype(U64) * U64(8)
    mask = (U64(1) << kept) - U64(1)
    return np.where(remaining == 8, word, word & mask)


def int_hash64(values: np.ndarray) -> np.ndarray:
    """Return the finalizer of MurmurHash3, which is ClickHouse's intHash64 without its key."""
    with np.errstate(over="ignore"):
        x = values
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        return np.asarray(x ^ (x >> np.uint64(33)))


def int_hash32(values: np.ndarray) -> np.ndarray:
    """Return ClickHouse's intHash32 of uint64 values, the low 32 bits of a mixed key; uint32."""
    with np.errstate(over="ignore"):
        key = values ^ np.uint64(0x75D9543DE018BF45)
        key = ~key + (key << np.uint64(18))
        key = key ^ rotated_right(key, 31)
        key = key * np.uint64(21)
        key = key ^ rotated_right(key, 11)
        key = key + (key << np.uint64(6))
        key = key ^ rotated_right(key, 22)
    return np.asarray(key.astype(np.uint32))


# --- CityHash64 1.0.2

_K0, _K1 = U64(0xC3A5C85C97CB3127), U64(0xB492B66FBE98F273)
_K2, _K3 = U64(0x9AE16A3B2F90404F), U64(0xC949D7C7509E6557)
_MULTIPLIER = U64(0x9DDFEA08EB382D69)


def city_combined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return one hash of two 64-bit hashes, by CityHash's Hash128to64."""
    with np.errstate(over="ignore"):
        a = (first ^ second) * _MULTIPLIER
        a ^= a >> U64(47)
        b = (second ^ a) * _MULTIPLIER
        b ^= b >> U64(47)
        return np.asarray(b * _MULTIPLIER)


def city_hash64(values: HashedValues) -> np.ndarray:
    """Return CityHash64 1.0.2 of each value; uint64."""
    return by_length(
        values,
        (
            (0, 1, lambda v: np.full(v.count, _K2)),
            (1, 4, _city_to_3),
            (4, 9, _city_to_8),
            (9, 17, _city_to_16),
            (17, 33, _city_to_32),
            (33, 65, _city_to_64),
            (65, 1 << 62, _city_long),
        ),
    )


def _mixed(value: np.ndarray) -> np.ndarray:
    """Return CityHash's mix: each number xor itself shifted right by 47 bits."""
    return np.asarray(value ^ (value >> U64(47)))


def _city_to_3(v: HashedValues) -> np.ndarray:
    """Return CityHash64 of values of 1 to 3 bytes."""
    length = v.lengths
    y = v.byte(0) + (v.byte(length >> 1) << U64(8))
    z = length.astype(U64) + (v.byte(length - 1) << U64(2))
    return _mixed(y * _K2 ^ z * _K3) * _K2


def _city_to_8(v: HashedValues) -> np.ndarray:
    """Return CityHash64 of values of 4 to 8 bytes."""
    length = v.lengths.astype(U64)
    return city_combined(length + (v.word(0, 4) << U64(3)), v.word(v.lengths - 4, 4))


def _city_to_16(v: HashedValues) -> np.ndarray:
    """Return CityHash64 of values of 9 to 16 bytes."""
    length = v.lengths.astype(U64)
    last = v.word(v.lengths - 8)
    return np.asarray(city_combined(v.word(0), rotated_right(last + length, length)) ^ last)


def _city_to_32(v: HashedValues) -> np.ndarray:
    """Return CityHash64 of values of 17 to 32 bytes."""
    length = v.lengths.astype(U64)
    a, b = v.word(0) * _K1, v.word(8)
    c, d = v.word(v.lengths - 8) * _K2, v.word(v.lengths - 16) * _K0
    return city_combined(
        rotated_right(a - b, 43) + rotated_right(c, 30) + d,
        a + rotated_right(b ^ _K3, 20) - c + length,
    )


def _city_to_64(v: HashedValues) -> np.ndarray:
    """Return CityHash64 of values of 33 to 64 bytes."""
    length, end = v.lengths.astype(U64), v.lengths
    first = _city_half(
        v, v.word(0) + (length + v.word(end - 16)) * _K0, v.word(24), (v.word(8), v.word(16))
    )
    second = _city_half(
        v, v.word(16) + v.word(end - 32), v.word(end - 8), (v.word(end - 24), v.word(end - 16))
    )
    r = _mixed((first[0] + second[1]) * _K2 + (second[0] + first[1]) * _K0)
    return _mixed(r * _K0 + first[1]) * _K2


def _city_half(
    v: HashedValues, a: np.ndarray, z: np.ndarray, added: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return one half of the hash of 33 to 64 bytes, as two words.

    `a` and `z` are its first and last word, `added` the two words between.
    """
    b, c = rotated_right(a + z, 52), rotated_right(a, 37)
    a = a + added[0]
    c = c + rotated_right(a, 7)
    a = a + added[1]
    return a + z, b + rotated_right(a, 31) + c


def weak_hash(
    v: HashedValues, at: np.ndarray | int, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weak hash of the 32 bytes from `at`, with the seeds `a` and `b`, as two words."""
    w, x, y, z = (v.word(at + 8 * step) for step in range(4))
    a = a + w
    b = rotated_right(b + a + z, 21)
    c = a
    a = a + x + y
    b = b + rotated_right(a, 44)
    return a + z, b + c


def _city_long(v: HashedValues) -> np.ndarray:
    """Return CityHash64 of values of more than 64 bytes."""
    end, length = v.lengths, v.lengths.astype(U64)
    x, y = v.word(0), v.word(end - 16) ^ _K1
    z: np.ndarray = v.word(end - 56) ^ _K0
    v0, v1 = weak_hash(v, end - 64, length, y)
    w0, w1 = weak_hash(v, end - 32, length * _K1, np.full(v.count, _K0, U64))
    z = z + _mixed(v1) * _K1
    x = rotated_right(z + x, 39) * _K1
    y = rotated_right(y, 33) * _K1
    state = [x, y, z, v0, v1, w0, w1]
    blocks = (end - 1) // 64
    for block in range(int(blocks.max())):
        rows = np.flatnonzero(blocks > block)
        new = _city_block(v.chosen(rows), 64 * block, [part[rows] for part in state])
        for part, changed in zip(state, new, strict=True):
            part[rows] = changed
    x, y, z, v0, v1, w0, w1 = state
    return city_combined(city_combined(v0, w0) + _mixed(y) * _K1 + z, city_combined(v1, w1) + x)


def _city_block(v: HashedValues, at: int, state: list[np.ndarray]) -> list[np.ndarray]:
    """Return the seven words of the state after the block of 64 bytes at `at`."""
    x, y, z, v0, v1, w0, w1 = state
    x = rotated_right(x + y + v0 + v.word(at + 16), 37) * _K1
    y = rotated_right(y + v1 + v.word(at + 48), 42) * _K1
    x = x ^ w1
    y = y ^ v0
    z = rotated_right(z ^ w0, 33)
    v0, v1 = weak_hash(v, at, v1 * _K1, x + w0)
    w0, w1 = weak_hash(v, at + 32, z + w1, y)
    return [z, y, x, v0, v1, w0, w1]


# --- XXH64

_P1, _P2 = U64(0x9E3779B185EBCA87), U64(0xC2B2AE3D27D4EB4F)
_P3, _P4 = U64(0x165667B19E3779F9), U64(0x85EBCA77C2B2AE63)
_P5 = U64(0x27D4EB2F165667C5)


def xx_hash64(values: HashedValues, seed: int = 0) -> np.ndarray:
    """Return XXH64 of each value; uint64."""
    count, lengths = values.count, values.lengths
    with np.errstate(over="ignore"):
        total = np.full(count, _P5) + U64(seed)
        long_rows = np.flatnonzero(lengths >= 32)
        if len(long_rows):
            total[long_rows] = _xx_stripes(values.chosen(long_rows), U64(seed))
        total = total + lengths.astype(U64)
        at = lengths // 32 * 32
        for _ in range(3):
            rows = np.flatnonzero(lengths - at >= 8)
            if len(rows):
                word = values.chosen(rows).word(at[rows])
                mixed = total[rows] ^ _xx_round(np.zeros(len(rows), U64), word)
                total[rows] = rotated_left(mixed, 27) * _P1 + _P4
                at[rows] += 8
        rows = np.flatnonzero(lengths - at >= 4)
        if len(rows):
            word = values.chosen(rows).word(at[rows], 4)
            total[rows] = rotated_left(total[rows] ^ word * _P1, 23) * _P2 + _P3
            at[rows] += 4
        for _ in range(3):
            rows = np.flatnonzero(lengths > at)
            if len(rows):
                byte = values.chosen(rows).byte(at[rows])
                total[rows] = rotated_left(total[rows] ^ byte * _P5, 11) * _P1
                at[rows] += 1
        total = (total ^ (total >> U64(33))) * _P2
        total = (total ^ (total >> U64(29))) * _P3
        return np.asarray(total ^ (total >> U64(32)))


def _xx_round(lane: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Return XXH64's lanes after one more word each."""
    return np.asarray(rotated_left(lane + word * _P2, 31) * _P1)


def _xx_stripes(v: HashedValues, seed: np.uint64) -> np.ndarray:
    """Return the four lanes over all whole stripes of 32 bytes, merged."""
    starts = (_P1 + _P2, _P2, U64(0), U64(0) - _P1)
    lanes = [np.full(v.count, start) + seed for start in starts]
    stripes = v.lengths // 32
    for stripe in range(int(stripes.max())):
        rows = np.flatnonzero(stripes > stripe)
        active = v.chosen(rows)
        for at, lane in enumerate(lanes):
            lane[rows] = _xx_round(lane[rows], active.word(32 * stripe + 8 * at))
    total = np.zeros(v.count, U64)
    for lane, places in zip(lanes, (1, 7, 12, 18), strict=True):
        total = total + rotated_left(lane, places)
    for lane in lanes:
        total = (total ^ _xx_round(np.zeros(v.count, U64), lane)) * _P1 + _P4
    return np.asarray(total)
