"""Errors of the operating system on the files beside the catalog become olapdb errors; no lock
remains."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite.fair_lock import TicketQueue
from olapdb.catalog.sqlite.process_registry import Registration
from olapdb.dbapi.connection import Connection
from olapdb.errors import NotEnoughSpace, OperationalError
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum


def full(*arguments: object) -> int:
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a",
        "INSERT INTO t VALUES (1)",
        merges=False,
        on_disk=True,
        settings={"inline_bytes_max": 0},
    ),
    pytest.mark.feature("crashes"),
]


@pytest.mark.parametrize("call", [1, 2])
def test_a_turn_that_fails_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Fail to write the ticket's number, or the holder's name: no other process waits for it."""
    mine, others = TicketQueue(str(tmp_path / "lock")), TicketQueue(str(tmp_path / "lock"))
    real, left = os.pwrite, [call]

    def nth(*arguments: object) -> int:
        left[0] -= 1
        return full() if left[0] == 0 else real(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as planted:
        planted.setattr(os, "pwrite", nth)
        with pytest.raises(OSError, match="No space"):
            mine.acquire(1_000, "mine")
    others.acquire(1_000, "another's")
    others.release()
    mine.acquire(1_000, "again")
    mine.close()
    others.close()


def test_a_pin_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = (
        Registration(str(tmp_path / "processes")),
        Registration(str(tmp_path / "processes")),
    )
    mine.pin(5)
    with monkeypatch.context() as planted:
        planted.setattr(os, "pwrite", full)
        with pytest.raises(NotEnoughSpace):
            mine.pin(3)
        mine.unpin(5)  # never fails: other processes see the smaller number
    assert mine.own_lowest_pin() == 0
    assert other.living_and_lowest_pin()[1] == 5
    mine.pin(7)
    assert other.living_and_lowest_pin()[1] == 7, "the next pin puts it right"
    mine.close()
    other.close()


def test_a_query_says_what_is_wrong_and_goes_on(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as planted:
        planted.setattr(os, "pwrite", full)
        with pytest.raises(OperationalError):
            connection.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(NotEnoughSpace):
            connection.execute("SELECT * FROM t").fetchall()
    connection.execute("INSERT INTO t VALUES (3)")
    assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]


def test_it_closes_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the lease is left as by a killed process, and the next process revokes it."""
    folder = tmp_path / "closing"
    first = olapdb.connect(str(folder))
    first.execute("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
    with monkeypatch.context() as planted:
        planted.setattr(os, "pwrite", full)
        planted.setattr(os, "unlink", full)
        first.close()
    with olapdb.connect(str(folder)) as again:
        services = again.database.services
        assert len(vacuum(services).revoked_leases) == 1
        again.execute("INSERT INTO t VALUES (1)")
        assert check_database(services.catalog, services.store) == []


def test_merges_go_on_after_the_catalog_did_not_answer(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = connection.database._scheduler
    assert scheduler is not None

    def broken() -> object:
        raise OperationalError("planted")

    with monkeypatch.context() as planted:
        planted.setattr(connection.database.services.catalog, "snapshot", broken)
        scheduler.start()
        scheduler.notify("t")
        assert scheduler.wait_idle(60)
    assert scheduler.running
    assert {type(error.error) for error in scheduler.errors} == {OperationalError}


def test_a_folder_that_cannot_be_listed_is_no_empty_one(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Require an error: after an empty listing vacuum would purge the leases of files that it
    does not see."""
    services = connection.database.services

    def broken(*arguments: object) -> object:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "data")

    with monkeypatch.context() as planted:
        planted.setattr(os, "scandir", broken)
        with pytest.raises(OperationalError, match="on data"):
            list(services.store.list("data/"))
    assert list(services.store.list("nothing/")) == []
    assert len(list(services.store.list("data/"))) == 1
