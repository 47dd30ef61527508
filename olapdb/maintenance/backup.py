"""SYSTEM BACKUP TO and RESTORE FROM. A backup is a folder that is itself a warehouse.

    <folder>/data/…            the parts, each copied once and checked
    <folder>/catalog.sqlite    written last, under its name only when all of its parts exist
    <folder>/backup.json       the id of the warehouse and the number of the commit

A crash leaves the earlier backup intact; parts copied already are not copied again.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from olapdb.catalog.protocol import CATALOG_FILE, CopyFacts
from olapdb.catalog.sqlite.backup_copy import facts_of_copy, parts_of_copy
from olapdb.errors import (
    BadArguments,
    CannotOpenWarehouse,
    CorruptedData,
    FileDoesntExist,
    OperationalError,
)
from olapdb.model.part import Part
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.storage.checksum import verify_file
from olapdb.storage.store import LocalStore, Store, flush_folder, storage_error, system_errors
from olapdb.storage.writer import DATA_FOLDER

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

MANIFEST_FILE = "backup.json"
_NEW_SUFFIX = ".new"
_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class CopyEvent:
    """Progress for a callback: `done` of `files` exist; the bytes copied so far."""

    path: str
    done: int
    files: int
    bytes_copied: int


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The result of a copy. `snapshot` is the commit number that was copied; inline rows are in the
    catalog, not in files."""

    folder: str
    snapshot: int
    files: int
    bytes: int
    files_copied: int
    bytes_copied: int


Progress = Callable[[CopyEvent], None]


def back_up(services: Services, folder: str, progress: Progress | None = None) -> CopyReport:
    """Copy the newest snapshot into `folder`: a new one, or an earlier backup of this warehouse.

    Writers and merges continue meanwhile.  A damaged part raises the error that names it, and the
    earlier backup stays.  Raises BadArguments for any other folder.
    """
    root = _backup_folder(services, folder)
    with system_errors(folder), _exclusive(root), services.catalog.pinned():
        new = str(root / f"{CATALOG_FILE}{_NEW_SUFFIX}")
        _remove(new)
        facts = services.catalog.copy_to(new)
        failpoint("backup.catalog_copied")
        parts = _parts_by_file(parts_of_copy(new))
        target = LocalStore(root, failpoint=failpoint)
        report = _copy_parts(services.store, target, parts, folder, facts.number, progress)
        target.sync()
        failpoint("backup.parts_copied")
        # The manifest first: a crash between leaves an older catalog, which its check accepts.
        _write_manifest(root, facts)
        os.replace(new, root / CATALOG_FILE)
        flush_folder(root)
        failpoint("backup.published")
        _delete_others(target, parts)
    return report


def restore(services: Services, folder: str, progress: Progress | None = None) -> CopyReport:
    """Load the backup in `folder` into this warehouse, which must have no commit yet.

    After a kill run it again. A file that does not match its part's checksum is an error, and
    nothing is restored then.
    """
    root = Path(folder).resolve()
    path = str(root / CATALOG_FILE)
    if _has_log(root):
        raise CannotOpenWarehouse(
            f"{root} is in use as a warehouse: its newest commits are in a log beside its catalog.",
            hint="SYSTEM BACKUP TO, run in it, makes a copy to restore from.",
        )
    facts = facts_of_copy(path)
    parts = _parts_by_file(parts_of_copy(path))
    services.catalog.refuse_if_used()
    report = _copy_parts(
        LocalStore(root, read_only=True), services.store, parts, folder, facts.number, progress
    )
    services.store.sync()
    failpoint("restore.parts_copied")
    services.catalog.load_copy(path)
    return report


