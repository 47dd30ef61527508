"""64-bit hashes of rows: what they are grouped and looked up by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.config import tuning
from olapdb.functions.kernels.hashing import hash_values, mix


def can_be_hashed(leaves: Sequence[pa.Array]) -> bool:
    """Whether the columns (flat: see `codes.leaves_of`) are of types that `row_hashes` takes."""
    return all(
        pa.types.is_primitive(leaf.type)
        or pa.types.is_decimal(leaf.type)
        or pa.types.is_string(leaf.type)
        or pa.types.is_binary(leaf.type)
        or pa.types.is_fixed_size_binary(leaf.type)
        for leaf in leaves
    )


def row_hashes(leaves: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Of each row, equal for equal ones; uint64, shape (rows,). NULL equals itself, floats those of
    the same bits (0 / 0 is another NaN than a written one), as in Arrow's hash tables."""
    hashes = np.empty(rows, np.uint64)
    step = rows_at_once(leaves, rows)
    for start in range(0, rows, step):
        total = _hashes(leaves[0].slice(start, step))
        for more in leaves[1:]:
            total = mix(total) ^ _hashes(more.slice(start, step))
        hashes[start : start + len(total)] = total
    return hashes


def rows_at_once(columns: Sequence[pa.Array], rows: int) -> int:
    """How many rows to work on at a time, wide ones fewer."""
    width: int = sum(column.nbytes for column in columns) // max(rows, 1) + 1
    return min(tuning.HASHED_ROWS, max(tuning.HASHED_BYTES // width, 16))


def _hashes(leaf: pa.Array) -> np.ndarray:
    if pa.types.is_floating(leaf.type):
        leaf = leaf.view(pa.int64() if leaf.type.bit_width == 64 else pa.int32())
    if not leaf.null_count:
        return hash_values(leaf)
    hashes = np.zeros(len(leaf), np.uint64)
    hashes[np.asarray(leaf.is_valid())] = hash_values(leaf.drop_null())
    return hashes


def is_told_by_hash(arrow: pa.DataType) -> bool:
    """Whether no two values have one hash: splitmix64 maps 64 bits one to one."""
    return bool(
        pa.types.is_integer(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
        or pa.types.is_floating(arrow)
    )
