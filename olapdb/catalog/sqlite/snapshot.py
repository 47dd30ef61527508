"""A snapshot on SQLite: the schema at hand, everything else read at first use as of its number."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.compaction import BlockSpan, spans_of
from olapdb.catalog.sqlite.inline import inflated
from olapdb.catalog.sqlite.retained_rows import decode_retained
from olapdb.catalog.sqlite.schema_cache import SchemaState
from olapdb.catalog.sqlite.vacuum_mark import refuse_vacuumed
from olapdb.errors import SnapshotTooOld
from olapdb.model.damage import Damage
from olapdb.model.part import BlockRange, Part, union_ranges
from olapdb.model.schema import DatabaseEntry, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Derived
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained

if TYPE_CHECKING:
    from olapdb.catalog.sqlite.catalog import SqliteCatalog


VERSIONS_ASKED_MAX = 8
"""Partitions of a table whose data versions are read one by one."""


class SqliteSnapshot:
    """Implements `olapdb.model.snapshot.Snapshot`; shared by all readers of one commit."""

    def __init__(self, catalog: SqliteCatalog, number: int, schema: SchemaState) -> None:
        self._catalog = catalog
        self._number = number
        self._schema = schema
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._coverage: dict[str, Coverage] = {}
        self._data_versions: dict[tuple[str, str], int] = {}
        self._next_blocks: dict[str, int] = {}
        self._invalidations: tuple[Invalidation, ...] | None = None
        self._versions_asked: Counter[str] = Counter()
        self._derived: dict[Hashable, object] = {}
        self._checks: tuple[Check, ...] | None = None
        self._retained: tuple[Retained, ...] | None = None

    def __repr__(self) -> str:
        return f"<snapshot {self._number}>"

    @property
    def number(self) -> int:
        return self._number

    @property
    def databases(self) -> Mapping[str, DatabaseEntry]:
        return self._schema.databases

    def find(self, database: str, name: str) -> SchemaObject | None:
        return self._schema.by_name.get((database, name))

    def by_id(self, object_id: str) -> SchemaObject | None:
        return self._schema.by_id.get(object_id)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        if database is None:
            return self._schema.ordered
        return tuple(item for item in self._schema.ordered if item.database == database)

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        return self._schema.views_on.get(table_id, ())

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        return self._schema.views_into.get(table_id, ())

    def parts(self, table_id: str) -> tuple[Part, ...]:
        found = self._parts.get(table_id)
        if found is None:
            found = self._parts[table_id] = self._catalog.parts_at(table_id, self._number)
        return found

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Count the partition's live parts, those of the newest commit without listing them."""
        return self._catalog.part_count_at(table_id, partition_id, self._number)

    def inline_rows(self, part: Part) -> bytes:
        with self._catalog.connections.reading() as connection:
            data = sql.inline_of_part.value(connection, of_part=part.id)
        if data is None:
            raise SnapshotTooOld(
                f"The rows of part {part.id} have been vacuumed.", hint="Run the query again."
            )
        return inflated(data)

    def next_block(self, table: Table) -> int:
        found = self._next_blocks.get(table.id)
        if found is None:
            with self._catalog.connections.consistent() as connection:
                newest = sql.newest_block_at.value(
                    connection, of_table=table.id, at_commit=self._number
                )
                spans = self._spans(connection, table.id)
            # Either may be later: a block on which a view failed keeps its row among the spans.
            last = max(newest or 0, spans[-1].last if spans else 0)
            found = self._next_blocks[table.id] = last + 1
        return found

    def data_version(self, table_id: str, partition_id: str) -> int:
        key = (table_id, partition_id)
        found = self._data_versions.get(key)
        if found is None and self._versions_asked[table_id] >= VERSIONS_ASKED_MAX:
            found = self._all_versions(table_id).get(partition_id, 0)
        if found is None:
            self._versions_asked[table_id] += 1
            with self._catalog.connections.reading() as connection:
                version = sql.data_version_at.value(
                    connection, of_table=table_id, of_partition=partition_id, at_commit=self._number
                )
            found = self._data_versions[key] = version or 0
        return found

    def _all_versions(self, table_id: str) -> dict[str, int]:
        """Of a table that is asked for many partitions, those of all that were raised ever."""

        def read() -> dict[str, int]:
            with self._catalog.connections.reading() as connection:
                rows = sql.data_versions_at(connection, of_table=table_id, at_commit=self._number)
                return dict(rows.fetchall())

        return self.derived(("data versions", table_id), read)

    def coverage(self, view_id: str) -> Coverage:
        found = self._coverage.get(view_id)
        if found is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.coverage_at(connection, of_view=view_id, number=self._number).fetchall()
            view = self._schema.by_id.get(view_id)
            source = self._schema.by_id.get(getattr(view, "source_id", ""))
            last = self.next_block(source) - 1 if isinstance(source, Table) else None
            found = self._coverage[view_id] = coverage_of_rows(
                view_id, ((partition, a, b) for _, partition, a, b in rows), last
            )
        return found

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        found = self._invalidations
        if found is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.invalidations_at(connection, number=self._number).fetchall()
            found = self._invalidations = tuple(
                Invalidation(
                    view_id=view,
                    target_partition=partition,
                    cause=cause,
                    statement=statement,
                    query_id=query_id,
                    rows=count,
                    since_ms=since,
                    keys=tuple(json.loads(keys)),
                    id=id,
                    commit=commit,
                )
                for view, partition, cause, statement, query_id, count, since, keys, id, commit in rows
            )
        return tuple(one for one in found if view_id is None or one.view_id == view_id)

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        found = self._retained
        if found is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.retained_at(connection, number=self._number).fetchall()
            found = self._retained = tuple(decode_retained(body) for _, body in rows)
        return tuple(one for one in found if view_id is None or one.view_id == view_id)

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        found = self._checks
        if found is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.checks_at(connection, number=self._number).fetchall()
            found = self._checks = tuple(decode_check(body) for (body,) in rows)
        return tuple(one for one in found if view_id is None or one.view_id == view_id)

    def damaged(self) -> tuple[Damage, ...]:
        found = self._catalog.damaged()  # as of now: not to be kept
        live = {part.id for one in {d.table_id for d in found} for part in self.parts(one)}
        return tuple(one for one in found if one.part_id in live)

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        with self._catalog.connections.consistent() as connection:
            rows = sql.blocks_at(connection, of_table=table_id, at_commit=self._number).fetchall()
            spans = self._spans(connection, table_id)
        older = [
            BlockInfo(
                table_id,
                one.last,
                one.last_commit,
                one.rows,
                "",
                "older",
                one.oldest_ms,
                first=one.first,
            )
            for one in spans
        ]
        return tuple(sorted((*older, *(BlockInfo(*row) for row in rows)), key=lambda b: b.number))

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        if key not in self._derived:
            self._derived[key] = make()
        return cast("Derived", self._derived[key])

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        with self._catalog.connections.consistent() as connection:
            count, oldest_ms = sql.block_span_at(
                connection,
                of_table=table_id,
                first=blocks.first,
                last=blocks.last,
                at_commit=self._number,
            ).fetchone()
            spans = [one for one in self._spans(connection, table_id) if one.count_in(blocks)]
        times = [*(one.oldest_ms for one in spans), *([oldest_ms] if count else [])]
        return count + sum(one.count_in(blocks) for one in spans), min(times, default=0)

    def _spans(self, connection: sqlite3.Connection, table_id: str) -> list[BlockSpan]:
        """The table's spans as of this commit; SnapshotTooOld where one reaches beyond it."""
        found = [one for one in spans_of(connection, table_id) if one.first_commit <= self._number]
        if found and found[-1].last_commit > self._number:
            refuse_vacuumed(connection, self._number)
        return found


def coverage_of_rows(
    view_id: str, rows: Iterable[tuple[str | None, int, int]], last_block: int | None
) -> Coverage:
    """The ledger's rows (partition, first, last) as ranges, clipped to the source's `last_block`:
    a row that a trigger extends in place may reach beyond an older snapshot."""
    by_partition: dict[str | None, list[BlockRange]] = {}
    for partition, first, last in rows:
        clipped = last if last_block is None else min(last, last_block)
        if first <= clipped:
            by_partition.setdefault(partition, []).append(BlockRange(first, clipped))
    everywhere = union_ranges(by_partition.pop(None, ()))
    return Coverage(
        view_id,
        everywhere,
        {p: union_ranges(ranges) for p, ranges in by_partition.items() if p is not None},
    )


def encode_check(check: Check) -> str:
    body = {name: getattr(check, name) for name in check.__dataclass_fields__}
    return json.dumps(body, separators=(",", ":"))


def decode_check(body: str) -> Check:
    facts = json.loads(body)
    return Check(**{**facts, "examples": tuple(facts["examples"])})