def _parts_by_file(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return one part for each file; a live part is preferred to a quarantined one.

    Several parts may share a file.
    """
    ordered = sorted(parts, key=lambda part: not part.detached_reason)
    return tuple({part.path: part for part in ordered if part.path}.values())


def _copy_parts(
    source: Store,
    target: Store,
    parts: tuple[Part, ...],
    folder: str,
    number: int,
    progress: Progress | None,
) -> CopyReport:
    """Copy the files that the target lacks or has in another size; report every part to `progress`,
    copied or not.

    `folder` and `number`, the number of the copied commit, only go into the report. Raises
    CorruptedData or FileDoesntExist for a live part that is damaged or missing; a part in
    quarantine is left out instead."""
    existing = {file.path: file.bytes for file in target.list(f"{DATA_FOLDER}/")}
    missing = {part.path for part in parts if existing.get(part.path) != part.bytes}
    for part in parts:
        # In quarantine: an earlier backup may have it sound; else copy it if it is sound again.
        if part.detached_reason and part.path in missing:
            try:
                _copy_file(source, target, part)
            except (CorruptedData, FileDoesntExist):
                parts = tuple(other for other in parts if other is not part)
    copied = copied_bytes = 0
    for done, part in enumerate(parts, 1):
        if part.path in missing:
            if not part.detached_reason:
                _copy_file(source, target, part)
            copied += 1
            copied_bytes += part.bytes
        if progress is not None:
            progress(CopyEvent(part.path, done, len(parts), copied_bytes))
    total = sum(part.bytes for part in parts)
    return CopyReport(folder, number, len(parts), total, copied, copied_bytes)


def _copy_file(source: Store, target: Store, part: Part) -> None:
    """Copy one file and compare it with the part's checksum; a damaged source becomes a suspect."""

    def write(sink: pa.NativeFile) -> None:
        """Write the part's file to `sink`, one chunk at a time."""
        with source.open_input(part.path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                sink.write(chunk)

    try:
        target.write(part.path, write)
        try:
            verify_file(target, part)
        except BaseException:
            target.delete(part.path)
            raise
    except (CorruptedData, FileDoesntExist):
        source.cache.suspects.add(part)
        raise


# --- the folder -----------------------------------------------------------------------------------


def _backup_folder(services: Services, folder: str) -> Path:
    """Create the folder; raise BadArguments if it overlaps the warehouse or holds other
    files."""
    root = Path(folder).resolve()
    own = services.store.local_path("")
    if own is not None and _overlap(root, Path(own).resolve()):
        raise BadArguments(
            f"The backup's folder {folder} lies in the warehouse, or the warehouse in it.",
            hint="Name a folder elsewhere, best on another disk.",
        )
    with system_errors(folder):
        root.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(services, root)
    return root


def _overlap(folder: Path, other: Path) -> bool:
    """Return whether both paths are one folder, or one contains the other."""
    return folder == other or other in folder.parents or folder in other.parents


def _refuse_foreign(services: Services, root: Path) -> None:
    """Raise BadArguments unless the folder is empty or a backup of this warehouse that was not
    written to as a warehouse of its own."""
    names = {entry.name for entry in root.iterdir()}
    if not (root / CATALOG_FILE).exists():
        # Files of a failed attempt, SQLite's files of the new catalog included.
        begun = (f"{CATALOG_FILE}{_NEW_SUFFIX}", f"{MANIFEST_FILE}{_NEW_SUFFIX}")
        own_names = {DATA_FOLDER, MANIFEST_FILE, ".lock"}
        if any(not name.startswith(begun) for name in names - own_names):
            raise BadArguments(
                f"{root} is not empty, and no backup.", hint="Name a new folder, or an empty one."
            )
        return
    manifest = _read_manifest(root)
    facts = facts_of_copy(str(root / CATALOG_FILE))
    if facts.warehouse_id != services.catalog.warehouse_id:
        raise BadArguments(
            f"{root} belongs to another warehouse.", hint="Name another folder for this one."
        )
    if facts.number > manifest or _has_log(root):
        raise BadArguments(
            f"{root} was written to as a warehouse since it was made.",
            hint="Name another folder, or remove this one.",
        )


def _has_log(root: Path) -> bool:
    """Return whether SQLite's log of the catalog in `root` holds commits."""
    log = root / f"{CATALOG_FILE}-wal"
    return log.exists() and log.stat().st_size > 0


def _write_manifest(root: Path, facts: CopyFacts) -> None:
    """Write the copy's manifest under a temporary name, flush it, and rename it."""
    path = root / f"{MANIFEST_FILE}{_NEW_SUFFIX}"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"warehouse_id": facts.warehouse_id, "snapshot": facts.number}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path, root / MANIFEST_FILE)


def _read_manifest(root: Path) -> int:
    """Return the newest commit that was ever backed up here.

    Raises BadArguments if the folder has no readable manifest.
    """
    try:
        return int(json.loads((root / MANIFEST_FILE).read_text(encoding="utf-8"))["snapshot"])
    except (OSError, ValueError, KeyError):
        raise BadArguments(
            f"{root} is a warehouse, and no backup.", hint="Name a new folder, or an empty one."
        ) from None


def _delete_others(target: LocalStore, parts: tuple[Part, ...]) -> None:
    """Delete files of earlier backups that this one does not contain."""
    own_paths = {part.path for part in parts}
    for file in list(target.list(f"{DATA_FOLDER}/")):
        if file.path not in own_paths:
            target.delete(file.path)


@contextmanager
def _exclusive(root: Path) -> Iterator[None]:
    """Hold the folder's lock; raise OperationalError if another backup holds it."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise storage_error(error, str(root)) from error
            raise OperationalError(
                f"Another backup to {root} is under way.", hint="Wait until it has ended."
            ) from error
        yield
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    """Delete a catalog copy, with the log and other files that SQLite keeps next to it."""
    for name in (path, f"{path}-journal", f"{path}-wal", f"{path}-shm"):
        try:
            os.unlink(name)
        except FileNotFoundError:
            continue
