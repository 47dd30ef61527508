"""XXH32, XXH3 and wyhash of byte strings, many at once.

Sources: Collet, xxHash specification (XXH32, XXH3 of 64 bits); Wang Yi, wyhash.
"""

from __future__ import annotations

import numpy as np

from olapdb.functions.numeric.byte_hashes import U64, HashedValues, by_length, rotated_left

U32 = np.uint32
_Q1, _Q2, _Q3 = U32(2654435761), U32(2246822519), U32(3266489917)
_Q4, _Q5 = U32(668265263), U32(374761393)


def _rotated32(word: np.ndarray, places: int) -> np.ndarray:
    """Return 32-bit words rotated to the left."""
    return np.asarray((word << U32(places)) | (word >> U32(32 - places)))


def xx_hash32(values: HashedValues) -> np.ndarray:
    """Return XXH32 of each value with the seed 0; uint32."""
    lengths = values.lengths
    with np.errstate(over="ignore"):
        starts = (_Q1 + _Q2, _Q2, U32(0), U32(0) - _Q1)
        lanes = [np.full(values.count, start, U32) for start in starts]
        for rows, block, at in values.blocks(16):
            for lane, state in enumerate(lanes):
                word = block.word(at + 4 * lane, 4).astype(U32)
                state[rows] = _rotated32(state[rows] + word * _Q2, 13) * _Q1
        turned = [_rotated32(s, n) for s, n in zip(lanes, (1, 7, 12, 18), strict=True)]
        total = turned[0] + turned[1] + turned[2] + turned[3]
        total = np.where(lengths >= 16, total, _Q5) + lengths.astype(U32)
        done = lengths // 16 * 16
        for size, first, second, places, times in ((4, _Q3, _Q4, 17, 3), (1, _Q5, _Q1, 11, 3)):
            for _ in range(times):
                rows = np.flatnonzero(lengths - done >= size)
                if len(rows):
                    word = values.chosen(rows).word(done[rows], size).astype(U32)
                    total[rows] = _rotated32(total[rows] + word * first, places) * second
                    done[rows] += size
        total = (total ^ (total >> U32(15))) * _Q2
        total = (total ^ (total >> U32(13))) * _Q3
        return np.asarray(total ^ (total >> U32(16)))


def folded_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the 128-bit products of words, folded: the exclusive or of their two halves."""
    mask = U64(0xFFFFFFFF)
    with np.errstate(over="ignore"):
        a_low, a_high, b_low, b_high = a & mask, a >> U64(32), b & mask, b >> U64(32)
        low, cross = a_low * b_low, a_high * b_low
        middle = (low >> U64(32)) + (cross & mask) + a_low * b_high
        high = (cross >> U64(32)) + (middle >> U64(32)) + a_high * b_high
        return np.asarray(a * b ^ high)


# --- XXH3

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
P1, P2 = U64(0x9E3779B185EBCA87), U64(0xC2B2AE3D27D4EB4F)
P3, P4 = U64(0x165667B19E3779F9), U64(0x85EBCA77C2B2AE63)
P5 = U64(0x27D4EB2F165667C5)
_LONG_STARTS = (U64(_Q3), P1, P2, P3, P4, U64(_Q2), P5, U64(_Q1))


def secret_word(at: int, size: int = 8) -> np.uint64:
    """Return the little-endian word of the secret at `at`."""
    return U64(int.from_bytes(_SECRET[at : at + size], "little"))


def xxh3(values: HashedValues) -> np.ndarray:
    """Return XXH3 of 64 bits of each value with the seed 0; uint64."""
    return by_length(
        values,
        (
            (0, 1, lambda v: avalanche64(np.full(v.count, secret_word(56) ^ secret_word(64)))),
            (1, 4, _xxh3_to_3),
            (4, 9, _xxh3_to_8),
            (9, 17, _xxh3_to_16),
            (17, 129, _xxh3_to_128),
            (129, 241, _xxh3_to_240),
            (241, 1 << 62, _xxh3_long),
        ),
    )


def avalanche64(total: np.ndarray) -> np.ndarray:
    """Return XXH64's final mix (avalanche) of hashes."""
    total = (total ^ (total >> U64(33))) * P2
    total = (total ^ (total >> U64(29))) * P3
    return np.asarray(total ^ (total >> U64(32)))


