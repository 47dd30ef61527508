"""Running and past statements of the process in SQL; ending one from another connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import IllegalDivision, QueryWasCancelled, UnknownIdentifier

pytestmark = pytest.mark.feature("python")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect(":memory:") as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
        connection.execute("INSERT INTO t SELECT number FROM numbers(100)")
        connection.execute("INSERT INTO t SELECT number FROM numbers(50)")
        yield connection


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def test_the_log_of_statements(connection: Connection) -> None:
    ask(connection, "SELECT sum(a) FROM t SETTINGS max_threads = 1")
    with pytest.raises(UnknownIdentifier):
        connection.execute("SELECT b FROM t")
    log = ask(
        connection,
        "SELECT type, query_kind, read_rows, written_rows, exception_code, current_database"
        " FROM system.query_log WHERE query_kind IN ('Insert', 'Select')",
    )
    assert log == [
        ("QueryFinish", "Insert", 100, 100, 0, "default"),
        ("QueryFinish", "Insert", 50, 50, 0, "default"),
        ("QueryFinish", "Select", 150, 0, 0, "default"),
        ("ExceptionWhileProcessing", "Select", 0, 0, 47, "default"),
    ]
    errors = ask(connection, "SELECT name, code, value FROM system.errors")
    assert errors == [("UNKNOWN_IDENTIFIER", 47, 1)]


def test_an_error_while_rows_are_drawn_is_in_the_log(connection: Connection) -> None:
    with pytest.raises(IllegalDivision):
        connection.execute("SELECT intDiv(1, a - 70) FROM t").fetchall()
    found = ask(connection, "SELECT exception FROM system.query_log WHERE exception_code = 153")
    assert len(found) == 1
    assert "DIVISION" in str(found[0][0])


def test_counters(connection: Connection) -> None:
    events = dict(ask(connection, "SELECT event, value FROM system.events"))
    assert events["InsertQuery"] == 2
    assert events["InsertedRows"] == 150
    metrics = dict(ask(connection, "SELECT metric, value FROM system.metrics"))
    assert (metrics["Query"], metrics["PartsActive"]) == (1, 2)


def test_the_log_of_parts(connection: Connection) -> None:
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("DELETE FROM t WHERE a = 99")
    log = ask(
        connection,
        "SELECT event_type, part_name, merged_from, rows FROM system.part_log"
        " WHERE table = 't' AND event_type != 'RemovePart' ORDER BY commit",
    )
    assert log[:3] == [
        ("NewPart", "all_1_1_0", [], 100),
        ("NewPart", "all_2_2_0", [], 50),
        ("MergeParts", "all_1_2_1", ["all_1_1_0", "all_2_2_0"], 150),
    ]
    assert [(row[0], row[3]) for row in log[3:]] == [("MutatePart", 149)]


@pytest.mark.parametrize(("mode", "status"), [("", "waiting"), (" SYNC", "finished")])
def test_a_running_statement_is_seen_and_killed(
    connection: Connection, mode: str, status: str
) -> None:
    raised: list[olapdb.Error] = []
    query = "SELECT sum(number % 7) FROM numbers(100000000000)"

    def run() -> None:
        try:
            connection.execute(query).fetchall()
        except olapdb.Error as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    other = f"query_kind = 'Select' AND query = '{query}'"
    while not ask(connection, f"SELECT query_id FROM system.processes WHERE {other}"):
        assert thread.is_alive()
    told = ask(connection, f"KILL QUERY WHERE {other}{mode}")
    assert [(row[0], row[2]) for row in told] == [(status, query)]
    if mode:
        assert not ask(connection, f"SELECT query_id FROM system.processes WHERE {other}")
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(raised[0], QueryWasCancelled)
    assert connection.execute(f"KILL QUERY WHERE {other}").description is None
    assert connection.execute("KILL MUTATION WHERE 1").description is None
