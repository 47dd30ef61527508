"""AES (FIPS 197) over many blocks at once, and the product of GHASH (NIST SP 800-38D).

Blocks are rows of 16 bytes, uint8; a key is one for all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_SHIFTED = np.array([0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11])
"""Where each byte comes from when the rows of a block are shifted."""
_UNSHIFTED = np.argsort(_SHIFTED)


def _product(left: int, right: int) -> int:
    """Multiply two bytes in the field of AES, modulo x^8 + x^4 + x^3 + x + 1."""
    total = 0
    while right:
        total ^= left if right & 1 else 0
        left = (left << 1) ^ (0x11B if left & 0x80 else 0)
        right >>= 1
    return total


@cache
def _times(factor: int) -> np.ndarray:
    """Return a table of the products of all 256 bytes with `factor`."""
    return np.array([_product(value, factor) for value in range(256)], np.uint8)


@cache
def _boxes() -> tuple[np.ndarray, np.ndarray]:
    """Return AES's S-box, the table of byte substitutions, and its inverse."""
    powers = [1]
    for _ in range(254):
        powers.append(_product(powers[-1], 3))
    box = np.zeros(256, np.uint8)
    for value in range(256):
        inverse = powers[-powers.index(value) % 255] if value else 0
        rotations = (((inverse << n) | (inverse >> (8 - n))) & 0xFF for n in range(5))
        box[value] = np.bitwise_xor.reduce(list(rotations)) ^ 0x63
    return box, np.argsort(box).astype(np.uint8)


def round_keys(key: bytes) -> np.ndarray:
    """Expand a key of 16, 24 or 32 bytes to the round keys, shape (rounds + 1, 16)."""
    box, _ = _boxes()
    words = [np.frombuffer(key[at : at + 4], np.uint8) for at in range(0, len(key), 4)]
    count, constant = len(words), 1
    for at in range(count, 4 * (count + 7)):
        word = words[-1]
        if at % count == 0:
            word = box[np.roll(word, -1)]
            word[0] ^= constant
            constant = _product(constant, 2)
        elif count > 6 and at % count == 4:
            word = box[word]
        words.append(words[at - count] ^ word)
    return np.concatenate(words).reshape(-1, 16)


def _mixed(blocks: np.ndarray, factors: tuple[int, int, int, int]) -> np.ndarray:
    """Multiply the columns of blocks by the circulant matrix of the factors: MixColumns, or its inverse."""
    state = blocks.reshape(-1, 4, 4)
    out = np.zeros_like(state)
    for step, factor in enumerate(factors):
        out ^= _times(factor)[np.roll(state, -step, axis=2)]
    return out.reshape(-1, 16)


def encrypted(blocks: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Encrypt the blocks with the round keys from `round_keys`."""
    box, _ = _boxes()
    state = blocks ^ keys[0]
    for key in keys[1:-1]:
        state = _mixed(box[state][:, _SHIFTED], (2, 3, 1, 1)) ^ key
    return np.asarray(box[state][:, _SHIFTED] ^ keys[-1])


def decrypted(blocks: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Decrypt the blocks with the round keys from `round_keys`: the inverse of `encrypted`."""
    _, inverse = _boxes()
    state = inverse[(blocks ^ keys[-1])[:, _UNSHIFTED]]
    for key in keys[-2:0:-1]:
        state = inverse[_mixed(state ^ key, (14, 11, 13, 9))[:, _UNSHIFTED]]
    return np.asarray(state ^ keys[0])


def hash_matrix(keys: np.ndarray) -> np.ndarray:
    """Return the bit matrix, float32 of shape (128, 128), that multiplies a vector of bits by GHASH's key."""
    (block,) = encrypted(np.zeros((1, 16), np.uint8), keys)
    value = int.from_bytes(block.tobytes(), "big")
    rows = []
    for _ in range(128):
        rows.append(np.frombuffer(value.to_bytes(16, "big"), np.uint8))
        value = (value >> 1) ^ (0xE1 << 120 if value & 1 else 0)
    return np.unpackbits(np.stack(rows), axis=1).astype(np.float32)


def hash_step(state: np.ndarray, blocks: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the GHASH states after one more block for each."""
    bits = np.unpackbits(state ^ blocks, axis=1).astype(np.float32)
    return np.packbits((bits @ matrix).astype(np.uint8) & 1, axis=1)
