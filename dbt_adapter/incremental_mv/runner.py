"""One run of an `incremental_mv` model: create, fill gaps, rebuild, or nothing at all.

The order makes each kill harmless.  First run: target, trigger, backfill, read view; what is
missing at the next run is made then, and rows that came in meanwhile fired the trigger.  Rebuild:
a second target and trigger beside the first, backfilled; then one RENAME swaps both, the read view
is replaced, and the old ones are dropped: as long as they are there, the read view may be theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from ..credentials import OlapdbCredentials, check_backfill_engine
from .compile import compile_model
from .definition import Definition, ModelConfig
from .inputs import is_limited
from .names import Names
from .warehouse import ViewInfo, Warehouse

logger = AdapterLogger("olapdb")

ON_DEFINITION_CHANGE = ("fail", "rebuild")
OLD_SUFFIX = "__dbt_old"


@dataclass(frozen=True)
class RunSettings:
    """How the model is to be brought up to date."""

    model: ModelConfig
    backfill_engine: str
    on_definition_change: str
    full_refresh: bool


@dataclass(frozen=True)
class Outcome:
    """What a run did. `relations` are those there are now, as (identifier, type)."""

    message: str
    rows_affected: int
    statements: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """For the macro."""
        code = ";\n".join(self.statements)
        return {"message": self.message, "rows_affected": self.rows_affected, "code": code}


def settings_of(
    config: Mapping[str, Any],
    model: Mapping[str, Any],
    credentials: OlapdbCredentials,
    flags: Mapping[str, Any],
) -> RunSettings:
    """The model's settings, checked. CompilationError for values that mean nothing."""
    if config.get("engine"):
        raise CompilationError(
            "incremental_mv derives the engine of its target from the model; remove engine."
        )
    policy = config.get("on_definition_change") or "fail"
    if policy not in ON_DEFINITION_CHANGE:
        raise CompilationError(
            f"on_definition_change is {' or '.join(ON_DEFINITION_CHANGE)}, not {policy!r}."
        )
    engine = config.get("backfill_engine") or credentials.backfill_engine
    return RunSettings(
        model=ModelConfig(
            unique_id=str(model["unique_id"]),
            order_by=config.get("order_by"),
            partition_by=config.get("partition_by"),
            table_settings=config.get("table_settings"),
        ),
        backfill_engine=check_backfill_engine(engine, str(model["name"])),
        on_definition_change=policy,
        full_refresh=bool(flags.get("full_refresh")),
    )


def run(warehouse: Warehouse, names: Names, sql: str, settings: RunSettings) -> Outcome:
    """Brings the model up to date; see the module's text. Raises CompilationError where the
    definition has changed and may not be rebuilt, DbtDatabaseError where a chunk failed."""
    return _Run(warehouse, names, settings, limited=is_limited(sql)).bring_to(
        compile_model(warehouse, names, sql, settings.model)
    )


