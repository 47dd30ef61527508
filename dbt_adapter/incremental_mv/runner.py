"""One run of an `incremental_mv` model: create it, bring it to its definition, complete it.

The engine guarantees each step: a first run creates target, trigger and read view, a changed
definition is SYSTEM REBUILD VIEW (or MODIFY QUERY), a gap SYSTEM BACKFILL VIEW, stale slices SYSTEM
REPLAY VIEW. Each run compares what is live with the model and does what is missing, so the next run
completes a killed one. An unfinished rebuild goes on if it leads to the model's definition, and is
cancelled if not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtDatabaseError

from .backfill_scope import scope_partitions
from .change import decide_change
from .compile import compile_model
from .config import RunSettings
from .differences import Differences, compare, target_fits
from .model_definition import ModelDefinition
from .model_sql import is_limited
from .names import ModelNames
from .progress import BackfillProgress, BackfillResponse, backfill
from .warehouse import Health, ModelState, ViewInfo, Warehouse

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
    the engine refuses a statement or a chunk fails."""
    definition = compile_model(warehouse, names, sql, settings.model)
    if settings.backfill.is_bounded:  # refuses wrong bounds before anything is created
        scope_partitions(warehouse, names, definition.trigger, settings.backfill)
    limited = is_limited(sql)  # after compile_model, which explains SQL that does not parse
    return _Run(warehouse, names, settings, definition, limited).bring_up_to_date()


