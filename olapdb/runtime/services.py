"""The services of an open warehouse: catalog, store, lease, clock, caches and logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from olapdb.functions.base import Environment
from olapdb.records import dataclass
from olapdb.runtime.activity import Activity
from olapdb.runtime.cache import Cache
from olapdb.runtime.deferred import DeferredWork
from olapdb.runtime.refreshes import RunningRefreshes
from olapdb.runtime.view_log import ViewLog

if TYPE_CHECKING:
    from olapdb.catalog.protocol import Catalog
    from olapdb.storage.store import Store

SettingValue = str | int | float | bool


@dataclass(frozen=True)
class Services:
    """One open warehouse, as writers see it. Immutable and shared by all threads.

    `lease_id` names the files that this process stages.  `notify_written(table_id)` queues a table
    that got parts for merging, and never blocks.  `clock_ms` is wall-clock milliseconds.  `cache`
    keeps what is derived from the schema alone: bound triggers, layouts.  `view_log` keeps what the
    views of recent INSERTs did, `activity` the running and ended statements.  `deferred` queues the
    work of results that were dropped unread, `refreshes` knows the views being refreshed.
    """

    catalog: Catalog
    store: Store
    lease_id: str
    zone: str = "UTC"
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    notify_written: Callable[[str], None] = lambda table_id: None
    cache: Cache = field(default_factory=Cache)
    view_log: ViewLog = field(default_factory=ViewLog)
    activity: Activity = field(default_factory=Activity)
    deferred: DeferredWork = field(default_factory=DeferredWork)
    refreshes: RunningRefreshes = field(default_factory=RunningRefreshes)
    opened_seconds: float = field(default_factory=time.time)

    def environment(self, query_id: str = "") -> Environment:
        """Return the environment for work without a client's statement (merges, TTL, chunks of a
        job): the fixed values of now(), serverUUID() and the like, which may be the default of a
        column that a part lacks."""
        return Environment(
            zone=self.zone,
            now_seconds=self.clock_ms() / 1000,
            query_id=query_id,
            opened_seconds=self.opened_seconds,
            warehouse_id=self.catalog.warehouse_id,
        )
