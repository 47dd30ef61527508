"""DELETE, TRUNCATE and DROP PARTITION: rows leave, and every view that saw them learns it.

Parts are immutable: a part with deleted rows is replaced, in one commit, by one without them, of
the same blocks.  The same commit raises the data version of the partition, so that a backfill or
a replay that read the old rows cannot publish, and names the slices that became stale (rule 4).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_query
from olapdb.errors import (
    CommitConflict,
    CommitUnknown,
    Error,
    HaveDependentObjects,
    IncorrectQuery,
    UnknownTable,
    UnsupportedMethod,
)  # fmt: skip
from olapdb.execute import ExecutionContext, run
from olapdb.functions.base import Environment
from olapdb.ingest.dimensions import dimension_changed
from olapdb.ingest.insert import ATTEMPTS_MAX
from olapdb.ingest.invalidate import (
    StaleSlices,
    touched_parts,
    watchers_are,
)  # fmt: skip
from olapdb.ingest.read import Pin, discard, read_rows
from olapdb.ingest.stage import VOID_PARTITION, dimension_requirements
from olapdb.ingest.trigger import Surroundings
from olapdb.model.changes import (
    AddPart,
    Change,
    Commit,
    LeaseLive,
    PartsLive,
    PartsOfPartitionAre,
    RaiseDataVersion,
    RemoveCoverage,
    RemoveParts,
    Requirement,
    SchemaIs,
)  # fmt: skip
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause
from olapdb.optimize import optimize
from olapdb.sql import nodes
from olapdb.storage.writer import write_part
from olapdb.transaction.points import reach
from olapdb.transaction.services import Services


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Rows that left, parts that were replaced or removed; `commit` None where nothing matched."""

    rows: int
    parts: int
    commit: int | None


@dataclass(frozen=True)
class _Change:
    """One statement that removes rows."""

    services: Services
    cause: Cause
    query_id: str
    statement: str
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)

    def around(self, snapshot: Snapshot) -> Surroundings:
        return Surroundings(
            snapshot, self.services.store, self.services.cache, self.settings, self.environment,
            threading.Event(),
        )  # fmt: skip

    def apply(self, requirements: Sequence[Requirement], changes: Sequence[Change]) -> int:
        needed = (LeaseLive(self.services.lease_id), *requirements)
        commit = Commit(needed, tuple(changes), self.cause, self.query_id, self.statement)
        reach("delete.before_commit")
        return self.services.catalog.apply(commit).number

    def until_published(self, attempt: Callable[[Snapshot], DeleteResult]) -> DeleteResult:
        """Computes and commits, anew on each conflict, bounded."""
        for _ in range(ATTEMPTS_MAX):
            snapshot = self.services.catalog.snapshot()
            with Pin(self.services, snapshot.number):
                try:
                    return attempt(snapshot)
                except CommitConflict:
                    continue
        raise CommitConflict(
            f"Merges and INSERTs were faster than this {self.cause} {ATTEMPTS_MAX} times.",
            hint="Nothing was changed; run it again, after SYSTEM STOP MERGES if need be.",
        )


def delete_rows(
    services: Services,
    table_id: str,
    condition: nodes.Expression,
    *,
    partition_id: str | None = None,
    query_id: str = "",
    statement: str = "",
    settings: Mapping[str, object] | None = None,
    environment: Environment | None = None,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
) -> DeleteResult:
    """Deletes the rows for which the condition is true (NULL is not), as of one snapshot.

    Rows inserted meanwhile stay.  Refused (HaveDependentObjects) on the target of a view, whose
    ledger says what is in it, and (UnsupportedMethod) where the engine stores no parts.
    """
    change = _Change(services, "DELETE", query_id, statement, settings or {},
                     environment or Environment(zone=services.zone))  # fmt: skip

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = _table(snapshot, table_id, "DELETE")
        refuse_target(snapshot, table, "DELETE FROM")
        found = _matching(change, snapshot, table, condition, partition_id, parameters)
        if not found:
            return DeleteResult(0, 0, None)
        return _rewrite(change, snapshot, table, found)

    return change.until_published(attempt)


