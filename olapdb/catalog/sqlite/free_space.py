"""Gives back the space of the catalog's file that forgotten rows took.

A new catalog is made with `auto_vacuum = INCREMENTAL`: free pages are cut off the file a few at a
time.  One that was made without it is written anew once (VACUUM), when most of it is free.
"""

from __future__ import annotations

import os
import sqlite3

from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.writer import Writer
from olapdb.model.failpoint import Reach

SLACK_BYTES = 4 << 20
"""Free bytes that are left for the next rows, besides an eighth of those that are used."""
PAGES_A_STEP = 256
STEPS_MAX = 64
REWRITTEN_BYTES_MAX = 256 << 20
"""Of an older catalog: used bytes up to which it is written anew, while writers wait."""
LOG_BYTES_MAX = 32 << 20
_INCREMENTAL = 2


def give_back(writer: Writer, connections: Connections, path: str, reach: Reach) -> int:
    """Cut free pages off the catalog's file; return how many. What fails leaves the file whole."""
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
        reach("vacuum.space_given_back")
    for _ in range(STEPS_MAX if spare and incremental else 0):
        pages = _cut(writer, path)
        reach("vacuum.space_given_back")
        released += pages
        if pages < PAGES_A_STEP:
            break
    if released or _log_bytes(path) > LOG_BYTES_MAX:
        _shorten_log(writer, path)
    return released


def _cut(writer: Writer, path: str) -> int:
    """Cut some spare pages off the file, in one transaction; return how many."""
    with writer.writing("vacuum") as connection:
        try:
            pages = min(_spare_pages(connection), PAGES_A_STEP)
            if pages:
                # `execute` would make one step of it, which is one page.
                connection.executescript(f"PRAGMA incremental_vacuum({pages})")
            return pages
        except sqlite3.Error as error:
            raise catalog_error(error, path) from error


def _rewrite(writer: Writer, path: str) -> int:
    """Write the file anew without free pages, from now on with incremental auto_vacuum."""
    with writer.writing("vacuum") as connection:
        try:
            before = _pragma(connection, "page_count")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
            return before - _pragma(connection, "page_count")
        except sqlite3.Error as error:
            raise catalog_error(error, path) from error


def _spare_pages(connection: sqlite3.Connection) -> int:
    """Return the free pages beyond the slack; 0 where they are too few to be worth a write."""
    free, all_pages = _pragma(connection, "freelist_count"), _pragma(connection, "page_count")
    slack = max(SLACK_BYTES // _pragma(connection, "page_size"), (all_pages - free) // 8)
    return max(0, free - slack)


def _is_worth_rewriting(connection: sqlite3.Connection) -> bool:
    free, all_pages = _pragma(connection, "freelist_count"), _pragma(connection, "page_count")
    used_bytes = (all_pages - free) * _pragma(connection, "page_size")
    return 2 * free > all_pages and used_bytes <= REWRITTEN_BYTES_MAX


def _shorten_log(writer: Writer, path: str) -> None:
    """Bring the log into the file and cut it, unless a reader needs it: then a later round does.

    Nothing is waited for, as INSERTs would wait too."""
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
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _log_bytes(path: str) -> int:
    try:
        return os.path.getsize(f"{path}-wal")
    except OSError:
        return 0
