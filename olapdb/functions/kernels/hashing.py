"""A 64-bit hash of column values, for sketches whose states are stored.

It is part of the on-disk format: the same on every platform and in every release.  Integers and
times: splitmix64 (Steele, Lea, Flood 2014) of the 64-bit value, at any width.  Floats: of their
Float64 bits, with one NaN.  Strings: each 8-byte little-endian word, zero padded, plus its
position times an odd constant, goes through splitmix64; the sum of these, xor the length, goes
through it again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns
from olapdb.native import hashes as compiled_hashes
from olapdb.native.library import library
from olapdb.native.partitions import combine_hashes
from olapdb.types.arrow_values import from_numpy, to_numpy

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_POSITION = np.uint64(0xD6E8FEB86659FD93)


def mix(values: np.ndarray) -> np.ndarray:
    """Return the splitmix64 hash of each uint64 value."""
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def combined(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Combine the hashes of rows with those of one more column; may overwrite `hashes`. The result is not part of the
    on-disk format."""
    if library() is not None and len(hashes):
        return combine_hashes(hashes, others)
    mixed: np.ndarray = mix(hashes) ^ others
    return mixed


def hash_rows(arguments: Sequence[pa.Array]) -> np.ndarray:
    """Return one uint64 hash for each row over all columns, which hold no nulls."""
    total = hash_values(arguments[0])
    with np.errstate(over="ignore"):
        for array in arguments[1:]:
            total = mix(total * np.uint64(31) + hash_values(array))
    return total


def hash_values(array: pa.Array) -> np.ndarray:
    """Return one uint64 hash for each value of a column; 0 for a null, which an element of a tuple may be."""
    arrow = array.type
    if pa.types.is_null(arrow):
        return np.zeros(len(array), np.uint64)
    hashes = compiled_hashes.hash_values(array) if library() is not None else None
    if hashes is not None:
        return hashes
    if array.null_count:
        valid = array.is_valid()
        hashes = np.zeros(len(array), np.uint64)
        hashes[to_numpy(valid)] = hash_values(array.filter(valid))
        return hashes
    if pa.types.is_struct(arrow):
        fields = columns.struct_fields(array)
        return hash_rows(fields) if fields else np.zeros(len(array), np.uint64)
    if pa.types.is_list(arrow):
        return _hash_lists(array)
    if (
        pa.types.is_string(arrow)
        or pa.types.is_binary(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    ):
        return _hash_bytes(columns.binary(array))
    if pa.types.is_decimal(arrow):
        return _hash_decimals(array)
    values = columns.numpy_values(array)
    if pa.types.is_floating(arrow):
        wide = values.astype(np.float64)
        wide[np.isnan(wide)] = np.nan
        return mix(wide.view(np.uint64))
    if values.dtype == np.uint64:
        return mix(values)
    return mix(values.astype(np.int64).view(np.uint64))


def _hash_decimals(array: pa.Array) -> np.ndarray:
    """Hash decimals by the low 128 bits of their unscaled integers; uint64."""
    words = 2 if pa.types.is_decimal128(array.type) else 4
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), np.uint64)
    limbs = np.frombuffer(buffer, np.uint64, len(array) * words, array.offset * 8 * words)
    limbs = limbs.reshape(len(array), words)
    total = mix(limbs[:, 0])
    for at in range(1, 2):  # Decimal256 hashes as Decimal128 where it fits
        total = mix(total ^ limbs[:, at])
    return total


def _hash_bytes(array: pa.Array) -> np.ndarray:
    """Hash binary values as the module describes; uint64."""
    offsets, data = columns.bytes_of(array)
    lengths = np.diff(offsets)
    word_counts = (lengths + 7) >> 3
    word_offsets = columns.offsets_from_counts(word_counts)
    padded = np.zeros(int(word_offsets[-1]) * 8, np.uint8)
    shift = np.repeat(word_offsets[:-1] * 8 - offsets[:-1], lengths)
    padded[np.arange(len(data)) + shift] = data
    words = padded.view("<u8").astype(np.uint64)
    first = np.repeat(word_offsets[:-1], word_counts)
    positions = (np.arange(len(words)) - first).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mix(words + positions * _POSITION)
    return mix(_segment_sums(mixed, word_offsets) ^ lengths.astype(np.uint64))


def _hash_lists(array: pa.Array) -> np.ndarray:
    """Hash lists by their elements' hashes, positions and number; a NULL element counts as 0;
    uint64.
    """
    offsets, elements = columns.elements_of(array)
    valid = columns.validity(elements)
    hashes = np.zeros(len(elements), np.uint64)
    if valid is None:
        hashes = hash_values(elements)
    else:
        hashes[valid] = hash_values(elements.filter(from_numpy(valid)))
    counts = np.diff(offsets)
    positions = (np.arange(len(hashes)) - np.repeat(offsets[:-1], counts)).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mix(hashes + positions * _POSITION)
    return mix(_segment_sums(mixed, offsets) ^ counts.astype(np.uint64))


def _segment_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the wrapping sums of values[offsets[i]:offsets[i + 1]]."""
    with np.errstate(over="ignore"):
        running = np.concatenate((np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)))
        return np.asarray(running[offsets[1:]] - running[offsets[:-1]])
