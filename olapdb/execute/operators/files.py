"""Rows of files and of texts in a format: file() and format()."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.compute.batches import cut, make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.config import Settings
from olapdb.formats.base import Input, Rows
from olapdb.formats.conversion import store_with_nulls
from olapdb.formats.opened import decoding, open_data
from olapdb.formats.prepared import read_rows
from olapdb.formats.refusals import refusal_of
from olapdb.formats.registry import find_format, reader_of
from olapdb.formats.tolerated_errors import Tolerance
from olapdb.functions.kernels.constants import default_value
from olapdb.plan.nodes import FileScan
from olapdb.types import DataType, is_nullable

_SECOND = 1_000_000_000


def file_batches(node: FileScan, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the needed columns of all files, one file behind the other, a block at a time.

    Raises CannotStat, IncorrectData, and a DataError that names column, row and file for a value
    that is none of the column's type."""
    for path in node.paths:
        first_row = 0
        facts = _facts(path) if path else {}
        stream = open_data(node.format, path, node.compression) if path else io.BytesIO(node.data)
        with closing(stream), decoding(node.format):
            settings = Settings.of(context.settings)
            tolerance = Tolerance(settings, dict(node.structure), context.environment)
            needed = None if tolerance.any else _needed(node)
            source = Input(stream, settings, context.environment, node.structure, needed=needed)
            reader_of(node.format)
            for rows in map(tolerance.kept, read_rows(find_format(node.format), source)):
                context.check()
                arrays = _Columns(node, rows, facts, context, path, first_row).arrays()
                first_row += rows.rows
                context.count_read(rows.rows, sum(array.nbytes for array in arrays))
                if rows.rows:
                    yield from cut(make_batch(arrays, node.schema, rows.rows), context.batch_rows)


def _needed(node: FileScan) -> frozenset[str]:
    """Return the columns to read: those of the query, or one, by which rows are counted."""
    own = [name for name, _ in node.structure]
    wanted = frozenset(name for _, name in node.columns if name in own)
    return wanted or frozenset(own[:1])


def _facts(path: str) -> dict[str, object]:
    """Return the values of the virtual columns for a file: path, name, bytes, and time of the last change. Raise
    CannotStat."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise errors.CannotStat(f"Cannot read the file {path}: {error.strerror}.") from None
    return {
        "_path": path,
        "_file": os.path.basename(path),
        "_size": status.st_size,
        "_time": status.st_mtime_ns // _SECOND,
    }


class _Columns:
    """The columns of one batch of rows, as the scan returns them."""

    def __init__(
        self,
        node: FileScan,
        rows: Rows,
        facts: dict[str, object],
        context: ExecutionContext,
        path: str,
        first_row: int,
    ) -> None:
        self._node = node
        self._rows = rows
        self._facts = facts
        self._context = context
        self._path = path
        self._first_row = first_row

    def arrays(self) -> list[pa.Array]:
        """Return the columns of the scan in their order."""
        own = {name for name, _ in self._node.structure}
        pairs = zip(self._node.columns, self._node.types, strict=True)
        return [
            self._own(name, kind) if name in own else self._virtual(name, kind)
            for (_, name), kind in pairs
        ]

    def _virtual(self, name: str, kind: DataType) -> pa.Array:
        """Return a virtual column for each row: `_row_number`, counted through the file, or `_path`, `_file`, `_size`
        or `_time`, which have one value for the file."""
        if name == "_row_number":
            numbers = np.arange(self._first_row, self._first_row + self._rows.rows)
            return pa.array(numbers, kind.arrow)
        value = self._facts[name]
        if isinstance(value, int):
            scalar = pa.scalar(value, pa.int64())
            integers = pa.repeat(scalar, self._rows.rows)
            if pa.types.is_timestamp(kind.arrow):
                integers = integers.cast(pa.timestamp("s"))
            return integers.cast(kind.arrow)
        return pa.repeat(pa.scalar(value, pa.string()), self._rows.rows).cast(kind.arrow)

    def _own(self, name: str, kind: DataType) -> pa.Array:
        """Return a column of the data, converted to `kind`.

        A column that the data lack is NULL if `kind` is Nullable, else its default. Raises DataError,
        with the place of the value that does not convert."""
        if name not in self._rows.names:
            absent = None if is_nullable(kind) else default_value(kind)
            if absent is None:
                return pa.nulls(self._rows.rows, kind.arrow)
            return pa.repeat(absent, self._rows.rows)
        at = self._rows.names.index(name)
        array, read = self._rows.arrays[at], self._rows.types[at]
        try:
            converted = store_with_nulls(array, read, kind, self._context.environment)
        except errors.DataError as error:
            raise self._placed(error, name) from None
        if converted.null_count and not is_nullable(kind):
            converted = self._filled(converted, name, kind)
        return converted

    def _filled(self, array: pa.Array, name: str, kind: DataType) -> pa.Array:
        """Return the column with its type's default for NULL, as the settings allow it."""
        if not Settings.of(self._context.settings).boolean("input_format_null_as_default"):
            row = int(pc.index(pc.is_null(array), True).as_py())
            refused = errors.CannotInsertNull(f"NULL is no value of {kind}.").at_row(row)
            raise self._placed(refused, name)
        return pc.if_else(pc.is_valid(array), array, default_value(kind))

    def _placed(self, error: errors.DataError, name: str) -> errors.DataError:
        """Return the error with its column, row and file."""
        place = f"Column {name}"
        if error.row is not None:
            place += f", row {self._first_row + error.row + 1}"
        place += f" of {self._path}" if self._path else ""
        structure = self._node.structure
        kind = dict(structure).get(name)
        error = refusal_of(error, self._node.format, kind, name == structure[-1][0])
        return type(error)(f"{place}: {error.message}", hint=error.hint)
