"""Calls of the kernels that divide rows among partitions. Each needs the library to be loaded.

The other forms are in `functions/kernels/hashing.py` and `compute/spill/partitions.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import address_of, empty


def combine_hashes(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Combine the hashes of rows with those of a further column, in place; return them. Both are uint64."""
    kernels().olapdb_combine_hashes(hashes, np.ascontiguousarray(others), len(hashes))
    return hashes


def partition_numbers(hashes: np.ndarray, salt: int, shift: int, bits: int) -> np.ndarray:
    """Return the partition of each row, `bits` bits of its hash, spread with the salt, from bit `shift` on;
    uint8."""
    numbers = empty(len(hashes), np.uint8)
    kernels().olapdb_partition_numbers(hashes, len(hashes), salt, shift, bits, numbers)
    return numbers


def partition_order(numbers: np.ndarray, partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, partition after partition, and where each partition ends; both int64."""
    order, ends = empty(len(numbers), np.int64), np.empty(partitions, np.int64)
    kernels().olapdb_partition_order(numbers, len(numbers), partitions, order, ends)
    return order, ends


def join_divisions(
    pieces: Sequence[np.ndarray], starts: np.ndarray, first: int, last: int
) -> np.ndarray:
    """Return the values of divisions from `first` up to `last`, division after division, each with its values of all
    pieces. Row p of `starts`, int64, has where the divisions of piece p begin, and behind them its end."""
    rows = int((starts[:, last] - starts[:, first]).sum())
    values = empty(rows, pieces[0].dtype)
    addresses = np.array([address_of(piece) for piece in pieces], np.int64)
    divisions, width = starts.shape[1] - 1, values.itemsize
    kernels().olapdb_join_divisions(
        addresses, starts, len(pieces), divisions, first, last, width, values
    )
    return values
