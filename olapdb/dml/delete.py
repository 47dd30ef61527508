"""DELETE: rows leave, and every view that saw them learns it.

Parts are immutable: a part with deleted rows is replaced, in one commit, by one without them, of
the same blocks.  The same commit raises the data version of the partition, so that a backfill or
a replay that read the old rows cannot publish, and says to views what `leave` knows (rules 4, 5).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_query
from olapdb.errors import IncorrectQuery
from olapdb.execute import ExecutionContext, run
from olapdb.functions.base import Environment
from olapdb.ingest.block_stager import layout_of
from olapdb.ingest.read_parts import discard, discarding, read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.row_removal import RowChange, RowRemoval, stored_table
from olapdb.model.changes import AddPart, Change, PartsLive, RemoveParts
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.storage.writer import write_part

Parameters = Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Rows that left, parts that were replaced or removed; `commit` None where nothing matched."""

    rows: int
    parts: int
    commit: int | None


NOTHING_LEFT = DeleteResult(0, 0, None)


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
    parameters: Parameters = None,
    cancelled: threading.Event | None = None,
) -> DeleteResult:
    """Deletes the rows for which the condition is true (NULL is not), as of one snapshot.

    Rows inserted meanwhile stay.  In a view's target the slices are stale, or the view's gap where
    nothing is left of them.  Raises RetainedRows for rows that could not be made again (unless the
    settings say `discard_retained`), UnsupportedMethod where the engine stores no parts.
    """
    given = settings or {}
    change = RowChange(
        services,
        "DELETE",
        query_id,
        statement,
        given,
        environment or services.environment(query_id),
        discard_retained=bool(given.get("discard_retained", False)),
        cancelled=cancelled or threading.Event(),
    )

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = stored_table(snapshot, table_id, "DELETE")
        found = matching(change, snapshot, table, condition, partition_id, parameters)
        return rewrite(change, snapshot, table, found) if found else NOTHING_LEFT

    return change.until_published(attempt)


# --- what matches --------------------------------------------------------------------------------


def matching(
    change: RowChange,
    snapshot: Snapshot,
    table: Table,
    condition: nodes.Expression,
    partition_id: str | None,
    parameters: Parameters = None,
    among: Sequence[Part] | None = None,
) -> list[tuple[Part, np.ndarray]]:
    """Each part with matching rows, and their offsets in it; only of the parts `among`, where
    given."""
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
        snapshot=snapshot,
        database=change.environment.database,
        settings=change.settings,  # type: ignore[arg-type]
        environment=change.environment,
        parameters=parameters or (),
    )
    context = ExecutionContext(
        snapshot=snapshot,
        store=change.services.store,
        settings=change.settings,
        environment=change.environment,
        cancelled=change.cancelled,
        parts={} if among is None else {table.id: tuple(among)},
    )
    by_name = {part.name: part for part in snapshot.parts(table.id) if part.rows}
    offsets: dict[str, list[np.ndarray]] = {}
    for batch in run(optimize(bind_query(query, scope)), context).batches():
        names = batch.column(0).dictionary_encode()
        where = batch.column(1).to_numpy(zero_copy_only=False)
        codes = names.indices.to_numpy(zero_copy_only=False)
        for code, name in enumerate(names.dictionary.to_pylist()):
            offsets.setdefault(name, []).append(where[codes == code])
    return [(by_name[name], np.concatenate(found)) for name, found in offsets.items()]


def rewrite(
    change: RowChange,
    snapshot: Snapshot,
    table: Table,
    found: Sequence[tuple[Part, np.ndarray | None]],
) -> DeleteResult:
    """One commit in which these rows of these parts leave (offsets None: all of the part's)."""
    parts = tuple(part for part, _ in found)
    leaving = RowRemoval(change, snapshot, table, parts)
    around = change.around(snapshot)
    staged: list[AddPart] = []
    removed = 0

    def give_up() -> None:
        discard(change.services, [one.part.path for one in staged if one.part.path])

    try:
        for part, offsets in found:
            around.refuse_cancelled()
            if offsets is None or len(offsets) == part.rows:
                rows = read_rows(around, table, part) if leaving.reads_rows else None
                leaving.add(part, rows, part.rows)
                removed += part.rows
                continue
            rows = read_rows(around, table, part)
            gone = np.zeros(part.rows, dtype=bool)
            gone[offsets] = True
            mask = pa.array(gone)
            removed += len(offsets)
            leaving.add(part, rows.filter(mask), len(offsets))
            staged.append(_staged(around, change, table, part, rows.filter(pc.invert(mask))))
            failpoint("delete.part_rewritten")
    except BaseException:
        give_up()
        raise
    with discarding(give_up):
        ids = tuple(sorted(part.id for part in parts))
        changes: list[Change] = [RemoveParts(table.id, ids), *staged]
        commit = leaving.publish([PartsLive(table.id, ids)], changes)
    return DeleteResult(removed, len(parts), commit)


def _staged(
    around: TriggerContext, change: RowChange, table: Table, part: Part, rows: pa.Table
) -> AddPart:
    made = write_part(
        change.services.store,
        table,
        rows,
        partition_id=part.partition_id,
        partition_value=part.partition_value,
        blocks=part.block_range,
        lease_id=change.services.lease_id,
        contributions=part.contributions,
        level=part.level,
        inline_bytes_max=rows.nbytes if part.inline else 0,
        replaces=[part.id],
        index_values=layout_of(table, around).index_values(rows),
    )
    return AddPart(made.part, made.inline_rows)


def require_condition(condition: nodes.Expression | None) -> nodes.Expression:
    """IncorrectQuery for a DELETE without WHERE."""
    if condition is None:
        raise IncorrectQuery("DELETE needs a WHERE.", hint="TRUNCATE TABLE removes all rows.")
    return condition
