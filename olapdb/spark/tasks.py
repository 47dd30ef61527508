"""The functions that run in Spark's Python workers: the engine's own, on a store that tasks can
reach.

They do not access the catalog.  A task stages files under the driver's lease, makes them durable,
and returns the changes for the driver's one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from olapdb.errors import Error
from olapdb.functions.base import Environment
from olapdb.ingest.block import InsertedData, make_blocks
from olapdb.ingest.block_stager import BlockStager
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.frozen import FrozenSnapshot
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.cache import Cache
from olapdb.spark.folder import StoreAddress, open_store
from olapdb.spark.items import is_final
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk, compute_chunk


@dataclass(frozen=True)
class InsertTask:
    """The input that every task of a `write_dataframe` job needs."""

    store: StoreAddress
    snapshot: FrozenSnapshot
    table: Table
    lease_id: str
    settings: Mapping[str, object]
    environment: Environment


@lru_cache(maxsize=1)
def worker_cache() -> Cache:
    """Return the worker process's cache of bound views and layouts."""
    return Cache()


def run_chunk(address: StoreAddress, attempts: int, task: ChunkTask) -> StagedChunk | FailedChunk:
    """Run `compute_chunk` in a task; staged files are durable when it returns. A final error
    becomes a FailedChunk, so that other chunks of the job are not lost."""
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
    """Stage one task's rows as blocks of the table, triggers included. Return None if there are no
    rows."""
    store, cache = open_store(task.store), worker_cache()
    context = TriggerContext(task.snapshot, store, cache, task.settings, task.environment)
    stager = BlockStager(context, task.lease_id)
    blocks = make_blocks(
        task.table,
        InsertedData(_filled(batches)),
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
    """Return the environment with its random seed raised by the number of the partition, so that
    tasks differ."""
    return replace(environment, random_seed=(environment.random_seed + partition) & 0xFFFFFFFF)


def _filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches that have rows."""
    return (batch for batch in batches if batch.num_rows)
