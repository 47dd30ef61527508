"""Backfills with their progress: lines in dbt's log, and figures for the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger

from ..relation import string_literal
from .names import ModelNames
from .warehouse import Warehouse

logger = AdapterLogger("olapdb")

CHUNKS_LISTED_MAX = 1000
"""The most chunks that a run's results list; all are counted."""
LINES_AT_ONCE = 10
"""The first chunks of a backfill have a line each, of the others one a second, and the last one."""
LINES_SECONDS = 1.0


@dataclass
class BackfillProgress:
    """The chunks that a backfill has published. `rows_total` are the rows of the planned chunks.

    `clock` gives the time in seconds. Chunks are computed side by side, so a rate is of the time
    since the first of them was planned, which is after Spark has started, not of the chunks' own
    times."""

    title: str
    clock: Callable[[], float] = time.monotonic
    rows_total: int = 0
    source_rows: int = 0
    target_rows: int = 0
    chunks: int = 0
    elapsed_ms: int = 0
    listed: list[dict[str, object]] = field(default_factory=list)
    _planned: dict[int, int] = field(default_factory=dict)
    _began: float = 0.0
    _logged: float = 0.0

    def __post_init__(self) -> None:
        """Note the time, in case no chunk is planned."""
        self._began = self.clock()

    def __call__(self, event: Any) -> None:
        """Note an event of the job, and log a chunk that was published: one of many small ones only in
        dbt's debug log."""
        if event.phase == "planned":
            if not self._planned:
                self._began = self.clock()
            self.rows_total += event.rows - self._planned.get(event.index, 0)
            self._planned[event.index] = event.rows
        if event.phase != "published":
            return
        self.chunks += 1
        self.source_rows += event.rows
        self.target_rows += event.target_rows
        now = self.clock()
        self.elapsed_ms = round((now - self._began) * 1000)
        if len(self.listed) < CHUNKS_LISTED_MAX:
            self.listed.append(
                {
                    "chunk": event.index + 1,
                    "partition": event.partition,
                    "rows": event.rows,
                    "target_rows": event.target_rows,
                }
            )
        is_shown = (
            self.chunks <= LINES_AT_ONCE
            or self.chunks == len(self._planned)
            or now - self._logged >= LINES_SECONDS
        )
        if is_shown:
            self._logged = now
        (logger.info if is_shown else logger.debug)(self.line(event))

    @property
    def rows_per_second(self) -> int:
        """The source rows that were read in a second so far, 0 if no time has passed."""
        return self.source_rows * 1000 // self.elapsed_ms if self.elapsed_ms else 0

    @property
    def seconds_left(self) -> float | None:
        """The time that the rest takes at this rate, None if it is unknown."""
        rate = self.rows_per_second
        if not rate or self.rows_total < self.source_rows:
            return None
        return (self.rows_total - self.source_rows) / rate

    def line(self, event: Any) -> str:
        """Return the line of a published chunk: its rows, the rate so far and the time left."""
        text = (
            f"{self.title}: chunk {event.index + 1} of {event.total}, partition "
            f"{event.partition}: {event.rows} rows -> {event.target_rows}"
        )
        if self.rows_per_second:
            text += f", {self.rows_per_second:,} rows/s"
        left = self.seconds_left
        if left is not None and self.chunks < event.total:
            text += f", {left:.0f} s left"
        return text

    def response(self) -> dict[str, object]:
        """Return the figures for `adapter_response` in run_results.json; empty without chunks."""
        if not self.chunks:
            return {}
        return {
            "chunks": self.chunks,
            "source_rows": self.source_rows,
            "target_rows": self.target_rows,
            "elapsed_ms": self.elapsed_ms,
            "rows_per_second": self.rows_per_second,
            "published": self.listed,
        }


@dataclass
class BackfillResponse(AdapterResponse):
    """The response of a run of a model: in run_results.json `backfill` has its chunks' figures."""

    backfill: dict[str, Any] | None = None


def backfill(
    warehouse: Warehouse,
    names: ModelNames,
    engine: str,
    *,
    title: str,
    partitions: Sequence[str] | None = None,
    threads: int = 0,
) -> BackfillProgress:
    """Run SYSTEM BACKFILL VIEW, log its progress, and return its figures.

    `partitions` are ids of partitions of the source, None for all; `threads` the chunks computed at
    a time, 0 for the engine's choice. Raises DbtDatabaseError if a chunk fails; published chunks
    stay."""
    progress = BackfillProgress(title)
    scopes = (
        [""] if partitions is None else [f"PARTITION ID {string_literal(p)}" for p in partitions]
    )
    for scope in scopes:
        warehouse.run_system(
            "BACKFILL", names, scope, engine=engine, threads=threads, progress=progress
        )
    return progress
