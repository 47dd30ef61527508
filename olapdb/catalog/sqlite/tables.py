"""The tables of a catalog; `olapdb.catalog.core.tables` defines them."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.catalog.sqlite.statements.ddl import DDL_OF_TABLE

FORMAT_VERSION = 2
"""Format 2 added `block_spans`; `inline_rows.data` may be deflated."""

TABLES_OF_FORMAT_2 = ("block_spans", "damaged_parts")
"""Tables that a catalog of format 1 lacks."""


def create_statements(tables: Iterable[str] | None = None) -> Iterable[str]:
    """Yield the DDL of an empty catalog, or of some of its tables."""
    for name in DDL_OF_TABLE if tables is None else tables:
        yield from DDL_OF_TABLE[name]
