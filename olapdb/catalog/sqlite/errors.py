"""Translate errors of the database driver to our error tree, by code, never by text."""

from __future__ import annotations

import sqlite3

from olapdb import errors
from olapdb.errors import Error as OlapdbError

_PRIMARY = 0xFF


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 for an error of the driver itself."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY


def catalog_error(error: sqlite3.Error, place: str) -> OlapdbError:
    """Return our error for a driver's error; `place` is the catalog's path."""
    match primary_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return errors.CatalogBusy(
                f"The catalog {place} is locked by another process.",
                hint="Run the statement again; a larger lock_acquire_timeout_ms waits longer.",
            )
        case sqlite3.SQLITE_FULL:
            return errors.NotEnoughSpace(
                f"No space left for the catalog {place}.",
                hint="Nothing was changed; free some space and run the statement again.",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return errors.ReadOnly(
                f"The catalog {place} cannot be written.",
                hint="Check who owns the warehouse's folder, or open it with read_only=True.",
            )
        case sqlite3.SQLITE_CORRUPT:
            return errors.CorruptedData(
                f"The catalog {place} is damaged: {error}.",
                hint="Restore it from a backup; the parts in data/ carry their facts in footers.",
            )
        case sqlite3.SQLITE_NOTADB:
            return errors.CannotOpenWarehouse(f"{place} is not a catalog of olapdb.")
        case sqlite3.SQLITE_CANTOPEN:
            return errors.CannotOpenWarehouse(
                f"The catalog {place} cannot be opened.", hint="Check that the folder exists."
            )
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOMEM | sqlite3.SQLITE_INTERRUPT:
            return errors.OperationalError(f"The catalog {place} failed: {error}.")
        case _:
            return errors.InternalError(f"The catalog {place} refused a statement: {error}.")
