"""INSERT: rows from VALUES, a SELECT or Python become blocks; ingest does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from olapdb import errors
from olapdb.bind import bind_constant
from olapdb.bind.parameters import lookup_parameter
from olapdb.dml.delivery import Stretches, read_offsets, stretches_of
from olapdb.dml.insert import insert
from olapdb.functions import default_value
from olapdb.functions.kernels.columns import from_scalars
from olapdb.ingest.block import Data, allows_lossy, insertable_columns, make_blocks
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import InsertedRows, Result
from olapdb.sql import nodes
from olapdb.sql.parser import parse_table_name
from olapdb.sql.values.csv_values import parse_value_rows, read_values
from olapdb.statements.context import StatementContext
from olapdb.statements.dml.json_values import read_small_values
from olapdb.statements.dml.python_values import mapping_columns, python_column
from olapdb.statements.query.select import run_query
from olapdb.types import DataType, is_nullable, make_nullable

Outcome = TypeVar("Outcome")
Rows: TypeAlias = Sequence[Sequence[nodes.Node | None]]

ALTERED_MAX = 3
"""How often an INSERT begins again because its table was altered meanwhile."""


def run_insert(statement: nodes.Insert, context: StatementContext) -> Result:
    """One atomic commit of all blocks and all that the views make of them. Where an ALTER of the
    table was faster, the statement begins again, and means what the table is now; bounded."""
    return _begun_again(lambda: _run_insert(statement, context))


def _begun_again(run: Callable[[], Outcome]) -> Outcome:
    for _ in range(ALTERED_MAX):
        try:
            return run()
        except errors.TableAltered:
            continue
    return run()


def _run_insert(statement: nodes.Insert, context: StatementContext) -> Result:
    context = context.with_settings(statement.settings)
    past_is_read = statement.query is not None
    snapshot = (context.of_the_present() if past_is_read else context).snapshot()
    table = context.require_table(snapshot, statement.table, "INSERT")
    columns = _column_list(statement, table)
    if statement.query is not None:
        return _answer(insert_query(table, columns, statement.query, context), context)
    if statement.values is None:
        raise errors.NotSupportedError(
            f"INSERT … FORMAT {statement.format or ''} with data in the statement is not supported.",
            hint="Use VALUES, or connection.insert(table, data) with Arrow data.",
            position=statement.position,
        )
    rows, types = _literal_rows(statement.values, table, columns, context, snapshot)
    return _answer(_write(table, columns, rows, types, context, snapshot), context)


def rows_of_parameters(statement: nodes.Insert) -> Rows | None:
    """The one row of `INSERT … VALUES (?, ?)`; None where the statement is anything else."""
    if statement.values is None:
        return None

    rows = parse_value_rows(statement.values.text, statement.values.position)
    return rows if len(rows) == 1 and all(_is_parameter(e) for e in rows[0]) else None


def run_insert_many(
    statement: nodes.Insert, rows: Rows, sets: Sequence[Any], context: StatementContext
) -> Result:
    """All parameter sets of `rows_of_parameters` as one INSERT."""
    context = context.with_settings(statement.settings)
    return _begun_again(lambda: _run_insert_many(statement, rows, sets, context))


def _run_insert_many(
    statement: nodes.Insert, rows: Rows, sets: Sequence[Any], context: StatementContext
) -> Result:
    snapshot = context.snapshot()
    table = context.require_table(snapshot, statement.table, "INSERT")
    columns = _column_list(statement, table)
    fields = _target_columns(table, columns)
    if len(rows[0]) != len(fields):
        raise _wrong_count(len(fields), len(rows[0]))
    arrays = []
    lossy = allows_lossy(context.settings)
    for parameter, column in zip(rows[0], fields, strict=True):
        assert isinstance(parameter, nodes.Parameter)
        values = [lookup_parameter(parameter, one) for one in sets]
        arrays.append(python_column(column, values, context.environment, lossy=lossy))
    data = pa.Table.from_arrays(arrays, names=[c.name for c in fields])
    types = [_nullable(c.type) for c in fields]
    return _answer(_write(table, [c.name for c in fields], data, types, context, snapshot), context)


def _answer(done: InsertedRows, context: StatementContext) -> Result:
    return Result(affected_rows=int(done), statistics=context.statistics)


def insert_query(
    table: Table, columns: Sequence[str] | None, query: nodes.Query, context: StatementContext
) -> InsertedRows:
    """The SELECT's rows by position, streamed block by block."""
    present = context.of_the_present()
    snapshot = present.snapshot()
    blocks = query_blocks(table, columns, query, context, snapshot)
    return _commit(table, blocks, _token(present), _offsets(present), present, snapshot)


