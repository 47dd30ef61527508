"""An operation of `connection.views[…]` is a statement like any other: it is listed while it runs,
can be cancelled, is logged, and raises errors of the tree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.dbapi.connection import Connection
from olapdb.dbapi.views import ViewHandle
from olapdb.errors import BadArguments, OperationalError, QueryWasCancelled, ReadOnly
from olapdb.runtime.failpoints import watching
from olapdb.statements.admin import system_view

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE s (p UInt8, n UInt64) ENGINE = MergeTree PARTITION BY p ORDER BY n",
        "INSERT INTO s SELECT number % 3, number FROM numbers(30)",
        "CREATE TABLE t (p UInt8, n UInt64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY p",
        "CREATE MATERIALIZED VIEW v TO t AS SELECT p, sum(n) AS n FROM s GROUP BY p",
        merges=False,
        on_disk=True,
        settings={"inline_bytes_max": 0},
    ),
    pytest.mark.feature("python"),
]


def rebuild_and_roll_back(view: ViewHandle) -> None:
    view.rebuild("SELECT p, sum(n * 2) AS n FROM s GROUP BY p")
    view.rollback()


OPERATIONS: dict[str, Callable[[ViewHandle], object]] = {
    "BACKFILL": lambda view: view.backfill(),
    "BACKFILL DRY": lambda view: view.backfill_plan(),
    "CANCEL": lambda view: view.cancel(),
    "REPLAY": lambda view: view.replay(),
    "RECONCILE": lambda view: view.reconcile(),
    "METADATA": lambda view: view.check_ledger(),
    "ADOPT": lambda view: view.adopt(),
    "ROLLBACK": rebuild_and_roll_back,
}


def logged(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT type, query_kind, query FROM system.query_log WHERE query LIKE 'SYSTEM % VIEW%'"
        " ORDER BY event_time_microseconds"
    ).fetchall()


@pytest.mark.parametrize("word", OPERATIONS)
def test_an_operation_is_logged_once(connection: Connection, word: str) -> None:
    OPERATIONS[word](connection.views["v"])
    log = logged(connection)
    assert {(kind, status) for status, kind, _ in log} == {("System", "QueryFinish")}
    assert len([text for *_, text in log if word.split()[0] in str(text)]) == 1


def test_an_operation_that_fails_is_logged_with_its_error(connection: Connection) -> None:
    with pytest.raises(BadArguments):
        connection.views["v"].backfill(partition="nothing")
    (entry,) = connection.execute(
        "SELECT type, exception_code FROM system.query_log WHERE query LIKE 'SYSTEM BACKFILL%'"
    ).fetchall()
    assert entry[0] == "ExceptionWhileProcessing"
    assert entry[1] == BadArguments.code


@pytest.mark.parametrize(
    "how", ["cancel", "KILL QUERY WHERE query LIKE '%BACKFILL VIEW%' AND query_kind = 'System'"]
)
def test_a_backfill_is_seen_and_can_be_ended(connection: Connection, how: str) -> None:
    seen: list[tuple[object, ...]] = []

    def look(stage: str) -> None:
        if stage != "backfill.chunk_published" or seen:
            return
        seen.extend(
            connection.execute(
                "SELECT query_kind, query FROM system.processes WHERE query_kind = 'System'"
            ).fetchall()
        )
        if how == "cancel":
            connection.cancel()
        else:
            connection.execute(how).fetchall()

    with watching(look), pytest.raises(QueryWasCancelled):
        connection.views["v"].backfill()
    assert [kind for kind, _ in seen] == ["System"]
    assert "BACKFILL VIEW" in str(seen[0][1])
    assert connection.execute("SELECT count() FROM system.processes").fetchone() == (1,)
    connection.views["v"].backfill()
    assert {row.verdict for row in connection.views["v"].reconcile()} == {"equal"}


def test_a_bug_below_is_an_error_of_the_tree(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("below")

    monkeypatch.setattr(system_view, "run_command", broken)
    with pytest.raises(olapdb.Error) as by_handle:
        connection.views["v"].backfill()
    with pytest.raises(olapdb.Error) as by_statement:
        connection.execute("SYSTEM BACKFILL VIEW v")
    assert type(by_handle.value) is type(by_statement.value)


def test_what_a_progress_function_raises_stays_what_it_is(connection: Connection) -> None:
    def told(_: object) -> None:
        raise LookupError("of my own")

    with pytest.raises(LookupError, match="of my own"):
        connection.views["v"].backfill(progress=told)
    assert logged(connection)[-1][0] == "ExceptionWhileProcessing"


def test_an_interrupt_of_leaving_a_turn(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may arrive between any two steps; other threads must still get the catalog's turn."""

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(CatalogWriter, "_leave", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connection.views["v"].backfill()
    thread = threading.Thread(target=lambda: connection.execute("INSERT INTO s VALUES (1, 1)"))
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert connection.execute("SELECT count() FROM s").fetchone() == (31,)


def test_a_readonly_session_changes_nothing_and_says_so_in_the_log(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as writing:
        writing.execute("CREATE TABLE s (n UInt64) ENGINE = MergeTree ORDER BY n")
        writing.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY n AS SELECT n FROM s"
        )
        with olapdb.connect(tmp_path / "w", settings={"readonly": 1}) as connection:
            with pytest.raises(ReadOnly) as raised:
                connection.views["v"].backfill()
            assert isinstance(raised.value, OperationalError)
            assert logged(connection)[-1][0] == "ExceptionWhileProcessing"
