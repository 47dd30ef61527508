"""An INSERT that keeps losing races takes the catalog's turn, so view changes cannot keep it
out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.commit import retry
from olapdb.commit.retry import FREE_ATTEMPTS_MAX
from olapdb.dbapi.connection import Connection
from olapdb.errors import CommitConflict
from olapdb.runtime.failpoints import watching
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, make, rows, verdict

pytestmark = pytest.mark.feature("insert", "concurrency")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with olapdb.connect(tmp_path / "w") as opened:
        make(opened, view=False)
        opened.execute("CREATE TABLE plain (day Date, n UInt64) ORDER BY day")
        opened.execute(
            "CREATE MATERIALIZED VIEW plain_mv TO plain AS SELECT day, user AS n FROM events"
        )
        add(opened, ("2024-01-01", "a", 1, 1))
    return tmp_path / "w"


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    with olapdb.connect(folder) as opened:
        yield opened


class Rival:
    """A thread that changes the views before each commit of a statement.

    The statement waits until the change is done. After `free` attempts the statement should hold
    the turn, so it waits only briefly."""

    def __init__(self, folder: Path, stage: str, free: int = FREE_ATTEMPTS_MAX) -> None:
        self.folder, self.stage, self.free = folder, stage, free
        self.changes = 0
        self.threads: list[threading.Thread] = []

    def told(self, reached: str) -> None:
        if reached != self.stage or threading.current_thread() in self.threads:
            return
        thread = threading.Thread(target=self.change)
        self.threads.append(thread)
        thread.start()
        thread.join(60 if len(self.threads) <= self.free else 0.5)

    def change(self) -> None:
        with olapdb.connect(self.folder) as connection:
            self.changes += 1
            verb = "DROP VIEW daily_mv" if self.changes % 2 == 0 else VIEW
            connection.execute(verb)

    def over(self) -> None:
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    ("stage", "statement"),
    [
        ("insert.before_commit", "INSERT INTO events VALUES ('2024-01-02', 'b', 2, 2)"),
        ("delete.before_commit", "DELETE FROM events WHERE kind = 'a'"),
        ("update.before_commit", "UPDATE events SET amount = 7 WHERE 1"),
    ],
)
def test_it_comes_in_after_a_few_attempts(
    connection: Connection, folder: Path, stage: str, statement: str
) -> None:
    rival = Rival(folder, stage)
    with watching(rival.told):
        connection.execute(statement)
    assert rival.changes == FREE_ATTEMPTS_MAX + 1, "the last one waited for its turn"
    rival.over()
    if rival.changes % 2:
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    else:
        connection.execute("DROP VIEW IF EXISTS daily_mv")
        connection.execute("TRUNCATE TABLE daily")
        connection.execute(VIEW)
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection, "plain_mv") in ("covered", "stale")


def test_what_takes_long_never_holds_the_turn(
    connection: Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "HELD_SECONDS_MAX", -1.0)
    rival = Rival(folder, "insert.before_commit", free=100)
    with watching(rival.told), pytest.raises(CommitConflict, match="changed 10 times"):
        add(connection, ("2024-01-02", "b", 2, 2))
    rival.over()
    assert rows(connection, "SELECT count() FROM events") == [(1,)]


def test_others_wait_for_it_and_readers_do_not(connection: Connection, folder: Path) -> None:
    catalog = connection.database.services.catalog

    def work() -> None:
        with olapdb.connect(folder) as other:
            other.execute("INSERT INTO plain VALUES ('2024-01-02', 2)")

    thread = threading.Thread(target=work)
    with olapdb.connect(folder) as reader:
        with catalog.turn("INSERT"), catalog.turn("again"):
            add(connection, ("2024-01-03", "c", 3, 3))
            thread.start()
            thread.join(0.3)
            assert thread.is_alive(), "it waits"
            assert rows(reader, "SELECT count() FROM events") == [(2,)]
            assert rows(reader, "SELECT count() FROM plain") == [(2,)]
        thread.join(60)
        assert rows(reader, "SELECT count() FROM plain") == [(3,)]