def query_blocks(
    table: Table,
    columns: Sequence[str] | None,
    query: nodes.Query,
    context: StatementContext,
    snapshot: Snapshot,
) -> Iterator[pa.Table]:
    """Blocks of the table out of a SELECT, by position."""

    result = run_query(query, context)
    fields = _target_columns(table, columns)
    if len(result.names) != len(fields):
        result.close()
        raise _wrong_count(len(fields), len(result.names))
    names = [c.name for c in fields]
    batches = result.batches_named(names)
    return _blocks(
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
    """`connection.insert`: Arrow data by column name. Where an ALTER of the table was faster, it
    begins again as `run_insert` does, but for a stream, which is drawn only once."""
    given = data if isinstance(data, Mapping) else _arrow(data)
    run = partial(_run_insert_data, name, given, columns, token, context, offsets)
    lasts = isinstance(given, Mapping | pa.Table | pa.RecordBatch)
    return _begun_again(run) if lasts else run()


def _run_insert_data(
    name: str,
    data: Mapping[str, Any] | Data,
    columns: Sequence[str] | None,
    token: str | None,
    context: StatementContext,
    offsets: Mapping[str, Sequence[int]] | None,
) -> InsertedRows:

    snapshot = context.snapshot()
    table = context.require_table(snapshot, parse_table_name(name), "INSERT")
    types: Sequence[DataType] | None = None
    source: Any
    if isinstance(data, Mapping):
        source, types = mapping_columns(
            table, data, columns, context.environment, lossy=allows_lossy(context.settings)
        )
    else:
        source = data if columns is None else _positional(data, columns)
        if isinstance(source, pa.RecordBatchReader):
            source = _until_cancelled(source, context)
    blocks = make_blocks(
        table,
        source,
        columns=None,
        types=types,
        settings=context.settings,
        environment=context.environment,
        snapshot=snapshot,
        null_as_default=False,
        cache=context.services.cache,
    )
    return _commit(table, blocks, token, stretches_of(offsets), context, snapshot)


def _write(
    table: Table,
    columns: Sequence[str] | None,
    data: Any,
    types: Sequence[DataType],
    context: StatementContext,
    snapshot: Snapshot,
) -> InsertedRows:
    blocks = _blocks(table, columns, data, types, context, snapshot)
    return _commit(table, blocks, _token(context), _offsets(context), context, snapshot)


def _blocks(
    table: Table,
    columns: Sequence[str] | None,
    data: Any,
    types: Sequence[DataType],
    context: StatementContext,
    snapshot: Snapshot,
    nulls: str = "input_format_null_as_default",
) -> Iterator[pa.Table]:
    """`nulls` is the setting that says what NULL does in a column that is not Nullable."""
    return make_blocks(
        table,
        data,
        columns=[c.name for c in _target_columns(table, columns)],
        types=types,
        settings=context.settings,
        environment=context.environment,
        snapshot=snapshot,
        null_as_default=context.settings.boolean(nulls),
        cache=context.services.cache,
    )


def _token(context: StatementContext) -> str | None:
    if not context.settings.boolean("insert_deduplicate"):
        return None
    return context.settings.text("insert_deduplication_token") or None


def _offsets(context: StatementContext) -> Stretches:
    return read_offsets(context.settings.text("source_offsets"))


def _commit(
    table: Table,
    blocks: Iterable[pa.Table],
    token: str | None,
    offsets: Stretches,
    context: StatementContext,
    snapshot: Snapshot,
) -> InsertedRows:
    result = insert(
        context.origin("INSERT"), table.id, blocks, token=token, offsets=offsets, snapshot=snapshot
    )
    context.statistics.rows_written += result.rows
    context.statistics.duplicates_dropped += result.duplicates_dropped
    context.statistics.warnings += [one for write in result.views for one in write.warnings]
    context.statistics.duplicate_inserts += result.duplicate
    return InsertedRows(
        result.rows,
        duplicate=result.duplicate,
        duplicates_dropped=result.duplicates_dropped,
        commit=result.commit,
    )


# --- columns


def _column_list(statement: nodes.Insert, table: Table) -> list[str] | None:
    if statement.columns is None and not statement.excluded:
        return None
    if statement.columns is None:
        return [c.name for c in insertable_columns(table) if c.name not in statement.excluded]
    for name in statement.columns:
        if table.column(name) is None:
            raise errors.NoSuchColumn(
                f"{table.database}.{table.name} has no column {name}.",
                hint=f"It has {', '.join(c.name for c in table.columns)}.",
                position=statement.position,
            )
    return list(statement.columns)


def _target_columns(table: Table, names: Sequence[str] | None) -> list[Column]:
    if names is None:
        return list(insertable_columns(table))
    found = [table.column(n) for n in names]
    return [c for c in found if c is not None]


def _wrong_count(expected: int, found: int) -> errors.NumberOfColumnsDoesntMatch:
    return errors.NumberOfColumnsDoesntMatch(
        f"The INSERT takes {expected} columns, its data have {found}.",
        hint="Name the columns: INSERT INTO t (a, b) …",
    )


# --- rows


def _literal_rows(
    values: nodes.ValuesData,
    table: Table,
    columns: Sequence[str] | None,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, Sequence[DataType]]:

    fields = _target_columns(table, columns)
    small = read_small_values(values.text, [c.type for c in fields])
    if small is not None:
        return pa.Table.from_arrays(small[0], names=[c.name for c in fields]), small[1]
    literal = read_values(
        values.text, [c.name for c in fields], [c.type for c in fields], values.position
    )
    if literal.columns is not None:
        names = [c.name for c in fields]
        return pa.Table.from_arrays(list(literal.columns), names=names), literal.types
    assert literal.rows is not None
    return _expression_rows(literal.rows, fields, context, snapshot)


def _expression_rows(
    rows: Sequence[Sequence[nodes.Expression | None]],
    fields: Sequence[Column],
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[pa.Table, Sequence[DataType]]:
    """VALUES with expressions or parameters: each is bound, folded and cast on its own."""

    scope = context.scope(snapshot)
    arrays = []
    types = [_nullable(c.type) for c in fields]
    null_as_default = context.settings.boolean("input_format_null_as_default")
    lossy = allows_lossy(context.settings)
    for position, (column, data_type) in enumerate(zip(fields, types, strict=True)):
        given = [row[position] for row in rows]
        if column.default and None in given:
            _refuse_default(column, context)
        parameters = [e for e in given if isinstance(e, nodes.Parameter) and _is_parameter(e)]
        if len(parameters) == len(given):
            python = [lookup_parameter(e, context.parameters) for e in parameters]
            arrays.append(python_column(column, python, context.environment, lossy=lossy))
            continue
        values = []
        for number, expression in enumerate(given, 1):
            if expression is None:  # an INSERT makes the column's default of a NULL
                values.append(pa.scalar(None) if column.default else default_value(column.type))
                continue
            if _is_null(expression, context) and null_as_default and not is_nullable(data_type):
                values.append(pa.scalar(None))  # an array or a map, which no NULL can be of
                continue
            try:
                values.append(bind_constant(expression, data_type, scope, lossy=lossy))
            except errors.DataError as error:
                error.message = f"Column {column.name}, row {number}: {error.message}"
                raise
        arrays.append(from_scalars(values, data_type.arrow))
    return pa.Table.from_arrays(arrays, names=[c.name for c in fields]), types


def _is_null(expression: nodes.Expression, context: StatementContext) -> bool:
    if isinstance(expression, nodes.Parameter) and _is_parameter(expression):
        return lookup_parameter(expression, context.parameters) is None
    return isinstance(expression, nodes.Literal) and expression.value is None


def _refuse_default(column: Column, context: StatementContext) -> None:
    """DEFAULT stands for the column's expression where NULL does: not where NULL is a value."""
    if is_nullable(column.type) or not context.settings.boolean("input_format_null_as_default"):
        raise errors.NotSupportedError(
            f"DEFAULT for column {column.name}, which takes NULL as a value, is not supported.",
            hint="Leave the column out of the INSERT's column list to have its default.",
        )


def _is_parameter(expression: nodes.Expression | None) -> bool:
    """A value as it is; `{name:Type}` says how it is to be cast."""
    return isinstance(expression, nodes.Parameter) and expression.type is None


def _nullable(data_type: DataType) -> DataType:

    return make_nullable(data_type)


def _arrow(data: Any) -> pa.Table | pa.RecordBatch | pa.RecordBatchReader:
    """Whatever speaks Arrow, or columns in a mapping."""
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return data
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if type(data).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError) as error:
        raise errors.BadArguments(
            f"The data cannot be read as Arrow: {error}.",
            hint="Give each column values of one type.",
        ) from error
    raise errors.InterfaceError(
        f"insert() takes Arrow data, a pandas frame or a mapping of columns, not "
        f"{type(data).__name__}."
    )


def _until_cancelled(
    reader: pa.RecordBatchReader, context: StatementContext
) -> Iterator[pa.RecordBatch]:
    """A stream may be as slow as it likes: it is asked at each batch, not at each block."""
    for batch in reader:
        if context.cancelled.is_set():
            raise errors.QueryWasCancelled("The INSERT was cancelled; nothing was inserted.")
        yield batch


def _positional(source: Any, columns: Sequence[str]) -> Any:
    if len(source.schema.names) != len(columns):
        raise _wrong_count(len(columns), len(source.schema.names))
    if isinstance(source, pa.RecordBatchReader):
        schema = pa.schema([f.with_name(n) for f, n in zip(source.schema, columns, strict=True)])
        return pa.RecordBatchReader.from_batches(
            schema, (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in source)
        )
    return source.rename_columns(list(columns))
