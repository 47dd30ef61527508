"""REBUILD of a view whose target others read: chained views, views that join it, its read view.

The commit of the swap lets them read the new version. None misses an INSERT."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, HaveDependentObjects, SyntaxError, UnknownTable
from olapdb.maintenance.check import check_database
from tests.unit.views.rebuilding import NEW, REBUILD, at, connection, tables
from tests.unit.views.warehouse import add, dicts, rows, verdict

pytestmark = pytest.mark.feature("views", "rebuild")

__all__ = ["connection"]

CHAINED = "SELECT kind, sum(total) AS total FROM daily GROUP BY kind"
LISTED = """
    (day Date, kind String, events SimpleAggregateFunction(sum, UInt64),
     total SimpleAggregateFunction(sum, Int64), top SimpleAggregateFunction(max, Int64),
     CONSTRAINT known CHECK kind != '')
    ENGINE = AggregatingMergeTree PARTITION BY day ORDER BY (kind, day)
    TTL day + INTERVAL 100 YEAR SETTINGS index_granularity = 1024
"""


def chain(connection: Connection, query: str = CHAINED) -> None:
    """Create a view on the target, and another on that one's."""
    for name, select in (("kinds", query), ("grand", "SELECT sum(total) AS total FROM kinds")):
        key = "kind" if name == "kinds" else "tuple()"
        column = "kind String, " if name == "kinds" else ""
        connection.execute(
            f"CREATE TABLE {name} ({column}total SimpleAggregateFunction(sum, Int64))"
            f" ENGINE = AggregatingMergeTree ORDER BY {key}"
        )
        connection.execute(f"CREATE MATERIALIZED VIEW {name}_mv TO {name} AS {select}")
        connection.execute(f"SYSTEM BACKFILL VIEW {name}_mv")


def kinds(connection: Connection) -> list[tuple[str, int]]:
    return rows(connection, "SELECT kind, sum(total) FROM kinds GROUP BY kind ORDER BY kind")


def truth(connection: Connection, factor: int) -> list[tuple[str, int]]:
    query = f"SELECT kind, sum({factor} * amount) FROM events GROUP BY kind ORDER BY kind"
    return rows(connection, query)


def test_a_chained_view_reads_the_new_version_and_is_stale_until_its_replay(
    connection: Connection,
) -> None:
    for number in range(8):  # the old target gets more blocks than the new one has
        add(connection, ("2024-01-01", "a", number, number))
    chain(connection)
    add(connection, ("2024-01-02", "a", 1, 1))

    def inserted() -> None:
        with olapdb.connect(connection.database.location) as other:
            add(other, ("2024-01-03", "c", 1, 9))

    with at("rebuild.before_swap", inserted):
        steps = dicts(connection, REBUILD)
    assert steps[-1]["step"] == "downstream"
    assert (steps[-1]["view"], steps[-1]["status"]) == (
        "default.kinds_mv",
        "reads the new version, and is stale",
    )
    assert verdict(connection, "kinds_mv") == "stale"
    assert rows(connection, "SELECT view, cause FROM system.view_invalidations") == [
        ("kinds_mv", "UPSTREAM REBUILD")
    ]
    # A block of after the swap fires it through the new version, once.
    add(connection, ("2024-01-01", "a", 1, 7))
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    # It records blocks of the new source only: the old one had more of them.
    assert (
        check_database(connection.database.services.catalog, connection.database.services.store)
        == []
    )
    connection.execute("SYSTEM REPLAY VIEW grand_mv STALE")
    add(connection, ("2024-01-01", "b", 1, 3))
    assert kinds(connection) == truth(connection, 2)
    for view in ("kinds_mv", "grand_mv"):
        assert {r["verdict"] for r in dicts(connection, f"SYSTEM RECONCILE VIEW {view}")} == {
            "equal"
        }
    (back,) = dicts(connection, "SYSTEM ROLLBACK VIEW daily_mv")
    assert back["verdict"] == "covered"
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    add(connection, ("2024-05-01", "b", 1, 3))
    assert kinds(connection) == truth(connection, 1)
    connection.execute("SYSTEM REBUILD VIEW daily_mv")
    assert tables(connection) == [
        "daily", "daily__v1", "daily_mv", "daily_mv__v1", "events", "grand", "grand_mv", "kinds",
        "kinds_mv",
    ]  # fmt: skip


def test_rows_that_leave_a_stale_chained_target_are_made_again(connection: Connection) -> None:
    chain(connection)
    connection.execute(REBUILD)
    connection.execute("DELETE FROM kinds WHERE kind = 'a'")
    assert verdict(connection, "kinds_mv") == "stale"
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    assert kinds(connection) == truth(connection, 2)
    connection.execute("SYSTEM REBUILD VIEW daily_mv")
    connection.execute("TRUNCATE TABLE kinds")
    connection.execute("SYSTEM BACKFILL VIEW kinds_mv")
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    assert kinds(connection) == truth(connection, 2)


