"""Fires the views of an INSERT again until they have joined what the INSERT itself brings.

    first     v joined what was staged before it fired; a later block brought more of hi
    again     all views join all of hi that the first firing brought
    done      the firing brings the very rows of hi that it joined: the commit publishes them

Views that write for each other may never agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.ingest.own_rows import OTHER_PARTS, AddedParts, added_parts
from olapdb.ingest.read_parts import read_staged
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.lineage.dimension_impact import row_difference
from olapdb.model.changes import AddPart
from olapdb.model.schema import SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.storage.store import Store

ROUNDS_MAX = 4
"""How often to fire views that write for each other; then their rows become stale."""


def settle_cascade(
    staged: StagedInsert,
    fire: Callable[[AddedParts, StagedInsert], StagedInsert],
    snapshot: Snapshot,
    store: Store,
    discard: Callable[[Iterable[str]], None],
) -> StagedInsert:
    """Fire the cascade again until two firings in a row bring the same rows, at most ROUNDS_MAX
    times; return the staging of the last firing. Views whose joined tables still differed are
    `unsettled` in it.

    `fire` returns the same source parts with the output of a cascade that joins the given parts,
    and deletes all staged files where it fails. `discard` deletes the files of an earlier firing.
    """
    tables = frozenset(firing.table_id for firing in staged.joined)
    for _ in range(ROUNDS_MAX):
        joined = added_parts(staged.changes, tables)
        again = fire(joined, staged)
        try:
            differing = _differing_tables(
                joined, added_parts(again.changes, tables), snapshot, store
            )
        except BaseException:
            discard((*staged.paths, *again.paths))
            raise
        kept = set(again.paths)
        discard([path for path in staged.paths if path not in kept])
        unsettled = (firing for firing in again.joined if firing.table_id in differing)
        staged = replace(
            again, joined=tuple(replace(firing, parts=OTHER_PARTS) for firing in unsettled)
        )
        if not differing:
            break
    return staged


def _differing_tables(
    before: AddedParts, after: AddedParts, snapshot: Snapshot, store: Store
) -> frozenset[str]:
    """Return the tables for which the two firings bring different rows."""
    return frozenset(
        table_id
        for table_id in before.keys() | after.keys()
        if not _same_rows(
            snapshot.by_id(table_id), before.get(table_id, ()), after.get(table_id, ()), store
        )
    )


def _same_rows(
    table: SchemaObject | None, before: Sequence[AddPart], after: Sequence[AddPart], store: Store
) -> bool:
    """Return whether two firings staged the same rows for the table, in any order."""
    if [part_added.part.id for part_added in before] == [
        part_added.part.id for part_added in after
    ]:
        return True
    if _rows(before) != _rows(after):
        return False
    if not isinstance(table, Table):
        raise InternalError("Rows were staged for what is no table.")
    old, new = (
        pa.concat_tables([read_staged(store, table, part_added) for part_added in some])
        for some in (before, after)
    )
    try:
        same: bool = old.equals(new) or row_difference(old, new).num_rows == 0
        return same
    except pa.ArrowNotImplementedError:
        return False  # some type has no comparison


def _rows(parts: Iterable[AddPart]) -> int:
    """Return the number of rows of the added parts."""
    return sum(part.part.rows for part in parts)
