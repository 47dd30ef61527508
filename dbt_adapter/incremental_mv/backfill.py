"""SYSTEM BACKFILL VIEW of a model, with a line in the log for each published chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from .names import ModelNames
from .warehouse import Warehouse

logger = AdapterLogger("olapdb")


def chunk_logger(title: str) -> Callable[[Any], None]:
    """Return the function that logs each published chunk of a job, with the model's name."""

    def log_chunk(event: Any) -> None:
        """Log the chunk of an event that says it was published."""
        if event.phase == "published":
            logger.info(
                f"{title}: chunk {event.index + 1} of {event.total}, partition {event.partition}: "
                f"{event.rows} rows -> {event.target_rows} ({event.elapsed_ms / 1000:.1f} s)"
            )

    return log_chunk


def backfill(
    warehouse: Warehouse, names: ModelNames, engine: str, *, title: str
) -> tuple[int, int]:
    """Run SYSTEM BACKFILL VIEW and log a line for each published chunk.

    Returns the chunks published and the rows written to the target. Raises DbtDatabaseError if a
    chunk fails; published chunks stay."""
    rows = warehouse.run_system("BACKFILL", names, engine=engine, progress=chunk_logger(title))
    published = [r for r in rows if r["status"] == "published"]
    return len(published), sum(r["target_rows"] for r in published)
