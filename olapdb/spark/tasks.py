"""What runs in Spark's Python workers: the engine's own functions on a store that tasks can reach.

Nothing here knows the catalog.  A task stages files under the driver's lease, makes them durable,
and hands back what the driver's one commit is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import pyarrow as pa

from olapdb.errors import Error, NotSupportedError
from olapdb.functions.base import Environment
from olapdb.ingest.block import make_blocks
from olapdb.ingest.stage import BlockStager
from olapdb.ingest.staged import StagedInsert
from olapdb.ingest.trigger import Surroundings
from olapdb.model.frozen import FrozenSnapshot
from olapdb.model.schema import Table
from olapdb.spark.items import is_final
from olapdb.storage.store import LocalStore, Store
from olapdb.transaction.cache import Cache
from olapdb.views.chunk import ChunkTask, FailedChunk, StagedChunk, compute_chunk


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A store that another process on a machine with the same files can open."""

    root: str
    durability: Literal["full", "process"]


@dataclass(frozen=True)
class InsertTask:
    """What every task of a `write_dataframe` job needs."""

    store: StoreAddress
    snapshot: FrozenSnapshot
    table: Table
    lease_id: str
    settings: Mapping[str, object]
    environment: Environment


def address_of(store: Store) -> StoreAddress:
    """NotSupportedError for a store that only this process sees."""
    if not isinstance(store, LocalStore):
        raise NotSupportedError(
            "Spark's tasks run in other processes and cannot see an in-memory warehouse.",
            hint='Open the warehouse in a folder: olapdb.connect("warehouse/").',
        )
    return StoreAddress(str(store.root.resolve()), store.durability)


@lru_cache(maxsize=4)
def open_store(address: StoreAddress) -> LocalStore:
    """One store a worker process, so that it reads the footers of parts and checks them once."""
    return LocalStore(address.root, address.durability)


@lru_cache(maxsize=1)
def worker_cache() -> Cache:
    """Bound views and layouts, kept as long as the worker process lives."""
    return Cache()


def run_chunk(address: StoreAddress, attempts: int, task: ChunkTask) -> StagedChunk | FailedChunk:
    """`compute_chunk` in a task; what it staged is durable when it returns. What fails for good
    comes back as a FailedChunk, so that other chunks of the same job are not lost."""
    store = open_store(address)
    try:
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
    around = Surroundings(task.snapshot, store, cache, task.settings, task.environment)
    stager = BlockStager(around, task.lease_id)
    blocks = make_blocks(
        task.table, _filled(batches), snapshot=task.snapshot, environment=task.environment,
        settings=task.settings, cache=cache,
    )  # fmt: skip
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
