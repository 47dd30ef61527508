"""What the writer of parts derives from a table, and the check that rows fit it."""

from __future__ import annotations

import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.model.schema import Column, Table
from olapdb.records import dataclass
from olapdb.storage.column_statistics import has_bounds, key_columns
from olapdb.storage.store import Store
from olapdb.types import AggregateFunction, is_nullable

_FIELD_ID = b"PARQUET:field_id"


def stored_schema(table: Table) -> pa.Schema:
    """Return the schema of files and inline bytes: names, types, nullability, column ids, type
    names."""
    return pa.schema([_field(column) for column in table.stored_columns])


def _field(column: Column) -> pa.Field:
    """Return the Arrow field of a column. Its metadata hold the column id, the ClickHouse type and
    the aggregate function of a state."""
    metadata = {_FIELD_ID: str(column.id), b"olapdb.type": column.type.name}
    if isinstance(column.type, AggregateFunction):
        metadata[b"olapdb.aggregate"] = column.type.function
    return pa.field(column.name, column.type.arrow, is_nullable(column.type), metadata)


@dataclass(frozen=True, slots=True)
class PartLayout:
    """The facts that the writer derives from a table, cached so that small parts need not derive
    them again."""

    table: Table
    schema: pa.Schema
    rows_schema: pa.Schema
    """Names and types of the rows, without nullability and metadata."""
    required: tuple[str, ...]
    """The columns that hold no NULL."""
    bounded_keys: tuple[Column, ...]
    """The columns that keys read, of which inline parts keep bounds."""


def layout_with(table: Table, keys: frozenset[str]) -> PartLayout:
    """Return the layout of a table of which these columns are in keys."""
    columns = table.stored_columns
    return PartLayout(
        table,
        stored_schema(table),
        pa.schema([(column.name, column.type.arrow) for column in columns]),
        tuple(column.name for column in columns if not is_nullable(column.type)),
        tuple(c for c in columns if c.name in keys and has_bounds(c.type)),
    )


def own_layout(table: Table) -> PartLayout:
    """Return the layout of a table that no store caches."""
    return layout_with(table, frozenset())


def layout_of(store: Store, table: Table) -> PartLayout:
    """Return the layout of the table from the store's cache, or derive it and cache it."""
    cached = store.cache.layouts.get(table.id)
    if isinstance(cached, PartLayout) and cached.table is table:
        return cached
    layout = layout_with(table, key_columns(table))
    store.cache.layouts.put(table.id, layout)
    return layout


def check_rows(layout: PartLayout, rows: pa.Table) -> None:
    """Raise InternalError if the rows do not have exactly the table's stored columns, in order and
    by type, or hold nulls where the type has none."""
    if rows.schema.equals(layout.rows_schema) and not any(
        rows.column(name).null_count for name in layout.required
    ):
        return
    table = layout.table
    columns = table.stored_columns
    names = [column.name for column in columns]
    if rows.column_names != names:
        raise InternalError(f"Rows for {table.name} have columns {rows.column_names}, not {names}.")
    for column, values in zip(columns, rows.columns, strict=True):
        if values.type != column.type.arrow:
            raise InternalError(
                f"Column {column.name} of {table.name} is {column.type.arrow}, got {values.type}."
            )
        if values.null_count and not is_nullable(column.type):
            raise InternalError(f"Column {column.name} of {table.name} got a null.")
