"""MurmurHash2, MurmurHash3, MetroHash64 and Java's hash of byte strings, many at once.

Sources: Appleby, SMHasher (MurmurHash2, MurmurHash64A, MurmurHash3); Rogers, MetroHash (2015).
"""

from __future__ import annotations

import numpy as np

from olapdb.functions.numeric.byte_hashes import (
    U64,
    HashedValues,
    int_hash64,
    rotated_left,
    rotated_right,
    tail_word,
)

U32 = np.uint32


def murmur_hash2_32(values: HashedValues, seed: int = 0) -> np.ndarray:
    """Return MurmurHash2 of each value; uint32."""
    multiplier = U32(0x5BD1E995)
    total = U32(seed) ^ values.lengths.astype(U32)
    with np.errstate(over="ignore"):
        for rows, block, at in values.blocks(4):
            word = block.word(at, 4).astype(U32) * multiplier
            word = (word ^ (word >> U32(24))) * multiplier
            total[rows] = total[rows] * multiplier ^ word
        rest = tail_word(values, 4).astype(U32)
        total = np.where(values.lengths % 4 > 0, (total ^ rest) * multiplier, total)
        total = (total ^ (total >> U32(13))) * multiplier
        return np.asarray(total ^ (total >> U32(15)))


def murmur_hash2_64(values: HashedValues, seed: int = 0) -> np.ndarray:
    """Return MurmurHash64A of each value; uint64."""
    multiplier = U64(0xC6A4A7935BD1E995)
    with np.errstate(over="ignore"):
        total = U64(seed) ^ (values.lengths.astype(U64) * multiplier)
        for rows, block, at in values.blocks(8):
            word = block.word(at) * multiplier
            word = (word ^ (word >> U64(47))) * multiplier
            total[rows] = (total[rows] ^ word) * multiplier
        total = np.where(values.lengths % 8 > 0, (total ^ tail_word(values, 8)) * multiplier, total)
        total = (total ^ (total >> U64(47))) * multiplier
        return np.asarray(total ^ (total >> U64(47)))


def gcc_murmur_hash(values: HashedValues) -> np.ndarray:
    """Return the hash that libstdc++ uses: MurmurHash64A with libstdc++'s seed; uint64."""
    return murmur_hash2_64(values, 0xC70F6907)


def kafka_murmur_hash(values: HashedValues) -> np.ndarray:
    """Return the hash by which Kafka chooses partitions, 31 bits; uint32."""
    return murmur_hash2_32(values, 0x9747B28C) & U32(0x7FFFFFFF)


def _rotated32(word: np.ndarray, places: int) -> np.ndarray:
    """Return 32-bit words rotated to the left."""
    return np.asarray((word << U32(places)) | (word >> U32(32 - places)))


def murmur_hash3_32(values: HashedValues) -> np.ndarray:
    """Return MurmurHash3 x86, 32 bits, of each value; uint32."""
    first, second = U32(0xCC9E2D51), U32(0x1B873593)
    total = np.zeros(values.count, U32)
    with np.errstate(over="ignore"):
        for rows, block, at in values.blocks(4):
            word = _rotated32(block.word(at, 4).astype(U32) * first, 15) * second
            total[rows] = _rotated32(total[rows] ^ word, 13) * U32(5) + U32(0xE6546B64)
        total ^= _rotated32(tail_word(values, 4).astype(U32) * first, 15) * second
        total ^= values.lengths.astype(U32)
        total = (total ^ (total >> U32(16))) * U32(0x85EBCA6B)
        total = (total ^ (total >> U32(13))) * U32(0xC2B2AE35)
        return np.asarray(total ^ (total >> U32(16)))