def truncate(
    services: Services, table_id: str, *, query_id: str = "", statement: str = ""
) -> DeleteResult:
    """Removes all rows.  In a view's target the coverage leaves with them (rule 5): everything is
    the view's gap again.  Views that read the table are stale as a whole."""
    change = _Change(services, "TRUNCATE", query_id, statement)

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = _table(snapshot, table_id, "TRUNCATE")
        parts = snapshot.parts(table.id)
        ids = tuple(sorted(part.id for part in parts))
        rows = sum(part.rows for part in parts)
        changes: list[Change] = [RemoveParts(table.id, ids)] if ids else []
        changes += _raised(table, parts)
        requirements: list[Requirement] = [
            SchemaIs(table.id, table.version),
            PartsOfPartitionAre(table.id, None, ids),
            watchers_are(snapshot, table.id),
        ]
        changes += [RemoveCoverage(view.id) for view in snapshot.views_into(table.id)]
        now = services.clock_ms()
        for view in snapshot.views_on(table.id):
            seen, unseen = touched_parts(view, parts, snapshot)
            requirements += unseen
            if any(part.rows for part in seen):
                stale = StaleSlices.of(view)
                stale.add_all(sum(part.rows for part in seen))
                changes += stale.invalidations("TRUNCATE", statement, query_id, now)
        if rows:
            more, needed = dimension_changed(
                snapshot, {table.id}, "DIMENSION CHANGE", statement, query_id, rows, now
            )
            changes += more
            requirements += needed
        if not parts and not snapshot.views_into(table.id):
            return DeleteResult(0, 0, None)
        return DeleteResult(rows, len(parts), change.apply(requirements, changes))

    return change.until_published(attempt)


def drop_partition(
    services: Services,
    table_id: str,
    partition_id: str,
    *,
    query_id: str = "",
    statement: str = "",
) -> DeleteResult:
    """Removes one partition; the views' slices that its rows reached become stale.

    Refused (HaveDependentObjects) on the target of a view."""
    change = _Change(services, "DROP PARTITION", query_id, statement,
                     environment=Environment(zone=services.zone))  # fmt: skip

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = _table(snapshot, table_id, "DROP PARTITION")
        refuse_target(snapshot, table, "ALTER TABLE … DROP PARTITION on")
        parts = tuple(p for p in snapshot.parts(table.id) if p.partition_id == partition_id)
        if not parts:
            return DeleteResult(0, 0, None)
        around = change.around(snapshot)
        stale, requirements = _watchers(snapshot, table, parts)
        for part in parts:
            rows = read_rows(around, table, part)
            for slices, seen in stale:
                if part in seen:
                    slices.add(rows, around)
        ids = tuple(sorted(part.id for part in parts))
        removed = sum(part.rows for part in parts)
        requirements += [PartsOfPartitionAre(table.id, partition_id, ids)]
        changes: list[Change] = [RemoveParts(table.id, ids)]
        return _publish(change, snapshot, table, parts, removed, stale, requirements, changes)

    return change.until_published(attempt)


# --- what matches --------------------------------------------------------------------------------


def _matching(
    change: _Change, snapshot: Snapshot, table: Table, condition: nodes.Expression,
    partition_id: str | None, parameters: Sequence[object] | Mapping[str, object] | None,
) -> list[tuple[Part, np.ndarray]]:  # fmt: skip
    """Each part with matching rows, and their offsets in it."""
    if partition_id is not None:
        same = nodes.Function(
            "equals", (nodes.Identifier(("_partition_id",)), nodes.Literal(partition_id))
        )
        condition = nodes.Function("and", (same, condition))
    query = nodes.Select(
        columns=(nodes.Identifier(("_part",)), nodes.Identifier(("_part_offset",))),
        source=nodes.TableReference(nodes.TableName(table.name, table.database)),
        where=condition,
    )
    scope = BindScope(
        snapshot=snapshot, database=change.environment.database,
        settings=change.settings, environment=change.environment, parameters=parameters or (),  # type: ignore[arg-type]
    )  # fmt: skip
    context = ExecutionContext(
        snapshot=snapshot, store=change.services.store, settings=change.settings,
        environment=change.environment,
    )  # fmt: skip
    by_name = {part.name: part for part in snapshot.parts(table.id) if part.rows}
    offsets: dict[str, list[np.ndarray]] = {}
    for batch in run(optimize(bind_query(query, scope)), context).batches():
        names = batch.column(0).dictionary_encode()
        where = batch.column(1).to_numpy(zero_copy_only=False)
        codes = names.indices.to_numpy(zero_copy_only=False)
        for code, name in enumerate(names.dictionary.to_pylist()):
            offsets.setdefault(name, []).append(where[codes == code])
    return [(by_name[name], np.concatenate(found)) for name, found in offsets.items()]


