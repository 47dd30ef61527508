"""Check the requirements of a commit inside the transaction that applies it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, assert_never

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.deliveries import keys_are_new, offset_is
from olapdb.catalog.sqlite.jobs import job_state
from olapdb.catalog.sqlite.schema_cache import SchemaState
from olapdb.catalog.sqlite.snapshot import coverage_of_rows
from olapdb.catalog.sqlite.view_conditions import has_no_bypass, has_no_gap, has_no_stale_slice
from olapdb.errors import Aborted, CommitConflict, DuplicateInsert
from olapdb.model import requirements as required
from olapdb.model.part import BlockRange
from olapdb.model.schema import MaterializedView, RefreshableView, Table
from olapdb.model.view_state import Coverage
from olapdb.records import dataclass

LivePart: TypeAlias = tuple[str, int, int]
"""(part id, first block, last block)"""
PARTITIONS_ASKED_MAX = 4
"""The most partitions of a table or view that a commit asks about one by one. A chunk of a backfill
asks about one of thousands; a commit of many chunks asks about them all."""


@dataclass(frozen=True)
class Current:
    """The catalog as the open transaction sees it: `schema` is that of commit `number`."""

    connection: sqlite3.Connection
    number: int
    schema: SchemaState
    _live: dict[str, dict[str, list[LivePart]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _coverage: dict[str, Coverage] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _asked: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def live_parts(self, table_id: str) -> Mapping[str, Sequence[LivePart]]:
        """Return the table's live parts by partition, cached: a commit checks all requirements
        before it changes anything, and may have one for each of a thousand partitions."""
        by_partition = self._live.get(table_id)
        if by_partition is None:
            by_partition = self._live[table_id] = {}
            for part_id, partition, first, last in sql.live_parts_of(
                self.connection, of_table=table_id
            ):
                by_partition.setdefault(partition, []).append((part_id, first, last))
        return by_partition

    def ranges_in(self, table_id: str, partition: str) -> list[BlockRange]:
        """Return the block ranges of the table's live parts in one partition."""
        live: Iterable[LivePart]
        if table_id in self._live or self._asks_often(table_id):
            live = self.live_parts(table_id).get(partition, ())
        else:
            rows = sql.live_parts_in(self.connection, of_table=table_id, partition=partition)
            live = ((part_id, first, last) for part_id, _, first, last in rows)
        return [BlockRange(first, last) for _, first, last in live]

    def coverage(self, view_id: str) -> Coverage:
        """Return the view's coverage, cached."""
        if view_id not in self._coverage:
            rows = sql.coverage_at(self.connection, of_view=view_id, number=self.number)
            self._coverage[view_id] = coverage_of_rows(view_id, _ranges_of(rows), None)
        return self._coverage[view_id]

    def coverage_in(self, view_id: str, partition: str) -> Coverage:
        """Return a coverage of the view that is complete for this partition; rows of other
        partitions may be missing from it."""
        if view_id in self._coverage or self._asks_often(view_id):
            return self.coverage(view_id)
        rows = sql.coverage_of_partition(
            self.connection, of_view=view_id, partition=partition, number=self.number
        )
        return coverage_of_rows(view_id, _ranges_of(rows), None)

    def _asks_often(self, object_id: str) -> bool:
        """Count the questions about single partitions of the object. Return whether there are so
        many that one answer about all of them costs less."""
        self._asked[object_id] += 1
        return self._asked[object_id] > PARTITIONS_ASKED_MAX


def _ranges_of(
    rows: Iterable[tuple[int, str | None, int, int]],
) -> Iterator[tuple[str | None, int, int]]:
    """Yield (partition, first block, last block) of coverage rows, which begin with a row id."""
    return ((partition, first, last) for _, partition, first, last in rows)


def check_all(current: Current, requirements: Iterable[required.Requirement]) -> None:
    """Check the requirements; raise what `check` raises for the first violated one. Leases come
    first, so that a writer whose lease has ended gets Aborted and not a conflict."""
    for requirement in sorted(
        requirements, key=lambda requirement: not isinstance(requirement, required.LeaseLive)
    ):
        check(current, requirement)


