"""Checks the order of flushes where a folder is filled or a catalog gets its name: BACKUP, RESTORE,
rebuild_catalog, and the manifest of a replay.

PLANTED omits each flush, or changes the order, and requires that the check fails.  (For INSERT,
merge, replay and vacuum see `test_torn_writes.py`.)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.catalog.sqlite import backup_copy
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.maintenance import backup
from olapdb.maintenance import rebuild_catalog as rebuild
from olapdb.storage.store import LocalStore
from olapdb.views.jobs.replay_manifest import ReplayManifest
from tests.faults.operations import prepare
from tests.faults.test_torn_writes import (
    no_flush_of_files,
    no_flush_of_folders,
    no_flush_of_new_folders,
)

pytestmark = pytest.mark.feature("crashes")

Event = tuple[str, str]
"""("flush", path), ("rename", the new path), ("catalog", the called method)."""


@contextmanager
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Event]]:
    """Record flushes, renames and calls of the catalog."""
    events: list[Event] = []
    fsync, replace = os.fsync, os.replace

    def flush(descriptor: int) -> None:
        fsync(descriptor)
        events.append(("flush", os.readlink(f"/proc/self/fd/{descriptor}")))

    def rename(source: Any, target: Any) -> None:
        replace(source, target)
        events.append(("rename", os.path.realpath(target)))

    def told(name: str) -> Callable[..., Any]:
        real = getattr(SqliteCatalog, name)

        def call(self: SqliteCatalog, *given: Any, **named: Any) -> Any:
            events.append(("catalog", name))
            return real(self, *given, **named)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", flush)
        patched.setattr(os, "replace", rename)
        for name in ("apply", "load_copy"):
            patched.setattr(SqliteCatalog, name, told(name))
        yield events


def files_are_durable(events: list[Event], folder: Path, before: int) -> None:
    """Require that before the event `before` all parts in the folder are durable: bytes, names,
    and the folders' own names."""
    done = events[:before]
    files = sorted((folder / "data").rglob("*.parquet"))
    assert files
    for file in files:
        renamed = done.index(("rename", str(file)))
        assert ("flush", f"{file}.tmp") in done[:renamed], f"{file.name}: its bytes"
        assert ("flush", str(file.parent)) in done[renamed:], f"{file.name}: its name"
    for name in (folder, folder / "data"):
        assert ("flush", str(name)) in done, f"{name}: folders in it"


# --- operations, and the required order of their traces ------------------------------------------


