"""Copies of parts that ALTER TABLE … FREEZE keeps beside the data:

    shadow/<name>/<database>/<table>/<part>.parquet

They are Parquet files that no catalog knows. A merge, a mutation, DROP and vacuum leave them alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from urllib.parse import quote

import pyarrow as pa
from pyarrow import parquet

from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.storage.checksum import verify_file
from olapdb.storage.reader import PartReader
from olapdb.storage.store import Store

_FOLDER = "shadow"
_ENDING = ".parquet"
_CHUNK_BYTES = 1 << 20


def next_name(store: Store) -> str:
    """Return the name of a FREEZE without WITH NAME: one more than the greatest number among the names so far, "1" for
    the first."""
    names = {file.path.split("/")[1] for file in store.list(f"{_FOLDER}/")}
    return str(max((int(name) for name in names if name.isdigit()), default=0) + 1)


def freeze_parts(
    store: Store, snapshot: Snapshot, table: Table, parts: Collection[Part], name: str
) -> None:
    """Copy the parts to a folder of the table under `name`. Files of the same parts there are written again. Raises
    ChecksumDoesntMatch and FileDoesntExist for a damaged part."""
    for part in parts:
        path = f"{_folder(table, name)}/{quote(part.name, safe='')}{_ENDING}"
        if part.inline:
            _write_rows(store, PartReader(store, snapshot, part, table), table, path)
        else:
            _copy_file(store, part, path)
    store.sync()


def unfreeze_parts(store: Store, table: Table, name: str, partition_id: str | None) -> None:
    """Delete the copies of a table's parts under a name, of one partition or of all."""
    for file in list(store.list(f"{_folder(table, name)}/")):
        part = file.path.rpartition("/")[2]
        if partition_id is None or part.startswith(f"{quote(partition_id, safe='')}_"):
            store.delete(file.path)


def _folder(table: Table, name: str) -> str:
    """Return the folder of a table's copies. Names are quoted, so that none leads elsewhere."""
    quoted = (
        quote(text, safe="").replace(".", "%2E") for text in (name, table.database, table.name)
    )
    return "/".join((_FOLDER, *quoted))


def _write_rows(store: Store, reader: PartReader, table: Table, path: str) -> None:
    """Write the rows of a part in the catalog as a file."""
    rows = reader.read([column.name for column in table.stored_columns])

    def write(sink: pa.NativeFile) -> None:
        """Write the rows to `sink`."""
        parquet.write_table(rows, sink, compression="LZ4")

    store.write(path, write)


def _copy_file(store: Store, part: Part, path: str) -> None:
    """Copy the file of a part, and compare the copy with the part's checksum."""

    def write(sink: pa.NativeFile) -> None:
        """Write the part's file to `sink`, one chunk at a time."""
        with store.open_input(part.path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                sink.write(chunk)

    store.write(path, write)
    try:
        verify_file(store, replace(part, path=path))
    except BaseException:
        store.delete(path)
        raise
