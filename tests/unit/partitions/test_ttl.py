"""TTL: which expressions are allowed, which rows it removes and when, and the verdicts of views."""

from __future__ import annotations

import datetime
import time
from dataclasses import replace

import pytest

from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.dml.ttl import apply_ttl
from olapdb.errors import (
    BadArguments,
    BadTtlExpression,
    Error,
    IncorrectQuery,
    NotSupportedError,
    UnknownIdentifier,
)
from olapdb.maintenance.scheduler import MergeScheduler
from olapdb.model.schema import Table
from olapdb.runtime.failpoints import recording
from tests.unit.views.warehouse import dicts, rows, verdict

pytestmark = [
    pytest.mark.warehouse(merges=False, on_disk=True, checked=True),
    pytest.mark.feature("changes"),
]

TODAY = (datetime.datetime.now(tz=datetime.UTC) + datetime.timedelta(hours=12)).date()
"""The day on which the tests end, which is tomorrow if they run over midnight."""


def ago(days: int) -> str:
    return (TODAY - datetime.timedelta(days=days)).isoformat()


def make(connection: Connection, ttl: str = "d + INTERVAL 1 DAY", settings: str = "") -> None:
    connection.execute(
        f"CREATE TABLE t (d Date, n UInt64) ENGINE = MergeTree ORDER BY n TTL {ttl} {settings}"
    )


def numbers(connection: Connection) -> list[int]:
    return [n for (n,) in rows(connection, "SELECT n FROM t ORDER BY n")]


def table(connection: Connection) -> Table:
    found = connection.database.services.catalog.snapshot().find("default", "t")
    assert isinstance(found, Table)
    return found


@pytest.mark.parametrize(
    ("columns", "ttl", "error", "message"),
    [
        ("d Date, n UInt64", "n + 1", BadTtlExpression, "Date, Date32, DateTime"),
        ("d Nullable(Date), n UInt64", "d", BadTtlExpression, "Nullable"),
        ("d Date, n UInt64", "toDate('2020-01-01')", BadArguments, "does not depend"),
        ("d Date, n UInt64", "if(rand() > 3, d, d)", BadArguments, "non-deterministic"),
        ("d Date, n UInt64", "x + INTERVAL 1 DAY", UnknownIdentifier, "x"),
        ("d Date, n UInt64", "d, d + 1", BadTtlExpression, "More than one"),
        ("d Date, n UInt64", "d WHERE n IN (SELECT 1)", NotSupportedError, "subquery"),
        ("d Date, n UInt64", "d TO DISK 'slow'", BadTtlExpression, "TO DISK"),
    ],
)
def test_refused(
    connection: Connection, columns: str, ttl: str, error: type[Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        connection.execute(f"CREATE TABLE t ({columns}) ENGINE = MergeTree ORDER BY n TTL {ttl}")
    connection.execute("CREATE TABLE t (d Date, n UInt64) ENGINE = MergeTree ORDER BY n")
    if "TTL" not in columns and "Nullable" not in columns:
        with pytest.raises(error, match=message):
            connection.execute(f"ALTER TABLE t MODIFY TTL {ttl}")


def test_expired_rows_are_there_until_a_pass(connection: Connection) -> None:
    make(connection)
    connection.execute(f"INSERT INTO t VALUES ('1970-01-01', 0), ('{ago(9)}', 1), ('{ago(0)}', 2)")
    assert numbers(connection) == [0, 1, 2]
    connection.execute("OPTIMIZE TABLE t")
    assert numbers(connection) == [2]


def test_materialize_says_how_many_and_is_one_commit(connection: Connection) -> None:
    make(connection)
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 3)")
    connection.execute(f"INSERT INTO t VALUES ('{ago(0)}', 4)")
    assert connection.execute("ALTER TABLE t MATERIALIZE TTL").rowcount == 2
    assert numbers(connection) == [2, 4]
    assert rows(connection, "SELECT count() FROM system.snapshots WHERE kind = 'TTL'") == [(1,)]
    assert connection.execute("ALTER TABLE t MATERIALIZE TTL").rowcount == 0
    assert rows(connection, "SELECT count() FROM system.snapshots WHERE kind = 'TTL'") == [(1,)]


def test_parts_are_judged_by_their_bounds(connection: Connection) -> None:
    make(connection, settings="SETTINGS inline_bytes_max = 0")
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(8)}', 2)")
    connection.execute(f"INSERT INTO t VALUES ('{ago(0)}', 3)")
    with recording() as stages:
        connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert "delete.part_rewritten" not in stages
    assert "store.written" not in stages


def test_several_rules_and_conditions(connection: Connection) -> None:
    make(connection, "d + INTERVAL 1 DAY WHERE n < 10, d + INTERVAL 7 DAY")
    connection.execute(
        f"INSERT INTO t VALUES ('{ago(3)}', 1), ('{ago(3)}', 11), ('{ago(9)}', 12), ('{ago(0)}', 2)"
    )
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert numbers(connection) == [2, 11]


