"""SipHash-2-4 of byte strings, many at once: 64 bits, 128 bits, with any key.

Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). ClickHouse's own 128 bits
are the two halves of the 64-bit form; `reference` is the form of the authors.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from olapdb.functions.numeric.byte_hashes import U64, HashedValues, rotated_left, tail_word

Key: TypeAlias = tuple[np.ndarray, np.ndarray] | None
"""The two halves of the key of each value, uint64; None is 0, 0."""

_STARTS = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def sip_hash64(values: HashedValues, key: Key = None) -> np.ndarray:
    """Return SipHash-2-4 of each value; uint64."""
    state = _absorbed_all(values, _keyed(values.count, key))
    return _folded(_finished(state, 2, 0xFF))


def sip_hash128(values: HashedValues, key: Key = None) -> np.ndarray:
    """Return ClickHouse's 128 bits of each value, low word first; uint64 of shape (values, 2)."""
    v0, v1, v2, v3 = _finished(_absorbed_all(values, _keyed(values.count, key)), 2, 0xFF)
    return np.stack([v0 ^ v1, v2 ^ v3], axis=1)


def sip_hash128_reference(values: HashedValues, key: Key = None) -> np.ndarray:
    """Return the authors' 128 bits of each value, low word first; uint64 of shape (values, 2)."""
    state = _keyed(values.count, key)
    state[1] = state[1] ^ U64(0xEE)
    state = _finished(_absorbed_all(values, state), 2, 0xEE)
    return np.stack([_folded(state), _folded(_finished(state, 1, 0xDD))], axis=1)


def _keyed(count: int, key: Key) -> list[np.ndarray]:
    """Return SipHash's initial state for `count` messages: four words each, combined with the key if there is one."""
    state = [np.full(count, start, U64) for start in _STARTS]
    if key is not None:
        state = [word ^ key[at % 2] for at, word in enumerate(state)]
    return state


def _absorbed_all(values: HashedValues, state: list[np.ndarray]) -> list[np.ndarray]:
    """Return the state after all of each message, and its length."""
    words = values.lengths // 8
    with np.errstate(over="ignore"):
        for at in range(int(words.max(initial=0))):
            rows = np.flatnonzero(words > at)
            word = values.chosen(rows).word(8 * at)
            new = _absorbed([part[rows] for part in state], word)
            for part, changed in zip(state, new, strict=True):
                part[rows] = changed
        last = tail_word(values, 8) | (values.lengths.astype(U64) << U64(56))
        return _absorbed(state, last)


def _finished(state: list[np.ndarray], at: int, mark: int) -> list[np.ndarray]:
    """Return the state after `mark` is combined with the word number `at`, and four rounds."""
    state = [word ^ U64(mark) if place == at else word for place, word in enumerate(state)]
    with np.errstate(over="ignore"):
        for _ in range(4):
            state = _round(state)
    return state


def _folded(state: list[np.ndarray]) -> np.ndarray:
    """Return the exclusive or of the four words."""
    return np.asarray(state[0] ^ state[1] ^ state[2] ^ state[3])


def _absorbed(state: list[np.ndarray], word: np.ndarray) -> list[np.ndarray]:
    """Return the state of four words after one word of the message."""
    state = [state[0], state[1], state[2], state[3] ^ word]
    state = _round(_round(state))
    return [state[0] ^ word, state[1], state[2], state[3]]


def _round(state: list[np.ndarray]) -> list[np.ndarray]:
    """Return the state of four words after one SipRound."""
    v0, v1, v2, v3 = state
    v0 = v0 + v1
    v1 = rotated_left(v1, 13) ^ v0
    v0 = rotated_left(v0, 32)
    v2 = v2 + v3
    v3 = rotated_left(v3, 16) ^ v2
    v0 = v0 + v3
    v3 = rotated_left(v3, 21) ^ v0
    v2 = v2 + v1
    v1 = rotated_left(v1, 17) ^ v2
    v2 = rotated_left(v2, 32)
    return [v0, v1, v2, v3]
