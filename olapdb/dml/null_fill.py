"""Reads parts of when a column was Nullable through a table in which it no longer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.engine.column_defaults import DefaultColumns
from olapdb.functions import parse_type
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.columns import PartColumns
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.runtime.cache import Cache
from olapdb.types import is_nullable, make_nullable


def read_without_nulls(
    context: TriggerContext, table: Table, part: Part, columns: Sequence[str]
) -> tuple[pa.Table, pa.Array | None]:
    """Return all rows of the part with NULLs of the named columns replaced by the column's
    default; and a mask of the rows that had one (None: no row did)."""
    nullable_table = replace(
        table,
        columns=tuple(
            replace(c, type=make_nullable(c.type)) if c.name in columns else c
            for c in table.columns
        ),
    )
    # Not the caller's cache: the wide table has the version of the real one.
    rows = read_rows(replace(context, cache=Cache()), nullable_table, part)
    null_columns = [name for name in columns if rows.column(name).null_count]
    if not null_columns:
        return rows, None
    defaults = DefaultColumns.of(table, context.snapshot, context.environment, Cache())
    other_columns = {
        n: single_chunk(rows.column(n)) for n in rows.column_names if n not in null_columns
    }
    completed = defaults.complete(
        other_columns, part.rows, context.environment, null_columns, storing=True
    )
    nulls = []
    for name in null_columns:
        values = single_chunk(rows.column(name))
        nulls.append(pc.is_null(values))
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, pc.if_else(pc.is_valid(values), values, completed[name]))
    return rows, reduce(pc.or_, nulls)


def formerly_nullable(table: Table, part: Part) -> tuple[str, ...]:
    """Return the columns that are not Nullable now, but were when the part was written or later."""
    known = PartColumns(table)
    return tuple(
        column.name
        for column in table.stored_columns
        if not is_nullable(column.type)
        and any(is_nullable(parse_type(name)) for name in known.types_in(part, column))
    )


def has_retyped_column(table: Table, part: Part) -> bool:
    """Return whether any column's type was changed since the part was written."""
    known = PartColumns(table)
    return any(
        {*known.types_in(part, column)} - {column.type.name} for column in table.stored_columns
    )