@dataclass
class _Run:
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

    def bring_up_to_date(self) -> Outcome:
        """Create the model, or bring it to its definition and complete it; return what was done.

        Raises CompilationError if the trigger's name belongs to a view that dbt did not create, or
        if the definition changed and may not be rebuilt."""
        state = self.warehouse.model_state(self.names)
        view = state.view
        if view is not None and not view.model:
            raise CompilationError(
                f"{view.database}.{view.name} is a materialized view that dbt did not make. "
                "Drop or rename it, or rename the model."
            )
        if view is None:
            self._create(state)
            return self._outcome()
        if view.target != self.names.target:
            raise CompilationError(
                f"The trigger {view.name} writes {view.target_database}.{view.target}: the target "
                f"of {self.names} was renamed. RENAME TABLE it back to {self.names.target}."
            )
        if self.limited:
            self._warn("is left as it is, since refs are limited (--empty or --sample).")
            return self._outcome()
        self._bring_to_definition(state)
        return self._outcome()

    # --- the first run

    def _create(self, state: ModelState) -> None:
        """Create what is missing of target, trigger and read view, and backfill.

        If the engine refuses the trigger, nothing stays that this or a killed run has created."""
        warehouse, names, definition = self.warehouse, self.names, self.definition
        kept_rows = self._settle_target(state)
        try:
            warehouse.run(definition.create_view(names))
        except DbtDatabaseError:
            if not kept_rows:
                warehouse.run(f"DROP TABLE {warehouse.sql_name(names, names.target)}")
            raise
        self.steps.append("CREATE")
        if not self.settings.attach_triggers:
            self._system("STOP")
        if kept_rows:
            self._warn(f"had no trigger; the rows of {names.target} are made anew.")
            self._system("REPLAY", "DISCARD BYPASS")
        self._fill_gaps(self._health())
        warehouse.run(definition.create_read_view(names))

    def _settle_target(self, state: ModelState) -> bool:
        """Create the target, or keep one without a trigger; return whether it has rows.

        A killed first run leaves an empty target, a trigger dropped by hand one with rows. Raises
        CompilationError for rows in a table of another shape, unless under --full-refresh."""
        warehouse, target = self.warehouse, state.target
        name = warehouse.sql_name(self.names, self.names.target)
        if target is not None:
            has_rows = bool(warehouse.rows(f"SELECT 1 FROM {name} LIMIT 1"))
            if target_fits(warehouse, self.names, self.definition, target):
                return has_rows
            if has_rows and not self.settings.full_refresh:
                raise CompilationError(
                    f"{self.names.database}.{self.names.target} has rows, but no trigger "
                    f"{self.names.view}, and other columns or keys than {self.names} makes. Run "
                    "dbt with --full-refresh to drop it, or rename it or the model."
                )
            warehouse.run(f"DROP TABLE {name}")
        warehouse.run(self.definition.create_target(self.names))
        return False

    # --- an existing model

    def _bring_to_definition(self, state: ModelState) -> None:
        """Bring an existing model to its definition, then fill gaps and replay stale slices."""
        health = self._health()
        assert health is not None
        differences = compare(self.warehouse, self.names, self.definition, state)
        if bool(health.attached) != self.settings.attach_triggers:
            self._attach(self.settings.attach_triggers)
        resumed = self._settle_candidate(health, differences)
        keeps = True
        if resumed:
            self._rebuild(state, "RESUME")
        elif self.settings.full_refresh or differences.stored:
            keeps = self._change(state, differences)
        changed = bool(self.steps)
        health = self._health() if changed else health
        self._fill_gaps(health)
        self._replay_stale(health)
        if keeps:
            self._restore_read_view(differences, changed=changed)
        self._say_what_is_left(self._health() if self.steps else health)

    def _attach(self, attach: bool) -> None:
        """Attach or detach the trigger as the profile says; rows inserted meanwhile are its gap."""
        self.warehouse.run_system("START" if attach else "STOP", self.names)
        self._warn(f"{self.names.view} is {'attached again' if attach else 'detached'}.")

    def _settle_candidate(self, health: Health, differences: Differences) -> bool:
        """Return whether an unfinished rebuild leads to the definition; cancel another one."""
        if not health.candidate:
            return False
        candidate = self.warehouse.version(health.candidate)
        if candidate is None:
            return False
        if candidate.digest == self.definition.digest:
            return True
        self._system("CANCEL REBUILD")
        self._warn(f"an unfinished rebuild of another definition, {health.candidate}, is dropped.")
        if not differences.stored and not self.settings.full_refresh:
            self.steps.append("CANCEL REBUILD")
        return False

    def _change(self, state: ModelState, differences: Differences) -> bool:
        """Bring stored rows to the definition as on_definition_change says; return whether the live
        definition is the model's afterwards."""
        change = decide_change(
            self.warehouse, self.names, self.definition, state, differences, self.settings
        )
        if change.step in ("FAIL", "IGNORE"):
            self._note_configuration_change()
        match change.step:
            case "FAIL":
                raise CompilationError(change.problem)
            case "IGNORE":
                self._warn(
                    f"keeps its live definition (on_definition_change='ignore'). "
                    f"{differences.sentences()}"
                )
                self.steps.append("IGNORED CHANGE")
                return False
            case "ALTER":
                self._alter(differences)
            case "MODIFY QUERY":
                self._modify()
            case "REBUILD" if differences.stored:
                self._rebuild(state, "REBUILD")
            case "REBUILD":
                self._rebuild_same()
        return True

    def _note_configuration_change(self) -> None:
        """Log the sentence with which dbt's materialized views say that a change is not applied."""
        choice = self.settings.on_configuration_change
        if choice:
            logger.warning(
                "Configuration changes were identified and `on_configuration_change` was set to "
                f"`{choice}` for `{self._relation}`"
            )

    @property
    def _relation(self) -> str:
        """The quoted name of the read view."""
        return self.warehouse.sql_name(self.names, self.names.model)

    def _alter(self, differences: Differences) -> None:
        """Change the settings of the target in place; no row depends on them."""
        logger.debug(f"Applying ALTER to: {self._relation}")
        target = self.warehouse.sql_name(self.names, self.names.target)
        self.warehouse.run(f"ALTER TABLE {target} {differences.settings}")
        self.steps.append("ALTER SETTINGS")

    def _modify(self) -> None:
        """Give the trigger the model's query. All that it made is stale from that commit on."""
        view = self.warehouse.sql_name(self.names, self.names.view)
        self.warehouse.run(f"ALTER TABLE {view} MODIFY QUERY {self.definition.trigger}")
        self.steps.append("MODIFY QUERY")

    def _rebuild(self, state: ModelState, step: str) -> None:
        """Build the definition beside the live version, and swap it in when it is proven."""
        read_view = state.read_view
        with_read_view = read_view is not None and read_view.engine == "View"
        clauses = self.definition.rebuild(self.names, with_read_view=with_read_view)
        self._run_rebuild(step, clauses)

    def _rebuild_same(self) -> None:
        """Build the live definition anew, and swap it in when it is proven (--full-refresh)."""
        self._run_rebuild("REBUILD", "")

    def _run_rebuild(self, step: str, clauses: str) -> None:
        """Run SYSTEM REBUILD VIEW; log its chunks, and the views that read the target."""
        logger.debug(f"Applying REPLACE to: {self._relation}")
        rows = self._system("REBUILD", clauses)
        chunks = [row for row in rows if row["step"] == "backfill"]
        made = sum(row["rows"] for row in chunks)
        self.steps.append(f"{step} {len(chunks)} chunks, {made} rows" if chunks else step)
        self.rows += made
        for row in rows:
            if row["step"] == "downstream":
                logger.warning(f"{self.names} was rebuilt: {row['view']} {row['status']}.")

    # --- completing it

    def _fill_gaps(self, health: Health | None) -> None:
        """Backfill the gaps, chunk by chunk, unless the config or a limited ref leaves them.

        If a chunk fails in a first run, the trigger is stopped, so that INSERTs do not fail on the
        same rows; the next run attaches it again."""
        if health is None or not health.gap_parts:
            return
        left = f"{health.gap_rows} source rows are not backfilled"
        if self.limited:
            self._warn(
                f"{left}, since refs are limited (--empty or --sample); the next dbt run without "
                "that does it."
            )
            return
        if not self.settings.backfill.enabled:
            view = self.warehouse.sql_name(self.names, self.names.view)
            self._warn(f"{left} (backfill: none). SYSTEM BACKFILL VIEW {view} does it.")
            return
        try:
            self.progress = backfill(
                self.warehouse,
                self.names,
                self.settings.backfill_engine,
                title=str(self.names),
                partitions=self._partitions(),
                threads=self.settings.backfill.parallel,
            )
        except DbtDatabaseError:
            if self.steps[:1] == ["CREATE"] and self.settings.attach_triggers:
                self.warehouse.run_system("STOP", self.names)
                self._warn(
                    f"{self.names.view} is stopped, so that no INSERT fails on it. The next run "
                    "attaches it and backfills what it missed."
                )
            raise
        rows = self.progress.target_rows
        if not self.progress.chunks:
            self._warn(f"{left}: they are outside of the bounds of backfill in its config.")
            return
        step = f"{self.progress.chunks} chunks, {rows} rows"
        if self.steps[:1] == ["CREATE"]:
            self.steps[0] += f" {step}"
        else:
            self.steps.append(f"BACKFILL {step}")
        self.rows += rows

    def _partitions(self) -> list[str] | None:
        """Return the partitions of the source to backfill, None for all."""
        scope = self.settings.backfill
        if not scope.is_bounded:
            return None
        return scope_partitions(self.warehouse, self.names, self.definition.trigger, scope)

    def _replay_stale(self, health: Health | None) -> None:
        """Recompute the slices that a change of the inputs or of the query made stale."""
        if health is None or not health.stale_slices:
            return
        replayed = self._system("REPLAY", "STALE")
        rows = sum(row["rows_after"] for row in replayed)
        self.steps.append(f"REPLAY {len(replayed)} partitions, {rows} rows")
        self.rows += rows

    def _restore_read_view(self, differences: Differences, *, changed: bool) -> None:
        """Give the read view the model's query if it has another, and record the definition."""
        warehouse, names = self.warehouse, self.names
        if changed:
            differences = compare(warehouse, names, self.definition, warehouse.model_state(names))
        if differences.read_view:
            if not differences.model_changed and not changed:
                self._warn("its read view was changed or dropped by hand, and is put back.")
            warehouse.run(self.definition.create_read_view(names))
            self.steps.append("READ VIEW")
        if differences.recorded:
            view = warehouse.sql_name(names, names.view)
            comment = self.definition.comment_literal
            warehouse.run(f"ALTER TABLE {view} MODIFY COMMENT {comment}")

    def _say_what_is_left(self, health: Health | None) -> None:
        """Warn of what this run leaves, with the statement that repairs it."""
        if health is None:
            return
        repair = f" {health.mend} repairs it." if health.mend else ""
        if health.bypass_rows:
            self._warn(
                f"{health.bypass_rows} rows of {self.names.target} were written by hand and are "
                f"left.{repair}"
            )
        elif health.verdict in ("unverifiable", "broken"):
            self._warn(f"is {health.verdict}: {health.reason}{repair}")

    # --- helpers

    def _health(self) -> Health | None:
        """Return the current health of the trigger."""
        return self.warehouse.health(self.names)

    def _system(self, action: str, rest: str = "") -> list[dict[str, Any]]:
        """Run a SYSTEM … VIEW statement about the trigger where backfills run; return its rows."""
        computes = action in ("BACKFILL", "REBUILD", "REPLAY")
        return self.warehouse.run_system(
            action,
            self.names,
            rest,
            engine=self.settings.backfill_engine if computes else "in_process",
            progress=self.progress if computes else None,
        )

    def _warn(self, text: str) -> None:
        """Log a warning about the model."""
        logger.warning(f"{self.names}: {text}")

    def _outcome(self) -> Outcome:
        """Return the outcome of the run."""
        names = self.names
        return Outcome(
            "; ".join(self.steps) or "NO CHANGE",
            self.rows,
            tuple(self.warehouse.statements),
            ((names.model, "view"), (names.target, "table"), (names.view, "materialized_view")),
            self.progress.response(),
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
        dropped = warehouse.sql_name(ModelNames(view.database, ""), view.name)
        warehouse.run(f"DROP VIEW IF EXISTS {dropped}")  # its versions go with it