def test_a_view_that_does_not_fit_stays_with_the_previous_version(connection: Connection) -> None:
    chain(connection, "SELECT kind, sum(toInt64(events)) AS total FROM daily GROUP BY kind")
    steps = dicts(connection, REBUILD.replace("count() AS events, ", ""))
    assert steps[-1]["status"].startswith("stays with the previous version: ")
    (text,) = rows(connection, "SELECT create_table_query FROM system.tables WHERE name='kinds_mv'")
    assert "daily__v1" in text[0]
    add(connection, ("2024-06-01", "f", 1, 3))
    assert ("f", 1) in kinds(connection)
    with pytest.raises(HaveDependentObjects, match=r"kinds_mv still reads default\.daily__v1"):
        connection.execute("SYSTEM REBUILD VIEW daily_mv")
    connection.execute(f"SYSTEM REBUILD VIEW kinds_mv AS {CHAINED}")
    assert kinds(connection) == truth(connection, 2)
    connection.execute("SYSTEM REBUILD VIEW daily_mv")  # drops what the kept kinds_mv__v1 reads
    assert "kinds_mv__v1" not in tables(connection)


def test_a_view_that_joins_the_target_is_stale_only(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE joined (kind String, total Int64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW joined_mv TO joined AS SELECT e.kind AS kind, d.total AS total"
        " FROM events e LEFT JOIN (SELECT kind, sum(total) AS total FROM daily GROUP BY kind) d"
        " ON d.kind = e.kind"
    )
    connection.execute("SYSTEM BACKFILL VIEW joined_mv")
    connection.execute(REBUILD)
    assert verdict(connection, "joined_mv") == "stale"
    connection.execute("SYSTEM REPLAY VIEW joined_mv STALE")
    assert rows(connection, "SELECT kind, total FROM joined ORDER BY kind") == truth(connection, 2)


def test_listed_columns_comment_and_read_view_change_in_the_swap(connection: Connection) -> None:
    connection.execute(
        "CREATE VIEW read AS SELECT day, kind, sum(total) AS total FROM daily GROUP BY day, kind"
    )
    old_read = "SELECT * FROM read ORDER BY day"
    statement = (
        f"SYSTEM REBUILD VIEW daily_mv {LISTED} COMMENT 'second' REPLACE VIEW read AS"
        f" (SELECT kind, max(top) AS top FROM daily GROUP BY kind) AS {NEW}"
    )

    def read_once() -> None:
        assert [len(row) for row in rows(connection, old_read)] == [3, 3]

    with at("rebuild.before_swap", read_once):
        connection.execute(statement)
    assert rows(connection, "SELECT * FROM read ORDER BY kind") == [("a", 5), ("b", 6)]
    assert rows(connection, "SELECT name FROM system.columns WHERE table = 'read'") == [
        ("kind",),
        ("top",),
    ]
    ((made, comment),) = rows(
        connection,
        "SELECT t.create_table_query, v.comment FROM system.tables t, system.tables v"
        " WHERE t.name = 'daily' AND v.name = 'daily_mv'",
    )
    assert comment == "second"
    for clause in ("CHECK kind !=", "ORDER BY (kind, day)", "TTL", "index_granularity = 1024"):
        assert clause in made, made
    assert [s["step"] for s in dicts(connection, statement)] == ["unchanged"]
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    assert [len(row) for row in rows(connection, old_read)] == [3, 3]
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    assert rows(connection, "SELECT * FROM read ORDER BY kind") == [("a", 5), ("b", 6)]


def test_a_read_view_keeps_the_sessions_nulls_through_casts(connection: Connection) -> None:
    connection.execute("CREATE VIEW read AS SELECT kind, sum(total) AS n FROM daily GROUP BY kind")
    connection.execute("SET cast_keep_nullable = 1")
    connection.execute(
        "SYSTEM REBUILD VIEW daily_mv REPLACE VIEW read AS (SELECT kind, CAST(nullIf(sum(total), 10)"
        f" AS Int32) AS n FROM daily GROUP BY kind) AS {NEW}"
    )
    connection.execute("SET cast_keep_nullable = 0")
    assert rows(connection, "SELECT * FROM read ORDER BY kind") == [("a", None), ("b", 12)]
    types = rows(connection, "SELECT type FROM system.columns WHERE table = 'read' AND name = 'n'")
    assert types == [("Nullable(Int32)",)]


def test_a_read_view_that_cannot_be_replaced_is_refused_at_the_start(
    connection: Connection,
) -> None:
    before = tables(connection)
    for name, query in (("nothing", "SELECT kind FROM daily"), ("daily", "SELECT 1")):
        with pytest.raises(UnknownTable, match="no plain view"):
            connection.execute(
                f"SYSTEM REBUILD VIEW daily_mv REPLACE VIEW {name} AS ({query}) AS {NEW}"
            )
    connection.execute("CREATE VIEW read AS SELECT kind FROM daily")
    with pytest.raises(olapdb.errors.Error, match="nowhere"):
        connection.execute(
            f"SYSTEM REBUILD VIEW daily_mv REPLACE VIEW read AS (SELECT nowhere FROM daily) AS {NEW}"
        )
    assert tables(connection) == sorted((*before, "read"))
    with pytest.raises(SyntaxError):
        connection.execute("SYSTEM REBUILD VIEW daily_mv REPLACE VIEW read AS SELECT 1")
    with pytest.raises(BadArguments):
        connection.execute("SYSTEM CANCEL REBUILD VIEW daily_mv")
