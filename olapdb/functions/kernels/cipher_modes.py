"""Modes of AES over texts of any lengths: ECB, CBC, CFB, OFB, CTR and GCM, many texts at once.

Texts lie in one array of whole blocks; the blocks of a text follow one another. Modes whose blocks
depend on the block before take one step for all texts at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from olapdb.functions.kernels import aes
from olapdb.functions.kernels.columns import offsets_from_counts
from olapdb.records import dataclass

TAG_BYTES = 16


@dataclass
class Texts:
    """Texts cut into whole blocks. `blocks` has shape (n, 16); text i has the blocks from starts[i] up to starts[i +
    1], excluded, and sizes[i] bytes."""

    blocks: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    def steps(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for the block numbers 0, 1, … of a text: which texts have such a block, and the block's position in
        `blocks`."""
        counts = np.diff(self.starts)
        for step in range(int(counts.max(initial=0))):
            texts = np.flatnonzero(counts > step)
            yield texts, self.starts[texts] + step


def in_blocks(offsets: np.ndarray, data: np.ndarray, *, padded: bool = False) -> Texts:
    """Cut texts into blocks of 16 bytes. The last block is filled with zeros, or with `padded` by the rule of PKCS#7."""
    sizes = np.diff(offsets)
    counts = sizes // 16 + 1 if padded else -(-sizes // 16)
    starts = offsets_from_counts(counts)
    flat = np.zeros(int(starts[-1]) * 16, np.uint8)
    if padded:
        missing = (counts * 16 - sizes).astype(np.uint8)
        flat = np.repeat(missing, counts * 16)
    places = np.arange(len(data)) + np.repeat(starts[:-1] * 16 - offsets[:-1], sizes)
    flat[places] = data
    return Texts(flat.reshape(-1, 16), starts, sizes)


