"""A snapshot on SQLite: the schema in memory, everything else read at first use as of its
number."""

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
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import BlockRange, Part, union_ranges
from olapdb.model.schema import DatabaseEntry, KindOfObject, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Derived
from olapdb.model.user_function import UserFunction
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained

if TYPE_CHECKING:
    from olapdb.catalog.sqlite.catalog_reader import CatalogReader


VERSION_READS_MAX = 8
"""Partitions of a table whose data versions are read one by one; beyond that all are read at
once."""


class SqliteSnapshot:
    """A `olapdb.model.snapshot.Snapshot` in SQLite, shared by all readers of one commit."""

    def __init__(self, catalog: CatalogReader, number: int, schema: SchemaState) -> None:
        self._catalog = catalog
        self._number = number
        self._schema = schema
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._coverage: dict[str, Coverage] = {}
        self._data_versions: dict[tuple[str, str], int] = {}
        self._next_blocks: dict[str, int] = {}
        self._invalidations: tuple[Invalidation, ...] | None = None
        self._version_reads: Counter[str] = Counter()
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

    @property
    def functions(self) -> Mapping[tuple[str, str], UserFunction]:
        return self._schema.functions

    @property
    def named_collections(self) -> Mapping[str, NamedCollection]:
        return self._schema.collections

    def find(self, database: str, name: str) -> SchemaObject | None:
        return self._schema.named(database, name)

    def by_id(self, object_id: str) -> SchemaObject | None:
        return self._schema.by_id.get(object_id)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        """Return the tables and views of the database (None: of all), by (database, name)."""
        if database is None:
            return self._schema.ordered
        return tuple(item for item in self._schema.ordered if item.database == database)

    def objects_of(self, kind: type[KindOfObject]) -> Iterable[KindOfObject]:
        return self._schema.of_kind(kind)

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the materialized views that the table triggers, attached or not, by (database,
        name)."""
        return self._schema.views_on.get(table_id, ())

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the materialized views that write the table, by (database, name)."""
        return self._schema.views_into.get(table_id, ())

    def parts(self, table_id: str) -> tuple[Part, ...]:
        """Return the table's live parts, placeholders included; read at first use."""
        parts = self._parts.get(table_id)
        if parts is None:
            parts = self._parts[table_id] = self._catalog.parts_at(table_id, self._number)
        return parts

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Return the number of live parts of one partition. For the newest commit it needs no list
        of parts."""
        return self._catalog.part_count_at(table_id, partition_id, self._number)

    def inline_rows(self, part: Part) -> bytes:
        """Return the Arrow IPC file bytes of an inline part. Raises SnapshotTooOld if vacuum purged
        it."""
        with self._catalog.connections.reading() as connection:
            data = sql.inline_of_part.value(connection, of_part=part.id)
        if data is None:
            raise SnapshotTooOld(
                f"The rows of part {part.id} have been vacuumed.", hint="Run the query again."
            )
        return inflated(data)

    def next_block(self, table: Table) -> int:
        """Return the number that the table's next block will get, from 1."""
        number = self._next_blocks.get(table.id)
        if number is None:
            with self._catalog.connections.consistent() as connection:
                newest = sql.newest_block_at.value(
                    connection, of_table=table.id, at_commit=self._number
                )
                spans = self._spans(connection, table.id)
            # Either may be later: a block on which a view failed keeps its row among the spans.
            last = max(newest or 0, spans[-1].last if spans else 0)
            number = self._next_blocks[table.id] = last + 1
        return number

    def data_version(self, table_id: str, partition_id: str) -> int:
        """Return how many commits other than INSERTs and merges changed the partition's rows. After
        many single reads it reads all partitions at once."""
        key = (table_id, partition_id)
        version = self._data_versions.get(key)
        if version is None and self._version_reads[table_id] >= VERSION_READS_MAX:
            version = self._all_versions(table_id).get(partition_id, 0)
        if version is None:
            self._version_reads[table_id] += 1
            with self._catalog.connections.reading() as connection:
                stored = sql.data_version_at.value(
                    connection, of_table=table_id, of_partition=partition_id, at_commit=self._number
                )
            version = self._data_versions[key] = stored or 0
        return version

    def _all_versions(self, table_id: str) -> dict[str, int]:
        """Return the data versions of all partitions of the table that were ever raised."""

        def read() -> dict[str, int]:
            """Read the data versions of all partitions of the table, by partition id."""
            with self._catalog.connections.reading() as connection:
                rows = sql.data_versions_at(connection, of_table=table_id, at_commit=self._number)
                return dict(rows.fetchall())

        return self.derived(("data versions", table_id), read)

    def coverage(self, view_id: str) -> Coverage:
        """Return the view's coverage, clipped to the source blocks of this snapshot."""
        coverage = self._coverage.get(view_id)
        if coverage is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.coverage_at(connection, of_view=view_id, number=self._number).fetchall()
            view = self._schema.by_id.get(view_id)
            source = self._schema.by_id.get(getattr(view, "source_id", ""))
            last = self.next_block(source) - 1 if isinstance(source, Table) else None
            coverage = self._coverage[view_id] = coverage_of_rows(
                view_id, ((partition, a, b) for _, partition, a, b in rows), last
            )
        return coverage

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        """Return the stale slices that were not repaired, of one view (None: of all)."""
        invalidations = self._invalidations
        if invalidations is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.invalidations_at(connection, number=self._number).fetchall()
            invalidations = self._invalidations = tuple(
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
        return tuple(
            invalidation
            for invalidation in invalidations
            if view_id is None or invalidation.view_id == view_id
        )

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        """Return the ledger of rows removed by retention, of one view (None: of all)."""
        retained = self._retained
        if retained is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.retained_at(connection, number=self._number).fetchall()
            retained = self._retained = tuple(decode_retained(body) for _, body in rows)
        return tuple(row for row in retained if view_id is None or row.view_id == view_id)

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        """Return the newest check of each (view, target partition), of one view (None: of all)."""
        checks = self._checks
        if checks is None:
            with self._catalog.connections.reading() as connection:
                rows = sql.checks_at(connection, number=self._number).fetchall()
            checks = self._checks = tuple(decode_check(body) for (body,) in rows)
        return tuple(check for check in checks if view_id is None or check.view_id == view_id)

    def damaged(self) -> tuple[Damage, ...]:
        """Return the live parts that are in the catalog's list of damaged parts now."""
        damaged = self._catalog.damaged()  # the list is not versioned, so it is not cached
        live = {part.id for damage in {d.table_id for d in damaged} for part in self.parts(damage)}
        return tuple(damage for damage in damaged if damage.part_id in live)

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        """Return the table's blocks by number; old ones that vacuum joined are one entry a span."""
        with self._catalog.connections.consistent() as connection:
            rows = sql.blocks_at(connection, of_table=table_id, at_commit=self._number).fetchall()
            spans = self._spans(connection, table_id)
        older = [
            BlockInfo(
                table_id,
                span.last,
                span.last_commit,
                span.rows,
                "",
                "older",
                span.oldest_ms,
                first=span.first,
            )
            for span in spans
        ]
        return tuple(sorted((*older, *(BlockInfo(*row) for row in rows)), key=lambda b: b.number))

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """Return the result of `make`, cached under `key` as long as this snapshot."""
        if key not in self._derived:
            self._derived[key] = make()
        return cast("Derived", self._derived[key])

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        """Return (number of these blocks, time in ms of the oldest, or 0 without blocks)."""
        with self._catalog.connections.consistent() as connection:
            count, oldest_ms = sql.block_span_at(
                connection,
                of_table=table_id,
                first=blocks.first,
                last=blocks.last,
                at_commit=self._number,
            ).fetchone()
            spans = [span for span in self._spans(connection, table_id) if span.count_in(blocks)]
        times = [*(span.oldest_ms for span in spans), *([oldest_ms] if count else [])]
        return count + sum(span.count_in(blocks) for span in spans), min(times, default=0)

    def _spans(self, connection: sqlite3.Connection, table_id: str) -> list[BlockSpan]:
        """Return the table's spans as of this commit. Raises SnapshotTooOld if one reaches beyond
        it."""
        spans = [
            span for span in spans_of(connection, table_id) if span.first_commit <= self._number
        ]
        if spans and spans[-1].last_commit > self._number:
            refuse_vacuumed(connection, self._number)
        return spans


def coverage_of_rows(
    view_id: str, rows: Iterable[tuple[str | None, int, int]], last_block: int | None
) -> Coverage:
    """Return the ledger's rows (partition, first, last) as coverage, clipped to the source's
    `last_block`: triggers extend a row in place, so it may reach beyond an older snapshot."""
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
    """Return the JSON text of a check."""
    body = {name: getattr(check, name) for name in check.__dataclass_fields__}
    return json.dumps(body, separators=(",", ":"))


def decode_check(body: str) -> Check:
    """Parse the text of `encode_check`."""
    facts = json.loads(body)
    return Check(**{**facts, "examples": tuple(facts["examples"])})
