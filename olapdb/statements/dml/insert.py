"""INSERT: turn rows from VALUES, a SELECT or Python into blocks, for `olapdb.dml.insert` to
commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from olapdb import errors
from olapdb.bind.parameters import lookup_parameter
from olapdb.dml.bounded_tables import drop_oldest
from olapdb.dml.delivery import OffsetRanges, parse_offsets, read_offsets
from olapdb.dml.insert import insert
from olapdb.dml.insert_writer import InsertResult
from olapdb.ingest.block import Data, InsertedData, allows_lossy, make_blocks
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import InsertedRows, Result
from olapdb.sql import nodes
from olapdb.sql.parser import parse_table_name
from olapdb.sql.values.csv_values import parse_value_rows
from olapdb.statements.context import StatementContext
from olapdb.statements.dml.formatted_values import formatted_blocks
from olapdb.statements.dml.insert_columns import (
    column_count_error,
    column_list,
    target_columns,
    with_names,
)
from olapdb.statements.dml.literal_rows import is_parameter, literal_rows
from olapdb.statements.dml.python_values import mapping_columns, python_column
from olapdb.statements.query import select
from olapdb.types import DataType, make_nullable

Outcome = TypeVar("Outcome")
Rows: TypeAlias = Sequence[Sequence[nodes.Node | None]]

ALTER_RETRIES_MAX = 3
"""How often an INSERT is retried because a concurrent ALTER changed its table."""


def run_insert(statement: nodes.Insert, context: StatementContext) -> Result:
    """Run INSERT … VALUES or INSERT … SELECT: one atomic commit of all blocks and of the rows
    that views compute from them.

    If a concurrent ALTER changed the table, run the statement again on the new definition, up to
    ALTER_RETRIES_MAX times.
    """
    return retry_on_alter(lambda: _run_insert(statement, context))


def retry_on_alter(run: Callable[[], Outcome]) -> Outcome:
    """Call `run`, again after each TableAltered, up to ALTER_RETRIES_MAX times; return its result."""
    for _ in range(ALTER_RETRIES_MAX):
        try:
            return run()
        except errors.TableAltered:
            continue
    return run()


def _run_insert(statement: nodes.Insert, context: StatementContext) -> Result:
    """Bind the INSERT, compute its rows and commit them, without a retry.

    Raises TableAltered if a concurrent ALTER changed the table."""
    context = context.with_settings(statement.settings).in_session_zone()
    reads_rows = statement.query is not None
    snapshot = (context.of_the_present() if reads_rows else context).snapshot()
    table = context.require_table(snapshot, statement.table, "INSERT")
    columns = column_list(statement, table)
    if statement.query is not None:
        cuts = select.names_limits(statement.settings)
        done = insert_query(table, columns, statement.query, context, cuts=cuts)
        return result_of(done, context)
    if statement.values is None:
        blocks = formatted_blocks(
            statement, table, target_columns(table, columns), context, snapshot
        )
        return result_of(
            _commit(table, blocks, _token(context), _offsets(context), context, snapshot), context
        )
    rows, types = literal_rows(statement.values, table, columns, context, snapshot)
    return result_of(_insert_rows(table, columns, rows, types, context, snapshot), context)


def rows_of_parameters(statement: nodes.Insert) -> Rows | None:
    """Return the one row of `INSERT … VALUES (?, ?)`; None for any other statement, and with
    REPLACE, which replaces rows for each set of parameters, and INTO FUNCTION."""
    if statement.values is None or statement.replacing or statement.function:
        return None

    rows = parse_value_rows(statement.values.text, statement.values.position)
    return rows if len(rows) == 1 and all(is_parameter(value) for value in rows[0]) else None


def run_insert_many(
    statement: nodes.Insert, rows: Rows, sets: Sequence[Any], context: StatementContext
) -> Result:
    """Insert all parameter sets as one INSERT. `rows` is the row of `rows_of_parameters`.

    Runs again, up to ALTER_RETRIES_MAX times, if a concurrent ALTER changed the table.
    """
    context = context.with_settings(statement.settings).in_session_zone()
    return retry_on_alter(lambda: _run_insert_many(statement, rows, sets, context))


def _run_insert_many(
    statement: nodes.Insert, rows: Rows, sets: Sequence[Any], context: StatementContext
) -> Result:
    """Make one attempt of `run_insert_many` on the newest snapshot."""
    snapshot = context.snapshot()
    table = context.require_table(snapshot, statement.table, "INSERT")
    columns = column_list(statement, table)
    fields = target_columns(table, columns)
    if len(rows[0]) != len(fields):
        raise column_count_error(len(fields), len(rows[0]))
    arrays = []
    lossy = allows_lossy(context.settings)
    for parameter, column in zip(rows[0], fields, strict=True):
        assert isinstance(parameter, nodes.Parameter)
        values = [lookup_parameter(parameter, parameter_set) for parameter_set in sets]
        arrays.append(python_column(column, values, context.environment, lossy=lossy))
    data = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
    types = [make_nullable(field.type) for field in fields]
    return result_of(
        _insert_rows(table, [field.name for field in fields], data, types, context, snapshot),
        context,
    )


def result_of(done: InsertedRows, context: StatementContext) -> Result:
    """Return the result of a statement that inserted these rows."""
    return Result(affected_rows=int(done), statistics=context.statistics)


def insert_query(
    table: Table,
    columns: Sequence[str] | None,
    query: nodes.Query,
    context: StatementContext,
    *,
    cuts: bool = False,
) -> InsertedRows:
    """Insert the rows of a SELECT, block by block; its columns match by position. `cuts` as of
    `query_blocks`."""
    present = context.of_the_present()
    snapshot = present.snapshot()
    blocks = query_blocks(table, columns, query, context, snapshot, cuts=cuts)
    return _commit(
        table, blocks, _token(present), _offsets(present), present, snapshot, owns_blocks=True
    )


def query_blocks(
    table: Table,
    columns: Sequence[str] | None,
    query: nodes.Query,
    context: StatementContext,
    snapshot: Snapshot,
    *,
    cuts: bool = False,
) -> Iterator[pa.Table]:
    """Yield blocks of the table from the rows of a SELECT; columns match by position. Raise
    NumberOfColumnsDoesntMatch before any row is read.

    The settings `limit` and `offset` of the session are about results; if it `cuts`, the statement
    has them for these rows."""
    if cuts:
        rows = select.run_query(query, context)
    else:
        own = select.with_query_settings(query, context)
        rows = select.run_at(query, own, own.reading_snapshot())
    return result_blocks(table, columns, rows, context, snapshot)


def result_blocks(
    table: Table,
    columns: Sequence[str] | None,
    result: Result,
    context: StatementContext,
    snapshot: Snapshot,
) -> Iterator[pa.Table]:
    """Yield blocks of the table from the rows of a result; columns match by position. Raise
    NumberOfColumnsDoesntMatch before any row is read."""
    fields = target_columns(table, columns)
    if len(result.names) != len(fields):
        result.close()
        raise column_count_error(len(fields), len(result.names))
    names = [column.name for column in fields]
    batches = result.batches_named(names)
    return blocks_of(
        table, columns, batches, result.types, context, snapshot, nulls="insert_null_as_default"
    )


def run_insert_data(
    name: str,
    data: Any,
    columns: Sequence[str] | None,
    token: str | None,
    context: StatementContext,
    offsets: Mapping[str, Sequence[int]] | None = None,
) -> InsertedRows:
    """Insert Python data, as `connection.insert` does: Arrow data by column name, or by position
    with `columns`.

    Runs again, up to ALTER_RETRIES_MAX times, if a concurrent ALTER changed the table; a stream,
    which can be read only once, does not.
    """
    source = data if isinstance(data, Mapping) else as_arrow(data)
    run = partial(_run_insert_data, name, source, columns, token, context, offsets)
    is_repeatable = isinstance(source, Mapping | pa.Table | pa.RecordBatch)
    return retry_on_alter(run) if is_repeatable else run()


def _run_insert_data(
    name: str,
    data: Mapping[str, Any] | Data,
    columns: Sequence[str] | None,
    token: str | None,
    context: StatementContext,
    offsets: Mapping[str, Sequence[int]] | None,
) -> InsertedRows:
    """Make one attempt of `run_insert_data` on the newest snapshot."""
    snapshot = context.snapshot()
    table = context.require_table(snapshot, parse_table_name(name), "INSERT")
    types: Sequence[DataType] | None = None
    source: Any
    if isinstance(data, Mapping):
        source, types = mapping_columns(
            table, data, columns, context.environment, lossy=allows_lossy(context.settings)
        )
    else:
        source = data if columns is None else with_names(data, columns)
        if isinstance(source, pa.RecordBatchReader):
            source = _until_cancelled(source, context)
    blocks = make_blocks(
        table,
        InsertedData(source, types=types),
        settings=context.settings,
        environment=context.environment,
        snapshot=snapshot,
        cache=context.services.cache,
    )
    return _commit(table, blocks, token, parse_offsets(offsets), context, snapshot)


def _insert_rows(
    table: Table,
    columns: Sequence[str] | None,
    data: Any,
    types: Sequence[DataType],
    context: StatementContext,
    snapshot: Snapshot,
) -> InsertedRows:
    """Commit the rows with the deduplication token and source offsets of the settings."""
    blocks = blocks_of(table, columns, data, types, context, snapshot)
    return _commit(table, blocks, _token(context), _offsets(context), context, snapshot)


def blocks_of(
    table: Table,
    columns: Sequence[str] | None,
    data: Any,
    types: Sequence[DataType],
    context: StatementContext,
    snapshot: Snapshot,
    nulls: str = "input_format_null_as_default",
) -> Iterator[pa.Table]:
    """Yield blocks of the table from data whose columns match by position. `nulls` names the
    setting that decides whether NULL in a column that is not Nullable becomes the column's
    default."""
    names = [column.name for column in target_columns(table, columns)]
    return make_blocks(
        table,
        InsertedData(data, names, types, context.settings.boolean(nulls)),
        settings=context.settings,
        environment=context.environment,
        snapshot=snapshot,
        cache=context.services.cache,
    )


def _token(context: StatementContext) -> str | None:
    """Return the deduplication token of the settings; None without one or with insert_deduplicate =
    0."""
    if not context.settings.boolean("insert_deduplicate"):
        return None
    return context.settings.text("insert_deduplication_token") or None


def _offsets(context: StatementContext) -> OffsetRanges:
    """Return the source offsets of the settings."""
    return read_offsets(context.settings.text("source_offsets"))


def _commit(
    table: Table,
    blocks: Iterable[pa.Table],
    token: str | None,
    offsets: OffsetRanges,
    context: StatementContext,
    snapshot: Snapshot,
    *,
    owns_blocks: bool = False,
) -> InsertedRows:
    """Commit the blocks; add the outcome to the statement's statistics and return it."""
    result = insert(
        context.origin("INSERT"),
        table.id,
        blocks,
        token=token,
        offsets=offsets,
        snapshot=snapshot,
        owns_blocks=owns_blocks,
    )
    if table.is_bounded:
        drop_oldest(context.origin(), table.id, result.commit)
    return inserted_rows(result, context)


