"""Open a catalog's file, or create it: format version, identity, refused places."""

from __future__ import annotations

import os
import sqlite3
import uuid

from olapdb.catalog.read_retry import retry_read
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.tables import FORMAT_VERSION, TABLES_OF_FORMAT_2, create_statements
from olapdb.errors import CannotOpenWarehouse

DEFAULT_DATABASE = "default"
_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "9p",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
    }
)


def open_or_create(
    connections: Connections, path: str, read_only: bool, zone: str, now_ms: int
) -> dict[str, str]:
    """Return the warehouse's facts (id, zone, format). Create an empty one with the database
    "default" if there is none. Raises CannotOpenWarehouse."""
    if not connections.in_memory:
        _refuse_network(path)
        if read_only and not os.path.exists(path):
            raise CannotOpenWarehouse(
                f"There is no warehouse at {os.path.dirname(path) or '.'}.",
                hint="Open it once without read_only to make one.",
            )
    try:
        if not read_only:
            with connections.exclusive() as connection:
                _create(connection, zone, now_ms)
                migrate(connection)
        facts = retry_read(lambda: _read_facts(connections))
    except sqlite3.Error as error:
        raise catalog_error(error, path) from error
    if "format_version" not in facts:
        raise CannotOpenWarehouse(f"{path} is a SQLite file, but no catalog of olapdb.")
    version = int(facts["format_version"])
    if version > FORMAT_VERSION:
        raise CannotOpenWarehouse(
            f"The warehouse has format {version}; this release knows up to {FORMAT_VERSION}.",
            hint="Install a newer olapdb.",
        )
    return facts


def _read_facts(connections: Connections) -> dict[str, str]:
    """Return the rows of the table "meta" by name; {} if the file has no such table yet."""
    with connections.reading() as connection:
        ours = "meta" in table_names(connection)
        return dict(sql.all_meta(connection).fetchall()) if ours else {}


def _create(connection: sqlite3.Connection, zone: str, now_ms: int) -> None:
    """Create the catalog's tables, the default database and commit 1, in one transaction. Does
    nothing if the file has tables already."""
    if table_names(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not table_names(connection):  # no other process created it while we waited
            for text in create_statements():
                connection.execute(text)
            facts = {
                "format_version": str(FORMAT_VERSION),
                "warehouse_id": uuid.uuid4().hex,
                "zone": zone,
                "created_ms": str(now_ms),
                "vacuumed_to": "0",
                "fence": "",
            }
            for key, value in facts.items():
                sql.insert_meta(connection, key=key, value=value)
            sql.insert_database(
                connection,
                id=uuid.uuid4().hex,
                name=DEFAULT_DATABASE,
                comment="",
                created_commit=1,
                dropped_commit=None,
            )
            sql.insert_commit(
                connection,
                number=1,
                id=uuid.uuid4().hex,
                kind="create warehouse",
                query_id="",
                statement="",
                time_ms=now_ms,
                process_id=os.getpid(),
            )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrate(connection: sqlite3.Connection) -> None:
    """Upgrade a catalog of an older format to this release's in one transaction; do nothing for the
    present format."""
    if "meta" not in table_names(connection) or _format(connection) != 1:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _format(connection) == 1:  # no other process did it while we waited
            for text in create_statements(TABLES_OF_FORMAT_2):
                connection.execute(text)
            for forget in sql.purge_all_orphans:
                forget(connection)
            sql.set_meta(connection, name="format_version", content="2")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _format(connection: sqlite3.Connection) -> int:
    """Return the format version; 0 if the file has none."""
    return int(sql.get_meta.value(connection, name="format_version") or 0)


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the file's tables."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    return {name for (name,) in connection.execute(query)}


def _refuse_network(path: str) -> None:
    """Raise CannotOpenWarehouse if the folder is on a network mount, which lacks the memory shared
    by all processes that SQLite's log needs."""
    kind = _file_system(os.path.realpath(os.path.dirname(path) or "."))
    if kind in _NETWORK:
        raise CannotOpenWarehouse(
            f"{os.path.dirname(path)} lies on a network mount ({kind}), where a catalog on SQLite "
            "is not safe.",
            hint="Put the warehouse on a local disk.",
        )


def _file_system(folder: str) -> str:
    """Return the file system's type as the kernel names it, "" if unknown."""
    try:
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:
        return ""
    inside = [
        (len(fields[1]), fields[2])
        for fields in lines
        if folder == fields[1] or folder.startswith(fields[1].rstrip("/") + "/")
    ]
    return max(inside, default=(0, ""))[1]