def check(current: Current, requirement: required.Requirement) -> None:
    """Raise an error if the requirement does not hold: Aborted for an ended lease (which a writer
    may not retry), DuplicateInsert for a token that a commit has recorded, else CommitConflict."""
    if isinstance(requirement, required.LeaseLive):
        if not _holds(current, requirement):
            raise lease_ended()
    elif isinstance(requirement, required.TokenIsNew):
        _check_token(current, requirement)
    elif not _holds(current, requirement):
        raise conflict(requirement)


def lease_ended() -> Aborted:
    """Return the error for a lease that was revoked."""
    return Aborted(
        "The lease of this process was revoked: it was taken for dead.",
        hint="Nothing was changed; reconnect and run it again.",
    )


def conflict(requirement: required.Requirement, message: str = "") -> CommitConflict:
    """Return the CommitConflict of a requirement."""
    error = CommitConflict(
        message or f"No longer holds: {requirement}.", hint="Nothing was changed; run it again."
    )
    error.requirement = requirement
    return error


def _holds(current: Current, requirement: required.Requirement) -> bool:
    """Return whether the requirement holds. TokenIsNew is always True here: `_check_token` checks
    it."""
    schema, connection = current.schema, current.connection
    match requirement:
        case required.LeaseLive(lease_id):
            return bool(sql.lease_state.value(connection, lease_id=lease_id) == "live")
        case required.SchemaIs(table_id, version):
            table = schema.by_id.get(table_id)
            return isinstance(table, Table) and table.version == version
        case required.ViewsAre(source_id, views):
            attached = {(v.id, v.version) for v in schema.views_on.get(source_id, ()) if v.attached}
            return attached == set(views)
        case required.ViewsOnTableAre(table_id, views):
            return {(v.id, v.version) for v in schema.views_on.get(table_id, ())} == set(views)
        case required.DimensionViewsAre(table_id, views):
            reading = {(v.id, v.version) for v in schema.views_joining.get(table_id, ())}
            return reading == set(views)
        case required.NothingCovered(view_id):
            seen = current.coverage(view_id)
            return not seen.everywhere and not any(seen.by_partition.values())
        case required.SeenUpTo(view_id, block):
            seen = current.coverage(view_id)
            ranges = (*seen.everywhere, *(r for own in seen.by_partition.values() for r in own))
            return all(block_range.last <= block for block_range in ranges)
        case required.PartsWithinRanges(table_id, partition_id, blocks):
            return all(
                merged.contains(part) or not merged.overlaps(part)
                for part in current.ranges_in(table_id, partition_id)
                for merged in blocks
            )
        case required.ViewIs(view_id, version):
            view = schema.by_id.get(view_id)
            return isinstance(view, MaterializedView) and view.version == version
        case required.RevisionIs(object_id, revision):
            item = schema.by_id.get(object_id)
            return item is not None and item.revision == revision
        case required.NoDependents(object_id, but):
            return not any(
                isinstance(item, MaterializedView | RefreshableView)
                and item.id not in but
                and item.needs(object_id)
                for item in schema.by_id.values()
            )
        case required.NoViewSince(commit):
            return all(
                isinstance(item, Table) or item.revision <= commit for item in schema.by_id.values()
            )
        case required.VersionsAre(view_id, versions):
            beside = {
                item.id
                for item in schema.by_id.values()
                if isinstance(item, MaterializedView) and item.stands_beside == view_id
            }
            return beside == set(versions)
        case required.NoGap(view_id):
            view = schema.by_id.get(view_id)
            return isinstance(view, MaterializedView) and has_no_gap(
                connection, current.number, view.source_id, current.coverage(view_id)
            )
        case required.NothingStale(view_id):
            return has_no_stale_slice(connection, current.number, view_id)
        case required.NoBypass(table_id, view_ids):
            return has_no_bypass(connection, current.number, table_id, view_ids)
        case required.JobRuns(job_id):
            return job_state(connection, job_id) == "running"
        case required.NameIsFree(database, name):
            return (database, name) not in schema.ids_by_name
        case required.DatabaseExists(name):
            return name in schema.databases
        case required.DatabaseIsEmpty(name):
            members = (*schema.by_id.values(), *schema.functions.values())
            return all(member.database != name for member in members)
        case required.FunctionIs(database, name, function_id):
            function = schema.functions.get((database, name))
            return (None if function is None else function.id) == function_id
        case required.CollectionIs(name, collection_id):
            collection = schema.collections.get(name)
            return (None if collection is None else collection.id) == collection_id
        case required.DataVersionIs(table_id, partition_id, version):
            return data_version(current, table_id, partition_id) == version
        case required.PartsLive(table_id, part_ids):
            return len(_live_rows(connection, table_id, part_ids)) == len(set(part_ids))
        case required.PartsOfPartitionAre():
            return _parts_of_partition_are(current, requirement)
        case required.NotCovered(view_id, partition_id, blocks):
            seen = current.coverage_in(view_id, partition_id)
            return not any(seen.touches(partition_id, block_range) for block_range in blocks)
        case required.Covered(view_id, partition_id, blocks):
            seen = current.coverage_in(view_id, partition_id)
            return all(seen.touches(partition_id, block_range) for block_range in blocks)
        case required.CoverageCommon():
            return _coverage_common(current, requirement)
        case required.OffsetIs():
            return offset_is(connection, requirement)
        case required.KeysAreNew():
            return keys_are_new(connection, requirement)
        case required.TokenIsNew():
            return True
        case _:
            assert_never(requirement)


