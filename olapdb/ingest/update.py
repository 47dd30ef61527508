"""UPDATE, and several mutations of one ALTER: rows of parts are rewritten, in one commit.

Parts are immutable: a part with changed rows is replaced by one of the same blocks.  The steps of
one statement see each other's rows, but nobody else sees any of them before the commit, which
raises the data version of each partition and names the slices of views that the rows, as they
were and as they are, belong to (rule 4):

    UPDATE v = v + 1 WHERE k = 2, DELETE WHERE v > 9
    step 1   part a -> a1 (staged)          step 2   a1 -> a2 (staged; a1 is thrown away)
    commit   - a   + a2   raise(partition of a)   invalidate(what a's changed rows reached, and a2's)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_query
from olapdb.errors import (
    CannotUpdateColumn,
    CommitConflict,
    CommitUnknown,
    Error,
    HaveDependentObjects,
    MultipleAssignments,
    NoSuchColumn,
    UnsupportedMethod,
)
from olapdb.execute import ExecutionContext, run
from olapdb.execute.batches import single_chunk
from olapdb.execute.defaults import DefaultColumns
from olapdb.execute.layout import TableLayout
from olapdb.ingest.dimensions import dimension_changed
from olapdb.ingest.insert import ATTEMPTS_MAX
from olapdb.ingest.invalidate import StaleSlices, touched_parts, watchers_are
from olapdb.ingest.read import Pin, discard, read_rows
from olapdb.ingest.stage import INLINE_BYTES_MAX, VOID_PARTITION, dimension_requirements
from olapdb.ingest.trigger import Surroundings, bound_view
from olapdb.model.changes import (
    AddPart,
    Change,
    Commit,
    LeaseLive,
    PartsLive,
    RaiseDataVersion,
    RemoveParts,
    Requirement,
    SchemaIs,
)
from olapdb.model.part import Part
from olapdb.model.schema import Column, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.plan.nodes import Node, Scan
from olapdb.plan.tree import subqueries_of, walk_nodes
from olapdb.sql import nodes
from olapdb.storage.writer import write_part
from olapdb.transaction.cache import Cache
from olapdb.transaction.points import reach
from olapdb.transaction.services import Services

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class SetStep:
    """`UPDATE a = x, b = y WHERE …`; `where` None: every row. `recompute` names MATERIALIZED
    columns whose expression is evaluated again for these rows."""

    assignments: tuple[tuple[str, nodes.Expression], ...]
    where: nodes.Expression | None
    partition_id: str | None = None
    recompute: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteStep:
    where: nodes.Expression
    partition_id: str | None = None


@dataclass(frozen=True, slots=True)
class WriteDownStep:
    """Parts that are too old to hold the column get it, as it is read: no row changes."""

    column: str


Step: TypeAlias = SetStep | DeleteStep | WriteDownStep


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Rows that a step changed or removed, parts that were replaced; `commit` None where there was
    nothing to do."""

    rows: int
    parts: int
    commit: int | None


def update_rows(
    services: Services,
    table_id: str,
    step: SetStep,
    *,
    around: Surroundings,
    query_id: str = "",
    statement: str = "",
    parameters: Parameters = None,
) -> UpdateResult:
    """One UPDATE, as of one snapshot, anew on each conflict, bounded.  Rows inserted meanwhile stay
    as they are.  `around` gives settings and environment.

    Raises what `check_assignments` raises, and HaveDependentObjects on the target of a view.
    """
    for _ in range(ATTEMPTS_MAX):
        snapshot = services.catalog.snapshot()
        with Pin(services, snapshot.number):
            table = snapshot.by_id(table_id)
            if not isinstance(table, Table):
                raise CommitConflict("The table of this UPDATE does not exist any more.")
            mutation = Mutation(services, snapshot, table, around, query_id, statement, parameters)
            try:
                mutation.run(step)
                if not mutation.replaced:
                    return UpdateResult(0, 0, None)
                requirements, changes = mutation.commit_data()
                requirements.insert(0, SchemaIs(table.id, table.version))
                reach("update.before_commit")
                committed = services.catalog.apply(
                    Commit(
                        (LeaseLive(services.lease_id), *requirements), tuple(changes), "UPDATE",
                        query_id, statement,
                    )
                )  # fmt: skip
            except CommitUnknown:
                raise
            except CommitConflict:
                mutation.discard()
                continue
            except BaseException:
                mutation.discard()
                raise
            services.notify_written(table.id)
            return UpdateResult(mutation.rows, len(mutation.replaced), committed.number)
    raise CommitConflict(
        f"Merges and INSERTs were faster than this UPDATE {ATTEMPTS_MAX} times.",
        hint="Nothing was changed; run it again, after SYSTEM STOP MERGES if need be.",
    )


