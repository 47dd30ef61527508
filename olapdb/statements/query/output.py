"""SELECT … FORMAT and INTO OUTFILE: results as text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.execute.extremes import Extremes
from olapdb.lazy import lazy_modules
from olapdb.result import Output, Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.query.select import run_query, with_query_settings

if TYPE_CHECKING:
    from olapdb.formats import base, files, registry
else:
    base, files, registry = lazy_modules("olapdb.formats", "base", "files", "registry")

DEFAULT_FORMAT = "TabSeparated"


def run_select(query: nodes.Query, context: StatementContext) -> Result:
    """Run the query. Its result has rows, and the text that FORMAT asks for. With FORMAT Null it
    runs to its end and has no rows."""
    result = run_query(query, context)
    name = getattr(query, "format", None) or ""
    if name.lower() == "null":
        for _ in result.batches():
            pass
        result = Result(result.names, result.types, statistics=context.statistics)
    result.output = Output(name, partial(_text, with_query_settings(query, context)))
    return result


def with_text(result: Result, name: str | None, context: StatementContext) -> Result:
    """Return the result of a statement that is no query, such as SHOW, with its text in a FORMAT;
    FORMAT Null leaves out the rows."""
    if not result.has_columns or result.output is not None:
        return result
    if (name or "").lower() == "null":
        result.close()
        result = Result(result.names, result.types, statistics=context.statistics)
    result.output = Output(name or "", partial(_text, context))
    return result


def _text(
    context: StatementContext, result: Result, batches: Iterator[pa.RecordBatch], name: str
) -> Iterator[bytes]:
    """Yield the text of the result's batches in a format; the default one for "". Raises
    UnknownFormat, and FormatNotForOutput, before the first batch is drawn."""
    header = base.Header(result.names, result.types, context.settings, context.environment)
    writer = registry.writer_of(name or DEFAULT_FORMAT, header)
    started = time.monotonic()
    extremes = Extremes(result.types) if context.settings.boolean("extremes") else None
    if extremes is not None:
        batches = extremes.through(batches)

    def end(rows: int) -> base.Ending:
        """Return what formats write after the rows: totals, extremes, the number of rows,
        statistics and the seconds elapsed."""
        elapsed = max(time.time() - context.environment.now_seconds, time.monotonic() - started)
        ends = None if extremes is None else extremes.rows(result.schema)
        return base.Ending(result.totals, rows, result.statistics, elapsed, ends)

    return base.write_all(writer, batches, end)


def write_file(statement: nodes.OutFile, context: StatementContext) -> Result:
    """Write the rows of a query to a file, which appears as a whole or not at all.

    The result says how many rows were written; with AND STDOUT it has the rows too. Raises
    PathNotAllowed, and FileAlreadyExists for an existing file without APPEND and TRUNCATE."""
    context = with_query_settings(statement.query, context)
    path = files.resolved_path(statement.path, context.settings)
    name = getattr(statement.query, "format", None) or ""
    if not name:
        by_ending = registry.format_of_path(path)
        name = DEFAULT_FORMAT if by_ending is None else by_ending.name
    compression = statement.compression or registry.compression_of_path(path)
    file = files.NewFile(path, statement.mode, compression, statement.level)
    file.check(registry.find_output(name))
    result = run_query(statement.query, context)
    kept: list[pa.RecordBatch] = []
    counted = _Counted()
    batches = counted.through(result.batches(), kept if statement.and_stdout else None)
    file.write(_text(context, result, batches, name))
    if not statement.and_stdout:
        return Result(affected_rows=counted.rows, statistics=context.statistics)
    shown = Result(
        result.names,
        result.types,
        kept,
        context.statistics,
        affected_rows=counted.rows,
        totals=result.totals,
    )
    shown.output = Output(name, partial(_text, context))
    return shown


class _Counted:
    """A count of the rows that pass."""

    def __init__(self) -> None:
        self.rows = 0

    def through(
        self, batches: Iterator[pa.RecordBatch], kept: list[pa.RecordBatch] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches; append them to `kept` if it is given."""
        for batch in batches:
            self.rows += batch.num_rows
            if kept is not None:
                kept.append(batch)
            yield batch
