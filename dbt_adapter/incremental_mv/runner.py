"""One run of an `incremental_mv` model: create it, backfill gaps, rebuild it, or do nothing.

The order of steps makes a kill at any point harmless. A first run creates the target and the
trigger, backfills, and creates the read view. The next run creates what is missing; rows inserted
meanwhile have fired the trigger. A rebuild creates a second target and trigger beside the first and
backfills them. Then one RENAME swaps both, the read view is replaced, and the old ones are dropped.
While the old ones exist, the read view may still be theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from .compile import compile_model
from .config import RunSettings
from .model_definition import ModelDefinition
from .model_sql import is_limited
from .names import OLD_SUFFIX, ModelNames
from .progress import BackfillProgress, BackfillResponse, backfill
from .warehouse import ViewInfo, Warehouse

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


def run(warehouse: Warehouse, names: ModelNames, sql: str, settings: RunSettings) -> Outcome:
    """Bring the model up to date; see the module's docstring.

    Raises CompilationError if the definition has changed and may not be rebuilt, DbtDatabaseError if
    a chunk of the backfill fails."""
    return _Run(warehouse, names, settings, limited=is_limited(sql)).bring_to(
        compile_model(warehouse, names, sql, settings.model)
    )


class _Run:
    """One run of a model, which creates, rebuilds or backfills it."""

    def __init__(
        self, warehouse: Warehouse, names: ModelNames, settings: RunSettings, *, limited: bool
    ) -> None:
        self._warehouse = warehouse
        self._names = names
        self._settings = settings
        self._limited = limited
        self._backfilled = BackfillProgress(str(names))

    def bring_to(self, definition: ModelDefinition) -> Outcome:
        """Create, rebuild or backfill the model to this definition; return what was done.

        Raises CompilationError if the trigger's name belongs to a view that dbt did not create,
        or if the definition changed and may not be rebuilt."""
        names, warehouse = self._names, self._warehouse
        view = warehouse.view(names)
        target = warehouse.table(names.table(names.target), names.database)
        read_view = warehouse.table(names.table(names.model), names.database)
        if view is not None and not view.model:
            raise CompilationError(
                f"{view.database}.{view.name} is a materialized view that dbt did not make. "
                "Drop or rename it, or rename the model."
            )
        occupied = read_view is not None and read_view.engine != "View"
        if view is None and target is None and not occupied:
            self._create(definition, names)
            chunks, rows = self._fill_gaps(names)
            warehouse.run(definition.create_read_view(names))
            return self._outcome("CREATE", chunks, rows)
        if occupied or view is None or target is None:
            return self._rebuild(definition)
        if self._settings.full_refresh or view.digest != definition.digest:
            self._check_change(view, definition)
            return self._rebuild(definition)
        chunks, rows = self._fill_gaps(names)
        interrupted = warehouse.table(names.table(self._old.target), names.database) is not None
        if read_view is None or interrupted:
            self._release(self._old)
            warehouse.run(definition.create_read_view(names))
            self._drop_old()
        return self._outcome("BACKFILL" if chunks else "NO CHANGE", chunks, rows)

    def _check_change(self, view: ViewInfo, definition: ModelDefinition) -> None:
        """Raise CompilationError unless --full-refresh or on_definition_change allows a rebuild."""
        if self._settings.full_refresh or self._settings.on_definition_change == "rebuild":
            return
        raise CompilationError(
            f"The definition of {self._names} has changed since its target was built, so that its "
            "old rows would not mean the same as new ones. Run dbt with --full-refresh to rebuild "
            "it, or set on_definition_change='rebuild' in its config."
        )

    def _create(self, definition: ModelDefinition, names: ModelNames) -> None:
        """Create the target table and the materialized view of the model."""
        self._warehouse.run(definition.create_target(names))
        self._warehouse.run(definition.create_view(names))

    def _rebuild(self, definition: ModelDefinition) -> Outcome:
        """Build a new target and trigger under other names, swap them in, drop the old ones."""
        names, warehouse = self._names, self._warehouse
        new, old = names.new, self._old
        self._release(names, self._old)
        warehouse.drop(new)
        self._drop_old()
        self._create(definition, new)
        chunks, rows = self._fill_gaps(new)
        moves = []
        for current, replaced, built in (
            (names.view, old.view, new.view),
            (names.target, old.target, new.target),
        ):
            if warehouse.table(names.table(current), names.database) is not None:
                moves.append((current, replaced))
            moves.append((built, current))
        read_view = warehouse.table(names.table(names.model), names.database)
        if read_view is not None and read_view.engine != "View":
            moves.append((names.model, old.model))
        clauses = ", ".join(
            f"{warehouse.sql_name(names, a)} TO {warehouse.sql_name(names, b)}" for a, b in moves
        )
        warehouse.run(f"RENAME TABLE {clauses}")
        warehouse.run(definition.create_read_view(names))
        self._drop_old()
        return self._outcome("REBUILD", chunks, rows)

    @property
    def _old(self) -> ModelNames:
        """The names that a rebuild gives to the relations it replaces."""
        return ModelNames(self._names.database, f"{self._names.model}{OLD_SUFFIX}")

    def _drop_old(self) -> None:
        """Drop the former view, target and model, as far as they exist."""
        old, warehouse = self._old, self._warehouse
        for name in (old.view, old.target, old.model):
            table = warehouse.table(old.table(name), old.database)
            if table is not None:
                kind = "VIEW" if table.engine in ("View", "MaterializedView") else "TABLE"
                warehouse.run(f"DROP {kind} {warehouse.sql_name(old, name)}")

    def _release(self, *replaced: ModelNames) -> None:
        """Drop the triggers of models that are chained on a replaced model or join it.

        Their next run rebuilds these models from the new one."""
        warehouse = self._warehouse
        triggers: dict[str, ViewInfo] = {}
        for names in replaced:
            for table in (names.target, names.model):
                for kind in ("source", "dimension"):
                    triggers |= warehouse.readers(names.database, table, kind=kind)
        release(warehouse, str(self._names), triggers)

    def _fill_gaps(self, names: ModelNames) -> tuple[int, int]:
        """Backfill the gaps, chunk by chunk; return the chunks published and the rows written."""
        health = self._warehouse.health(names)
        if health is None or not health.gap_parts:
            return 0, 0
        if self._limited:
            logger.warning(
                f"{self._names}: {health.gap_rows} source rows are not backfilled, since refs are "
                "limited (--empty or --sample); the next dbt run without that does it."
            )
            return 0, 0
        self._backfilled = backfill(
            self._warehouse, names, self._settings.backfill_engine, title=str(self._names)
        )
        return self._backfilled.chunks, self._backfilled.target_rows

    def _outcome(self, what: str, chunks: int, rows: int) -> Outcome:
        """Return the outcome of the run; `what` says what was done.

        `chunks` and `rows` count what a backfill published, 0 without one."""
        names = self._names
        done = f" {chunks} chunks, {rows} rows" if chunks else ""
        return Outcome(
            f"{what}{done}",
            rows,
            tuple(self._warehouse.statements),
            ((names.model, "view"), (names.target, "table"), (names.view, "materialized_view")),
            self._backfilled.response(),
        )


def refuse_foreign(rebuilt: str, triggers: Mapping[str, ViewInfo]) -> None:
    """Raise CompilationError if dbt did not create one of the triggers.

    It could not create that trigger again after a rebuild of `rebuilt`."""
    foreign = [name for name, view in triggers.items() if not view.model]
    if foreign:
        raise CompilationError(
            f"{rebuilt} cannot be rebuilt: {', '.join(foreign)}, which dbt did not make, reads "
            "what is there. Drop it first, and create it again afterwards."
        )


def release(warehouse: Warehouse, rebuilt: str, triggers: Mapping[str, ViewInfo]) -> None:
    """Drop triggers that read a relation which is about to be rebuilt.

    The next run of their models rebuilds them. Raises CompilationError, and drops nothing, if dbt did
    not create one of them."""
    refuse_foreign(rebuilt, triggers)
    for name, view in triggers.items():
        logger.warning(
            f"{rebuilt} is rebuilt, so the trigger {name} on what was there is dropped; "
            f"{view.model} is rebuilt when it runs next."
        )
        warehouse.run(f"DROP VIEW {warehouse.sql_name(ModelNames(view.database, ''), view.name)}")