@dataclass
class Mutation:
    """Steps over `table`, which may be newer than the snapshot's (an ALTER that is not made yet).

    `replaced` has the live parts that are not as they were, with what stands for them."""

    services: Services
    snapshot: Snapshot
    table: Table
    settings_of: Surroundings
    query_id: str
    statement: str
    parameters: Parameters = None
    rows: int = 0
    replaced: dict[str, AddPart | None] = field(default_factory=dict)
    partitions: dict[str, None] = field(default_factory=dict)
    _stale: dict[str, StaleSlices] = field(default_factory=dict)
    _read: dict[str, frozenset[str]] = field(default_factory=dict)
    _touched: dict[str, Part] = field(default_factory=dict)
    _cache: Cache = field(default_factory=Cache)

    def run(self, step: Step) -> None:
        """Rewrites what the step changes; nothing is visible."""
        if not self.table.engine.is_merge_tree:
            raise UnsupportedMethod(
                f"Mutations need a table of the MergeTree family, not {self.table.engine.name}.",
                hint="TRUNCATE TABLE and INSERT the rows anew.",
            )
        match step:
            case SetStep():
                self._set(step)
            case DeleteStep():
                self._delete(step)
            case WriteDownStep():
                self._write_down(step)

    def commit_data(self) -> tuple[list[Requirement], list[Change]]:
        """What the steps came to: requirements (of the rows, not of the schema) and changes."""
        if not self.replaced:
            return [], []
        ids = tuple(sorted(self.replaced))
        requirements: list[Requirement] = [PartsLive(self.table.id, ids)]
        changes: list[Change] = [RemoveParts(self.table.id, ids)]
        changes += [staged for staged in self.replaced.values() if staged is not None]
        if not self.partitions:
            return requirements, changes
        for partition in (VOID_PARTITION, *self.partitions):
            changes.append(RaiseDataVersion(self.table.id, partition))
        requirements.append(watchers_are(self.snapshot, self.table.id))
        touched = tuple(self._touched.values())
        now = self.services.clock_ms()
        for view in self.snapshot.views_on(self.table.id):
            seen, unseen = touched_parts(view, touched, self.snapshot)
            requirements += unseen
            if seen:
                requirements += [one for one, _ in dimension_requirements(view, self.snapshot)]
            if view.id in self._stale:
                changes += self._stale[view.id].invalidations(
                    "UPDATE", self.statement, self.query_id, now
                )
        more, needed = dimension_changed(
            self.snapshot, {self.table.id}, "DIMENSION CHANGE", self.statement, self.query_id,
            self.rows, now, services=self.services, changes=changes,
            settings=self.settings_of.settings,
        )  # fmt: skip
        return [*requirements, *needed], [*changes, *more]

    def discard(self) -> None:
        """Deletes what was staged, for a commit that surely did not happen."""
        staged = [one.part.path for one in self.replaced.values() if one is not None]
        discard(self.services, [path for path in staged if path])
        self.replaced.clear()

    # --- the steps

    def _set(self, step: SetStep) -> None:
        check_assignments(self.table, [name for name, _ in step.assignments])
        self._refuse_target("UPDATE")
        changed = {name for name, _ in step.assignments}
        defaults = self._defaults()
        again = [*step.recompute, *_computed_from(self.table, defaults, changed)]
        written = frozenset((*changed, *again))
        for part, found in self._matching(step):
            rows = read_rows(self._around(), self.table, part)
            at = found.column("_part_offset").to_numpy().astype(np.int64)
            leaving = rows.take(pa.array(at))
            arriving = _with_columns(leaving, {n: found.column(n) for n in changed})
            if again:
                kept = {n: single_chunk(arriving.column(n)) for n in arriving.column_names
                        if n not in again}  # fmt: skip
                full = defaults.complete(kept, len(at), self.settings_of.environment, again)
                arriving = _with_columns(arriving, {n: full[n] for n in again})
            made = _with_columns(
                rows, {n: _scattered(rows.column(n), at, arriving.column(n)) for n in written}
            )
            self._invalidate(part, written, (leaving, arriving))
            self._stage(part, made, leaving.num_rows)

    def _delete(self, step: DeleteStep) -> None:
        self._refuse_target("DELETE beside other actions")
        everything = frozenset(c.name for c in self.table.stored_columns)
        for part, found in self._matching(step):
            rows = read_rows(self._around(), self.table, part)
            gone = np.zeros(part.rows, dtype=bool)
            gone[found.column("_part_offset").to_numpy().astype(np.int64)] = True
            mask = pa.array(gone)
            leaving = rows.filter(mask)
            self._invalidate(part, everything, (leaving,))
            self._stage(part, rows.filter(pc.invert(mask)), leaving.num_rows)

    def _write_down(self, step: WriteDownStep) -> None:
        column = self.table.column(step.column)
        assert column is not None
        for part in self._parts():
            if part.rows and part.schema_version < column.since:
                rows = read_rows(self._around(), self.table, part)
                self._stage(part, rows, 0, changes_rows=False)

    def _refuse_target(self, action: str) -> None:
        """What a view wrote is what it makes of its source; rows of it are not set by hand."""
        views = self.snapshot.views_into(self.table.id)
        if not views:
            return
        name = f"{views[0].database}.{views[0].name}"
        source = self.snapshot.by_id(views[0].source_id)
        where = f"{source.database}.{source.name}" if source is not None else "its source"
        raise HaveDependentObjects(
            f"{action}: {self.table.database}.{self.table.name} is written by view {name}, which"
            " claims to hold what its query makes.",
            hint=f"Change the rows of {where} and run SYSTEM REPLAY VIEW {name} STALE.",
        )

    # --- rows

    def _around(self) -> Surroundings:
        """The rows as the steps so far left them. Not the services' cache: what is bound here is
        a version of the table that may never come to be."""
        base = self.settings_of
        return Surroundings(
            self._visible(), self.services.store, self._cache, base.settings, base.environment,
            base.cancelled,
        )  # fmt: skip

    def _visible(self) -> Snapshot:
        return cast(Snapshot, _Rewritten(self.snapshot, self.table, self.replaced))

    def _parts(self) -> list[Part]:
        return [part for part in self._visible().parts(self.table.id) if part.rows]

    def _defaults(self) -> DefaultColumns:
        return DefaultColumns.of(
            self.table, self._visible(), self.settings_of.environment, self._cache
        )

    def _matching(self, step: SetStep | DeleteStep) -> list[tuple[Part, pa.Table]]:
        """Each part with matching rows: their offsets, and the assigned values under the columns'
        names."""
        assignments = step.assignments if isinstance(step, SetStep) else ()
        values = tuple(
            nodes.Alias(nodes.Cast(value, _column(self.table, name).type), f"\0{name}")
            for name, value in assignments
        )
        query = nodes.Select(
            columns=(nodes.Identifier(("_part",)), nodes.Identifier(("_part_offset",)), *values),
            source=nodes.TableReference(nodes.TableName(self.table.name, self.table.database)),
            where=_in_partition(step.where, step.partition_id),
        )
        around = self._around()
        scope = BindScope(
            snapshot=around.snapshot, database=around.environment.database,
            settings=around.settings, environment=around.environment,  # type: ignore[arg-type]
            parameters=self.parameters or (),
        )  # fmt: skip
        context = ExecutionContext(
            snapshot=around.snapshot, store=around.store, settings=around.settings,
            environment=around.environment, cancelled=around.cancelled,
        )  # fmt: skip
        found = run(optimize(bind_query(query, scope)), context).read_all()
        names = ["_part", "_part_offset", *(name for name, _ in assignments)]
        found = found.rename_columns(names)
        return [
            (part, found.filter(pc.equal(found.column("_part"), part.name)).combine_chunks())
            for part in self._parts_named(found)
        ]

    def _parts_named(self, found: pa.Table) -> list[Part]:
        names = set(pc.unique(found.column("_part")).to_pylist())
        return [part for part in self._parts() if part.name in names]

    # --- what comes of them

    def _stage(
        self, part: Part, rows: pa.Table, count: int, *, changes_rows: bool = True
    ) -> None:
        """`rows` stand for the part from now on; `part` is live, or staged by an earlier step."""
        origin, before = self._origin(part)
        staged = None
        if rows.num_rows or part.contributions:
            made = write_part(
                self.services.store, self.table, rows,
                partition_id=part.partition_id, partition_value=part.partition_value,
                blocks=part.block_range, lease_id=self.services.lease_id,
                contributions=part.contributions, level=part.level,
                inline_bytes_max=INLINE_BYTES_MAX if part.inline else 0, replaces=[origin.id],
            )  # fmt: skip
            staged = AddPart(made.part, made.inline_rows)
        self.replaced[origin.id] = staged
        if before is not None and before.part.path:
            discard(self.services, [before.part.path])
        if changes_rows:
            self.rows += count
            self.partitions[part.partition_id] = None
            self._touched[origin.id] = origin
        reach("update.part_rewritten")

    def _origin(self, part: Part) -> tuple[Part, AddPart | None]:
        """The live part that `part` is, or stands for."""
        for live in self.snapshot.parts(self.table.id):
            staged = self.replaced.get(live.id)
            if live.id == part.id or (staged is not None and staged.part.id == part.id):
                return live, staged
        raise CommitConflict(f"Part {part.id} is not of the snapshot.")

    def _invalidate(
        self, part: Part, written: frozenset[str], changed: Iterable[pa.Table]
    ) -> None:
        """The slices of the views that have seen the part and read a column that changes."""
        origin, _ = self._origin(part)
        base = self.settings_of
        around = Surroundings(
            self.snapshot, self.services.store, self.services.cache, base.settings,
            base.environment, base.cancelled,
        )  # fmt: skip
        for view in self.snapshot.views_on(self.table.id):
            seen, _ = touched_parts(view, (origin,), self.snapshot)
            if not seen or not self._columns_of(view, around) & written:
                continue
            slices = self._stale.setdefault(view.id, StaleSlices.of(view))
            for rows in changed:
                slices.add(rows, around)

    def _columns_of(self, view: MaterializedView, around: Surroundings) -> frozenset[str]:
        """The columns of the table that the view reads; all of them where it is broken."""
        if view.id not in self._read:
            try:
                plan = bound_view(view, around).plan
            except Error:
                self._read[view.id] = frozenset(c.name for c in self.table.columns)
            else:
                self._read[view.id] = columns_read(plan.root, self.table.id)
        return self._read[view.id]