def back_up(template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace SYSTEM BACKUP and check the order."""
    with olapdb.connect(str(template / "warehouse")) as connection, traced(monkeypatch) as events:
        connection.execute(f"SYSTEM BACKUP TO '{folder}'")
    published = events.index(("rename", str(folder / "catalog.sqlite")))
    files_are_durable(events, folder, published)
    assert ("flush", str(folder / "catalog.sqlite.new")) in events[:published], (
        "the catalog's bytes"
    )
    manifest = events.index(("rename", str(folder / "backup.json")))
    assert ("flush", str(folder / "backup.json.new")) in events[:manifest], "the manifest's bytes"
    assert manifest < published, "the manifest is not older than the catalog"
    assert ("flush", str(folder)) in events[published:], "the catalog's name"


def restore(template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace SYSTEM RESTORE and check the order."""
    with olapdb.connect(str(folder)) as connection, traced(monkeypatch) as events:
        connection.execute(f"SYSTEM RESTORE FROM '{template / 'backup'}'")
    files_are_durable(events, folder, events.index(("catalog", "load_copy")))


def rebuild_catalog(template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace rebuild_catalog and check the order."""
    shutil.copytree(template / "backup" / "data", folder / "data")
    with traced(monkeypatch) as events:
        olapdb.rebuild_catalog(folder)
    published = events.index(("rename", str(folder / "catalog.sqlite")))
    whole = str(folder / "catalog.new" / "catalog.sqlite.whole")
    assert ("flush", whole) in events[:published], "the catalog's bytes"
    assert ("flush", str(folder)) in events[published:], "the catalog's name"


def replay(template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace a replay and check the order."""
    shutil.copytree(template / "warehouse", folder)
    with olapdb.connect(str(folder)) as connection, traced(monkeypatch) as events:
        connection.execute("SYSTEM REPLAY VIEW v SETTINGS inline_bytes_max = 0")
    notes = [
        at for at, (what, name) in enumerate(events) if what == "rename" and name.endswith(".swap")
    ]
    parts = [
        at
        for at, (what, name) in enumerate(events)
        if what == "rename" and name.endswith(".parquet")
    ]
    assert parts
    assert len(notes) == 2, "when it begins, and when it knows"
    of_target = ("flush", os.path.dirname(events[notes[0]][1]))
    assert of_target in events[notes[0] : parts[0]], "the note's name, before there is a part"
    commit = max(at for at, event in enumerate(events) if event == ("catalog", "apply"))
    assert parts[-1] < notes[1] < commit, "it tells all before the commit, which flushes folders"


WORK = {"backup": back_up, "restore": restore, "rebuild_catalog": rebuild_catalog, "replay": replay}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flushes")
    prepare(folder / "warehouse")
    with olapdb.connect(str(folder / "warehouse")) as connection:
        connection.execute(f"SYSTEM BACKUP TO '{folder / 'backup'}'")
    return folder


@pytest.mark.parametrize("work", WORK)
def test_in_order(
    work: str, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WORK[work](template, Path(os.path.realpath(tmp_path)) / "folder", monkeypatch)


# --- planted faults -------------------------------------------------------------------------------


def no_flush_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: copies of the catalog are not flushed."""
    monkeypatch.setattr(backup_copy, "_flush", lambda path: None)


def no_flush_behind_the_backup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: a backup's folder is not flushed after the rename."""
    monkeypatch.setattr(backup, "flush_folder", lambda folder: None)


def no_flush_behind_the_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: the folder is not flushed after a rebuild's rename."""
    monkeypatch.setattr(rebuild, "flush_folder", lambda folder: None)


def manifest_without_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: a backup's manifest is not flushed."""
    real = backup._write_manifest

    def write(root: Path, facts: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", lambda descriptor: None)
            real(root, facts)

    monkeypatch.setattr(backup, "_write_manifest", write)


def no_note_at_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: a replay writes no manifest before its parts."""
    monkeypatch.setattr(ReplayManifest, "begin", lambda self: None)


def no_note_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: a replay does not complete its manifest before the commit."""
    monkeypatch.setattr(ReplayManifest, "complete", lambda self, new, removed: None)


Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: dict[str, tuple[Plant, str]] = {
    "a backup's files are not flushed": (no_flush_of_files, "backup"),
    "a backup's folders are not flushed": (no_flush_of_folders, "backup"),
    "names of a backup's folders are not flushed": (no_flush_of_new_folders, "backup"),
    "a backup's catalog is not flushed": (no_flush_of_copies, "backup"),
    "a backup's manifest is not flushed": (manifest_without_flush, "backup"),
    "the name of a backup's catalog is not flushed": (no_flush_behind_the_backup, "backup"),
    "restored files are not flushed": (no_flush_of_files, "restore"),
    "folders of restored files are not flushed": (no_flush_of_folders, "restore"),
    "names of restored folders are not flushed": (no_flush_of_new_folders, "restore"),
    "a rebuilt catalog is not flushed": (no_flush_of_copies, "rebuild_catalog"),
    "the name of a rebuilt catalog is not flushed": (
        no_flush_behind_the_rebuild,
        "rebuild_catalog",
    ),
    "a replay begins without a note": (no_note_at_the_beginning, "replay"),
    "the note of a replay is not flushed before its parts": (no_flush_of_folders, "replay"),
    "a replay commits without having noted": (no_note_before_the_commit, "replay"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_it_bites(
    what: str, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, work = PLANTED[what]
    with monkeypatch.context() as planted:
        plant(planted)
        with pytest.raises((AssertionError, ValueError)):
            WORK[work](template, Path(os.path.realpath(tmp_path)) / "folder", monkeypatch)
    assert LocalStore.sync.__qualname__ == "LocalStore.sync"
