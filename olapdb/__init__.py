"""olapdb: an in-process columnar OLAP engine that speaks ClickHouse SQL.

    import olapdb
    connection = olapdb.connect("warehouse/")
    connection.execute("SELECT 1").fetchall()

Everything heavier than this module is loaded at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from olapdb.lazy import without_collections

if TYPE_CHECKING:
    from olapdb.dbapi import *  # noqa: F403  (the public names, for type checkers)
    from olapdb.maintenance.rebuild_catalog import rebuild_catalog as rebuild_catalog

__version__ = "0.1.0"

_ELSEWHERE = {"rebuild_catalog": "olapdb.maintenance.rebuild_catalog"}
_PUBLIC = (
    "BINARY",
    "Binary",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
)

__all__ = ["__version__", *_ELSEWHERE, *_PUBLIC]


def __getattr__(name: str) -> object:
    if name in _PUBLIC or name in _ELSEWHERE:
        with without_collections():
            module = import_module(_ELSEWHERE.get(name, "olapdb.dbapi"))
        value: object = getattr(module, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'olapdb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
