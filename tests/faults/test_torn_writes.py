"""Simulates a loss of power at each stage of each operation: unflushed data is lost, or torn.

The operation runs once. At its stages an image of the disk is taken for each mode, which is then
opened as after a crash.  PLANTED lists the flushes and orders that a commit needs; each is left out
in turn, and the images must show it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.model.changes import Commit, Committed
from olapdb.runtime.failpoints import watching
from olapdb.storage.store import TEMPORARY_SUFFIX, LocalStore
from tests.faults.operations import OPERATIONS, Operation, expected, prepare, verify
from tests.faults.torn import Disk, Mode

pytestmark = pytest.mark.feature("crashes")

FIRST_PARTS = Operation(
    "INSERT INTO empty VALUES (1, 'a', 1), (2, 'b', 2)",
    (
        "CREATE TABLE empty (p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k"
        " SETTINGS inline_bytes_max = 0",
        "CREATE MATERIALIZED VIEW first TO sums AS SELECT p, k, sum(empty.n) AS n FROM empty GROUP BY p, k",
    ),
)
"""An INSERT into a table that has no folder yet."""
LAST_PARTS = Operation(
    before=("INSERT INTO junk VALUES (1, 'c', 1)", "TRUNCATE TABLE junk"),
    one_commit=False,
    work=OPERATIONS["vacuum"].work,
)
"""A vacuum that deletes the last file of an ended writer, so that its lease is purged."""
CASES = {**OPERATIONS, "first parts": FIRST_PARTS, "last parts": LAST_PARTS}
CASES.pop("backup")
CHOSEN = ("insert", "delete", "replay", "vacuum", "first parts", "last parts")
"""Operations in CI, with images around their commits; `make soak` takes all, at every stage."""
STAGES = ("store.renamed", "catalog.before_commit", "catalog.committed", "vacuum.file_deleted")


@dataclass(frozen=True)
class Image:
    """An image of the disk at a stage."""

    folder: Path
    stage: str
    mode: Mode
    commits: int
    """How many commits were made before: a rebuild creates its version, fills it and swaps it in
    by one each."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torn") / "warehouse"
    prepare(folder)
    return folder


def images(
    template: Path, tmp_path: Path, name: str, modes: tuple[Mode, ...], *, every: bool
) -> tuple[list[Image], tuple[Any, Any]]:
    """Run the operation; return images of the disk at its stages, and the states before and
    after it."""
    operation = CASES[name]
    folder = prepared(template, tmp_path / "run", operation)
    states = expected(template, prepared(template, tmp_path / "states", operation), operation)
    taken: list[Image] = []
    reached = Counter[str]()
    one_at_a_time = threading.Lock()

    with olapdb.connect(str(folder)) as connection, ExitStack() as stack:
        connection.execute("SYSTEM STOP MERGES")
        disk = stack.enter_context(Disk(Path(os.path.realpath(folder))).watched())

        def take(stage: str) -> None:
            with one_at_a_time:  # chunks are computed by several threads
                reached[stage] += 1
                if not every and (stage not in STAGES or reached[stage] > 1):
                    return
                for mode in modes:
                    into = tmp_path / f"{len(taken)}-{stage}-{mode}"
                    disk.image(mode, into)
                    number = reached["catalog.committed"]
                    taken.append(Image(into, f"{stage} #{reached[stage]}", mode, number))

        with watching(take):
            operation.run(connection, folder)
        every = True
        take("acknowledged")
    return taken, states


def check(name: str, taken: list[Image], states: tuple[Any, Any]) -> set[bool]:
    """Open each image and return whether the operation happened in it, as a set. Require that it
    happened in every image after the last commit, and that one commit's effect never disappears
    again."""
    one_commit = CASES[name].one_commit
    found: list[bool] = []
    for image in taken:
        where = f"{name}, {image.mode} at {image.stage}"
        done = one_commit and image.commits == taken[-1].commits
        found.append(verify(image.folder, CASES[name], states, done, where))
        shutil.rmtree(image.folder)
    if one_commit and states[0] != states[1]:
        first = found.index(True)
        assert taken[first].stage.startswith("catalog.committed"), f"{name}: {taken[first].stage}"
        assert all(found[first:]), f"{name}: what has happened stays"
    return set(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_power_is_lost_around_the_commit(template: Path, tmp_path: Path, name: str) -> None:
    taken, states = images(template, tmp_path, name, ("lose", "tear"), every=False)
    found = check(name, taken, states)
    if states[0] != states[1]:
        assert found == {True, False}, "on both sides of the commit"


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", CASES)
def test_power_is_lost_at_every_stage(template: Path, tmp_path: Path, name: str) -> None:
    taken, states = images(template, tmp_path, name, ("lose", "tear", "keep"), every=True)
    check(name, taken, states)


# --- planted faults -------------------------------------------------------------------------------


def no_flush_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: folders are not flushed."""
    monkeypatch.setattr(LocalStore, "sync", lambda self: None)


def no_flush_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: files are not flushed."""
    monkeypatch.setattr(LocalStore, "_flush", lambda self, path: os.stat(path).st_size)


def no_flush_of_new_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: the parent of a new folder is not flushed."""

    def make(self: LocalStore, folder: str) -> None:
        (self.root / folder).mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(LocalStore, "_make_folder", make)


def catalog_before_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: folders are flushed only after the commit."""
    real = SqliteCatalog.apply

    def apply(self: SqliteCatalog, commit: Commit) -> Committed:
        sync, self._sync_files = self._sync_files, lambda: None
        try:
            done = real(self, commit)
            sync()
        finally:
            self._sync_files = sync
        return done

    monkeypatch.setattr(SqliteCatalog, "apply", apply)


def name_before_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: files are renamed, committed, and flushed only after the commit."""
    late: list[str] = []

    def flush(self: LocalStore, path: str) -> int:
        late.append(path.removesuffix(TEMPORARY_SUFFIX))
        return os.stat(path).st_size

    real = SqliteCatalog.apply

    def apply(self: SqliteCatalog, commit: Commit) -> Committed:
        done = real(self, commit)
        for path in late:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        late.clear()
        return done

    monkeypatch.setattr(LocalStore, "_flush", flush)
    monkeypatch.setattr(SqliteCatalog, "apply", apply)


Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: dict[str, tuple[Plant, str, Mode]] = {
    "folders are not flushed": (no_flush_of_folders, "insert", "lose"),
    "files are not flushed": (no_flush_of_files, "insert", "tear"),
    "files of a merge are not flushed": (no_flush_of_files, "merge", "tear"),
    "files of a replay are not flushed": (no_flush_of_files, "replay", "lose"),
    "a new folder's own name is not flushed": (no_flush_of_new_folders, "first parts", "lose"),
    "vacuum forgets a lease before its files are gone for good": (
        no_flush_of_folders,
        "last parts",
        "lose",
    ),
    "the catalog commits before folders are flushed": (catalog_before_folders, "insert", "lose"),
    "the catalog commits before files are flushed": (name_before_bytes, "insert", "tear"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PLANTED)
def test_it_bites(
    template: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, name, mode = PLANTED[what]
    with monkeypatch.context() as planted:
        plant(planted)
        taken, states = images(template, tmp_path, name, (mode,), every=False)
    with pytest.raises(AssertionError):
        check(name, taken, states)


def prepared(template: Path, folder: Path, operation: Operation) -> Path:
    """Copy the template and run the statements before the operation."""
    shutil.copytree(template, folder)
    with olapdb.connect(str(folder)) as connection:
        for text in ("SYSTEM STOP MERGES", *operation.before):
            connection.execute(text)
    return folder