@pytest.mark.parametrize("kind", ["DateTime", "DateTime64(3)", "Date32"])
def test_types_of_time(connection: Connection, kind: str) -> None:
    connection.execute(
        f"CREATE TABLE t (d {kind}, n UInt64) ENGINE = MergeTree ORDER BY n TTL d + INTERVAL 1 HOUR"
        if kind != "Date32"
        else f"CREATE TABLE t (d {kind}, n UInt64) ENGINE = MergeTree ORDER BY n TTL d + INTERVAL 1 DAY"
    )
    old, new = f"CAST(now() - 200000 AS {kind})", f"CAST(now() AS {kind})"
    connection.execute(f"INSERT INTO t SELECT {old}, 1")
    connection.execute(f"INSERT INTO t SELECT {old}, 2 UNION ALL SELECT {new}, 3")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert numbers(connection) == [3]


def test_an_expression_that_bounds_do_not_decide(connection: Connection) -> None:
    make(connection, "if(n % 2 = 0, d, d + INTERVAL 100 YEAR)")
    connection.execute(f"INSERT INTO t SELECT '{ago(5)}', number FROM numbers(5)")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert numbers(connection) == [1, 3]


def test_only_whole_parts(connection: Connection) -> None:
    make(connection, settings="SETTINGS ttl_only_drop_parts = 1")
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 3)")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert numbers(connection) == [1, 2]


def test_modify_and_remove(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (d Date, n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    with pytest.raises(BadArguments, match="cannot remove"):
        connection.execute("ALTER TABLE t REMOVE TTL")
    with pytest.raises(IncorrectQuery, match="no TTL set"):
        connection.execute("ALTER TABLE t MATERIALIZE TTL")
    connection.execute(
        "ALTER TABLE t MODIFY TTL d + INTERVAL 1 DAY SETTINGS materialize_ttl_after_modify = 0"
    )
    assert numbers(connection) == [1, 2]
    connection.execute("ALTER TABLE t MODIFY TTL d + INTERVAL 2 DAY")
    assert numbers(connection) == [2]
    assert "TTL d + " in str(rows(connection, "SHOW CREATE TABLE t"))
    connection.execute("CREATE TABLE u AS t")
    assert "TTL d + " in str(rows(connection, "SHOW CREATE TABLE u"))
    connection.execute("ALTER TABLE t REMOVE TTL")
    assert "TTL" not in str(rows(connection, "SHOW CREATE TABLE t"))


def test_a_partition_alone(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (d Date, n UInt64) ENGINE = MergeTree PARTITION BY n ORDER BY n TTL d"
    )
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(9)}', 2)")
    connection.execute("ALTER TABLE t MATERIALIZE TTL IN PARTITION 2")
    assert numbers(connection) == [1]


def test_in_the_background(connection: Connection) -> None:
    make(connection)
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    services = connection.database.services
    scheduler = MergeScheduler(services, expire=apply_ttl)
    scheduler.start()
    scheduler.notify(table(connection).id)
    assert scheduler.wait_idle(20)
    scheduler.stop()
    assert scheduler.errors == type(scheduler.errors)()
    assert numbers(connection) == [2]


def test_time_passes(connection: Connection) -> None:
    make(connection, "d + INTERVAL 10 DAY")
    connection.execute(f"INSERT INTO t VALUES ('{ago(5)}', 1), ('{ago(0)}', 2)")
    services = connection.database.services
    assert apply_ttl(CommitOrigin(services), table(connection).id).rows == 0
    later = replace(services, clock_ms=lambda: int((time.time() + 6 * 86_400) * 1000))
    assert apply_ttl(CommitOrigin(later), table(connection).id).rows == 1
    assert numbers(connection) == [2]


VIEW = "CREATE MATERIALIZED VIEW v TO s AS SELECT d, count() AS c FROM t GROUP BY d"


def test_views_are_retained(connection: Connection) -> None:
    make(connection)
    connection.execute("CREATE TABLE s (d Date, c UInt64) ENGINE = SummingMergeTree ORDER BY d")
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT sum(c) FROM s") == [(2,)]
    assert verdict(connection, "v") == "retained"
    connection.execute("SYSTEM REPLAY VIEW v")
    assert rows(connection, "SELECT sum(c) FROM s") == [(2,)]
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert (row["verdict"], row["keys_compared"], row["retained_rows"]) == ("equal", 1, 1)


def test_or_stale_where_the_table_says_so(connection: Connection) -> None:
    make(connection, settings="SETTINGS ttl_retain = 0")
    connection.execute("CREATE TABLE s (d Date, c UInt64) ENGINE = SummingMergeTree ORDER BY d")
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert verdict(connection, "v") == "stale"
    assert rows(connection, "SELECT DISTINCT cause FROM system.view_invalidations") == [("TTL",)]
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert rows(connection, "SELECT sum(c) FROM s") == [(1,)]


def test_a_target_with_a_ttl_of_its_own(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (d Date, n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute(
        "CREATE TABLE s (d Date, c UInt64) ENGINE = SummingMergeTree ORDER BY d TTL d + INTERVAL 3 DAY"
        " SETTINGS ttl_retain = 0"
    )
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO t VALUES ('{ago(9)}', 1), ('{ago(0)}', 2)")
    connection.execute("OPTIMIZE TABLE s FINAL")
    assert rows(connection, "SELECT d FROM s") == [(TODAY,)]
    assert verdict(connection, "v") == "retained"
    for _ in range(2):
        connection.execute("SYSTEM REPLAY VIEW v")
        connection.execute("SYSTEM BACKFILL VIEW v")
        assert rows(connection, "SELECT d FROM s") == [(TODAY,)]
        problems = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
        assert [p for p in problems if p["problems"]] == []
        connection.execute("OPTIMIZE TABLE s FINAL")
