"""Give back the space in the catalog's file that purged rows occupied.

A new catalog is created with `auto_vacuum = INCREMENTAL`: free pages are cut off the file a few at
a time.  An older one without it is rewritten once (VACUUM), when most of it is free.
"""

from __future__ import annotations

import os
import sqlite3

from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.model.failpoint import FailpointObserver

SLACK_BYTES = 4 << 20
"""Free bytes that stay for new rows, besides an eighth of the used ones."""
PAGES_A_STEP = 256
STEPS_MAX = 64
REWRITTEN_BYTES_MAX = 256 << 20
"""Used bytes up to which an older catalog is rewritten, while writers wait."""
LOG_BYTES_MAX = 32 << 20
_INCREMENTAL = 2


def release_space(
    writer: CatalogWriter, connections: Connections, path: str, failpoint: FailpointObserver
) -> int:
    """Cut free pages off the catalog's file and shorten a long log; return the number of pages cut.
    Does nothing in memory or if there are too few. A failure leaves the file intact."""
    if connections.in_memory:
        return 0
    released = 0
    with connections.reading() as connection:
        incremental = _pragma(connection, "auto_vacuum") == _INCREMENTAL
        spare = _spare_pages(connection)
        if not incremental and not _is_worth_rewriting(connection):
            spare = 0
    if spare and not incremental:
        released = _rewrite(writer, path)
        failpoint("vacuum.space_given_back")
    for _ in range(STEPS_MAX if spare and incremental else 0):
        pages = _cut_spare_pages(writer, path)
        failpoint("vacuum.space_given_back")
        released += pages
        if pages < PAGES_A_STEP:
            break
    if released or _log_bytes(path) > LOG_BYTES_MAX:
        _shorten_log(writer, path)
    return released


def _cut_spare_pages(writer: CatalogWriter, path: str) -> int:
    """Cut some spare pages off the file in one transaction; return the number of pages cut."""
    with writer.writing("vacuum") as connection:
        try:
            pages = min(_spare_pages(connection), PAGES_A_STEP)
            if pages:
                # `execute` would make one step of it, which is one page.
                connection.executescript(f"PRAGMA incremental_vacuum({pages})")
            return pages
        except sqlite3.Error as error:
            raise catalog_error(error, path) from error


def _rewrite(writer: CatalogWriter, path: str) -> int:
    """Rewrite the file without free pages and with incremental auto_vacuum; return the pages
    saved."""
    with writer.writing("vacuum") as connection:
        try:
            before = _pragma(connection, "page_count")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
            return before - _pragma(connection, "page_count")
        except sqlite3.Error as error:
            raise catalog_error(error, path) from error


def _spare_pages(connection: sqlite3.Connection) -> int:
    """Return the number of free pages beyond those that the file keeps for growth; 0 if there are
    none."""
    free, all_pages = _pragma(connection, "freelist_count"), _pragma(connection, "page_count")
    slack = max(SLACK_BYTES // _pragma(connection, "page_size"), (all_pages - free) // 8)
    return max(0, free - slack)


def _is_worth_rewriting(connection: sqlite3.Connection) -> bool:
    """Return whether more than half of the file's pages are free and the rest is small enough to be
    rewritten."""
    free, all_pages = _pragma(connection, "freelist_count"), _pragma(connection, "page_count")
    used_bytes = (all_pages - free) * _pragma(connection, "page_size")
    return 2 * free > all_pages and used_bytes <= REWRITTEN_BYTES_MAX


def _shorten_log(writer: CatalogWriter, path: str) -> None:
    """Checkpoint the log into the file and truncate it. A log that a reader still needs stays for a
    later round, as waiting would block INSERTs."""
    with writer.writing("vacuum") as connection:
        timeout = _pragma(connection, "busy_timeout")
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise catalog_error(error, path) from error
        finally:
            connection.execute(f"PRAGMA busy_timeout = {timeout}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return the value of a PRAGMA that yields one integer."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _log_bytes(path: str) -> int:
    """Return the size of the write-ahead log, 0 if there is none or it cannot be read."""
    try:
        return os.path.getsize(f"{path}-wal")
    except OSError:
        return 0