def in_bytes(texts: Texts, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert blocks back to texts: (offsets, bytes) of the first `sizes` bytes of each text."""
    offsets = offsets_from_counts(sizes)
    places = np.arange(int(offsets[-1])) + np.repeat(texts.starts[:-1] * 16 - offsets[:-1], sizes)
    return offsets, texts.blocks.reshape(-1)[places]


def run(
    mode: str, texts: Texts, keys: np.ndarray, vectors: np.ndarray, *, decrypt: bool
) -> np.ndarray:
    """Encrypt or decrypt texts in one of the modes without a tag (ECB, CBC, CFB, OFB, CTR); return the blocks.
    `vectors` are the initialization vectors, shape (texts, 16)."""
    blocks = texts.blocks
    if mode == "ecb":
        return aes.decrypted(blocks, keys) if decrypt else aes.encrypted(blocks, keys)
    if mode == "ctr":
        return np.asarray(blocks ^ _key_stream(texts, keys, vectors))
    if mode in ("cfb1", "cfb8"):
        return _shifted_feedback(texts, keys, vectors, bits=int(mode[3:]), decrypt=decrypt)
    if decrypt and mode in ("cbc", "cfb"):
        before = np.empty_like(blocks)
        before[1:] = blocks[:-1]
        filled = np.diff(texts.starts) > 0
        before[texts.starts[:-1][filled]] = vectors[filled]
        if mode == "cbc":
            return np.asarray(aes.decrypted(blocks, keys) ^ before)
        return np.asarray(aes.encrypted(before, keys) ^ blocks)
    out = np.empty_like(blocks)
    state = vectors.copy()
    for active, places in texts.steps():
        if mode == "cbc":
            state[active] = aes.encrypted(state[active] ^ blocks[places], keys)
            out[places] = state[active]
            continue
        stream = aes.encrypted(state[active], keys)
        out[places] = stream ^ blocks[places]
        state[active] = stream if mode == "ofb" else out[places]
    return out


def _key_stream(
    texts: Texts, keys: np.ndarray, vectors: np.ndarray, *, counter_bits: int = 128
) -> np.ndarray:
    """Return the encrypted counters of all blocks. A text's counter starts at its vector, and is one higher in each
    block.

    `counter_bits`, 128 or 32, is how many of its lowest bits go up; the others stay."""
    counts = np.diff(texts.starts)
    halves = vectors.view(">u8").astype(np.uint64)
    step = (np.arange(len(texts.blocks)) - np.repeat(texts.starts[:-1], counts)).astype(np.uint64)
    high, low = (np.repeat(halves[:, at], counts) for at in (0, 1))
    with np.errstate(over="ignore"):
        moved = low + step
        carried = high + (moved < low).astype(np.uint64)
    if counter_bits == 32:
        kept = np.uint64(0xFFFFFFFF)
        moved, carried = (low & ~kept) | (moved & kept), high
    counters = np.stack([carried, moved], axis=1).astype(">u8").view(np.uint8).reshape(-1, 16)
    return aes.encrypted(counters, keys)


def _shifted_feedback(
    texts: Texts, keys: np.ndarray, vectors: np.ndarray, *, bits: int, decrypt: bool
) -> np.ndarray:
    """Encrypt or decrypt blocks in CFB1 or CFB8 mode: each bit or byte of ciphertext is shifted into the register
    from the right."""
    flat = texts.blocks.reshape(-1)
    units = np.unpackbits(flat) if bits == 1 else flat
    out = np.zeros_like(units)
    state = np.unpackbits(vectors, axis=1) if bits == 1 else vectors.copy()
    per_text = texts.sizes * (8 // bits)
    starts = texts.starts[:-1] * (128 // bits)
    for step in range(int(per_text.max(initial=0))):
        active = np.flatnonzero(per_text > step)
        places = starts[active] + step
        register = np.packbits(state[active], axis=1) if bits == 1 else state[active]
        first = aes.encrypted(register, keys)[:, 0]
        out[places] = units[places] ^ (first >> 7 if bits == 1 else first)
        state[active, :-1] = state[active, 1:]
        state[active, -1] = units[places] if decrypt else out[places]
    return (np.packbits(out) if bits == 1 else out).reshape(-1, 16)


def _hashed(groups: list[Texts], matrix: np.ndarray) -> np.ndarray:
    """Return the GHASH of each text, over the text's blocks of all groups in order."""
    state = np.zeros((len(groups[0].sizes), 16), np.uint8)
    for texts in groups:
        for active, places in texts.steps():
            state[active] = aes.hash_step(state[active], texts.blocks[places], matrix)
    return state


def _lengths(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the last GHASH block of each text: the two lengths, in bits."""
    pairs = np.stack([first * 8, second * 8], axis=1).astype(">u8")
    return pairs.view(np.uint8).reshape(-1, 16)


def gcm(
    texts: Texts, keys: np.ndarray, vectors: Texts, additional: Texts, *, decrypt: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Encrypt or decrypt texts in Galois/Counter mode; return the blocks and the tag of each text, shape (texts, 16).
    `additional` are authenticated, not encrypted."""
    matrix = aes.hash_matrix(keys)
    zero = np.zeros_like(vectors.sizes)
    start = aes.hash_step(_hashed([vectors], matrix), _lengths(zero, vectors.sizes), matrix)
    short = vectors.sizes == 12
    start[short] = vectors.blocks[vectors.starts[:-1][short]]
    start[short, 12:] = (0, 0, 0, 1)
    first = start.copy()
    counter = first[:, 12:].copy().view(">u4") + np.uint32(1)
    first[:, 12:] = counter.astype(">u4").view(np.uint8)
    blocks = texts.blocks ^ _key_stream(texts, keys, first, counter_bits=32)
    visible = texts if decrypt else Texts(_cleared(blocks, texts), texts.starts, texts.sizes)
    state = _hashed([additional, visible], matrix)
    state = aes.hash_step(state, _lengths(additional.sizes, texts.sizes), matrix)
    return blocks, state ^ aes.encrypted(start, keys)


def _cleared(blocks: np.ndarray, texts: Texts) -> np.ndarray:
    """Set the bytes after the end of each text to zero."""
    flat = np.zeros(blocks.size, np.uint8)
    offsets = offsets_from_counts(texts.sizes)
    places = np.arange(int(offsets[-1])) + np.repeat(
        texts.starts[:-1] * 16 - offsets[:-1], texts.sizes
    )
    flat[places] = blocks.reshape(-1)[places]
    return flat.reshape(-1, 16)
