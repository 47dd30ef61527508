"""On every way in, a statement is listed while it runs, logged, and can be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.dbapi.connection import Connection
from olapdb.errors import QueryWasCancelled
from olapdb.maintenance.check import check_database
from olapdb.runtime.failpoints import BACKGROUND_THREADS, watching

pytestmark = [
    pytest.mark.warehouse("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k", on_disk=True),
    pytest.mark.feature("python"),
]


INSERTS: dict[str, Callable[[Connection], object]] = {
    "execute": lambda c: c.execute("INSERT INTO t VALUES (1), (2)"),
    "executemany": lambda c: c.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)]),
    "insert": lambda c: c.insert("t", {"k": [1, 2]}),
}
WRONG: dict[str, Callable[[Connection], object]] = {
    "execute": lambda c: c.execute("INSERT INTO t VALUES ('x')"),
    "executemany": lambda c: c.executemany("INSERT INTO t VALUES (?)", [("x",)]),
    "insert": lambda c: c.insert("t", {"nobody": [1]}),
}


@pytest.mark.parametrize("way", INSERTS)
def test_an_insert_is_logged(connection: Connection, way: str) -> None:
    INSERTS[way](connection)
    with pytest.raises(olapdb.Error):
        WRONG[way](connection)
    log = connection.execute(
        "SELECT type, written_rows, exception_code != 0 FROM system.query_log"
        " WHERE query_kind = 'Insert'"
    ).fetchall()
    assert log == [("QueryFinish", 2, False), ("ExceptionWhileProcessing", 0, True)]
    events = dict(connection.execute("SELECT event, value FROM system.events").fetchall())
    assert (events["InsertQuery"], events["InsertedRows"]) == (2, 2)


@pytest.mark.parametrize("how", ["cancel", "KILL QUERY WHERE query_kind = 'Insert'"])
def test_an_insert_of_a_stream_can_be_ended(connection: Connection, how: str) -> None:
    """The INSERT is cancelled while its rows are produced; no row lands."""
    began = threading.Event()
    go_on = threading.Event()
    raised: list[BaseException] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(1_000_000):
            yield pa.record_batch({"k": pa.array([number], pa.uint64())})
            began.set()
            go_on.wait(10)

    def insert() -> None:
        schema = pa.schema({"k": pa.uint64()})
        try:
            connection.insert("t", pa.RecordBatchReader.from_batches(schema, batches()))
        except olapdb.Error as error:
            raised.append(error)

    thread = threading.Thread(target=insert)
    thread.start()
    assert began.wait(60)
    shown = connection.execute("SELECT query_kind FROM system.processes").fetchall()
    assert sorted(shown) == [("Insert",), ("Select",)]
    if how == "cancel":
        connection.cancel()
    else:
        connection.execute(how).fetchall()
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error) for error in raised] == [QueryWasCancelled]
    assert connection.execute("SELECT count() FROM t").fetchone() == (0,)


@pytest.mark.parametrize("way", INSERTS)
def test_an_interrupt_of_leaving_a_turn(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Ctrl-C may arrive between any two steps; other threads must still get the catalog's turn."""

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(CatalogWriter, "_leave", interrupted)
    with pytest.raises(KeyboardInterrupt):
        INSERTS[way](connection)
    thread = threading.Thread(target=lambda: connection.execute("INSERT INTO t VALUES (3)"))
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert connection.execute("SELECT count() FROM t").fetchone() == (3,)
    shown = connection.execute("SELECT query FROM system.processes").fetchall()
    assert len(shown) == 1


def test_an_error_of_ones_own_stays_what_it_is(connection: Connection) -> None:
    """An exception of the stream's producer is passed on unchanged."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"k": pa.array([1], pa.uint64())})
        raise LookupError("of my own")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.uint64()}), batches())
    with pytest.raises(LookupError, match="of my own"):
        connection.insert("t", reader)
    assert connection.execute("SELECT count() FROM t").fetchone() == (0,)


REWRITES = {
    "OPTIMIZE TABLE t FINAL": "merge.read",
    "OPTIMIZE TABLE t DEDUPLICATE BY p": "update.part_rewritten",
    "ALTER TABLE t UPDATE k = 0 WHERE k > 5": "update.part_rewritten",
    "ALTER TABLE t DELETE WHERE k > 5": "delete.part_rewritten",
    "UPDATE t SET k = 0 WHERE k > 5": "update.part_rewritten",
    "DELETE FROM t WHERE k > 5": "delete.part_rewritten",
    "ALTER TABLE t ADD INDEX i k TYPE minmax, MATERIALIZE INDEX i": "update.part_rewritten",
}


@pytest.mark.parametrize("statement", REWRITES)
def test_what_rewrites_parts_can_be_ended_between_them(tmp_path: Path, statement: str) -> None:
    with olapdb.connect(tmp_path / "w", settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (p UInt8, k UInt64) ENGINE = MergeTree PARTITION BY p ORDER BY p"
        )
        for _ in range(2):
            connection.execute("INSERT INTO t SELECT number % 4, number FROM numbers(1000)")
        before = connection.execute("SELECT sum(k), count() FROM t").fetchall()
        reached = []

        def told(stage: str) -> None:
            background = threading.current_thread().name in BACKGROUND_THREADS
            if stage == REWRITES[statement] and not background:
                reached.append(stage)
                connection.cancel()

        with watching(told), pytest.raises(QueryWasCancelled):
            connection.execute(statement)
        assert len(reached) == 1
        assert connection.execute("SELECT sum(k), count() FROM t").fetchall() == before
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def test_optimize_ends_while_others_insert(connection: Connection) -> None:
    """OPTIMIZE merges the parts that exist when it begins."""
    connection.execute("SYSTEM STOP MERGES")
    for _ in range(3):
        connection.execute("INSERT INTO t VALUES (1)")
    inserted = []

    def told(stage: str) -> None:
        if stage == "merge.committed" and len(inserted) < 1_000:
            inserted.append(stage)
            connection.execute("INSERT INTO t VALUES (2)")

    with watching(told):
        connection.execute("OPTIMIZE TABLE t FINAL")
    assert len(inserted) == 1
    parts = "SELECT rows FROM system.parts WHERE table = 't' AND active ORDER BY name"
    assert connection.execute(parts).fetchall() == [(3,), (1,)]