def _rewrite(
    change: _Change, snapshot: Snapshot, table: Table, found: list[tuple[Part, np.ndarray]]
) -> DeleteResult:
    parts = tuple(part for part, _ in found)
    stale, requirements = _watchers(snapshot, table, parts)
    around = change.around(snapshot)
    staged: list[AddPart] = []
    removed = 0
    try:
        for part, offsets in found:
            rows = read_rows(around, table, part)
            gone = np.zeros(part.rows, dtype=bool)
            gone[offsets] = True
            mask = pa.array(gone)
            leaving = rows.filter(mask)
            removed += leaving.num_rows
            for slices, seen in stale:
                if part in seen:
                    slices.add(leaving, around)
            staying = rows.filter(pc.invert(mask))
            if staying.num_rows:
                staged.append(_staged(change.services, table, part, staying))
            reach("delete.part_rewritten")
        ids = tuple(sorted(part.id for part in parts))
        requirements.append(PartsLive(table.id, ids))
        changes: list[Change] = [RemoveParts(table.id, ids), *staged]
        return _publish(change, snapshot, table, parts, removed, stale, requirements, changes)
    except CommitUnknown:
        raise
    except Error:
        discard(change.services, [one.part.path for one in staged if one.part.path])
        raise


def _staged(services: Services, table: Table, part: Part, rows: pa.Table) -> AddPart:
    made = write_part(
        services.store, table, rows,
        partition_id=part.partition_id, partition_value=part.partition_value,
        blocks=part.block_range, lease_id=services.lease_id, contributions=part.contributions,
        level=part.level, inline_bytes_max=rows.nbytes if part.inline else 0,
    )  # fmt: skip
    return AddPart(made.part, made.inline_rows)


# --- publishing ----------------------------------------------------------------------------------


def _watchers(
    snapshot: Snapshot, table: Table, parts: Sequence[Part]
) -> tuple[list[tuple[StaleSlices, list[Part]]], list[Requirement]]:
    """For each view on the table, the parts that it has seen."""
    watching: list[tuple[StaleSlices, list[Part]]] = []
    requirements: list[Requirement] = [watchers_are(snapshot, table.id)]
    for view in snapshot.views_on(table.id):
        seen, unseen = touched_parts(view, parts, snapshot)
        requirements += unseen
        if seen:
            watching.append((StaleSlices.of(view), seen))
            requirements += [one for one, _ in dimension_requirements(view, snapshot)]
    return watching, requirements


def _publish(
    change: _Change, snapshot: Snapshot, table: Table, parts: Sequence[Part], removed: int,
    stale: list[tuple[StaleSlices, list[Part]]], requirements: list[Requirement],
    changes: list[Change],
) -> DeleteResult:  # fmt: skip
    now = change.services.clock_ms()
    changes += _raised(table, parts)
    for slices, _ in stale:
        changes += slices.invalidations(change.cause, change.statement, change.query_id, now)
    more, needed = dimension_changed(
        snapshot, {table.id}, "DIMENSION CHANGE", change.statement, change.query_id, removed, now
    )
    commit = change.apply(
        [SchemaIs(table.id, table.version), *requirements, *needed], [*changes, *more]
    )
    change.services.notify_written(table.id)
    return DeleteResult(removed, len(parts), commit)


def _raised(table: Table, parts: Sequence[Part]) -> list[Change]:
    partitions = dict.fromkeys((VOID_PARTITION, *(part.partition_id for part in parts)))
    return [RaiseDataVersion(table.id, partition) for partition in partitions]


def _table(snapshot: Snapshot, table_id: str, action: str) -> Table:
    found = snapshot.by_id(table_id)
    if not isinstance(found, Table):
        raise UnknownTable(f"The table of this {action} does not exist any more.")
    if found.engine.name == "Null":
        raise UnsupportedMethod(
            f"{action}: {found.database}.{found.name} is a Null table and stores nothing."
        )
    if action != "TRUNCATE" and not found.engine.is_merge_tree:
        raise UnsupportedMethod(
            f"{action} needs a table of the MergeTree family, not {found.engine.name}.",
            hint="TRUNCATE TABLE removes all rows.",
        )
    return found


def refuse_target(snapshot: Snapshot, table: Table, action: str) -> None:
    """HaveDependentObjects where a view writes the table."""
    views: tuple[MaterializedView, ...] = snapshot.views_into(table.id)
    if not views:
        return
    view = views[0]
    name = f"{view.database}.{view.name}"
    source = snapshot.by_id(view.source_id)
    where = f"{source.database}.{source.name}" if source is not None else "its source"
    raise HaveDependentObjects(
        f"{action} {table.database}.{table.name} would leave view {name} claiming source rows"
        " whose results are gone.",
        hint=f"Delete the rows from {where} and run SYSTEM REPLAY VIEW {name} STALE;"
        f" rows written by hand leave with SYSTEM REPLAY VIEW {name} DISCARD BYPASS;"
        " TRUNCATE TABLE empties the target and its coverage.",
    )


def require_condition(condition: nodes.Expression | None) -> nodes.Expression:
    """IncorrectQuery for a DELETE without WHERE."""
    if condition is None:
        raise IncorrectQuery("DELETE needs a WHERE.", hint="TRUNCATE TABLE removes all rows.")
    return condition