def avalanche(total: np.ndarray) -> np.ndarray:
    """Return XXH3's final mix (avalanche) of hashes."""
    total = (total ^ (total >> U64(37))) * U64(0x165667919E3779F9)
    return np.asarray(total ^ (total >> U64(32)))


def _xxh3_to_3(v: HashedValues) -> np.ndarray:
    """Return XXH3 of values of 1 to 3 bytes."""
    first, middle, last = v.byte(0), v.byte(v.lengths >> 1), v.byte(v.lengths - 1)
    length = v.lengths.astype(U64) << U64(8)
    joined = (first << U64(16)) | (middle << U64(24)) | last | length
    return avalanche64(joined ^ secret_word(0, 4) ^ secret_word(4, 4))


def _xxh3_to_8(v: HashedValues) -> np.ndarray:
    """Return XXH3 of values of 4 to 8 bytes."""
    factor = U64(0x9FB21C651E98DF25)
    word = v.word(v.lengths - 4, 4) + (v.word(0, 4) << U64(32))
    h = word ^ secret_word(8) ^ secret_word(16)
    h = (h ^ rotated_left(h, 49) ^ rotated_left(h, 24)) * factor
    h = (h ^ ((h >> U64(35)) + v.lengths.astype(U64))) * factor
    return np.asarray(h ^ (h >> U64(28)))


def _xxh3_to_16(v: HashedValues) -> np.ndarray:
    """Return XXH3 of values of 9 to 16 bytes."""
    low = v.word(0) ^ secret_word(24) ^ secret_word(32)
    high = v.word(v.lengths - 8) ^ secret_word(40) ^ secret_word(48)
    return avalanche(v.lengths.astype(U64) + low.byteswap() + high + folded_product(low, high))


def mixed_16(v: HashedValues, at: int | np.ndarray, secret: int) -> np.ndarray:
    """Return the folded product of the 16 bytes at `at` and the 16 bytes of the secret at `secret`."""
    return folded_product(
        v.word(at) ^ secret_word(secret), v.word(at + 8) ^ secret_word(secret + 8)
    )


def _xxh3_to_128(v: HashedValues) -> np.ndarray:
    """Return XXH3 of values of 17 to 128 bytes."""
    total = v.lengths.astype(U64) * P1
    for step in range(4):
        rows = np.flatnonzero(v.lengths > 32 * step)
        if len(rows):
            part = v.chosen(rows)
            end = part.lengths - 16 * (step + 1)
            mixed = mixed_16(part, 16 * step, 32 * step) + mixed_16(part, end, 32 * step + 16)
            total[rows] += mixed
    return avalanche(total)


def _xxh3_to_240(v: HashedValues) -> np.ndarray:
    """Return XXH3 of values of 129 to 240 bytes."""
    total = v.lengths.astype(U64) * P1
    for step in range(8):
        total = total + mixed_16(v, 16 * step, 16 * step)
    total = avalanche(total)
    for rows, block, at in v.blocks(16):
        if at >= 128:
            total[rows] += mixed_16(block, at, at - 128 + 3)
    return avalanche(total + mixed_16(v, v.lengths - 16, 136 - 17))


def _xxh3_long(v: HashedValues) -> np.ndarray:
    """Return XXH3 of values of more than 240 bytes."""
    return merged_lanes(long_lanes(v), 11, v.lengths.astype(U64) * P1)


def long_lanes(v: HashedValues) -> np.ndarray:
    """Return XXH3's eight lanes after all bytes of values of more than 240 bytes."""
    lanes = np.tile(np.array(_LONG_STARTS), (v.count, 1))
    for rows, block, at in HashedValues(v.data, v.starts, v.lengths - 1).blocks(64):
        stripe = at // 64 % 16
        state = _accumulated(lanes[rows], block, at, 8 * stripe)
        if stripe == 15:  # a block of 1024 bytes ends
            keys = np.array([secret_word(128 + 8 * lane) for lane in range(8)])
            state = (state ^ (state >> U64(47)) ^ keys) * U64(_Q1)
        lanes[rows] = state
    return _accumulated(lanes, v, v.lengths - 64, 192 - 64 - 7)


