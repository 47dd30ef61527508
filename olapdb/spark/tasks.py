"""What runs in Spark's Python workers: the engine's own functions on a store that tasks can reach.

Nothing here knows the catalog.  A task stages files under the driver's lease, makes them durable,
and hands back what the driver's one commit is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from olapdb.errors import Error
from olapdb.functions.base import Environment
from olapdb.ingest.block import make_blocks
from olapdb.ingest.block_stager import BlockStager
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.frozen import FrozenSnapshot
from olapdb.model.schema import Table
from olapdb.runtime.cache import Cache
from olapdb.spark.folder import StoreAddress, open_store
from olapdb.spark.items import is_final
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk, compute_chunk


@dataclass(frozen=True)
class InsertTask:
    """What every task of a `write_dataframe` job needs."""

    store: StoreAddress
    snapshot: FrozenSnapshot
    table: Table
    lease_id: str
    settings: Mapping[str, object]
    environment: Environment


@lru_cache(maxsize=1)
def worker_cache() -> Cache:
    """Bound views and layouts, kept as long as the worker process lives."""
    return Cache()


def run_chunk(address: StoreAddress, attempts: int, task: ChunkTask) -> StagedChunk | FailedChunk:
    """`compute_chunk` in a task; what it staged is durable when it returns. What fails for good
    comes back as a FailedChunk, so that other chunks of the same job are not lost."""
    try:
        store = open_store(address)
        chunk = compute_chunk(task, store, worker_cache())
        store.sync()
    except Error as error:
        if not is_final(error, attempts):
            raise
        return FailedChunk(task.index, task.partition, error)
    return chunk


def stage_batches(task: InsertTask, batches: Iterable[pa.RecordBatch]) -> StagedInsert | None:
    """Stages one task's rows as blocks of the table, triggers included; None without rows."""
    store, cache = open_store(task.store), worker_cache()
    around = TriggerContext(task.snapshot, store, cache, task.settings, task.environment)
    stager = BlockStager(around, task.lease_id)
    blocks = make_blocks(
        task.table,
        _filled(batches),
        snapshot=task.snapshot,
        environment=task.environment,
        settings=task.settings,
        cache=cache,
    )
    rows = 0
    for block in blocks:
        stager.add_block(task.table, block)
        rows += block.num_rows
    if rows == 0:
        return None
    store.sync()
    return stager.staged(task.table.id, rows)


def with_seed(environment: Environment, partition: int) -> Environment:
    """Tasks must not draw the same random numbers."""
    return replace(environment, random_seed=(environment.random_seed + partition) & 0xFFFFFFFF)


def _filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)