def murmur_hash3_128(values: HashedValues) -> np.ndarray:
    """Return MurmurHash3 x64 of each value, low word first; uint64 of shape (values, 2)."""
    first, second = U64(0x87C37B91114253D5), U64(0x4CF5AD432745937F)
    low, high = np.zeros(values.count, U64), np.zeros(values.count, U64)
    with np.errstate(over="ignore"):
        for rows, block, at in values.blocks(16):
            a = low[rows] ^ rotated_left(block.word(at) * first, 31) * second
            a = (rotated_left(a, 27) + high[rows]) * U64(5) + U64(0x52DCE729)
            b = high[rows] ^ rotated_left(block.word(at + 8) * second, 33) * first
            low[rows] = a
            high[rows] = (rotated_left(b, 31) + a) * U64(5) + U64(0x38495AB5)
        rest, more = tail_word(values, 16), tail_word(values, 16, 8)
        high ^= rotated_left(more * second, 33) * first
        low ^= rotated_left(rest * first, 31) * second
        length = values.lengths.astype(U64)
        low, high = low ^ length, high ^ length
        low = low + high
        high = high + low
        low, high = int_hash64(low), int_hash64(high)
        low = low + high
        return np.stack([low, high + low], axis=1)


def murmur_hash3_64(values: HashedValues) -> np.ndarray:
    """Return the exclusive or of the halves of MurmurHash3's 128 bits; uint64."""
    halves = murmur_hash3_128(values)
    return np.asarray(halves[:, 0] ^ halves[:, 1])


_M0, _M1, _M2, _M3 = U64(0xC83A91E1), U64(0x8648DBDB), U64(0x7BDEC03B), U64(0x2F5870A5)


def metro_hash64(values: HashedValues) -> np.ndarray:
    """Return MetroHash64, its first variant, of each value with the seed 0; uint64."""
    lengths = values.lengths
    with np.errstate(over="ignore"):
        total = _M2 * _M0 + lengths.astype(U64)
        lanes = [total.copy() for _ in range(4)]
        for rows, block, at in values.blocks(32):
            for lane, factor in enumerate((_M0, _M1, _M2, _M3)):
                word = lanes[lane][rows] + block.word(at + 8 * lane) * factor
                lanes[lane][rows] = rotated_right(word, 29) + lanes[(lane + 2) % 4][rows]
        v0, v1, v2, v3 = lanes
        v2 = v2 ^ rotated_right((v0 + v3) * _M0 + v1, 33) * _M1
        v3 = v3 ^ rotated_right((v1 + v2) * _M1 + v0, 33) * _M0
        v0 = v0 ^ rotated_right((v0 + v2) * _M0 + v3, 33) * _M1
        v1 = v1 ^ rotated_right((v1 + v3) * _M1 + v2, 33) * _M0
        total = np.where(lengths >= 32, total + (v0 ^ v1), total)
        done = lengths // 32 * 32
        rows = np.flatnonzero(lengths - done >= 16)
        if len(rows):
            block, begin = values.chosen(rows), done[rows]
            a = rotated_right(total[rows] + block.word(begin) * _M0, 33) * _M1
            b = rotated_right(total[rows] + block.word(begin + 8) * _M1, 33) * _M2
            a = a ^ rotated_right(a * _M0, 35) + b
            total[rows] += b ^ rotated_right(b * _M3, 35) + a
            done[rows] += 16
        for size, places in ((8, 33), (4, 15), (2, 13), (1, 25)):
            rows = np.flatnonzero(lengths - done >= size)
            if len(rows):
                changed = total[rows] + values.chosen(rows).word(done[rows], size) * _M3
                mixed: np.ndarray = rotated_right(changed, places) * _M1
                total[rows] = changed ^ mixed
                done[rows] += size
        total = (total ^ rotated_right(total, 33)) * _M0
        return np.asarray(total ^ rotated_right(total, 33))


def java_hash(values: HashedValues, size: int = 1) -> np.ndarray:
    """Return Java's String.hashCode of each value as uint32.

    `size` 1: each byte is a signed character; `size` 2: characters have 16 bits.
    """
    total = np.zeros(values.count, U32)
    with np.errstate(over="ignore"):
        for rows, block, at in values.blocks(size):
            unit = block.word(at, size)
            unit = unit.astype(np.uint8).view(np.int8).astype(np.int32) if size == 1 else unit
            total[rows] = total[rows] * U32(31) + unit.astype(U32)
    return total
