"""Copies of a catalog in one file, with its newest commit only; writing and loading them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

from olapdb.catalog.protocol import CopyFacts
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.open import table_names
from olapdb.catalog.sqlite.tables import FORMAT_VERSION
from olapdb.errors import CannotOpenWarehouse
from olapdb.model.encoding import decode_part
from olapdb.model.part import Part


def copy_catalog(connections: Connections, path: str) -> CopyFacts:
    """Write a copy to the new file `path`, durable when this returns.

    It has no history: dropped parts and objects are left out, as are leases, which belong to
    processes of the original.
    """
    try:
        with connections.reading() as source, closing(_connect(path)) as copy:
            source.backup(copy)
            _purge_history(copy)
            facts = _facts(copy)
    except sqlite3.Error as error:
        raise catalog_error(error, path) from error
    _flush(path)
    return facts


def facts_of_copy(path: str) -> CopyFacts:
    """Return the copy's warehouse and commit. Raises CannotOpenWarehouse for a file that is not a
    catalog or of a newer release."""
    with _reading(path) as copy:
        return _facts(copy)


def parts_of_copy(path: str) -> tuple[Part, ...]:
    """Return all parts of the copy, of all tables."""
    with _reading(path) as copy:
        return tuple(decode_part(row) for row in sql.all_parts(copy))


def load_copy(path: str, connection: sqlite3.Connection) -> CopyFacts:
    """Replace the content of `connection`'s catalog by the copy, in one transaction of it."""
    with _reading(path) as copy:
        facts = _facts(copy)
        copy.backup(connection)
    return facts


def _connect(path: str) -> sqlite3.Connection:
    """Open a database file in autocommit mode, creating it if there is none."""
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    """Open a copy as immutable for the `with` block. Raise CannotOpenWarehouse if there is no file;
    convert SQLite's errors."""
    if not os.path.exists(path):
        raise CannotOpenWarehouse(
            f"There is no catalog at {path}.", hint="Name the folder of a backup."
        )
    try:
        with closing(
            sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1", uri=True)
        ) as copy:
            yield copy
    except sqlite3.Error as error:
        raise catalog_error(error, path) from error


def _facts(copy: sqlite3.Connection) -> CopyFacts:
    """Return the warehouse id and the newest commit of a copy. Raise CannotOpenWarehouse if this
    release does not know its format version."""
    facts = dict(sql.all_meta(copy).fetchall())
    version = int(facts.get("format_version", 0))
    if not 1 <= version <= FORMAT_VERSION:
        raise CannotOpenWarehouse(
            f"The copy has format {version}; this release knows up to {FORMAT_VERSION}.",
            hint="Install a newer olapdb.",
        )
    return CopyFacts(facts["warehouse_id"], int(sql.newest_commit.value(copy)))


def _purge_history(copy: sqlite3.Connection) -> None:
    """Delete from the copy everything that only older snapshots need, and all leases; then compact
    it into one file without a log."""
    number = int(sql.newest_commit.value(copy))
    copy.execute("BEGIN IMMEDIATE")
    sql.set_meta(copy, name="vacuumed_to", content=str(number))
    for forget in (
        sql.purge_inline_of_dropped,
        *sql.purge_dropped,
        sql.purge_dropped_parts,
        sql.purge_dropped_tables,
    ):
        forget(copy, up_to=number)
    sql.purge_all_leases(copy)
    if "damaged_parts" in table_names(copy):  # format 1 has no such list
        sql.clear_all_damaged(copy)  # the copy's files are its own
    copy.execute("COMMIT")
    # One file without a log beside it, so that it can be moved.
    copy.execute("PRAGMA journal_mode = DELETE")
    copy.execute("VACUUM")


def _flush(path: str) -> None:
    """Write the file's data to the disk by fsync."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
