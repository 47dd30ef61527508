"""A COMMIT that raises: it happened, it did not, or the outcome is unknown, and then nothing is
deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.errors import CommitUnknown, NotEnoughSpace, OperationalError
from tests.harness.commits import create_all, insert

pytestmark = pytest.mark.feature("crashes", "commits")


class Failing:
    """A connection whose next COMMIT fails, after (`done`) or before it took place."""

    def __init__(self, real: sqlite3.Connection, done: bool, code: int) -> None:
        self._real, self._done, self._code = real, done, code

    def execute(self, text: str, *parameters: object) -> sqlite3.Cursor:
        """Execute the text; a COMMIT raises afterwards, or is rolled back."""
        if text == "COMMIT":
            self._real.execute("COMMIT" if self._done else "ROLLBACK")
            error = sqlite3.OperationalError("planted")
            error.sqlite_errorcode = self._code
            raise error
        return self._real.execute(text, *parameters)

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


@pytest.fixture
def catalog(tmp_path: Path) -> SqliteCatalog:
    opened = SqliteCatalog(tmp_path / "catalog.sqlite")
    create_all(opened)
    return opened


def plant(catalog: SqliteCatalog, done: bool, code: int = sqlite3.SQLITE_IOERR) -> None:
    """Let the catalog's next COMMIT fail."""
    real = catalog.connections.writer()
    catalog.connections._writer = Failing(real, done, code)  # type: ignore[assignment]


def test_it_happened(catalog: SqliteCatalog) -> None:
    lease = catalog.open_lease("w")
    plant(catalog, done=True)
    committed = insert(catalog, lease)
    assert catalog.snapshot().number == committed.number
    assert len(catalog.snapshot().parts("s")) == 1
    assert insert(catalog, lease).number == committed.number + 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [(sqlite3.SQLITE_IOERR, OperationalError), (sqlite3.SQLITE_FULL, NotEnoughSpace)],
)
def test_it_did_not_happen(
    catalog: SqliteCatalog, code: int, expected: type[OperationalError]
) -> None:
    lease = catalog.open_lease("w")
    before = catalog.snapshot().number
    plant(catalog, done=False, code=code)
    with pytest.raises(expected) as caught:
        insert(catalog, lease)
    assert not isinstance(caught.value, CommitUnknown)
    assert catalog.snapshot().number == before
    assert catalog.snapshot().parts("s") == ()
    assert insert(catalog, lease).number == before + 1, "the open catalog goes on"


@pytest.mark.parametrize("done", [True, False])
def test_nobody_knows(catalog: SqliteCatalog, done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = catalog.open_lease("w")
    before = catalog.snapshot().number
    plant(catalog, done=done)

    def unreachable() -> sqlite3.Connection:
        error = sqlite3.OperationalError("planted")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    real: Callable[[], sqlite3.Connection] = catalog.connections._open
    monkeypatch.setattr(catalog.connections, "_open", unreachable)
    with pytest.raises(CommitUnknown, match="Nothing was deleted"):
        insert(catalog, lease)
    monkeypatch.setattr(catalog.connections, "_open", real)
    assert catalog.snapshot().number == before + done
    assert insert(catalog, lease).number == before + done + 1