def merged_lanes(lanes: np.ndarray, secret: int, total: np.ndarray) -> np.ndarray:
    """Return the hash that the eight lanes give: folded products with the secret from `secret` on, added to `total`,
    then mixed."""
    for pair in range(4):
        first = lanes[:, 2 * pair] ^ secret_word(secret + 16 * pair)
        total = total + folded_product(
            first, lanes[:, 2 * pair + 1] ^ secret_word(secret + 8 + 16 * pair)
        )
    return avalanche(total)


def _accumulated(
    lanes: np.ndarray, v: HashedValues, at: int | np.ndarray, secret: int
) -> np.ndarray:
    """Return the eight lanes after the 64 bytes at `at`."""
    lanes = lanes.copy()
    for lane in range(8):
        word = v.word(at + 8 * lane)
        key = word ^ secret_word(secret + 8 * lane)
        lanes[:, lane ^ 1] += word
        lanes[:, lane] += (key & U64(0xFFFFFFFF)) * (key >> U64(32))
    return lanes


# --- wyhash

_W = (U64(0xA0761D6478BD642F), U64(0xE7037ED1A0B428DB), U64(0x8EBC6AF09C88C6E3))
_W3 = U64(0x589965CC75374CC3)


def wy_hash64(values: HashedValues) -> np.ndarray:
    """Return wyhash of each value with the seed 0; uint64."""
    return by_length(
        values,
        (
            (0, 1, lambda v: _wy_end(v, np.zeros(v.count, U64), np.zeros(v.count, U64))),
            (1, 4, _wy_to_3),
            (4, 17, _wy_to_16),
            (17, 1 << 62, _wy_long),
        ),
    )


def _wy_end(
    v: HashedValues, a: np.ndarray, b: np.ndarray, seed: np.ndarray | np.uint64 = _W[0]
) -> np.ndarray:
    """Return wyhash's final mix of two words and the seed."""
    mixed = folded_product(a ^ _W[1], b ^ seed)
    return folded_product(_W[1] ^ v.lengths.astype(U64), mixed)


def _wy_to_3(v: HashedValues) -> np.ndarray:
    """Return wyhash of values of 1 to 3 bytes."""
    first, middle, last = v.byte(0), v.byte(v.lengths >> 1), v.byte(v.lengths - 1)
    word = (first << U64(16)) | (middle << U64(8)) | last
    return _wy_end(v, word, np.zeros(v.count, U64))


def _wy_to_16(v: HashedValues) -> np.ndarray:
    """Return wyhash of values of 4 to 16 bytes."""
    step = (v.lengths >> 3) << 2
    end = v.lengths - 4
    a = (v.word(0, 4) << U64(32)) | v.word(step, 4)
    return _wy_end(v, a, (v.word(end, 4) << U64(32)) | v.word(end - step, 4))


def _wy_long(v: HashedValues) -> np.ndarray:
    """Return wyhash of values of more than 16 bytes."""
    seeds = [np.full(v.count, _W[0]) for _ in range(3)]
    secrets = (_W[1], _W[2], _W3)
    before_last = HashedValues(v.data, v.starts, v.lengths - 1)
    for rows, block, at in before_last.blocks(48):
        for lane, secret in enumerate(secrets):
            place = at + 16 * lane
            other = block.word(place + 8) ^ seeds[lane][rows]
            seeds[lane][rows] = folded_product(block.word(place) ^ secret, other)
    seed = np.where(v.lengths > 48, seeds[0] ^ seeds[1] ^ seeds[2], seeds[0])
    begin = (v.lengths - 1) // 48 * 48
    rest = HashedValues(v.data, v.starts + begin, v.lengths - 1 - begin)
    for rows, block, at in rest.blocks(16):
        other = block.word(at + 8) ^ seed[rows]
        seed[rows] = folded_product(block.word(at) ^ _W[1], other)
    return _wy_end(v, v.word(v.lengths - 16), v.word(v.lengths - 8), seed)
