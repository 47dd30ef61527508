"""Make the changes of one commit in an open transaction, and collect their effects for the head
cache."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never

from olapdb.catalog.sqlite import dropped_tables
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.deliveries import forget_deliveries, record_keys, record_offset
from olapdb.catalog.sqlite.inline import stored_form
from olapdb.catalog.sqlite.jobs import close_job, note_chunks
from olapdb.catalog.sqlite.part_rows import insert_live_part
from olapdb.catalog.sqlite.requirements import Current, conflict, data_version
from olapdb.catalog.sqlite.schema_cache import SchemaState
from olapdb.catalog.sqlite.snapshot import encode_check
from olapdb.catalog.sqlite.view_ledger import ViewLedger
from olapdb.errors import DuplicateInsert, InternalError
from olapdb.model import changes
from olapdb.model import requirements as required
from olapdb.model.detached import is_hidden
from olapdb.model.encoding import (
    COLLECTION_KIND,
    FUNCTION_KIND,
    encode_collection,
    encode_function,
    encode_object,
    object_kind,
)
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import (
    BlockRange,
    Blocks,
    Contribution,
    NewBlock,
    Part,
    detached_table,
    union_ranges,
)
from olapdb.model.schema import (
    DatabaseEntry,
    MaterializedView,
    RefreshableView,
    SchemaObject,
    Table,
    View,
)
from olapdb.model.user_function import UserFunction


class CommitApplier:
    """One commit being applied as `number`. Afterwards `added`, `removed`, `schema` and `blocks`
    hold its effects, valid once the transaction is committed."""

    def __init__(self, current: Current, number: int, now_ms: int, commit: changes.Commit) -> None:
        self._current = current
        self._connection: sqlite3.Connection = current.connection
        self._number = number
        self._now_ms = now_ms
        self._commit = commit
        self.blocks: dict[NewBlock, int] = {}
        self._new_blocks: Counter[str] = Counter()
        self.added: dict[str, list[Part]] = {}
        self.removed: dict[str, list[str]] = {}
        self.emptied: list[str] = []
        self._databases: dict[str, DatabaseEntry] | None = None
        self._objects: dict[str, SchemaObject] | None = None
        self._functions: dict[tuple[str, str], UserFunction] | None = None
        self._collections: dict[str, NamedCollection] | None = None
        self._put_ids: set[str] = set()
        self._ledger = ViewLedger(self._connection, number)

    @property
    def schema(self) -> SchemaState:
        """The schema after the commit; the identical object if the commit does not change it."""
        if self._names_are_unchanged() and self._collections is None:
            return self._current.schema
        before = self._current.schema
        return SchemaState(
            before.databases if self._databases is None else self._databases,
            before.by_id if self._objects is None else self._objects,
            before.functions if self._functions is None else self._functions,
            before.collections if self._collections is None else self._collections,
        )

    def _names_are_unchanged(self) -> bool:
        """Return whether the commit leaves databases, objects and functions as they were."""
        return self._databases is None and self._objects is None and self._functions is None

    def run(self) -> None:
        """Make all changes of the commit. Raises CommitConflict or DuplicateInsert."""
        # Numbers first: parts and coverage may name a block before the change that adds it.
        for change in self._commit.changes:
            if isinstance(change, changes.AddBlock):
                self._add_block(change)
        for change in self._commit.changes:
            self._apply(change)
        self._check_names()

    def _apply(self, change: changes.Change) -> None:
        """Apply one change. AddBlock does nothing here: blocks get their numbers before the other
        changes."""
        match change:
            case changes.AddBlock():
                return
            case changes.AddPart(part, inline_rows):
                self._add_part(part, inline_rows)
            case changes.RemoveParts(table_id, part_ids):
                self._remove_parts(table_id, part_ids)
            case changes.RaiseDataVersion(table_id, partition_id):
                self._raise_data_version(table_id, partition_id)
            case changes.AddCoverage(row):
                grown = isinstance(row.blocks, NewBlock)
                self._ledger.add_coverage(
                    row.view_id, row.partition, self._range(row.blocks), grown=grown
                )
            case changes.RemoveCoverage(view_id, blocks):
                if not blocks:
                    self._ledger.drop_coverage(view_id)
                else:
                    source_id = self._object(view_id).source_id
                    self._ledger.remove_coverage(view_id, source_id, dict(blocks))
            case changes.CoverSource(view_id):
                self._cover_source(view_id)
            case changes.Retain(retained):
                self._ledger.retain(retained)
            case changes.ReleaseRetained():
                self._ledger.release(change)
            case changes.Invalidate(invalidation):
                self._ledger.invalidate(invalidation)
            case changes.ClearInvalidations():
                self._ledger.clear_invalidations(change)
            case changes.RecordCheck(check):
                sql.insert_check(
                    self._connection,
                    view_id=check.view_id,
                    body=encode_check(check),
                    target_partition=check.target_partition,
                    created_commit=self._number,
                    dropped_commit=None,
                )
            case changes.RecordToken(table_id, token):
                self._record_token(table_id, token)
            case changes.RecordOffset():
                record_offset(self._connection, change, self._number, self._now_ms)
            case changes.RecordKeys():
                record_keys(self._connection, change, self._now_ms)
            case changes.ForgetDeliveries(table_id):
                forget_deliveries(self._connection, table_id, self._number)
            case changes.NoteChunks(job_id, chunks):
                note_chunks(self._connection, job_id, chunks, self._number, self._now_ms)
            case changes.CloseJob(job_id, state):
                close_job(self._connection, job_id, state, "", self._now_ms)
            case changes.AddDatabase(database):
                self._create_database(database)
            case changes.DropDatabase(name):
                self._drop_database(name)
            case changes.PutObject(schema_object):
                self._put_object(schema_object)
            case changes.DropObject(object_id, recoverable):
                self._drop_object(object_id, recoverable)
            case changes.UndropTable():
                self._undrop(change)
            case changes.PutFunction(function):
                self._put_function(function)
            case changes.RemoveFunction(function_id):
                self._drop_function(function_id)
            case changes.PutCollection(collection):
                self._put_collection(collection)
            case changes.RemoveCollection(collection_id):
                self._drop_collection(collection_id)
            case _:
                assert_never(change)

    # --- blocks and parts

    def _add_block(self, change: changes.AddBlock) -> None:
        """Give a new block the next number of its table and write its row. Raise InternalError
        unless the table's new blocks arrive in the order of `index`, from 0."""
        block = change.block
        if block.index != self._new_blocks[block.table_id]:
            raise InternalError(f"New block {block.index} of {block.table_id} out of order.")
        newest = sql.newest_block.value(self._connection, of_table=block.table_id) or 0
        self.blocks[block] = newest + 1
        self._new_blocks[block.table_id] += 1
        sql.insert_block(
            self._connection,
            table_id=block.table_id,
            number=newest + 1,
            commit_number=self._number,
            row_count=change.rows,
            query_id=self._commit.query_id,
            kind=change.kind,
            created_ms=self._now_ms,
        )

    def _range(self, blocks: Blocks) -> BlockRange:
        """Return the range of block numbers: a NewBlock becomes the number that this commit gave
        it."""
        if isinstance(blocks, BlockRange):
            return blocks
        number = self.blocks.get(blocks)
        if number is None:
            raise InternalError(f"{blocks} is used, but no AddBlock makes it.")
        return BlockRange(number, number)

    def _contribution(self, contribution: Contribution) -> Contribution:
        """Return the contribution with the numbers of its new blocks filled in, as joined
        ranges."""
        if len(contribution.blocks) == 1 and isinstance(contribution.blocks[0], BlockRange):
            return contribution
        return replace(
            contribution, blocks=union_ranges(self._range(b) for b in contribution.blocks)
        )

    def _add_part(self, staged: Part, inline_rows: bytes | None) -> None:
        """Write a part's row with its block numbers and this commit as creator. The rows of an
        inline part (None for others) go into the catalog too."""
        if staged.inline != (inline_rows is not None):
            raise InternalError(f"Part {staged.id}: inline rows and its `inline` disagree.")
        part = replace(
            staged,
            blocks=self._range(staged.blocks),
            contributions=tuple(self._contribution(c) for c in staged.contributions),
            created_ms=staged.created_ms or self._now_ms,
            created_commit=self._number,
        )
        insert_live_part(self._connection, part)
        if inline_rows is not None:
            stored = stored_form(inline_rows, sum(part.uncompressed_bytes.values()))
            sql.insert_inline(self._connection, part_id=part.id, data=stored)
        self.added.setdefault(part.table_id, []).append(part)

    def _remove_parts(self, table_id: str, part_ids: Sequence[str]) -> None:
        """Mark parts as dropped by this commit. Raise CommitConflict if any of them is no longer
        live."""
        done = sql.drop_parts(
            self._connection,
            part_ids=json.dumps(part_ids),
            of_table=table_id,
            number=self._number,
            now_ms=self._now_ms,
        ).rowcount
        if done != len(set(part_ids)):
            raise conflict(required.PartsLive(table_id, tuple(part_ids)))
        self.removed.setdefault(table_id, []).extend(part_ids)

    def _raise_data_version(self, table_id: str, partition_id: str) -> None:
        """Add 1 to the data version of a partition, which starts at 0."""
        current = replace(self._current, number=self._number)
        sql.insert_data_version(
            self._connection,
            table_id=table_id,
            partition_id=partition_id,
            version=data_version(current, table_id, partition_id) + 1,
            commit_number=self._number,
        )

    def _record_token(self, table_id: str, token: str) -> None:
        """Remember the token of an INSERT. Raise DuplicateInsert if an earlier commit recorded
        it."""
        try:
            sql.insert_token(
                self._connection,
                table_id=table_id,
                token=token,
                commit_number=self._number,
                created_ms=self._now_ms,
            )
        except sqlite3.IntegrityError:
            raise DuplicateInsert(
                f"An INSERT with the token {token!r} was committed before."
            ) from None

    # --- schema

    def _object(self, object_id: str) -> MaterializedView:
        """Return the materialized view with this id, as changed by this commit. Raise InternalError
        if the id is not that of a materialized view."""
        objects = self._current.schema.by_id if self._objects is None else self._objects
        view = objects.get(object_id)
        if not isinstance(view, MaterializedView):
            raise InternalError(f"{object_id} is no materialized view.")
        return view

    def _create_database(self, database: DatabaseEntry) -> None:
        """Write a database's row. Raise CommitConflict if the name is taken."""
        databases = self._changed_databases()
        if database.name in databases:
            raise conflict(
                required.DatabaseExists(database.name), f"Database {database.name} exists already."
            )
        databases[database.name] = database
        sql.insert_database(
            self._connection,
            id=database.id,
            name=database.name,
            comment=database.comment,
            created_commit=self._number,
            dropped_commit=None,
        )

    def _drop_database(self, name: str) -> None:
        """Mark a database as dropped. Raise CommitConflict if there is none of this name."""
        if self._changed_databases().pop(name, None) is None:
            raise conflict(required.DatabaseExists(name))
        sql.drop_database(self._connection, of_name=name, number=self._number)

    def _put_object(self, item: SchemaObject) -> None:
        """Create or replace a table or view: drop its live row, write a new one. Raise
        CommitConflict if another commit changed the object since the caller read it."""
        objects = self._changed_objects()
        self._check_revision(item, objects.get(item.id))
        item = replace(item, revision=self._number)
        if isinstance(item, MaterializedView) and item.id not in objects:
            # The trigger fires from the next block on, whatever its creator's snapshot said.
            newest = sql.newest_block.value(self._connection, of_table=item.source_id) or 0
            own_blocks = self._new_blocks[item.source_id]
            item = replace(item, first_block=newest - own_blocks + 1)
        sql.drop_object(self._connection, object_id=item.id, number=self._number)
        sql.insert_object(
            self._connection,
            id=item.id,
            kind=object_kind(item),
            body=encode_object(item),
            created_commit=self._number,
            dropped_commit=None,
        )
        objects[item.id] = item
        self._put_ids.add(item.id)

    def _cover_source(self, view_id: str) -> None:
        """Let the view cover exactly the blocks that its source has by now."""
        source_id = self._object(view_id).source_id
        newest = sql.newest_block.value(self._connection, of_table=source_id) or 0
        self._ledger.drop_coverage(view_id)
        if newest:
            self._ledger.add_coverage(view_id, None, BlockRange(1, newest), grown=False)

    def _check_revision(self, item: SchemaObject, before: SchemaObject | None) -> None:
        """Raise CommitConflict if another commit changed the object since the caller read it.
        `before` is the live object, None for a new one. Objects that this commit has put are not
        checked again."""
        if item.id in self._put_ids:
            return
        if item.revision != (0 if before is None else before.revision):
            raise conflict(required.RevisionIs(item.id, item.revision))

    def _drop_object(self, object_id: str, recoverable: bool) -> None:
        """Drop a table with its parts (attached and detached), or a view with its ledger. A
        `recoverable` table is remembered for UNDROP. Raise CommitConflict if the object does not
        exist."""
        item = self._changed_objects().pop(object_id, None)
        if item is None:
            raise conflict(required.RevisionIs(object_id, 0))
        sql.drop_object(self._connection, object_id=object_id, number=self._number)
        match item:
            case Table():
                for owner in (object_id, detached_table(object_id)):
                    sql.drop_all_parts(
                        self._connection, of_table=owner, number=self._number, now_ms=self._now_ms
                    )
                    self.emptied.append(owner)
                if recoverable:
                    dropped_tables.remember(self._connection, item, self._number, self._now_ms)
            case MaterializedView():
                self._ledger.drop_view(object_id)
            case View() | RefreshableView():
                return
            case _:
                assert_never(item)

    def _undrop(self, change: changes.UndropTable) -> None:
        """Restore a dropped table and its parts. Raise CommitConflict if vacuum has purged any of
        them."""
        recovered = dropped_tables.recover(self._connection, change.table_id, self._number)
        if recovered is None:
            raise conflict(
                required.RevisionIs(change.table_id, 0),
                "The table, or a part of it, has been vacuumed.",
            )
        table, parts = recovered
        self._put_object(table)
        for part in parts:
            self.added.setdefault(part.table_id, []).append(part)
        self.emptied += (table.id, detached_table(table.id))

    def _put_function(self, function: UserFunction) -> None:
        """Write a function's row, and drop that of the function with its name."""
        functions = self._changed_functions()
        key = (function.database, function.name)
        self._put_named(functions.get(key), function.id, FUNCTION_KIND, encode_function(function))
        functions[key] = function

    def _drop_function(self, function_id: str) -> None:
        """Mark a function as dropped. Raise CommitConflict if there is none with the id."""
        self._drop_named(self._changed_functions(), function_id)

    def _put_collection(self, collection: NamedCollection) -> None:
        """Write a named collection's row, and drop that of the collection with its name."""
        collections = self._changed_collections()
        body = encode_collection(collection)
        self._put_named(collections.get(collection.name), collection.id, COLLECTION_KIND, body)
        collections[collection.name] = collection

    def _drop_collection(self, collection_id: str) -> None:
        """Mark a named collection as dropped. Raise CommitConflict if there is none with the id."""
        self._drop_named(self._changed_collections(), collection_id)

    def _put_named(
        self, replaced: UserFunction | NamedCollection | None, object_id: str, kind: str, body: str
    ) -> None:
        """Write the row of a function or a named collection, and drop that of the one it replaces."""
        if replaced is not None:
            sql.drop_object(self._connection, object_id=replaced.id, number=self._number)
        sql.insert_object(
            self._connection,
            id=object_id,
            kind=kind,
            body=body,
            created_commit=self._number,
            dropped_commit=None,
        )

    def _drop_named(
        self, held: dict[Any, UserFunction] | dict[str, NamedCollection], object_id: str
    ) -> None:
        """Mark the function or named collection with the id as dropped, and remove it from `held`. Raise
        CommitConflict if `held` has none with the id."""
        key = next((key for key, item in held.items() if item.id == object_id), None)
        if key is None:
            raise conflict(required.RevisionIs(object_id, 0))
        del held[key]
        sql.drop_object(self._connection, object_id=object_id, number=self._number)

    def _changed_collections(self) -> dict[str, NamedCollection]:
        """Return the named collections by name as this commit leaves them: a copy that callers modify."""
        if self._collections is None:
            self._collections = dict(self._current.schema.collections)
        return self._collections

    def _changed_functions(self) -> dict[tuple[str, str], UserFunction]:
        """Return the functions by name as this commit leaves them: a copy that callers modify."""
        if self._functions is None:
            self._functions = dict(self._current.schema.functions)
        return self._functions

    def _changed_databases(self) -> dict[str, DatabaseEntry]:
        """Return the databases by name as this commit leaves them: a copy that callers modify."""
        if self._databases is None:
            self._databases = dict(self._current.schema.databases)
        return self._databases

    def _changed_objects(self) -> dict[str, SchemaObject]:
        """Return the tables and views by id as this commit leaves them: a copy that callers
        modify."""
        if self._objects is None:
            self._objects = dict(self._current.schema.by_id)
        return self._objects

    def _check_names(self) -> None:
        """Raise CommitConflict if the database of any object or function does not exist: a
        concurrent commit dropped it. Raise InternalError if two objects share a name: the commit lacked a
        NameIsFree."""
        if self._names_are_unchanged():
            return
        objects = self._current.schema.by_id if self._objects is None else self._objects
        names = [(item.database, item.name) for item in objects.values()]
        if len(set(names)) != len(names):
            raise InternalError("A commit would give two objects one name.")
        databases = self._current.schema.databases if self._databases is None else self._databases
        functions = self._current.schema.functions if self._functions is None else self._functions
        names += [name for name in functions if name[0]]
        own = (database for database, _ in names if not is_hidden(database))
        missing_database = next((name for name in own if name not in databases), None)
        if missing_database is not None:
            raise conflict(required.DatabaseExists(missing_database))
