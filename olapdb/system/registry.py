"""The `system` tables: what each one is called, its columns, and who fills it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from olapdb.config import Settings
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services
from olapdb.types import DataType
from olapdb.types.arrow import arrow_schema

SYSTEM_DATABASES = ("system", "information_schema", "INFORMATION_SCHEMA")


@dataclass(frozen=True)
class SystemContext:
    """What a system table may look at: the snapshot of the query that reads it."""

    snapshot: Snapshot
    services: Services
    settings: Settings
    database: str


Row = tuple[Any, ...]


def moment(milliseconds: float) -> datetime.datetime:
    """Of the catalog's clock, in UTC, as Arrow takes it."""
    return datetime.datetime.fromtimestamp(milliseconds / 1000, tz=datetime.UTC)


def moment_if_any(milliseconds: float) -> datetime.datetime | None:
    """None for 0, which stands for never."""
    return moment(milliseconds) if milliseconds else None


@dataclass(frozen=True)
class SystemTable:
    """`rows` gives tuples in the order of `fields`; they are metadata, so few."""

    name: str
    fields: tuple[tuple[str, DataType], ...]
    rows: Callable[[SystemContext], Iterable[Row]]
    comment: str = ""

    def read(self, context: SystemContext, columns: Sequence[str]) -> pa.Table:
        """The asked columns, in their order, as Arrow with the fields' types."""
        rows = list(self.rows(context))
        position = {name: i for i, (name, _) in enumerate(self.fields)}
        types = dict(self.fields)
        arrays = [pa.array([r[position[c]] for r in rows], type=types[c].arrow) for c in columns]
        schema = arrow_schema(columns, [types[c] for c in columns])
        if not columns:
            return pa.table({"": pa.nulls(len(rows))}).select([])
        return pa.Table.from_arrays(arrays, schema=schema)


def tables() -> Mapping[str, SystemTable]:
    """All of them, by name."""
    from olapdb.system import (
        activity_tables,
        catalog_tables,
        job_tables,
        mutation_tables,
        part_tables,
        reference_tables,
        settings_tables,
        source_tables,
        storage_tables,
        view_tables,
    )

    made = (
        *activity_tables.TABLES,
        *catalog_tables.TABLES,
        *job_tables.TABLES,
        *mutation_tables.TABLES,
        *part_tables.TABLES,
        *reference_tables.TABLES,
        *settings_tables.TABLES,
        *source_tables.TABLES,
        *storage_tables.TABLES,
        *view_tables.TABLES,
    )
    return {t.name: t for t in made}