def check_assignments(table: Table, names: Sequence[str]) -> None:
    """Refuses what an UPDATE may not set: keys and engines' columns (they decide where a row lies,
    and which of two stays), MATERIALIZED columns, and what is no stored column."""
    layout = TableLayout(table)
    keys = layout.sorting_columns | layout.partition_columns
    roles = {table.engine.version, table.engine.sign, table.engine.is_deleted} - {None}
    where = f"{table.database}.{table.name}"
    for name in names:
        column = table.column(name)
        if column is None or not column.stored:
            have = ", ".join(c.name for c in table.stored_columns)
            raise NoSuchColumn(
                f"There is no stored column {name} in {where}.", hint=f"It has {have}."
            )
        if name in keys or name in roles:
            raise CannotUpdateColumn(
                f"Cannot UPDATE key column {name} of {where}.",
                hint="DELETE the rows and INSERT them anew.",
            )
        if column.default_kind == "MATERIALIZED":
            raise CannotUpdateColumn(
                f"Cannot UPDATE MATERIALIZED column {name} of {where}: it is computed.",
                hint="UPDATE the columns that it is computed from.",
            )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MultipleAssignments(f"Column {twice} is assigned twice in one UPDATE.")


def columns_read(root: Node, table_id: str) -> frozenset[str]:
    """The columns of the table that a plan reads, in subqueries too."""
    found: set[str] = set()
    for node in walk_nodes(root):
        if isinstance(node, Scan) and node.table.id == table_id:
            found.update(column for _, column in node.columns)
            found.update(column for _, column, _ in node.predicate_columns)
        for inner in subqueries_of(node):
            found |= columns_read(inner, table_id)
    return frozenset(found)


