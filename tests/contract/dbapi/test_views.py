"""connection.views: the operations on materialized views, from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.dbapi.views import ViewHandle
from olapdb.errors import BadArguments, BypassRows, SyntaxError, UnknownTable
from tests.unit.views.warehouse import DIRECT, QUERY, READ, VIEW, add, make, rows

pytestmark = pytest.mark.feature("python")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        make(opened, view=False)
        for month in (1, 2, 3):
            add(opened, *((f"2024-0{month}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))
        opened.execute(VIEW)
        yield opened


def test_a_late_view_from_gap_to_proof(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    before = view.status()
    assert (before.verdict, before.gap_rows) == ("partial", 9)
    assert before.mend == "SYSTEM BACKFILL VIEW default.daily_mv"
    assert {(s.partition, s.status, s.rows) for s in view.coverage()} == {
        ("202401", "gap", 3),
        ("202402", "gap", 3),
        ("202403", "gap", 3),
    }

    events = []
    first = view.backfill(partition="202402", progress=events.append)
    assert [(r.partition, r.status, r.rows) for r in first] == [("202402", "published", 3)]
    assert [e.phase for e in events] == ["planned", "computed", "published"]
    assert len(view.backfill(engine="in_process")) == 2
    assert view.backfill() == ()
    assert rows(connection, READ) == rows(connection, DIRECT)

    assert {r.verdict for r in view.reconcile()} == {"equal"}
    assert view.status().verdict == "proven"


def test_what_a_delete_made_stale_is_replayed(connection: Connection) -> None:
    view = connection.views["default.daily_mv"]
    view.backfill()
    connection.execute("DELETE FROM events WHERE day = '2024-02-01'")
    (stale,) = view.invalidations()
    assert (stale.target_partition, stale.cause, stale.rows) == ("202402", "DELETE", 1)
    (done,) = view.replay(stale=True)
    assert (done.partition, done.status) == ("202402", "replayed")
    assert view.invalidations() == ()
    assert view.replay(stale=True) == ()


def test_bypass_is_discarded_only_when_told(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    view.backfill()
    connection.execute("INSERT INTO daily SELECT * FROM daily WHERE day < '2024-02-01'")
    (different,) = view.reconcile(partition="202401")
    assert different.verdict == "different"
    assert [r.partition for r in view.reconcile(stale=True)] == ["202401"]
    with pytest.raises(BypassRows):
        view.replay(partition="202401")
    (done,) = view.replay(partition="202401", discard_bypass=True)
    assert done.status == "bypass discarded"
    assert len(view.reconcile(sample=2)) == 2


def test_it_is_a_mapping(connection: Connection) -> None:
    connection.execute("CREATE DATABASE other")
    connection.execute(
        "CREATE MATERIALIZED VIEW other.`odd name` ENGINE = SummingMergeTree ORDER BY day"
        " AS SELECT day, count() AS n FROM default.events GROUP BY day"
    )
    views = connection.views
    assert list(views) == ["default.daily_mv", "other.`odd name`"]
    assert len(views) == 2
    assert "daily_mv" in views
    assert "other.`odd name`" in views
    for no_view in ("events", "other.daily_mv", "not a name", 7):
        assert no_view not in views
    assert views.get("nothing") is None
    assert {name: view.status().verdict for name, view in views.items()} == {
        "default.daily_mv": "partial",
        "other.`odd name`": "partial",
    }
    assert views["other.`odd name`"].backfill()


def test_a_handle_follows_its_view(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    connection.execute("RENAME TABLE daily_mv TO renamed")
    assert view.name == "default.renamed"
    assert repr(view) == "<olapdb view default.renamed>"
    assert len(view.backfill()) == 3
    connection.execute("DROP VIEW renamed")
    with pytest.raises(UnknownTable):
        view.status()


def test_errors_say_what_there_is(connection: Connection) -> None:
    with pytest.raises(UnknownTable) as unknown:
        connection.views["dayly"]
    assert "daily_mv" in str(unknown.value.hint)
    with pytest.raises(UnknownTable, match="not a materialized view"):
        connection.views["events"]
    view = connection.views["daily_mv"]
    with pytest.raises(BadArguments, match="id of a partition"):
        view.backfill(partition=202401)  # type: ignore[arg-type]
    with pytest.raises(BadArguments, match="one of partition, stale"):
        view.replay(partition="202401", stale=True)
    with pytest.raises(BadArguments, match="199901"):
        view.backfill(partition="199901")
    with pytest.raises(BadArguments, match="no partition 199901") as nowhere:
        view.replay(partition="199901")
    assert "none yet" in str(nowhere.value.hint)
    view.backfill()
    with pytest.raises(BadArguments, match="no partition 2024-01") as misspelt:
        view.replay(partition="2024-01", discard_bypass=True)
    assert "It has 202401, " in str(misspelt.value.hint)
    with pytest.raises(BadArguments, match="no partition 2024-01") as misspelt:
        view.reconcile(partition="2024-01")
    assert "It has 202401, " in str(misspelt.value.hint)
    connection.execute("DELETE FROM events WHERE day < '2024-02-01'")
    (emptied,) = view.replay(partition="202401")
    assert (emptied.rows_after, emptied.status) == (0, "replayed")
    assert view.replay(partition="202401") != (), "a partition that there was"
    (emptied_check,) = view.reconcile(partition="202401")
    assert emptied_check.verdict == "equal"
    with pytest.raises(FrozenInstanceError):
        view.status().verdict = "proven"  # type: ignore[misc]


@pytest.mark.parametrize(
    "call",
    [
        lambda view: view.modify(f"{QUERY}; CREATE TABLE intruder (k UInt8) ENGINE = Memory"),
        lambda view: view.rebuild(f"{QUERY}; CREATE TABLE intruder (k UInt8) ENGINE = Memory"),
        lambda view: view.replay(where="day = '2024-01-01') DISCARD BYPASS --"),
        lambda view: view.replay(where="1; CREATE TABLE intruder (k UInt8) ENGINE = Memory"),
        lambda view: view.replay(where=""),
    ],
)
def test_a_query_or_condition_is_one_and_nothing_behind_it(
    connection: Connection, call: Callable[[ViewHandle], object]
) -> None:
    view = connection.views["daily_mv"]
    view.backfill()
    connection.execute("INSERT INTO daily SELECT * FROM daily")
    before = rows(connection, "SELECT count() FROM daily")
    with pytest.raises(SyntaxError):
        call(view)
    assert rows(connection, "SELECT count() FROM daily") == before, "DISCARD BYPASS ran"
    assert rows(connection, "EXISTS TABLE intruder") == [(0,)]


def test_a_condition_may_end_with_a_comment(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    view.backfill()
    replayed = view.replay(where="day = '2024-02-01' -- the first of the month")
    assert [row.partition for row in replayed] == ["202402"]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", 2**70])
def test_a_number_of_partitions_is_an_integer(connection: Connection, count: int) -> None:
    view = connection.views["daily_mv"]
    with pytest.raises(BadArguments, match="sample is a number of partitions"):
        view.reconcile(sample=count)
    with pytest.raises(BadArguments, match="oldest is a number of partitions"):
        view.reconcile(oldest=count)


def test_a_view_that_is_refreshed_has_no_handle(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW top REFRESH EVERY 1 YEAR ENGINE = MergeTree ORDER BY n"
        " AS SELECT count() AS n FROM events"
    )
    assert "top" not in connection.views
    with pytest.raises(UnknownTable, match=r"default\.top is refreshed") as refused:
        connection.views["top"]
    assert "system.view_refreshes" in str(refused.value.hint)


def test_a_closed_connection_has_no_views(connection: Connection) -> None:
    connection.close()
    with pytest.raises(olapdb.InterfaceError):
        connection.views["daily_mv"]
