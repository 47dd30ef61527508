"""INSERT INTO FUNCTION: rows that go to a file, or nowhere, instead of a table."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import TypeAlias

import pyarrow as pa

from olapdb import errors
from olapdb.bind import bind_value
from olapdb.bind.file_functions import file_structure
from olapdb.bind.structures import parse_structure, structure_defaults
from olapdb.bind.table_functions import unknown_function
from olapdb.formats.base import Ending, Format, Header, Structure, write_all
from olapdb.formats.files import NewFile, resolved_path
from olapdb.formats.registry import compression_of_path, find_format, format_of_path, writer_of
from olapdb.ingest.block import InsertedData, make_blocks
from olapdb.model.schema import Column, Engine, Table
from olapdb.records import dataclass
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.statements.context import StatementContext
from olapdb.statements.dml import partitioned_files
from olapdb.statements.dml.formatted_values import formatted_blocks
from olapdb.statements.dml.insert import result_blocks
from olapdb.statements.dml.insert_columns import column_count_error, column_list, target_columns
from olapdb.statements.dml.literal_rows import literal_rows
from olapdb.statements.query import select

Blocks: TypeAlias = Iterator[pa.Table]
Target: TypeAlias = tuple[str, Callable[[Table, Blocks], int]]
"""The text of a structure, "auto" where the rows say it, and what writes the blocks of a table with
these columns; it returns how many rows there were."""


def run_insert_function(statement: nodes.Insert, context: StatementContext) -> Result:
    """Write the rows of the INSERT to `null('structure')` or to
    `file(path[, format[, structure[, compression]]])`.

    Raises UnknownFunction, and NotSupportedError for a function that is only read or not there."""
    assert statement.function is not None
    context = context.with_settings(statement.settings).in_session_zone()
    name = statement.function.name.lower()
    if name not in _TARGETS:
        raise unknown_function(
            statement.function, ("file", "null"), "INSERT INTO FUNCTION writes to file and to null."
        )
    texts = [_text(argument, statement, context) for argument in statement.function.arguments]
    path = texts[0] if texts else ""
    partition_by = statement.partition_by
    if name == "file" and partition_by is not None:
        if partitioned_files.PLACE not in path:
            raise errors.BadArguments(
                f"The path of INSERT … PARTITION BY has {partitioned_files.PLACE} in it.",
                hint="Such as file('part_{_partition_id}.csv').",
            )
        texts = [path.replace(partitioned_files.PLACE, "_"), *texts[1:]]
    structure, write = _TARGETS[name](texts, context)
    rows = None
    if statement.query is not None:
        rows = select.run_query(statement.query, context)
        if structure == _AUTO:
            columns: Structure = tuple(zip(rows.names, rows.types, strict=True))
    if structure != _AUTO:
        columns = tuple(parse_structure(structure, with_defaults=True))
    elif rows is None:
        columns = file_structure(texts, context.settings, context.environment)
    table = _table_of(columns, name, "" if structure == _AUTO else structure)
    blocks = _blocks(statement, table, rows, context)
    if name == "file" and partition_by is not None:

        def stage(path: str, some: Blocks) -> tuple[NewFile, int]:
            """Write the rows of one partition under another name than that of its file `path`;
            return the file to publish, and the number of its rows."""
            return _target([path, *texts[1:]], context)[1].stage(table, some)

        done = partitioned_files.write_partitions(partition_by, path, stage, table, blocks, context)
    else:
        done = write(table, blocks)
    return Result(affected_rows=done, statistics=context.statistics)


_AUTO = "auto"


def _text(argument: nodes.Expression, statement: nodes.Insert, context: StatementContext) -> str:
    """Return a constant text, or a bare name such as CSV or data.csv. Raise BadArguments for
    anything else."""
    if isinstance(argument, nodes.Identifier):
        return ".".join(argument.parts)
    value = bind_value(argument, context.scope(context.snapshot())).value.as_py()
    if not isinstance(value, str):
        raise errors.BadArguments(
            f"The arguments of {statement.table.name} are constant texts.",
            position=statement.position,
        )
    return value


def _table_of(columns: Structure, name: str, structure: str) -> Table:
    """Return a table of these columns, which no catalog has, with the defaults of the structure."""
    defaults = {name: to_sql(value) for name, value in structure_defaults(structure).items()}
    return Table(
        str(uuid.uuid4()),
        "_table_function",
        name,
        Engine("Null"),
        tuple(
            Column(
                at, column, kind, "DEFAULT" if column in defaults else "", defaults.get(column, "")
            )
            for at, (column, kind) in enumerate(columns, 1)
        ),
    )


def _blocks(
    statement: nodes.Insert, table: Table, rows: Result | None, context: StatementContext
) -> Blocks:
    """Yield the rows of the statement as blocks of the table."""
    snapshot = context.snapshot()
    columns = column_list(statement, table)
    if rows is not None:
        return result_blocks(table, columns, rows, context, snapshot)
    fields = target_columns(table, columns)
    if statement.values is None:
        return formatted_blocks(statement, table, fields, context, snapshot)
    data, types = literal_rows(statement.values, table, columns, context, snapshot)
    if data.num_columns != len(fields):
        raise column_count_error(len(fields), data.num_columns)
    return make_blocks(
        table,
        InsertedData(
            data,
            [field.name for field in fields],
            types,
            context.settings.boolean("input_format_null_as_default"),
        ),
        settings=context.settings,
        environment=context.environment,
        snapshot=snapshot,
        cache=context.services.cache,
    )


# --- null


def _null(texts: Sequence[str], context: StatementContext) -> Target:
    """Return the target of `null(['structure'])`, which keeps no row.

    Raises NumberOfArgumentsDoesntMatch."""
    if len(texts) > 1:
        raise errors.NumberOfArgumentsDoesntMatch("null takes the structure of its rows.")
    return texts[0] if texts else _AUTO, lambda _, blocks: sum(block.num_rows for block in blocks)


# --- file


@dataclass(frozen=True)
class _File:
    """A file to write: its path, its format and compression."""

    path: str
    format: Format
    compression: str
    context: StatementContext

    def write(self, table: Table, blocks: Blocks) -> int:
        """Write the blocks, as a whole or not at all, and return how many rows they have."""
        file, rows = self.stage(table, blocks)
        try:
            file.publish()
        finally:
            file.discard()
        return rows

    def stage(self, table: Table, blocks: Blocks) -> tuple[NewFile, int]:
        """Write the blocks under another name; return the file to publish, and how many rows it has.

        An existing file is added to, replaced, or left beside a new one, as the settings
        engine_file_… say. Raises CannotAppendToFile."""
        settings = self.context.settings
        path, mode = self.path, "APPEND"
        if settings.boolean("engine_file_truncate_on_insert"):
            mode = "TRUNCATE"
        elif _has_bytes(path) and not (self.format.appends and self.compression == "none"):
            if not settings.boolean("engine_file_allow_create_multiple_files"):
                raise _not_appended(self)
            path, mode = _beside(path), ""
        elif not os.path.exists(path):
            mode = ""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = NewFile(path, mode, self.compression)
        file.check(self.format)
        written = _Counted()
        headless = mode == "APPEND" and _has_bytes(path)
        try:
            file.stage(self._pieces(table, written.through(blocks), headless))
        except BaseException:
            file.discard()
            raise
        return file, written.rows

    def _pieces(
        self, table: Table, batches: Iterator[pa.RecordBatch], headless: bool
    ) -> Iterator[bytes]:
        """Yield the text of the rows; `headless` without what stands before them."""
        names = tuple(column.name for column in table.columns)
        types = tuple(column.type for column in table.columns)
        header = Header(names, types, self.context.settings, self.context.environment)
        writer = writer_of(self.format.name, header)
        pieces = write_all(writer, batches, lambda rows: Ending(rows=rows))
        return islice(pieces, int(headless), None)


def _not_appended(file: _File) -> errors.Error:
    """Return the error about a file that exists."""
    return errors.CannotAppendToFile(
        f"The file {file.path} exists, and cannot be appended to in format {file.format.name}"
        f"{'' if file.compression == 'none' else f' with compression {file.compression}'}.",
        hint="SETTINGS engine_file_truncate_on_insert = 1 replaces it,"
        " engine_file_allow_create_multiple_files = 1 writes another file beside it.",
    )


def _has_bytes(path: str) -> bool:
    """Return whether the file exists and is not empty."""
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _beside(path: str) -> str:
    """Return the first of the names `name.1.ending`, `name.2.ending`, … that no file has."""
    folder, name = os.path.split(path)
    stem, dot, ending = name.partition(".")
    names = (os.path.join(folder, f"{stem}.{number}{dot}{ending}") for number in count(1))
    return next(name for name in names if not os.path.exists(name))


class _Counted:
    """A count of the rows that pass."""

    def __init__(self) -> None:
        self.rows = 0

    def through(self, blocks: Blocks) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the blocks."""
        for block in blocks:
            self.rows += block.num_rows
            yield from block.to_batches()