class _Run:
    def __init__(
        self, warehouse: Warehouse, names: Names, settings: RunSettings, *, limited: bool
    ) -> None:
        self._warehouse = warehouse
        self._names = names
        self._settings = settings
        self._limited = limited

    def bring_to(self, definition: Definition) -> Outcome:
        names, warehouse = self._names, self._warehouse
        view = warehouse.view(names)
        target = warehouse.table(names.table(names.target), names.database)
        reading = warehouse.table(names.table(names.model), names.database)
        if view is not None and not view.model:
            raise CompilationError(
                f"{view.database}.{view.name} is a materialized view that dbt did not make. "
                "Drop or rename it, or rename the model."
            )
        occupied = reading is not None and reading.engine != "View"
        if view is None and target is None and not occupied:
            self._create(definition, names)
            chunks, rows = self._fill(names)
            warehouse.run(definition.create_read_view(names))
            return self._outcome("CREATE", chunks, rows)
        if occupied or view is None or target is None:
            return self._rebuild(definition)
        if self._settings.full_refresh or view.digest != definition.digest:
            self._check_change(view, definition)
            return self._rebuild(definition)
        chunks, rows = self._fill(names)
        interrupted = warehouse.table(names.table(self._old.target), names.database) is not None
        if reading is None or interrupted:
            self._release(self._old)
            warehouse.run(definition.create_read_view(names))
            self._drop_old()
        return self._outcome("BACKFILL" if chunks else "NO CHANGE", chunks, rows)

    def _check_change(self, view: ViewInfo, definition: Definition) -> None:
        if self._settings.full_refresh or self._settings.on_definition_change == "rebuild":
            return
        raise CompilationError(
            f"The definition of {self._names} has changed since its target was built, so that its "
            "old rows would not mean the same as new ones. Run dbt with --full-refresh to rebuild "
            "it, or set on_definition_change='rebuild' in its config."
        )

    def _create(self, definition: Definition, names: Names) -> None:
        self._warehouse.run(definition.create_target(names))
        self._warehouse.run(definition.create_view(names))

    def _rebuild(self, definition: Definition) -> Outcome:
        names, warehouse = self._names, self._warehouse
        new, old = names.new, self._old
        self._release(names, self._old)
        warehouse.drop(new)
        self._drop_old()
        self._create(definition, new)
        chunks, rows = self._fill(new)
        moves = []
        for current, kept, built in (
            (names.view, old.view, new.view),
            (names.target, old.target, new.target),
        ):
            if warehouse.table(names.table(current), names.database) is not None:
                moves.append((current, kept))
            moves.append((built, current))
        reading = warehouse.table(names.table(names.model), names.database)
        if reading is not None and reading.engine != "View":
            moves.append((names.model, old.model))
        clauses = ", ".join(
            f"{warehouse.sql_name(names, a)} TO {warehouse.sql_name(names, b)}" for a, b in moves
        )
        warehouse.run(f"RENAME TABLE {clauses}")
        warehouse.run(definition.create_read_view(names))
        self._drop_old()
        return self._outcome("REBUILD", chunks, rows)

    @property
    def _old(self) -> Names:
        """Where a rebuild puts what it replaces."""
        return Names(self._names.database, f"{self._names.model}{OLD_SUFFIX}")

    def _drop_old(self) -> None:
        old, warehouse = self._old, self._warehouse
        for name in (old.view, old.target, old.model):
            found = warehouse.table(old.table(name), old.database)
            if found is not None:
                kind = "VIEW" if found.engine in ("View", "MaterializedView") else "TABLE"
                warehouse.run(f"DROP {kind} {warehouse.sql_name(old, name)}")

    def _release(self, *replaced: Names) -> None:
        """Models that read what is replaced, chained on it or joining it, lose their triggers, and
        are rebuilt from the new one at their next run."""
        warehouse = self._warehouse
        triggers: dict[str, ViewInfo] = {}
        for names in replaced:
            for table in (names.target, names.model):
                for kind in ("source", "dimension"):
                    triggers |= warehouse.readers(names.database, table, kind=kind)
        release(warehouse, str(self._names), triggers)

    def _fill(self, names: Names) -> tuple[int, int]:
        """Backfills the gaps, chunk by chunk: (chunks published, rows written)."""
        health = self._warehouse.health(names)
        if health is None or not health.gap_parts:
            return 0, 0
        if self._limited:
            logger.warning(
                f"{self._names}: {health.gap_rows} source rows are not backfilled, since refs are "
                "limited (--empty or --sample); the next dbt run without that does it."
            )
            return 0, 0
        return backfill(
            self._warehouse, names, self._settings.backfill_engine, title=str(self._names)
        )

    def _outcome(self, what: str, chunks: int, rows: int) -> Outcome:
        names = self._names
        done = f" {chunks} chunks, {rows} rows" if chunks else ""
        return Outcome(
            f"{what}{done}",
            rows,
            tuple(self._warehouse.statements),
            ((names.model, "view"), (names.target, "table"), (names.view, "materialized_view")),
        )


def refuse_foreign(rebuilt: str, triggers: Mapping[str, ViewInfo]) -> None:
    """CompilationError where dbt did not make one of the triggers: it could not make it again."""
    foreign = [name for name, view in triggers.items() if not view.model]
    if foreign:
        raise CompilationError(
            f"{rebuilt} cannot be rebuilt: {', '.join(foreign)}, which dbt did not make, reads "
            "what is there. Drop it first, and create it again afterwards."
        )


def release(warehouse: Warehouse, rebuilt: str, triggers: Mapping[str, ViewInfo]) -> None:
    """Drops triggers that would stay with what is about to be rebuilt; their models are rebuilt at
    their next run."""
    refuse_foreign(rebuilt, triggers)
    for name, view in triggers.items():
        logger.warning(
            f"{rebuilt} is rebuilt, so the trigger {name} on what was there is dropped; "
            f"{view.model} is rebuilt when it runs next."
        )
        warehouse.run(f"DROP VIEW {warehouse.sql_name(Names(view.database, ''), view.name)}")


def backfill(warehouse: Warehouse, names: Names, engine: str, *, title: str) -> tuple[int, int]:
    """SYSTEM BACKFILL VIEW with one line for each chunk as it is published; (chunks, rows of the
    target). DbtDatabaseError where a chunk failed: what was published stays."""

    def show(event: Any) -> None:
        if event.phase == "published":
            logger.info(
                f"{title}: chunk {event.index + 1} of {event.total}, partition {event.partition}: "
                f"{event.rows} rows -> {event.target_rows} ({event.elapsed_ms / 1000:.1f} s)"
            )

    rows = warehouse.slow("BACKFILL", names, engine=engine, progress=show)
    published = [r for r in rows if r["status"] == "published"]
    return len(published), sum(r["target_rows"] for r in published)
