"""Check that an executor works in the driver's folder, and not in another one under the same path.

    driver   writes data/markers/<lease id>-<nonce>.marker, a new one for each job
    task     reads it under the same path before any work, at every attempt
    driver   checks each file that the tasks staged, then commits, then deletes the marker

An empty folder, another warehouse, and a copy of this one that was made before the job all lack the
marker.  A copy made while the job runs has the marker, but lacks the files that tasks stage
elsewhere: the driver's check finds that.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa

from olapdb import errors
from olapdb.catalog.protocol import CATALOG_FILE
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.model.changes import AddPart
from olapdb.model.failpoint import Durability
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.storage.checksum import verify_open
from olapdb.storage.store import LocalStore, Store
from olapdb.storage.writer import DATA_FOLDER


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A store that another process opens under the same path. `marker` is the path of the driver's
    marker and `content` its content; "" if the driver may not write (a read-only warehouse)."""

    root: str
    durability: Durability
    marker: str = ""
    content: str = ""


def mark_folder(services: Services) -> StoreAddress:
    """Write a new marker; return the address that tasks check. Raises NotSupportedError for a store
    in memory. The marker's name has the process's lease, so that vacuum deletes it if the process
    could not."""
    store = services.store
    if not isinstance(store, LocalStore):
        raise errors.NotSupportedError(
            "Spark's tasks run in other processes and cannot see an in-memory warehouse.",
            hint='Open the warehouse in a folder: olapdb.connect("warehouse/").',
        )
    root = str(store.root.resolve())
    if store.read_only:
        return StoreAddress(root, store.durability)
    nonce = uuid.uuid4().hex
    marker = f"{DATA_FOLDER}/markers/{services.lease_id}-{nonce}.marker"
    content = f"{services.catalog.warehouse_id} {nonce}\n"
    store.write(marker, lambda sink: sink.write(content.encode()))
    return StoreAddress(root, store.durability, marker, content)


def unmark_folder(services: Services, address: StoreAddress) -> None:
    """Delete the marker, if the address has one."""
    if address.marker:
        services.store.delete(address.marker)


@contextmanager
def marked_folder(services: Services) -> Iterator[StoreAddress]:
    """Yield an address whose marker exists inside the `with`."""
    address = mark_folder(services)
    try:
        yield address
    finally:
        unmark_folder(services, address)


@lru_cache(maxsize=4)
def _store(root: str, durability: Durability) -> LocalStore:
    """Open the local store of a folder, once a process."""
    return LocalStore(root, durability)


def open_store(address: StoreAddress) -> LocalStore:
    """Return the store for a task's work, cached in the worker process together with the footers it
    verified. Raises FolderNotShared if this machine's folder is not the driver's."""
    missing = _difference(address)
    if missing:
        raise _not_shared(address, missing)
    return _store(address.root, address.durability)


def open_pinned_store(address: StoreAddress) -> LocalStore:
    """Return the store for a task that reads a snapshot, which the driver keeps pinned while the
    marker exists. Raises SnapshotTooOld if the marker is gone."""
    if _is_released(address):
        raise errors.SnapshotTooOld(
            "The connection that made this DataFrame is closed, so its snapshot is not kept any more;"
            f" or {address.root} on {socket.gethostname()} is a copy of the warehouse.",
            hint="Keep the connection open while the DataFrame is used, and share the folder with every"
            " executor under this path.",
        )
    return open_store(address)


def verify_staged(store: Store, address: StoreAddress, staged: Iterable[StagedInsert]) -> None:
    """Check in the driver, before the commit, that each file that tasks staged is in the driver's
    folder, with the right size and footer checksum. Raises FolderNotShared."""
    for insert in staged:
        for change in insert.changes:
            if not isinstance(change, AddPart) or not change.part.path:
                continue
            try:
                with store.open_input(change.part.path) as source:
                    verify_open(source, change.part)
            except errors.FileDoesntExist as error:
                raise errors.FolderNotShared(
                    f"A Spark task wrote {change.part.path}, but that file is not in the driver's"
                    f" folder {address.root}.",
                    hint=_share(address),
                ) from error
            except (errors.CorruptedData, OSError, pa.ArrowException) as error:
                raise errors.FolderNotShared(
                    f"A Spark task wrote {change.part.path}, and the driver reads another file under"
                    f" this name in {address.root}: {error}",
                    hint=_share(address),
                ) from error


def _is_released(address: StoreAddress) -> bool:
    """Return whether the warehouse is there but the marker is not: the driver's connection was
    closed."""
    is_warehouse = os.path.exists(os.path.join(address.root, CATALOG_FILE))
    return bool(address.marker) and is_warehouse and bool(_difference(address))


def _difference(address: StoreAddress) -> str:
    """Return how this machine's folder differs from the driver's; "" if it does not."""
    if not os.path.isdir(address.root):
        return "there is no such folder"
    if not os.path.exists(os.path.join(address.root, CATALOG_FILE)):
        return f"there is no {CATALOG_FILE} in it"
    if not address.marker:
        return ""
    try:
        with LocalStore(address.root).open_input(address.marker) as source:
            content = bytes(source.read()).decode(errors="replace")
    except errors.FileDoesntExist:
        return (
            f"the driver's file {address.marker} is not in it, so it is a copy or another warehouse"
        )
    except errors.OperationalError as error:
        return error.message
    return (
        "" if content == address.content else f"{address.marker} in it is not what the driver wrote"
    )


def _not_shared(address: StoreAddress, difference: str) -> errors.FolderNotShared:
    """Return the error of an executor that does not see the driver's folder; `difference` says what
    is missing."""
    return errors.FolderNotShared(
        f"The Spark executor on {socket.gethostname()} does not see the warehouse's folder"
        f" {address.root}: {difference}.",
        hint=_share(address),
    )


def _share(address: StoreAddress) -> str:
    """Return the hint to share the folder with every executor."""
    return (
        f"Nothing of it was committed. Share the folder with every executor under this very path,"
        f" {address.root}, by a file system that all machines mount."
    )