def inserted_rows(result: InsertResult, context: StatementContext) -> InsertedRows:
    """Add the outcome of an INSERT to the statement's statistics, and return it."""
    context.statistics.rows_written += result.rows
    context.statistics.duplicates_dropped += result.duplicates_dropped
    context.statistics.warnings += [warning for write in result.views for warning in write.warnings]
    context.statistics.duplicate_inserts += result.duplicate
    return InsertedRows(
        result.rows,
        duplicate=result.duplicate,
        duplicates_dropped=result.duplicates_dropped,
        commit=result.commit,
    )


# --- data of Python


def as_arrow(data: Any) -> pa.Table | pa.RecordBatch | pa.RecordBatchReader:
    """Return Arrow data for an object with an Arrow stream or a pandas frame. Raise InterfaceError
    for other classes, BadArguments for data that Arrow cannot read."""
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return data
    try:
        if type(data).__name__ == "Series" or isinstance(data, pa.Array | pa.ChunkedArray):
            raise errors.BadArguments(
                f"insert() takes columns with names, not one {type(data).__name__}.",
                hint="Give a mapping: insert('t', {'column': values}).",
            )
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if type(data).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowTypeError, OverflowError, ValueError) as error:  # two columns of one name, too
        raise errors.BadArguments(
            f"The data cannot be read as Arrow: {' '.join(map(str, error.args))}.",
            hint="Give each column values of one type.",
        ) from error
    raise errors.InterfaceError(
        f"insert() takes Arrow data, a pandas frame or a mapping of columns, not "
        f"{type(data).__name__}.",
        hint="For rows that are tuples, executemany('INSERT INTO t VALUES (?, …)', rows); for dicts, "
        "pyarrow.Table.from_pylist(rows); for batches, pyarrow.RecordBatchReader.from_batches(schema, batches).",
    )


def _until_cancelled(
    reader: pa.RecordBatchReader, context: StatementContext
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of the stream, and check for cancellation at each. The check at each block
    would be too late for a slow stream."""
    for batch in reader:
        if context.cancelled.is_set():
            raise errors.QueryWasCancelled("The INSERT was cancelled; nothing was inserted.")
        yield batch
