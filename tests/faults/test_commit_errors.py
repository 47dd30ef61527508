"""An error of the machine at every stage: the statement happens as a whole or not at all.

The open connection works once the machine does.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import olapdb
from olapdb.database import Database
from olapdb.errors import Error, NotEnoughSpace, OperationalError
from olapdb.maintenance.check import check_database
from olapdb.runtime.failpoints import watching
from olapdb.storage.store import LocalStore
from tests.faults.commit_child import prepare

pytestmark = pytest.mark.feature("crashes", "commits")

STATEMENTS = {
    "insert": "INSERT INTO s VALUES ('2024-01-20', 'x', 100), ('2024-02-20', 'y', 200)",
    "merge": "OPTIMIZE TABLE s FINAL",
    "delete": "DELETE FROM s WHERE k = 'b'",
}


class Opened:
    """A prepared warehouse, its connection and database."""

    def __init__(self, folder: Path) -> None:
        prepare(str(folder))
        self.connection = olapdb.connect(str(folder))
        self.database = Database.open(str(folder))
        self.query("SYSTEM STOP MERGES")

    def query(self, text: str) -> list[tuple[object, ...]]:
        """Return the rows of a statement."""
        cursor = self.connection.cursor()
        cursor.execute(text)
        return list(cursor.fetchall()) if cursor.description else []

    def rows(self) -> list[tuple[object, ...]]:
        """Return the sums in s by key."""
        return self.query("SELECT k, sum(n) FROM s GROUP BY k ORDER BY k")

    def check(self, where: str) -> None:
        """Require that no unreferenced file is left and the database has no problems."""
        services = self.database.services
        referenced = services.catalog.referenced_paths()
        left = [f.path for f in services.store.list("data/") if f.path not in referenced]
        assert left == [], where
        assert check_database(services.catalog, services.store) == [], where

    def close(self) -> None:
        """Close the database and the connection."""
        self.database.release()
        self.connection.close()


class Interrupted(BaseException):
    """Ctrl-C, which unlike an error of the machine may arrive after the commit."""


def failing_at(number: int) -> Callable[[str], None]:
    """Return a watcher that fails at the `number`-th stage of the store or the catalog."""
    left = [number]

    def told(stage: str) -> None:
        if not stage.startswith(("store.", "catalog.")):
            return  # no system call happens between those stages
        left[0] -= 1
        if left[0] != 0:
            return
        if stage.endswith("committed"):
            raise Interrupted
        if stage in ("store.written", "store.flushed", "store.renamed"):
            raise OSError(errno.EIO, "planted")
        raise OperationalError("planted")

    return told


@pytest.mark.parametrize("operation", sorted(STATEMENTS))
def test_the_nth_stage_fails(tmp_path: Path, operation: str) -> None:
    opened = Opened(tmp_path / "warehouse")
    fresh = opened.rows()
    committed = 0
    number = 1
    while True:
        before = opened.rows()
        try:
            with watching(failing_at(number)):
                opened.query(STATEMENTS[operation])
            failed = False
        except (Error, Interrupted):
            failed = True
        where = f"{operation}, stage {number}"
        opened.check(where)
        after = opened.rows()
        if operation == "insert" and after != before:
            committed += 1
            assert sum(n for _, n in after) == sum(n for _, n in before) + 300, where  # type: ignore[misc]
        if not failed:
            break
        number += 1
        if operation == "insert":
            assert opened.query("SELECT sum(n) FROM t") == opened.query("SELECT sum(n) FROM s"), (
                where
            )
    assert number > 3
    if operation == "merge":
        assert opened.rows() == fresh
    if operation == "delete":
        assert [k for k, _ in opened.rows()] == ["a"]
    opened.close()


def test_a_full_disk_changes_nothing_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(tmp_path / "warehouse")
    before = opened.rows()
    real = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotEnoughSpace, match="run the statement again"):
        opened.query(STATEMENTS["insert"])
    monkeypatch.setattr(os, "fsync", real)
    assert opened.rows() == before
    opened.check("full disk")
    opened.query(STATEMENTS["insert"])
    assert opened.rows() == [*before, ("x", 100), ("y", 200)]
    opened.check("space again")
    opened.close()


def test_folders_are_durable_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail to flush the folders of new files: the commit must not happen then."""
    opened = Opened(tmp_path / "warehouse")
    order: list[str] = []
    with watching(order.append):
        opened.query(STATEMENTS["insert"])
    assert order.index("store.synced") < order.index("catalog.before_commit")
    assert max(i for i, s in enumerate(order) if s == "store.renamed") < order.index("store.synced")

    def cannot(self: LocalStore) -> None:
        raise OperationalError("planted")

    before = opened.rows()
    monkeypatch.setattr(opened.database.services.catalog, "_sync_files", lambda: cannot(None))  # type: ignore[arg-type]
    with pytest.raises(OperationalError, match="planted"):
        opened.query(STATEMENTS["insert"])
    assert opened.rows() == before
    opened.close()
