"""SYSTEM REBUILD VIEW builds a new version beside the old one and swaps it in; ROLLBACK swaps
back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    AlterOfColumnIsForbidden,
    BadArguments,
    BypassRows,
    Error,
    HaveDependentObjects,
    NotSupportedError,
    QueryNotSupportedInMaterializedView,
    SyntaxError,
    UnknownIdentifier,
    UnknownTable,
    ViewDiffers,
    ViewNotProvable,
)
from olapdb.sql.formatter.definition_lines import on_one_line
from tests.unit.views.rebuilding import (
    NEW,
    REBUILD,
    at,
    connection,
    new_is_there,
    old_is_there,
    tables,
)
from tests.unit.views.warehouse import QUERY, add, dicts, rows, verdict

pytestmark = pytest.mark.feature("views", "rebuild")

__all__ = ["connection"]


# --- from one version to the other ----------------------------------------------------------------


def test_the_new_version_takes_the_names_and_the_old_one_is_kept(connection: Connection) -> None:
    steps = dicts(connection, REBUILD)
    assert [s["step"] for s in steps] == [
        "start",
        "backfill",
        "backfill",
        "reconcile",
        "reconcile",
        "swap",
    ]
    assert (steps[0]["view"], steps[0]["target"]) == ("default.daily_mv__v2", "default.daily__v2")
    assert (steps[-1]["view"], steps[-1]["target"]) == ("default.daily_mv", "default.daily")
    assert tables(connection) == ["daily", "daily__v1", "daily_mv", "daily_mv__v1", "events"]
    new_is_there(connection)
    assert verdict(connection) == "proven"
    assert rows(connection, "SELECT name, standing, version_of FROM system.views") == [
        ("daily_mv", "", ""),
        ("daily_mv__v1", "previous", "default.daily_mv"),
    ]
    assert rows(connection, "SELECT max(top) FROM daily") == [(6,)]
    types = dict(rows(connection, "SELECT name, type FROM system.columns WHERE table = 'daily'"))
    assert types == {
        "day": "Date",
        "kind": "String",
        "events": "SimpleAggregateFunction(sum, UInt64)",
        "total": "SimpleAggregateFunction(sum, Int64)",
        "top": "SimpleAggregateFunction(max, Int64)",
    }


def test_both_versions_fire_so_a_rollback_has_every_row(connection: Connection) -> None:
    connection.execute(REBUILD)
    add(connection, ("2024-01-01", "a", 1, 7), ("2024-03-01", "c", 1, 1))
    new_is_there(connection)
    (back,) = dicts(connection, "SYSTEM ROLLBACK VIEW daily_mv")
    assert back["replaced"] == "default.daily_mv__v2"
    assert back["kept_target"] == "default.daily__v2"
    old_is_there(connection)
    add(connection, ("2024-04-01", "d", 1, 2))
    old_is_there(connection)
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")  # forward again
    new_is_there(connection)
    reconciled = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv__v1")
    assert {r["verdict"] for r in reconciled} == {"equal"}


def test_the_kept_version_is_dropped_with_its_target(connection: Connection) -> None:
    connection.execute(REBUILD)
    with pytest.raises(HaveDependentObjects):
        connection.execute("DROP TABLE daily__v1")
    connection.execute("DROP VIEW daily_mv__v1")
    assert tables(connection) == ["daily", "daily_mv", "events"]
    with pytest.raises(UnknownTable, match="No previous version"):
        connection.execute("SYSTEM ROLLBACK VIEW daily_mv")


def test_the_next_rebuild_lets_go_of_the_version_before(connection: Connection) -> None:
    connection.execute(REBUILD)
    connection.execute("SYSTEM REBUILD VIEW daily_mv")
    assert tables(connection) == ["daily", "daily__v2", "daily_mv", "daily_mv__v2", "events"]
    new_is_there(connection)


def test_dropping_the_view_drops_its_versions(connection: Connection) -> None:
    connection.execute(REBUILD)
    connection.execute("DROP VIEW daily_mv")
    assert tables(connection) == ["daily", "events"]


def test_an_inner_target(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW kinds ENGINE = SummingMergeTree ORDER BY kind POPULATE"
        " AS SELECT kind, sum(amount) AS total FROM events GROUP BY kind"
    )
    connection.execute(
        "SYSTEM REBUILD VIEW kinds AS SELECT kind, sum(3 * amount) AS total FROM events GROUP BY kind"
    )
    asked = "SELECT kind, sum(total) FROM kinds GROUP BY kind ORDER BY kind"
    assert rows(connection, asked) == [("a", 15), ("b", 18)]
    connection.execute("SYSTEM ROLLBACK VIEW kinds")
    assert rows(connection, asked) == [("a", 5), ("b", 6)]
    connection.execute("DROP VIEW kinds")
    assert tables(connection) == ["daily", "daily_mv", "events"]


def test_another_shape_of_the_target(connection: Connection) -> None:
    connection.execute("SYSTEM REBUILD VIEW daily_mv PARTITION BY day ORDER BY (kind, day)")
    made = on_one_line(str(rows(connection, "SHOW CREATE TABLE daily")[0][0]))
    assert "ENGINE = AggregatingMergeTree PARTITION BY day ORDER BY (kind, day) SETTINGS" in made
    old_is_there(connection)
    connection.execute(
        "SYSTEM REBUILD VIEW daily_mv ENGINE = SummingMergeTree ORDER BY (day, kind) AS"
        " SELECT day, kind, count() AS events, sum(amount) AS total FROM events GROUP BY day, kind"
    )
    made = on_one_line(str(rows(connection, "SHOW CREATE TABLE daily")[0][0]))
    assert "ENGINE = SummingMergeTree PARTITION BY day ORDER BY (day, kind)" in made
    old_is_there(connection)


def test_another_source(connection: Connection) -> None:
    connection.execute("CREATE TABLE events2 AS events")
    connection.execute("INSERT INTO events2 SELECT day, kind, user, 2 * amount FROM events")
    connection.execute(
        f"SYSTEM REBUILD VIEW daily_mv AS {QUERY.replace('FROM events', 'FROM events2')}"
    )
    new_is_there(connection)


def test_the_definition_that_it_has_already(connection: Connection) -> None:
    connection.execute(REBUILD)
    assert [s["step"] for s in dicts(connection, REBUILD)] == ["unchanged"]
    reshape = "SYSTEM REBUILD VIEW daily_mv ORDER BY (kind, day)"
    assert dicts(connection, reshape)[-1]["step"] == "swap"
    assert [s["step"] for s in dicts(connection, reshape)] == ["unchanged"]


def test_plain_views_read_what_has_the_name(connection: Connection) -> None:
    connection.execute("CREATE VIEW kinds AS SELECT kind, sum(total) AS t FROM daily GROUP BY kind")
    connection.execute(REBUILD)
    assert rows(connection, "SELECT * FROM kinds ORDER BY kind") == [("a", 10), ("b", 12)]
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    assert rows(connection, "SELECT * FROM kinds ORDER BY kind") == [("a", 5), ("b", 6)]


def test_from_python(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    phases: list[str] = []
    view.rebuild(NEW, progress=lambda event: phases.append(event.phase))
    assert {"planned", "computed", "published"} <= set(phases)
    assert view.name == "default.daily_mv"
    assert view.status().verdict == "proven"
    new_is_there(connection)
    view.rollback()
    assert view.name == "default.daily_mv"
    old_is_there(connection)
    with pytest.raises(BadArguments):
        view.cancel_rebuild()


# --- what stops a rebuild -------------------------------------------------------------------------

FAILING = NEW.replace("FROM events", "FROM events WHERE throwIf(amount = 6) = 0")


def test_a_failing_chunk_stops_it_and_it_goes_on_when_mended(connection: Connection) -> None:
    with pytest.raises(Error) as stopped:
        connection.execute(f"SYSTEM REBUILD VIEW daily_mv AS {FAILING}")
    assert "daily_mv is as before" in str(stopped.value)
    assert "SYSTEM CANCEL REBUILD VIEW default.daily_mv" in stopped.value.hint
    old_is_there(connection)
    add(connection, ("2024-01-09", "z", 1, 1))
    old_is_there(connection)
    connection.execute("DELETE FROM events WHERE amount = 6")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    steps = [s["step"] for s in dicts(connection, "SYSTEM REBUILD VIEW daily_mv")]
    assert (steps[0], steps[-1]) == ("resume", "swap")
    new_is_there(connection)


def test_a_version_never_fails_an_insert(connection: Connection) -> None:
    """Rows on which a candidate fails become its gap, with the reason, and stop the rebuild."""
    new = NEW.replace("FROM events", "FROM events WHERE throwIf(amount = 9) = 0")

    def inserted() -> None:
        with olapdb.connect(connection.database.location) as other:
            add(other, ("2024-01-05", "n", 1, 9))

    with at("rebuild.reconciled", inserted), pytest.raises(Error, match="stopped"):
        connection.execute(f"SYSTEM REBUILD VIEW daily_mv AS {new}")
    old_is_there(connection)
    assert verdict(connection) == "covered"
    (candidate,) = dicts(connection, "SELECT * FROM system.views WHERE name = 'daily_mv__v2'")
    assert (candidate["verdict"], candidate["gap_rows"]) == ("unproven", 1)
    assert "It failed on 1 of them" in candidate["reason"]
    assert "BACKFILL failed: " in candidate["reason"]


def test_a_kept_version_never_fails_an_insert(connection: Connection) -> None:
    connection.execute(REBUILD.replace("FROM events", "FROM events WHERE throwIf(amount = 9) = 0"))
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    add(connection, ("2024-01-05", "n", 1, 9))
    old_is_there(connection)
    (back,) = dicts(connection, "SYSTEM ROLLBACK VIEW daily_mv")
    assert back["verdict"] == "partial"
    assert back["mend"] == "SYSTEM BACKFILL VIEW default.daily_mv"


def test_cancel(connection: Connection) -> None:
    with pytest.raises(Error):
        connection.execute(f"SYSTEM REBUILD VIEW daily_mv AS {FAILING}")
    assert "daily__v2" in tables(connection)
    with pytest.raises(BadArguments, match="another query is under way"):
        connection.execute(REBUILD)
    with pytest.raises(BadArguments, match="another target is under way"):
        connection.execute("SYSTEM REBUILD VIEW daily_mv ORDER BY (kind, day)")
    connection.execute("SYSTEM CANCEL REBUILD VIEW daily_mv")
    assert tables(connection) == ["daily", "daily_mv", "events"]
    connection.execute(REBUILD)
    new_is_there(connection)


def test_a_row_by_hand_in_the_new_target_stops_it(connection: Connection) -> None:
    def by_hand() -> None:
        connection.execute("INSERT INTO daily__v2 (day, kind, total) VALUES ('2024-01-01', 'a', 1)")

    with at("rebuild.backfilled", by_hand), pytest.raises(ViewDiffers) as stopped:
        connection.execute(REBUILD)
    assert "differing" in str(stopped.value)
    old_is_there(connection)
    connection.execute("SYSTEM REPLAY VIEW daily_mv__v2 DISCARD BYPASS")
    connection.execute("SYSTEM REBUILD VIEW daily_mv")
    new_is_there(connection)


def second_writer(connection: Connection) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW second TO daily AS {QUERY}")


def by_hand(connection: Connection) -> None:
    connection.execute("INSERT INTO daily (day, kind, total) VALUES ('2024-01-01', 'q', 1)")


def detached(connection: Connection) -> None:
    connection.execute("DETACH VIEW daily_mv")


def reader(connection: Connection) -> None:
    connection.execute("CREATE VIEW users AS SELECT uniqExactMerge(users) AS n FROM daily")


@pytest.mark.parametrize(
    ("prepare", "error"),
    [(second_writer, HaveDependentObjects), (by_hand, BypassRows), (detached, BadArguments)],
)
def test_refused_before_it_begins(
    connection: Connection, prepare: Callable[[Connection], None], error: type[Error]
) -> None:
    prepare(connection)
    before = tables(connection)
    with pytest.raises(error) as refused:
        connection.execute(REBUILD)
    assert refused.value.hint
    assert tables(connection) == before


def test_a_key_that_the_new_query_does_not_make_is_asked_for(connection: Connection) -> None:
    without = "AS SELECT day, count() AS events FROM events GROUP BY day"
    with pytest.raises(UnknownIdentifier, match="kind") as refused:
        connection.execute(f"SYSTEM REBUILD VIEW daily_mv {without}")
    assert "ORDER BY (…)" in (refused.value.hint or "")
    assert tables(connection) == ["daily", "daily_mv", "events"]
    connection.execute(f"SYSTEM REBUILD VIEW daily_mv ORDER BY day {without}")
    assert verdict(connection) == "proven"


def test_a_plain_view_that_would_break_stops_the_swap(connection: Connection) -> None:
    reader(connection)
    with pytest.raises(HaveDependentObjects, match="users would not work"):
        connection.execute(REBUILD)
    old_is_there(connection)
    connection.execute("DROP VIEW users")
    connection.execute("SYSTEM REBUILD VIEW daily_mv")
    new_is_there(connection)


def test_what_cannot_be_proven_is_not_rebuilt(connection: Connection) -> None:
    connection.execute("CREATE TABLE nothing AS events ENGINE = Null")
    with pytest.raises(ViewNotProvable):
        connection.execute(
            f"SYSTEM REBUILD VIEW daily_mv AS {QUERY.replace('FROM events', 'FROM nothing')}"
        )
    connection.execute("CREATE TABLE flat (n UInt64) ENGINE = MergeTree ORDER BY tuple()")
    connection.execute("CREATE MATERIALIZED VIEW null_mv TO flat AS SELECT user AS n FROM nothing")
    with pytest.raises(QueryNotSupportedInMaterializedView, match="Null table"):
        connection.execute("SYSTEM REBUILD VIEW null_mv")
    assert "daily__v2" not in tables(connection)


@pytest.mark.parametrize(
    "statement",
    [
        "SYSTEM REBUILD VIEW daily_mv STALE",
        "SYSTEM REBUILD VIEW daily_mv AS",
        "SYSTEM REBUILD VIEW daily_mv ORDER BY day ORDER BY kind",
        "SYSTEM ROLLBACK VIEW daily_mv PARTITION 202401",
        "SYSTEM CANCEL REBUILD daily_mv",
        "SYSTEM CANCEL REBUILD VIEW daily_mv AS SELECT 1",
    ],
)
def test_clauses_that_it_does_not_have(connection: Connection, statement: str) -> None:
    with pytest.raises((SyntaxError, NotSupportedError)):
        connection.execute(statement)
    assert tables(connection) == ["daily", "daily_mv", "events"]


def test_a_version_is_not_rebuilt_itself(connection: Connection) -> None:
    connection.execute(REBUILD)
    with pytest.raises(BadArguments, match="is a version of"):
        connection.execute("SYSTEM REBUILD VIEW daily_mv__v1")


def test_a_rollback_that_would_lose_rows_is_refused(connection: Connection) -> None:
    connection.execute(REBUILD)
    connection.execute("INSERT INTO daily (day, kind, total) VALUES ('2024-01-01', 'q', 1)")
    with pytest.raises(BypassRows):
        connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    connection.execute("SYSTEM REPLAY VIEW daily_mv DISCARD BYPASS")
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    old_is_there(connection)


def test_a_column_that_only_the_kept_version_reads_names_what_to_drop(
    connection: Connection,
) -> None:
    connection.execute(REBUILD)
    with pytest.raises(AlterOfColumnIsForbidden, match=r"daily_mv__v1 reads it") as refused:
        connection.execute("ALTER TABLE events DROP COLUMN user")
    assert "DROP VIEW default.daily_mv__v1: a REBUILD replaced it" in str(refused.value)
    assert "MODIFY QUERY" not in str(refused.value)
    with pytest.raises(AlterOfColumnIsForbidden, match=r"daily_mv reads it") as refused:
        connection.execute("ALTER TABLE events DROP COLUMN amount")
    for advice in ("ALTER TABLE default.daily_mv MODIFY QUERY", "DROP VIEW default.daily_mv__v1:"):
        assert advice in str(refused.value)
    connection.execute("DROP VIEW daily_mv__v1")
    connection.execute("ALTER TABLE events DROP COLUMN user")
    new_is_there(connection)
