"""One run of an `incremental_mv` model: what it works on, and what it has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from .config import RunSettings
from .model_definition import ModelDefinition
from .names import ModelNames
from .progress import BackfillProgress, BackfillResponse
from .warehouse import Health, Warehouse

logger = AdapterLogger("olapdb")


@dataclass(frozen=True)
class Outcome:
    """The result of a run. `relations` are the model's relations, as (identifier, type).

    `backfill` has the figures of the chunks that were published, for the run's results."""

    message: str
    rows_affected: int
    statements: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]
    backfill: Mapping[str, object] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the response for run_results.json, and code (the statements), for the macro."""
        response = BackfillResponse(
            _message=self.message,
            rows_affected=self.rows_affected,
            backfill=dict(self.backfill) or None,
        )
        return {"response": response, "code": ";\n".join(self.statements)}


@dataclass
class ModelRun:
    """One run of a model. `limited` means that refs are limited (--empty, --sample)."""

    warehouse: Warehouse
    names: ModelNames
    settings: RunSettings
    definition: ModelDefinition
    limited: bool
    steps: list[str] = field(default_factory=list)
    """The steps that the run has taken, for its message."""
    progress: BackfillProgress = field(init=False)
    rows: int = 0

    def __post_init__(self) -> None:
        """Begin to count the published chunks."""
        self.progress = BackfillProgress(str(self.names))

    @property
    def relation(self) -> str:
        """The quoted name of the read view."""
        return self.warehouse.sql_name(self.names, self.names.model)

    def health(self) -> Health | None:
        """Return the current health of the trigger."""
        return self.warehouse.health(self.names)

    def system(self, action: str, rest: str = "") -> list[dict[str, Any]]:
        """Run a SYSTEM … VIEW statement about the trigger where backfills run; return its rows."""
        computes = action in ("BACKFILL", "REBUILD", "REPLAY")
        return self.warehouse.run_system(
            action,
            self.names,
            rest,
            engine=self.settings.backfill_engine if computes else "in_process",
            progress=self.progress if computes else None,
        )

    def warn(self, text: str) -> None:
        """Log a warning about the model."""
        logger.warning(f"{self.names}: {text}")

    def outcome(self) -> Outcome:
        """Return the outcome of the run."""
        names = self.names
        return Outcome(
            "; ".join(self.steps) or "NO CHANGE",
            self.rows,
            tuple(self.warehouse.statements),
            ((names.model, "view"), (names.target, "table"), (names.view, "materialized_view")),
            self.progress.response(),
        )