def data_version(current: Current, table_id: str, partition_id: str) -> int:
    """Return the partition's data version at the current commit."""
    version = sql.data_version_at.value(
        current.connection, of_table=table_id, of_partition=partition_id, at_commit=current.number
    )
    return version or 0


def _check_token(current: Current, requirement: required.TokenIsNew) -> None:
    """Raise DuplicateInsert if a commit has recorded the token."""
    commit = sql.token_commit.value(
        current.connection, of_table=requirement.table_id, of_token=requirement.token
    )
    if commit is not None:
        raise DuplicateInsert(
            f"An INSERT with the token {requirement.token!r} was committed before (commit {commit})."
        )


def _parts_of_partition_are(current: Current, requirement: required.PartsOfPartitionAre) -> bool:
    """Return whether the live parts in the partition (None: the whole table) are exactly the named
    ones. `up_to_block` ignores parts that begin later."""
    live = current.live_parts(requirement.table_id)
    if requirement.partition_id is not None:
        parts_in_scope = live.get(requirement.partition_id, [])
    else:
        parts_in_scope = [part for parts in live.values() for part in parts]
    last = requirement.up_to_block
    part_ids = {part_id for part_id, first, _ in parts_in_scope if last is None or first <= last}
    return part_ids == set(requirement.part_ids)


def _coverage_common(current: Current, requirement: required.CoverageCommon) -> bool:
    """Return whether, for each view on the table, the hull of the parts' blocks is wholly covered
    or wholly uncovered. The merged part spans the hull and must be one or the other as well."""
    views = current.schema.views_on.get(requirement.table_id, ())
    if not views:
        return True
    hulls = _ranges_by_partition(
        _live_rows(current.connection, requirement.table_id, requirement.part_ids)
    )
    for view in views:
        seen = current.coverage(view.id)
        for partition, hull in hulls.items():
            if seen.touches(partition, hull) and not seen.covers(partition, hull):
                return False
    return True


def _ranges_by_partition(rows: Iterable[tuple[str, str, int, int]]) -> dict[str, BlockRange]:
    """Return the smallest range by partition that contains the blocks of all its rows: (part id,
    partition id, first block, last block)."""
    hulls: dict[str, BlockRange] = {}
    for _, partition, first, last in rows:
        hull = hulls.get(partition)
        hulls[partition] = (
            BlockRange(first, last)
            if hull is None
            else BlockRange(min(hull.first, first), max(hull.last, last))
        )
    return hulls


def _live_rows(
    connection: sqlite3.Connection, table_id: str, part_ids: Iterable[str]
) -> list[tuple[str, str, int, int]]:
    """Return (part id, partition id, first block, last block) of the named parts that are live."""
    return sql.live_parts_named(
        connection, part_ids=json.dumps(list(part_ids)), of_table=table_id
    ).fetchall()
