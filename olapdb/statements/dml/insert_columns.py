"""The columns that an INSERT names, and data in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from olapdb import errors
from olapdb.ingest.block import insertable_columns
from olapdb.model.schema import Column, Table
from olapdb.sql import nodes


def column_list(statement: nodes.Insert, table: Table) -> list[str] | None:
    """Return the names of the INSERT's column list; None without one. EXCEPT names the columns to
    leave out. Raise NoSuchColumn."""
    if statement.columns is None and not statement.excluded:
        return None
    if statement.columns is None:
        return [
            column.name
            for column in insertable_columns(table)
            if column.name not in statement.excluded
        ]
    for name in statement.columns:
        if table.column(name) is None:
            raise errors.NoSuchColumn(
                f"{table.database}.{table.name} has no column {name}.",
                hint=f"It has {', '.join(column.name for column in table.columns)}.",
                position=statement.position,
            )
    return list(statement.columns)


def target_columns(table: Table, names: Sequence[str] | None) -> list[Column]:
    """Return the columns of these names; all insertable ones for None."""
    if names is None:
        return list(insertable_columns(table))
    columns = [table.column(name) for name in names]
    return [column for column in columns if column is not None]


def column_count_error(expected: int, given: int) -> errors.NumberOfColumnsDoesntMatch:
    """Return the error for data with another number of columns than the INSERT's."""
    return errors.NumberOfColumnsDoesntMatch(
        f"The INSERT takes {expected} columns, its data have {given}.",
        hint="Name the columns: INSERT INTO t (a, b) …",
    )


def with_names(source: Any, columns: Sequence[str]) -> Any:
    """Return the data with these column names in place of its own. Raise
    NumberOfColumnsDoesntMatch."""
    if len(source.schema.names) != len(columns):
        raise column_count_error(len(columns), len(source.schema.names))
    if isinstance(source, pa.RecordBatchReader):
        schema = pa.schema(
            [field.with_name(name) for field, name in zip(source.schema, columns, strict=True)]
        )
        return pa.RecordBatchReader.from_batches(
            schema, (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in source)
        )
    return source.rename_columns(list(columns))