def _file(texts: Sequence[str], context: StatementContext) -> Target:
    """Return the target of file(), as `_target` does."""
    structure, file = _target(texts, context)
    return structure, file.write


def _target(texts: Sequence[str], context: StatementContext) -> tuple[str, _File]:
    """Return the structure and the file that the arguments of file() name.

    Raises NumberOfArgumentsDoesntMatch, BadArguments for a path with wildcards, CannotDetectFormat,
    FormatNotForOutput, PathNotAllowed."""
    if not 1 <= len(texts) <= _FILE_ARGUMENTS_MAX:
        raise errors.NumberOfArgumentsDoesntMatch(
            "file takes a path, then perhaps a format, a structure and a compression."
        )
    name, named, structure, compression = [*texts, *[_AUTO] * (_FILE_ARGUMENTS_MAX - len(texts))]
    if any(mark in name for mark in "*?{"):
        raise errors.PathNotAllowed(f"{name!r} names several files: INSERT writes one.")
    path = resolved_path(name, context.settings)
    chosen = format_of_path(path) if named.lower() == _AUTO else find_format(named)
    if chosen is None:
        raise errors.CannotDetectFormat(
            f"The format of {name} is not known by its ending.",
            hint="Name it: file('path', 'CSV').",
        )
    if compression.lower() == _AUTO:
        compression = compression_of_path(path)
    if structure.strip().lower() == _AUTO:
        structure = _AUTO
    return structure, _File(path, chosen, compression, context)


_FILE_ARGUMENTS_MAX = 4
_TARGETS: dict[str, Callable[[Sequence[str], StatementContext], Target]] = {
    "file": _file,
    "null": _null,
}
