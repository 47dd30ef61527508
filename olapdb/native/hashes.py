"""Calls of the kernels that hash values and look hashes up. Each needs the library to be loaded.

The other forms are in `functions/kernels/hashing.py` and `compute/hash_index.py`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import validity_of, values_of

_ENTRY_WORDS = 2
_WORD_BITS = 64


def hash_values(array: pa.Array) -> np.ndarray | None:
    """Return one uint64 for each value, 0 for NULL; None for types without a kernel."""
    rows = len(array)
    values = values_of(array)
    if values is not None:
        hashes = empty(rows, np.uint64)
        kernels().olapdb_hash_numbers(*values.column, rows, hashes)
        return hashes
    is_text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    if not is_text or not rows:
        return None
    hashes = empty(rows, np.uint64)
    _, offsets, data = array.buffers()
    kernels().olapdb_hash_texts(
        0 if data is None else data.address,
        offsets.address + 4 * array.offset,
        *validity_of(array),
        rows,
        hashes,
    )
    return hashes


def raise_registers(
    registers: np.ndarray, hashes: np.ndarray, index_bits: int, rank_bits: int
) -> None:
    """Raise the registers of a sketch, uint8, of 2^index_bits, to the ranks of the hashes, in place."""
    if len(registers) != 1 << index_bits or registers.dtype != np.uint8:
        raise ValueError(f"{len(registers)} registers are not those of {index_bits} bits.")
    kernels().olapdb_raise_registers(hashes, len(hashes), index_bits, rank_bits, registers)


def find(hashes: np.ndarray, indexed: np.ndarray, buckets: np.ndarray) -> np.ndarray:
    """Return for each hash the first group that has it, -1 if there is none; int64.

    `indexed` and `buckets` are as `compute/hash_index.HashIndex` has them."""
    groups = empty(len(hashes), np.int64)
    if not len(indexed):
        groups.fill(-1)
        return groups
    shift = 64 - ((len(buckets) - 1).bit_length() - 1)
    wide = buckets.dtype.itemsize == 8
    kernel = kernels().olapdb_find_hashes64 if wide else kernels().olapdb_find_hashes32
    kernel(hashes, len(hashes), indexed, len(indexed), buckets, shift, groups)
    return groups


def contains(
    hashes: np.ndarray, indexed: np.ndarray, buckets: np.ndarray, marks: np.ndarray
) -> np.ndarray:
    """Return a bit for each hash in words of 64 bits: whether a group has it. There is one group at least, and `buckets`
    are int32. `marks` has a bit, in bytes, for each number of the uppermost bits of a hash: whether a group has these.

    `find` gives the same where the library has groups to tell."""
    bits = empty(-(-len(hashes) // _WORD_BITS), np.uint64)
    shift = _WORD_BITS - ((len(buckets) - 1).bit_length() - 1)
    mark_shift = _WORD_BITS - ((8 * len(marks)).bit_length() - 1)
    kernels().olapdb_contains_hashes(
        hashes, len(hashes), indexed, len(indexed), buckets, shift, marks, mark_shift, bits
    )
    return bits


def sort_hashes(hashes: np.ndarray) -> np.ndarray:
    """Sort hashes, fewer than 2^31, in place; return the stable order that sorts them, int32."""
    rows = len(hashes)
    order = empty(rows, np.int32)
    entries, others = (empty(_ENTRY_WORDS * rows, np.uint64) for _ in range(2))
    kernels().olapdb_sort_hashes(hashes, rows, order, entries, others)
    return order


def buckets(hashes: np.ndarray, bits: int) -> np.ndarray:
    """Return the start of each bucket among ascending hashes, fewer than 2^31, and the end of the last one: int32,
    shape (2^bits + 1,). The bucket of a hash is its uppermost `bits` bits."""
    starts = empty((1 << bits) + 1, np.int32)
    kernels().olapdb_hash_buckets(hashes, len(hashes), bits, starts)
    return starts
