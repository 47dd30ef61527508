"""Rows on disk, partitioned by a hash of their key: equal keys are in one partition.

A partition that is still too large is partitioned again, by other bits of the hash: its `level` is
one more.  (Grace hash join: Kitsuregawa, Tanaka, Moto-oka 1983.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, take_rows
from olapdb.compute.spill.files import READ_BYTES, Extent, SpillFile, joined
from olapdb.config import tuning
from olapdb.functions.kernels.hashing import combined, hash_values, mix
from olapdb.lazy import LazyModule
from olapdb.native import partitions as compiled
from olapdb.native.library import library
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.compute.context import ExecutionContext
    from olapdb.compute.spill import fixed_rows
else:
    fixed_rows = LazyModule("olapdb.compute.spill.fixed_rows")

PARTITION_BITS = 5
PARTITIONS = 1 << PARTITION_BITS
LEVELS_MAX = 64 // PARTITION_BITS
"""Rows that all levels leave in one partition have, but for chance, equal keys."""

SALT = 0xA0761D6478BD642F
"""Spreads hashes otherwise than the hash tables of a partition do."""


def partition_numbers(keys: Sequence[pa.Array], rows: int, level: int) -> np.ndarray:
    """Return the partition of each row at this level, equal for equal keys; uint8, shape (rows,).

    NULL equals NULL, NaN equals NaN. Without keys all rows are in partition 0."""
    if not keys:
        return np.zeros(rows, np.uint8)
    hashes = key_hashes(keys)
    shift = 64 - PARTITION_BITS * (level + 1)
    if library() is not None:
        return compiled.partition_numbers(hashes, SALT, shift, PARTITION_BITS)
    hashes = mix(hashes ^ np.uint64(SALT))
    return ((hashes >> np.uint64(shift)) & np.uint64(PARTITIONS - 1)).astype(np.uint8)


def key_hashes(keys: Sequence[pa.Array]) -> np.ndarray:
    """Return a hash of each row of at least one key, equal for equal keys; uint64. NULL equals NULL, NaN equals NaN."""
    hashes = _hashes(keys[0])
    for key in keys[1:]:
        hashes = combined(hashes, _hashes(key))
    return hashes


def partition_order(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, partition after partition, and where each partition ends; both int64."""
    if library() is not None:
        return compiled.partition_order(numbers, PARTITIONS)
    ends = np.cumsum(np.bincount(numbers, minlength=PARTITIONS))
    return np.argsort(numbers, kind="stable"), ends


def _hashes(key: pa.Array) -> np.ndarray:
    """Return a hash of each value; uint64. Maps are hashed as lists of pairs."""
    if pa.types.is_map(key.type):
        entry = pa.struct([("key", key.type.key_type), ("value", key.type.item_type)])
        key = key.cast(pa.list_(entry))
    return hash_values(key)


class PartitionedRows:
    """Rows of one schema in a spill file, in partitions; each keeps the order of its rows.

    Batches wait in memory for others, up to `tuning.PARTITIONED_BYTES`: a write of few rows costs more than the
    rows do."""

    def __init__(self, file: SpillFile, level: int = 0) -> None:
        self.level = level
        self._file = file
        self._extents: list[list[Extent]] = [[] for _ in range(PARTITIONS)]
        self._waiting: list[tuple[pa.RecordBatch, np.ndarray]] = []
        self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch, keys: Sequence[pa.Array]) -> None:
        """Write the rows of a batch to their partitions, by their values of `keys`, at the latest when a
        partition is read."""
        rows = batch.num_rows
        if not rows:
            return
        numbers = partition_numbers(keys, rows, self.level)
        nbytes = batch.nbytes
        if self._waiting_bytes + nbytes > tuning.PARTITIONED_BYTES:
            self._write()
        self._waiting.append((batch, numbers))
        self._waiting_bytes += nbytes

    def add_all(
        self,
        batches: Iterable[pa.RecordBatch],
        keys: Callable[[pa.RecordBatch], Sequence[pa.Array]],
        context: ExecutionContext,
    ) -> None:
        """Write the rows of all batches to their partitions, by their values of `keys(batch)`, which the threads
        of the query compute."""

        def written(together: Sequence[pa.RecordBatch]) -> list[Extent | None]:
            """Write a list of batches to the partitions of their rows; return the place of each partition's rows, None
            for one without rows."""
            return self._written(
                [(b, partition_numbers(keys(b), b.num_rows, self.level)) for b in together]
            )

        for extents in context.parallel(written, _together(batches, context)):
            self._append(extents)

    def _write(self) -> None:
        """Write the rows that were added and are still in memory."""
        if self._waiting:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._append(self._written(waiting))

    def _append(self, extents: Sequence[Extent | None]) -> None:
        """Take the places of rows that were written behind those of the rows before."""
        for own, extent in zip(self._extents, extents, strict=True):
            if extent is not None:
                own.append(extent)

    def _written(self, waiting: Sequence[tuple[pa.RecordBatch, np.ndarray]]) -> list[Extent | None]:
        """Write batches, with the partition of each row; return where the rows of each partition are."""
        batches = [batch for batch, _ in waiting]
        fixed = fixed_rows.divided(batches, [numbers for _, numbers in waiting], PARTITIONS)
        if fixed is not None:
            return self._file.append_divided(fixed, sum(batch.nbytes for batch in batches))
        numbers = np.concatenate([numbers for _, numbers in waiting])
        rows = joined(batches, len(numbers))
        order, ends = partition_order(numbers)
        partitioned = take_rows(rows, from_numpy(order))
        starts = [0, *ends.tolist()[:-1]]
        return [
            self._file.append(partitioned.slice(start, end - start)) if end > start else None
            for start, end in zip(starts, ends.tolist(), strict=True)
        ]

    def rows(self, partition: int) -> int:
        """Return the number of rows of a partition; write the rows that wait first."""
        self._write()
        return sum(extent.rows for extent in self._extents[partition])

    def nbytes(self, partition: int) -> int:
        """Return the bytes that a partition's rows take in memory; write the rows that wait first."""
        self._write()
        return sum(extent.nbytes for extent in self._extents[partition])

    @property
    def divides(self) -> bool:
        """Return whether more than one partition has rows."""
        self._write()
        return sum(1 for extents in self._extents if extents) > 1

    def read(
        self, partition: int, rows_max: int, bytes_max: int = READ_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """Yield a partition's rows, in the order in which they were added, in batches of at most
        `rows_max` and about `bytes_max` bytes."""
        self._write()
        extents = self._file.read_all(self._extents[partition], rows_max, bytes_max)
        return (piece for batch in extents for piece in cut(batch, rows_max))


def _together(
    batches: Iterable[pa.RecordBatch], context: ExecutionContext
) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield batches, as many at a time as are written together."""
    waiting: list[pa.RecordBatch] = []
    nbytes = 0
    for batch in batches:
        context.check()
        if waiting and nbytes + batch.nbytes > tuning.PARTITIONED_BYTES:
            yield waiting
            waiting, nbytes = [], 0
        if batch.num_rows:
            waiting.append(batch)
            nbytes += batch.nbytes
    if waiting:
        yield waiting
