"""64-bit hashes of rows, for grouping and lookups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.config import tuning
from olapdb.functions.kernels.arrow_buffers import empty
from olapdb.functions.kernels.hashing import combined, hash_values
from olapdb.native import hashes as compiled_hashes
from olapdb.native.library import library


def can_be_hashed(leaves: Sequence[pa.Array]) -> bool:
    """Return whether `row_hashes` takes the types of these flat columns (`group_codes.leaves_of`)."""
    return all(
        pa.types.is_primitive(leaf.type)
        or pa.types.is_decimal(leaf.type)
        or pa.types.is_string(leaf.type)
        or pa.types.is_binary(leaf.type)
        or pa.types.is_fixed_size_binary(leaf.type)
        for leaf in leaves
    )


def row_hashes(leaves: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return a hash of each row, equal for equal rows; uint64, shape (rows,).

    NULL equals NULL, and floats are equal by their bits (the NaN of 0 / 0 differs from a literal
    NaN), as in Arrow's hash tables."""
    if len(leaves) == 1 and library() is not None and not pa.types.is_floating(leaves[0].type):
        known = compiled_hashes.hash_values(leaves[0])
        if known is not None:
            return known
    hashes = empty(rows, np.uint64)
    step = chunk_rows(leaves, rows)
    for start in range(0, rows, step):
        total = _hashes(leaves[0].slice(start, step))
        for leaf in leaves[1:]:
            total = combined(total, _hashes(leaf.slice(start, step)))
        hashes[start : start + len(total)] = total
    return hashes


def chunk_rows(columns: Sequence[pa.Array], rows: int) -> int:
    """Return how many rows to hash or compare at a time: `HASHED_ROWS`, or of wide rows as many as have
    `HASHED_BYTES` together, but never fewer than 16."""
    width: int = sum(column.nbytes for column in columns) // max(rows, 1) + 1
    return min(tuning.HASHED_ROWS, max(tuning.HASHED_BYTES // width, 16))


def _hashes(leaf: pa.Array) -> np.ndarray:
    """Return the hash of each value, 0 for NULL; uint64."""
    if pa.types.is_floating(leaf.type):
        leaf = leaf.view(pa.int64() if leaf.type.bit_width == 64 else pa.int32())
    if not leaf.null_count:
        return hash_values(leaf)
    hashes = np.zeros(len(leaf), np.uint64)
    hashes[np.asarray(leaf.is_valid())] = hash_values(leaf.drop_null())
    return hashes


def has_distinct_hashes(arrow: pa.DataType) -> bool:
    """Return whether distinct values of the type have distinct hashes.

    It holds for values of up to 64 bits: splitmix64 is a bijection."""
    return bool(
        pa.types.is_integer(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
        or pa.types.is_floating(arrow)
    )
