"""Write a DataFrame into a table: triggers run on the executors, the calling process commits
once."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_type

from olapdb import errors
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection, connect
from olapdb.dml.insert import commit_staged, snapshot_for_insert
from olapdb.dml.insert_writer import InsertResult
from olapdb.ingest.block import insertable_columns
from olapdb.ingest.plain_arrays import type_of_arrow
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.spark.folder import marked_folder, verify_staged
from olapdb.spark.items import (
    Cancellation,
    SparkJob,
    failure_of,
    is_final,
    raise_failure,
    task_attempts,
)
from olapdb.spark.tasks import InsertTask, stage_batches, with_seed
from olapdb.sql.parser import parse_table_name
from olapdb.statements.context import StatementContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Progress = Callable[[int, int], None]
"""Called with (finished tasks, tasks planned so far)."""

_MANIFEST = "partition long, outcome binary"


def write_dataframe(
    frame: DataFrame,
    warehouse: Connection | str | os.PathLike[str],
    table: str,
    *,
    mode: str = "append",
    token: str | None = None,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
) -> InsertResult:
    """Append the rows of `frame` to `table` ("name" or "database.name"), with the results of every
    view, in one commit.

    Columns match by name. Columns with a DEFAULT may be missing; any other missing column, an
    unknown column or an unsupported type is an error before the job starts. Values are cast as an
    INSERT of Arrow data casts them: one that does not fit, and NULL in a column that is not
    Nullable, is an error, and nothing is inserted.

    Each Spark task cuts its partition's rows into blocks of at most `max_insert_block_size`, stages
    them and fires the views on them; retried tasks leave only files that vacuum removes. With a
    `token` that was committed before, nothing is inserted and the result's `duplicate` is set; so a
    job that died may be run again.

    Each task checks that its folder is the one of the calling process, and the calling process
    checks each staged file before the commit; both raise FolderNotShared.

    The write is tracked like a statement: in system.processes and system.query_log, cancelled by
    KILL QUERY.  Raises NoSuchColumn, ThereIsNoColumn, DataError, errors of views, ExecutorFailed,
    QueryWasCancelled and errors of a commit.
    """
    if mode != "append":
        raise errors.NotSupportedError(
            f"write_dataframe cannot write in mode {mode!r}.",
            hint="Use mode='append', after TRUNCATE TABLE or DELETE FROM where rows are to go.",
        )
    if not hasattr(frame, "sparkSession"):
        raise errors.BadArguments(
            f"write_dataframe takes a Spark DataFrame, not a {type(frame).__module__}.{type(frame).__name__}.",
            hint="connection.insert(table, data) takes a pandas frame and Arrow data.",
        )
    results: list[InsertResult] = []

    def work(context: StatementContext) -> int:
        """Write the frame and leave the result in `results`. Return the number of rows."""
        ends = _AnyOf((context.cancelled,) if cancelled is None else (context.cancelled, cancelled))
        results.append(_write(frame, context, table, token, on_progress, ends))
        return results[0].rows

    with _opened(warehouse) as connection:
        connection.session.run_insert(f"INSERT INTO {table} (a Spark DataFrame)", work)
    return results[0]


@dataclass(frozen=True)
class _AnyOf:
    """A cancellation that is set if any of several is: the caller's own, KILL QUERY's."""

    events: tuple[Cancellation, ...]

    def is_set(self) -> bool:
        """Return whether any of the events is set."""
        return any(event.is_set() for event in self.events)


@contextmanager
def _opened(warehouse: Connection | str | os.PathLike[str]) -> Iterator[Connection]:
    """Yield the given connection, or open the warehouse for the `with` block."""
    if isinstance(warehouse, Connection):
        yield warehouse
        return
    with connect(warehouse) as connection:
        yield connection


def _write(
    frame: DataFrame,
    context: StatementContext,
    name: str,
    token: str | None,
    on_progress: Progress | None,
    cancelled: Cancellation,
) -> InsertResult:
    """Stage the frame's rows by Spark tasks on a pinned snapshot, check that the driver sees the
    files, commit once. Raise ReadOnly if the warehouse is open for reading only."""
    services = context.services
    if not services.lease_id:
        raise errors.ReadOnly("The warehouse is open for reading only.", hint="Open it to write.")
    with services.catalog.pinned() as snapshot, marked_folder(services) as address:
        table = find_table(snapshot, context.database, name)
        columns = _matching_columns(frame, table)
        task = InsertTask(
            store=address,
            snapshot=snapshot_for_insert(snapshot, table.id),
            table=table,
            lease_id=services.lease_id,
            settings=dict(context.settings),
            environment=context.environment,
        )
        staged = _stage(frame.select(*columns), task, context.query_id, on_progress, cancelled)
        verify_staged(services.store, address, staged)
        origin = CommitOrigin(
            services,
            query_id=context.query_id,
            statement=f"INSERT INTO {table.database}.{table.name} (a Spark DataFrame)",
            settings=task.settings,
        )
        return commit_staged(origin, staged, token=token)


def _stage(
    frame: DataFrame,
    task: InsertTask,
    query_id: str,
    on_progress: Progress | None,
    cancelled: Cancellation,
) -> list[StagedInsert]:
    """Run the job; return the tasks' staged inserts in the order of the frame's partitions. Raises
    the first task's failure, if any."""
    session = frame.sparkSession
    manifest = frame.mapInArrow(_stager(task, task_attempts(session)), _MANIFEST)
    where = f"{task.table.database}.{task.table.name}"
    job = SparkJob(session, f"olapdb-{query_id}", f"insert into {where}")
    rows = job.run(manifest.collect, on_progress=on_progress, cancelled=cancelled)
    staged: list[StagedInsert] = []
    for row in sorted(rows, key=lambda staged_insert: int(staged_insert.partition)):
        failure, staged_insert = pickle.loads(row.outcome)
        if failure is not None:
            raise_failure(row.partition, failure)
        if staged_insert is not None:
            staged.append(staged_insert)
    return staged


