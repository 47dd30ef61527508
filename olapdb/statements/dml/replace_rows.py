"""INSERT … REPLACE: gives the rows of a SELECT, of VALUES or of Arrow data to
`olapdb.dml.replace_rows`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from olapdb.dml.replace_rows import replace_rows
from olapdb.errors import BadArguments, UnknownTable
from olapdb.ingest.block import Data, InsertedData, allows_lossy, make_blocks
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import InsertedRows, Result
from olapdb.sql import nodes
from olapdb.sql.parser import parse_replacing, parse_table_name
from olapdb.statements.context import StatementContext
from olapdb.statements.dml.insert import (
    as_arrow,
    blocks_of,
    inserted_rows,
    result_blocks,
    result_of,
)
from olapdb.statements.dml.insert_columns import column_list, with_names
from olapdb.statements.dml.literal_rows import literal_rows
from olapdb.statements.dml.python_values import mapping_columns
from olapdb.statements.query.select import run_at


def run_replace(statement: nodes.Insert, context: StatementContext) -> Result:
    """Run INSERT … REPLACE … SELECT or VALUES: one commit removes and adds rows. The query and the
    conditions of REPLACE read one snapshot.

    Raises BadArguments with a deduplication token or source offsets, or for data that is not in the
    text.
    """
    context = context.with_settings(statement.settings)
    context.require_warehouse_zone("INSERT … REPLACE", statement.position)
    present = context.of_the_present()
    for setting in ("insert_deduplication_token", "source_offsets"):
        if context.settings.text(setting):
            raise BadArguments(
                f"INSERT … REPLACE does not take {setting}: it may be repeated without one.",
                hint="Remove the setting.",
                position=statement.position,
            )
    if statement.query is None and statement.values is None:
        raise BadArguments(
            "INSERT … REPLACE takes a SELECT or VALUES in the text.",
            hint='Give data of Arrow to connection.insert(table, data, replace="REPLACE …").',
            position=statement.position,
        )
    table_id = present.require_table(present.snapshot(), statement.table, "INSERT").id

    def blocks(snapshot: Snapshot) -> Iterator[pa.Table]:
        """Return the statement's rows at the snapshot as blocks of the table."""
        table = _table(snapshot, table_id)
        columns = column_list(statement, table)
        if statement.query is not None:
            result = run_at(statement.query, context, _read_snapshot(context, snapshot))
            return result_blocks(table, columns, result, present, snapshot)
        assert statement.values is not None
        rows, types = literal_rows(statement.values, table, columns, present, snapshot)
        return blocks_of(table, columns, rows, types, present, snapshot)

    assert statement.replacing is not None
    result = replace_rows(
        present.origin(), table_id, statement.replacing, blocks, context.parameters
    )
    return result_of(inserted_rows(result, context), context)


def run_replace_data(
    name: str, data: Any, columns: Sequence[str] | None, clause: str, context: StatementContext
) -> InsertedRows:
    """Insert Python data and remove the rows that it replaces; `clause` begins with REPLACE. A
    stream is read into memory first."""
    replacing = parse_replacing(clause)
    table_id = context.require_table(context.snapshot(), parse_table_name(name), "INSERT").id
    source: Mapping[str, Any] | Data = data if isinstance(data, Mapping) else as_arrow(data)
    if isinstance(source, pa.RecordBatchReader):
        source = source.read_all()

    def blocks(snapshot: Snapshot) -> Iterator[pa.Table]:
        """Return the data as blocks of the table at the snapshot."""
        table, rows, types = _table(snapshot, table_id), source, None
        if isinstance(rows, Mapping):
            rows, types = mapping_columns(
                table, rows, columns, context.environment, lossy=allows_lossy(context.settings)
            )
        elif columns is not None:
            rows = with_names(rows, columns)
        return make_blocks(
            table,
            InsertedData(rows, types=types),
            settings=context.settings,
            environment=context.environment,
            snapshot=snapshot,
            cache=context.services.cache,
        )

    result = replace_rows(context.origin(), table_id, replacing, blocks, context.parameters)
    return inserted_rows(result, context)


def _table(snapshot: Snapshot, table_id: str) -> Table:
    """Return the table with that id in the snapshot. Raise UnknownTable if it is gone."""
    table = snapshot.by_id(table_id)
    if not isinstance(table, Table):
        raise UnknownTable("The table of this INSERT does not exist any more.")
    return table


def _read_snapshot(context: StatementContext, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot that SETTINGS snapshot names, else the given one."""
    return context.reading_snapshot() if context.settings.integer("snapshot") else snapshot