def _computed_from(table: Table, defaults: DefaultColumns, changed: set[str]) -> list[str]:
    """MATERIALIZED columns whose value hangs on the changed ones, directly or through another."""
    needs = {c.name: c.needs for c in defaults.columns}
    found: list[str] = []
    reached = set(changed)
    waiting = [c.name for c in table.columns if c.default_kind == "MATERIALIZED"]
    while True:
        more = [n for n in waiting if n not in reached and needs[n] & reached]
        if not more:
            return found
        found += more
        reached.update(more)


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None
    return column


def _in_partition(
    where: nodes.Expression | None, partition_id: str | None
) -> nodes.Expression | None:
    if partition_id is None:
        return where
    same = nodes.Function(
        "equals", (nodes.Identifier(("_partition_id",)), nodes.Literal(partition_id))
    )
    return same if where is None else nodes.Function("and", (same, where))


def _with_columns(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, values.cast(rows.schema.field(at).type))
    return rows


def _scattered(values: pa.ChunkedArray, at: np.ndarray, new: pa.ChunkedArray) -> pa.Array:
    """`values` with `new[i]` at position `at[i]`."""
    take = np.arange(len(values))
    take[at] = len(values) + np.arange(len(at))
    both = pa.concat_arrays([single_chunk(values), single_chunk(new).cast(values.type)])
    return both.take(pa.array(take))


@dataclass(frozen=True)
class _Rewritten:
    """The snapshot with the table as it will be, and staged parts for those that they replace."""

    below: Snapshot
    table: Table
    replaced: Mapping[str, AddPart | None]

    def __getattr__(self, name: str) -> object:
        return getattr(self.below, name)

    def find(self, database: str, name: str) -> SchemaObject | None:
        found = self.below.find(database, name)
        return self.table if found is not None and found.id == self.table.id else found

    def by_id(self, object_id: str) -> SchemaObject | None:
        return self.table if object_id == self.table.id else self.below.by_id(object_id)

    def parts(self, table_id: str) -> tuple[Part, ...]:
        live = self.below.parts(table_id)
        if table_id != self.table.id:
            return live
        found: list[Part] = []
        for part in live:
            if part.id not in self.replaced:
                found.append(part)
                continue
            staged = self.replaced[part.id]
            if staged is not None:
                found.append(staged.part)
        return tuple(found)

    def inline_rows(self, part: Part) -> bytes:
        for staged in self.replaced.values():
            if staged is not None and staged.part.id == part.id:
                assert staged.inline_rows is not None
                return staged.inline_rows
        return self.below.inline_rows(part)
