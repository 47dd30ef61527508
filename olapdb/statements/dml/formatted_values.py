"""INSERT … FORMAT: rows of a text in the statement, or of a file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import BinaryIO

import pyarrow as pa

from olapdb import errors
from olapdb.config import Settings
from olapdb.formats.base import Format, Input, Rows, Structure
from olapdb.formats.blocks import without_byte_order_mark
from olapdb.formats.files import matching_files
from olapdb.formats.opened import BINARY, BYTES, decoding, open_data
from olapdb.formats.prepared import read_rows
from olapdb.formats.refusals import refusal_of
from olapdb.formats.registry import find_format, format_of_path, reader_of
from olapdb.formats.tolerated_errors import Tolerance
from olapdb.functions.kernels.constants import default_value
from olapdb.ingest.block import InsertedData, make_blocks
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.types import STRING, is_nullable, make_nullable


def formatted_blocks(
    statement: nodes.Insert,
    table: Table,
    columns: Sequence[Column],
    context: StatementContext,
    snapshot: Snapshot,
) -> Iterator[pa.Table]:
    """Yield blocks of the table from the data of the statement's FORMAT, or from its file.

    Data that name their columns are taken by name, others by position, in the order of `columns`.
    Raises UnknownFormat, FormatNotForInput and errors of the paths before any row is read; a
    DataError names column and row."""
    chosen = find_format(statement.format).name if statement.format else ""
    types = {column.name: column.type for column in columns}
    try:
        yield from _blocks(statement, table, columns, context, snapshot)
    except errors.CannotParse as error:
        kind = types.get(error.column or "")
        is_last = bool(columns) and error.column == columns[-1].name
        raise refusal_of(error, chosen, kind, is_last) from None


def _blocks(
    statement: nodes.Insert,
    table: Table,
    columns: Sequence[Column],
    context: StatementContext,
    snapshot: Snapshot,
) -> Iterator[pa.Table]:
    """Yield blocks as `formatted_blocks` does, with errors as conversions name them."""
    streams = _streams(statement, context)
    for key, rows in groupby(_rows(streams, columns, context), lambda r: (r.names, r.types)):
        names, kinds = key
        yield from make_blocks(
            table,
            InsertedData(
                (_batch(row) for row in rows),
                names,
                kinds,
                context.settings.boolean("input_format_null_as_default"),
            ),
            settings=context.settings,
            environment=context.environment,
            snapshot=snapshot,
            cache=context.services.cache,
        )


def _batch(rows: Rows) -> pa.RecordBatch:
    """Return the rows as an Arrow batch."""
    return pa.RecordBatch.from_arrays(list(rows.arrays), names=list(rows.names))


def _streams(
    statement: nodes.Insert, context: StatementContext
) -> Iterator[tuple[Format, BinaryIO]]:
    """Return the format and the bytes of the statement's data, or of each of its files.

    Raises FileDoesntExist."""
    if statement.infile is None:
        return iter([_text_stream(statement)])
    settings = context.settings
    paths = matching_files(statement.infile.path, settings)
    if not paths:
        raise errors.FileDoesntExist(f"No file matches {statement.infile.path!r}.")
    for path in paths:
        if not os.path.isfile(path):
            raise errors.FileDoesntExist(f"There is no file {path}.")
    chosen = [_format_of_file(statement, path) for path in paths]
    compression = statement.infile.compression
    return (
        (data_format, open_data(data_format.name, path, compression))
        for data_format, path in zip(chosen, paths, strict=True)
    )


def _format_of_file(statement: nodes.Insert, path: str) -> Format:
    """Return the format that the statement names, else that of the ending of the file's name.

    Raises BadArguments."""
    data_format = find_format(statement.format) if statement.format else format_of_path(path)
    if data_format is None:
        raise errors.BadArguments(
            f"The format of {path} is not known by its ending.", hint="Name it: FORMAT CSV."
        )
    reader_of(data_format.name)
    return data_format


def _text_stream(statement: nodes.Insert) -> tuple[Format, BinaryIO]:
    """Return the format and the data of the statement\'s text.

    Raises NotSupportedError and BadArguments."""
    chosen = find_format(statement.format or "")
    reader_of(chosen.name)
    if chosen.name in BINARY:
        raise errors.NotSupportedError(
            f"The text of a statement cannot hold {chosen.name}.",
            hint="INSERT … FROM INFILE, or connection.insert(table, data) with Arrow data.",
            position=statement.position,
        )
    if not (statement.data or "").strip("\r\n"):
        raise errors.NoDataToInsert(
            f"There are no data behind FORMAT {chosen.name}.",
            hint="They stand behind it, after a space or a line feed.",
            position=statement.position,
        )
    assert statement.data is not None
    data = io.BytesIO(statement.data.encode("utf-8", "surrogateescape"))
    return chosen, data if chosen.name in BYTES else without_byte_order_mark(data)


def _rows(
    streams: Iterator[tuple[Format, BinaryIO]], columns: Sequence[Column], context: StatementContext
) -> Iterator[Rows]:
    """Yield the rows of all streams; check for cancellation at each batch."""
    structure: Structure = tuple((column.name, column.type) for column in columns)
    apart = frozenset(c.name for c in columns if c.default and is_nullable(c.type))
    settings = context.settings
    tolerance = Tolerance(settings, dict(structure), context.environment)
    for chosen, stream in streams:
        with stream:
            for rows in _read(chosen, stream, context, structure, apart):
                rows = _with_omitted(tolerance.kept(rows), columns, settings)
                if context.cancelled.is_set():
                    raise errors.QueryWasCancelled(
                        "The INSERT was cancelled; nothing was inserted."
                    )
                yield rows if rows.names else _defaults(rows.rows, columns)


def _read(
    chosen: Format,
    stream: BinaryIO,
    context: StatementContext,
    structure: Structure,
    apart: frozenset[str],
) -> Iterator[Rows]:
    """Yield the rows of one stream. Raise IncorrectData if it cannot be read or decompressed."""
    with decoding(chosen.name):
        source = Input(stream, context.settings, context.environment, structure, absent_apart=apart)
        yield from read_rows(chosen, source)


def _with_omitted(rows: Rows, columns: Sequence[Column], settings: Settings) -> Rows:
    """Return the rows with the columns that the data lack, where settings say that these have no DEFAULT:
    NULL, or the default of their type. Raises TypeMismatch for NULL in a column that is not Nullable."""
    forces_null = settings.boolean("input_format_force_null_for_omitted_fields")
    if not forces_null and settings.boolean("input_format_defaults_for_omitted_fields"):
        return rows
    missing = [column for column in columns if column.name not in rows.names]
    arrays = []
    for column in missing:
        if forces_null and not is_nullable(column.type):
            raise errors.TypeMismatch(
                f"Cannot insert NULL value into a column `{column.name}` of type '{column.type}'."
            )
        value = pa.scalar(None, column.type.arrow) if forces_null else default_value(column.type)
        arrays.append(pa.repeat(value, rows.rows))
    return Rows(
        (*rows.names, *(column.name for column in missing)),
        (*rows.types, *(column.type for column in missing)),
        (*rows.arrays, *arrays),
        rows.rows,
    )


def _defaults(rows: int, columns: Sequence[Column]) -> Rows:
    """Return `rows` rows for data without any column of the table: NULL in one column for which the
    INSERT takes NULL as the default. Raises NotSupportedError if there is none, since all columns
    are Nullable and have a DEFAULT."""
    for column in columns:
        if not (column.default and is_nullable(column.type)):
            nulls = pa.nulls(rows, pa.string())
            return Rows((column.name,), (make_nullable(STRING),), (nulls,), rows)
    raise errors.NotSupportedError(
        "Rows without any column of the table are not supported where all columns are Nullable and"
        " have a DEFAULT.",
        hint="Give one column a value.",
    )
