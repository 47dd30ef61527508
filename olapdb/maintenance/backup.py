"""SYSTEM BACKUP TO and RESTORE FROM: a folder that is a warehouse itself.

    <folder>/data/…            the parts, each copied once and checked
    <folder>/catalog.sqlite    written last, under its name only when all of its parts are there
    <folder>/backup.json       of which warehouse, as of which commit

A crash leaves the backup that was there before; parts copied already are not copied again.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
_NEW = ".new"
_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class CopyEvent:
    """For a progress callback: `done` of `files` are there; bytes of those copied so far."""

    path: str
    done: int
    files: int
    bytes_copied: int


@dataclass(frozen=True, slots=True)
class CopyReport:
    """`snapshot`: the commit number that was copied; inline rows lie in the catalog, not in files."""

    folder: str
    snapshot: int
    files: int
    bytes: int
    files_copied: int
    bytes_copied: int


Progress = Callable[[CopyEvent], None]


def back_up(services: Services, folder: str, progress: Progress | None = None) -> CopyReport:
    """The newest snapshot, whole, into `folder`: made where there is none, or brought up to date
    where it holds an earlier backup of this warehouse.

    Writers and merges go on meanwhile.  A damaged part ends it with the error that names the
    part, and the earlier backup stays.  BadArguments for a folder that is anything else."""
    root = _backup_folder(services, folder)
    with system_errors(folder), _one_at_a_time(root), services.catalog.pinned():
        new = str(root / f"{CATALOG_FILE}{_NEW}")
        _remove(new)
        facts = services.catalog.copy_to(new)
        failpoint("backup.catalog_copied")
        parts = _with_files(parts_of_copy(new))
        target = LocalStore(root, failpoint=failpoint)
        report = _copy_parts(services.store, target, parts, folder, facts.number, progress)
        target.sync()
        failpoint("backup.parts_copied")
        # The manifest first: a crash between leaves an older catalog, which its check accepts.
        _write_manifest(root, facts)
        os.replace(new, root / CATALOG_FILE)
        flush_folder(root)
        failpoint("backup.published")
        _forget_others(target, parts)
    return report


def restore(services: Services, folder: str, progress: Progress | None = None) -> CopyReport:
    """The backup in `folder` as this warehouse's content, which must be new: no commit yet.

    Killed halfway, it is run again. A file that is not what its part's checksum says is an error,
    and nothing is there then."""
    root = Path(folder).resolve()
    path = str(root / CATALOG_FILE)
    if _has_log(root):
        raise CannotOpenWarehouse(
            f"{root} is in use as a warehouse: its newest commits are in a log beside its catalog.",
            hint="SYSTEM BACKUP TO, run in it, makes a copy to restore from.",
        )
    facts = facts_of_copy(path)
    parts = _with_files(parts_of_copy(path))
    services.catalog.refuse_if_used()
    report = _copy_parts(
        LocalStore(root, read_only=True), services.store, parts, folder, facts.number, progress
    )
    services.store.sync()
    failpoint("restore.parts_copied")
    services.catalog.load_copy(path)
    return report


def _with_files(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """One for each file; several parts may share one, and one in quarantine stands behind others."""
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
    there = {file.path: file.bytes for file in target.list(f"{DATA_FOLDER}/")}
    missing = {part.path for part in parts if there.get(part.path) != part.bytes}
    for part in parts:
        # In quarantine: an earlier backup may have it sound, and it is taken if it is again.
        if part.detached_reason and part.path in missing:
            try:
                _copy_file(source, target, part)
            except (CorruptedData, FileDoesntExist):
                parts = tuple(one for one in parts if one is not part)
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
    def write(sink: pa.NativeFile) -> None:
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
    root = Path(folder).resolve()
    own = services.store.local_path("")
    if own is not None and _inside(root, Path(own).resolve()):
        raise BadArguments(
            f"The backup's folder {folder} lies in the warehouse, or the warehouse in it.",
            hint="Name a folder elsewhere, best on another disk.",
        )
    with system_errors(folder):
        root.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(services, root)
    return root


def _inside(one: Path, other: Path) -> bool:
    return one == other or other in one.parents or one in other.parents


def _refuse_foreign(services: Services, root: Path) -> None:
    """Nothing may be overwritten that is no backup of this warehouse, or that has gone on living
    as a warehouse of its own."""
    names = {entry.name for entry in root.iterdir()}
    if not (root / CATALOG_FILE).exists():
        # What an attempt that failed has left: SQLite's own files of the new catalog too.
        begun = (f"{CATALOG_FILE}{_NEW}", f"{MANIFEST_FILE}{_NEW}")
        mine = {DATA_FOLDER, MANIFEST_FILE, ".lock"}
        if any(not name.startswith(begun) for name in names - mine):
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
    log = root / f"{CATALOG_FILE}-wal"
    return log.exists() and log.stat().st_size > 0


def _write_manifest(root: Path, facts: CopyFacts) -> None:
    path = root / f"{MANIFEST_FILE}{_NEW}"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"warehouse_id": facts.warehouse_id, "snapshot": facts.number}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path, root / MANIFEST_FILE)


def _read_manifest(root: Path) -> int:
    """The newest commit that was ever backed up here."""
    try:
        return int(json.loads((root / MANIFEST_FILE).read_text(encoding="utf-8"))["snapshot"])
    except (OSError, ValueError, KeyError):
        raise BadArguments(
            f"{root} is a warehouse, and no backup.", hint="Name a new folder, or an empty one."
        ) from None


def _forget_others(target: LocalStore, parts: tuple[Part, ...]) -> None:
    """Files of earlier backups that this one does not refer to."""
    kept = {part.path for part in parts}
    for file in list(target.list(f"{DATA_FOLDER}/")):
        if file.path not in kept:
            target.delete(file.path)


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
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
    for name in (path, f"{path}-journal", f"{path}-wal", f"{path}-shm"):
        try:
            os.unlink(name)
        except FileNotFoundError:
            continue
