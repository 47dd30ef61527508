"""Digests that hashlib has not, or not everywhere: MD4 and Keccak-256.

Sources: RFC 1320; Bertoni, Daemen, Peeters, Van Assche, "The Keccak reference" (2011), with the
padding from before SHA-3, as Ethereum uses it. Each distinct text is hashed in plain Python.
"""

from __future__ import annotations

import hashlib
import struct

from olapdb.errors import UnsupportedMethod

_MASK32, _MASK64 = 0xFFFFFFFF, (1 << 64) - 1
_MD4_STARTS = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_MD4_ROUNDS = (
    (0, tuple(range(16)), (3, 7, 11, 19)),
    (0x5A827999, (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), (3, 5, 9, 13)),
    (0x6ED9EBA1, (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15), (3, 9, 11, 15)),
)


def _md4_mixed(step: int, b: int, c: int, d: int) -> int:
    """Return the mix of three words in MD4's step number `step`: choice, majority or exclusive or, by the round."""
    if step == 0:
        return (b & c) | (~b & d)
    return (b & c) | (b & d) | (c & d) if step == 1 else b ^ c ^ d


def md4(value: bytes) -> bytes:
    """Return the MD4 digest, 16 bytes."""
    padded = value + b"\x80" + b"\0" * ((55 - len(value)) % 64)
    padded += struct.pack("<Q", len(value) * 8 % (1 << 64))
    state = list(_MD4_STARTS)
    for block in range(0, len(padded), 64):
        words = struct.unpack("<16I", padded[block : block + 64])
        a, b, c, d = state
        for step, (constant, order, shifts) in enumerate(_MD4_ROUNDS):
            for at, place in enumerate(order):
                total = (a + _md4_mixed(step, b, c, d) + words[place] + constant) & _MASK32
                shift = shifts[at % 4]
                turned = ((total << shift) | (total >> (32 - shift))) & _MASK32
                a, b, c, d = d, turned, b, c
        state = [(x + y) & _MASK32 for x, y in zip(state, (a, b, c, d), strict=True)]
    return struct.pack("<4I", *state)


def _turned(word: int, places: int) -> int:
    """Return a 64-bit word rotated to the left."""
    places %= 64
    return ((word << places) | (word >> (64 - places))) & _MASK64


def _keccak_rounds() -> tuple[int, ...]:
    """Return the 24 round constants of Keccak-f[1600], computed by its shift register."""
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for bit in range(7):
            if register & 1:
                constant |= 1 << ((1 << bit) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return tuple(constants)


_ROUNDS = _keccak_rounds()


def _permuted(lanes: list[int]) -> list[int]:
    """Return the 25 words of the state, x + 5 * y, after Keccak-f[1600]."""
    for constant in _ROUNDS:
        sums = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        lanes = [
            lane ^ sums[(at + 4) % 5] ^ _turned(sums[(at + 1) % 5], 1)
            for at, lane in enumerate(lanes)
        ]
        x, y, current = 1, 0, lanes[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            at = x + 5 * y
            current, lanes[at] = lanes[at], _turned(current, (step + 1) * (step + 2) // 2)
        lanes = [
            lane ^ (~lanes[at // 5 * 5 + (at + 1) % 5] & lanes[at // 5 * 5 + (at + 2) % 5])
            for at, lane in enumerate(lanes)
        ]
        lanes[0] ^= constant
    return [lane & _MASK64 for lane in lanes]


def keccak256(value: bytes) -> bytes:
    """Return the Keccak-256 digest, 32 bytes."""
    rate = 136
    padded = bytearray(value + b"\x01" + b"\0" * (-(len(value) + 1) % rate))
    padded[-1] |= 0x80
    lanes = [0] * 25
    for block in range(0, len(padded), rate):
        for at, word in enumerate(struct.unpack("<17Q", padded[block : block + rate])):
            lanes[at] ^= word
        lanes = _permuted(lanes)
    return struct.pack("<4Q", *lanes[:4])


def ripemd160(value: bytes) -> bytes:
    """Return the RIPEMD-160 digest; raise UnsupportedMethod where OpenSSL has none."""
    return _by_openssl("ripemd160", value)


def sha512_256(value: bytes) -> bytes:
    """Return the SHA-512/256 digest; raise UnsupportedMethod where OpenSSL has none."""
    return _by_openssl("sha512_256", value)


def _by_openssl(name: str, value: bytes) -> bytes:
    """Return a text's digest by the algorithm `name` of OpenSSL; raise UnsupportedMethod without it."""
    try:
        return hashlib.new(name, value, usedforsecurity=False).digest()
    except ValueError as error:
        raise UnsupportedMethod(
            f"This Python's OpenSSL has no {name}.", hint="Use another digest, as SHA256."
        ) from error