def _stager(
    task: InsertTask, attempts: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a Spark task: it stages its partition's rows and yields one row
    (partition number, pickled failure or staged rows). Raises errors that are not final, so that
    Spark retries."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the partition's batches; yield one row (partition number, pickled failure or staged
        rows)."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        own_task = replace(task, environment=with_seed(task.environment, partition))
        failure, staged = None, None
        try:
            staged = stage_batches(own_task, batches)
        except (
            Exception
        ) as error:  # a task's errors travel as data, so that their class is not lost
            if not is_final(error, attempts):
                raise
            failure = failure_of(error)
        # Spark reads the columns by position and trusts their types.
        schema = pa.schema([("partition", pa.int64()), ("outcome", pa.binary())])
        outcome = pickle.dumps((failure, staged))
        yield pa.RecordBatch.from_arrays([[partition], [outcome]], schema=schema)

    return run


def find_table(snapshot: Snapshot, database: str, name: str) -> Table:
    """Return the table called "name" or "database.name", quoted as in SQL where needed. Raises
    UnknownTable; BadArguments for a view."""
    parsed = parse_table_name(name)
    full_name = (parsed.database or database, parsed.name)
    item = snapshot.find(*full_name)
    if isinstance(item, Table):
        return item
    if item is not None:
        raise errors.BadArguments(
            f"{full_name[0]}.{full_name[1]} is a view, not a table.",
            hint="Name the table that it reads or writes.",
        )
    raise errors.UnknownTable(
        f"Table {full_name[0]}.{full_name[1]} does not exist.",
        hint="SHOW TABLES lists those there are.",
    )


def _matching_columns(frame: DataFrame, table: Table) -> list[str]:
    """Return the table's columns that the frame has, in the table's order, quoted for Spark. Raise
    an error if the frame has any duplicate, unknown or unsupported column, or lacks one without a
    default."""
    given = frame.columns
    doubled = sorted({c for c in given if given.count(c) > 1})
    if doubled:
        raise errors.DuplicateColumn(
            f"The DataFrame has several columns called {', '.join(doubled)}."
        )
    where = f"{table.database}.{table.name}"
    takes = {c.name: c for c in insertable_columns(table)}
    unknown = [c for c in given if c not in takes]
    if unknown:
        raise errors.NoSuchColumn(
            f"{where} takes no column {', '.join(unknown)} of the DataFrame.",
            hint=f"It takes {', '.join(takes)}; choose them with select().",
        )
    missing = [n for n, c in takes.items() if n not in given and not c.default]
    if missing:
        raise errors.ThereIsNoColumn(
            f"The DataFrame lacks the column {', '.join(missing)} of {where}.",
            hint="Add it to the DataFrame, or give the table's column a DEFAULT.",
        )
    _check_types(frame)
    return [f"`{name.replace('`', '``')}`" for name in takes if name in given]


def _check_types(frame: DataFrame) -> None:
    """Raise an error if the frame has any column type that the engine lacks."""
    for column in frame.schema.fields:
        type_of_arrow(to_arrow_type(column.dataType, timezone="UTC"))
