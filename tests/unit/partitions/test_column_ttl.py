"""A column's TTL: which columns may have one, what its values become and when, and the verdicts of
views over the table."""

from __future__ import annotations

import datetime

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, BadTtlExpression, Error
from olapdb.runtime.failpoints import recording
from tests.unit.views.warehouse import dicts, rows, verdict

pytestmark = [
    pytest.mark.warehouse(merges=False, on_disk=True, checked=True),
    pytest.mark.feature("changes"),
]

TODAY = (datetime.datetime.now(tz=datetime.UTC) + datetime.timedelta(hours=12)).date()
OLD = (TODAY - datetime.timedelta(days=9)).isoformat()


def make(connection: Connection, settings: str = "") -> None:
    connection.execute(
        "CREATE TABLE t (d Date, n UInt64, who String TTL d + INTERVAL 1 DAY,"
        " hits Int32 DEFAULT 7 TTL d + INTERVAL 1 DAY, kept String)"
        f" ENGINE = MergeTree ORDER BY n {settings}"
    )


def fill(connection: Connection) -> None:
    connection.execute(
        f"INSERT INTO t VALUES ('{OLD}', 1, 'ann', 3, 'x'), ('{TODAY}', 2, 'bob', 4, 'y')"
    )


def expire(connection: Connection) -> int:
    return connection.execute("ALTER TABLE t MATERIALIZE TTL").rowcount


def test_expired_values_become_defaults_in_one_commit(connection: Connection) -> None:
    make(connection)
    fill(connection)
    connection.execute(f"INSERT INTO t VALUES ('{OLD}', 3, 'cat', 5, 'z')")
    assert expire(connection) == 2
    assert rows(connection, "SELECT n, who, hits, kept FROM t ORDER BY n") == [
        (1, "", 7, "x"),
        (2, "bob", 4, "y"),
        (3, "", 7, "z"),
    ]
    commits = "SELECT count() FROM system.snapshots WHERE kind = 'TTL'"
    assert rows(connection, commits) == [(1,)]
    assert expire(connection) == 0
    assert rows(connection, commits) == [(1,)]


def test_indexes_and_bounds_know_the_new_values(connection: Connection) -> None:
    make(connection, "SETTINGS inline_bytes_max = 0, index_granularity = 1")
    connection.execute(
        "ALTER TABLE t ADD INDEX by_hits hits TYPE minmax, ADD INDEX w who TYPE set(9)"
    )
    fill(connection)
    expire(connection)
    assert rows(connection, "SELECT n FROM t WHERE hits = 7") == [(1,)]
    assert rows(connection, "SELECT n FROM t WHERE who = ''") == [(1,)]
    assert rows(connection, "SELECT n FROM t WHERE who = 'ann'") == []
    assert rows(connection, "SELECT min(hits), max(hits), count() FROM t") == [(4, 7, 2)]


def test_parts_that_have_not_expired_are_not_read(connection: Connection) -> None:
    make(connection, "SETTINGS inline_bytes_max = 0")
    connection.execute(f"INSERT INTO t VALUES ('{TODAY}', 2, 'bob', 4, 'y')")
    with recording() as stages:
        assert expire(connection) == 0
    assert "delete.part_rewritten" not in stages
    assert "store.read" not in stages


def test_optimize_and_rows_that_leave_too(connection: Connection) -> None:
    make(connection, "TTL d + INTERVAL 20 DAY")
    fill(connection)
    connection.execute("INSERT INTO t VALUES ('2001-01-01', 9, 'old', 5, 'z')")
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT n, who FROM t ORDER BY n") == [(1, ""), (2, "bob")]


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        ("n UInt64 TTL d", Error, "ORDER BY|key"),
        ("n UInt64, v UInt64 TTL n", BadTtlExpression, "Date"),
        ("n UInt64, v UInt64 ALIAS n + 1 TTL d", Error, "ALIAS"),
        ("n UInt64, v UInt64 TTL now() + INTERVAL 1 DAY", BadArguments, "now"),
    ],
)
def test_refused(connection: Connection, column: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        connection.execute(f"CREATE TABLE t (d Date, {column}) ENGINE = MergeTree ORDER BY n")
    assert rows(connection, "EXISTS TABLE t") == [(0,)]


def test_alter_adds_changes_renames_and_removes_it(connection: Connection) -> None:
    make(connection)
    connection.execute("ALTER TABLE t RENAME COLUMN d TO day")
    assert "`who` String TTL day + toIntervalDay(1)" in str(rows(connection, "SHOW CREATE TABLE t"))
    with pytest.raises(Error, match="TTL"):
        connection.execute("ALTER TABLE t DROP COLUMN day")
    connection.execute("ALTER TABLE t MODIFY COLUMN who REMOVE TTL, MODIFY COLUMN kept TTL day")
    connection.execute("ALTER TABLE t ADD COLUMN late UInt8 DEFAULT 1 TTL day + INTERVAL 1 YEAR")
    connection.execute(f"INSERT INTO t VALUES ('{OLD}', 1, 'ann', 3, 'x', 9)")
    expire(connection)
    assert rows(connection, "SELECT who, hits, kept, late FROM t") == [("ann", 7, "", 9)]
    described = dicts(connection, "DESCRIBE TABLE t")
    assert {row["name"]: row["ttl_expression"] for row in described if row["ttl_expression"]} == {
        "hits": "day + toIntervalDay(1)",
        "kept": "day",
        "late": "day + toIntervalYear(1)",
    }


def with_view(connection: Connection, select: str) -> None:
    connection.execute(
        "CREATE TABLE s (who String, c UInt64) ENGINE = SummingMergeTree ORDER BY who"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW v TO s AS {select}")
    fill(connection)


BY_WHO = "SELECT who, count() AS c FROM t GROUP BY who"


def test_views_keep_what_they_computed(connection: Connection) -> None:
    make(connection)
    with_view(connection, BY_WHO)
    assert verdict(connection, "v") != "stale"
    expire(connection)
    assert verdict(connection, "v") == "retained"
    for _ in range(2):
        assert rows(connection, "SELECT who, sum(c) FROM s GROUP BY who ORDER BY who") == [
            ("ann", 1),
            ("bob", 1),
        ]
        (row,) = dicts(connection, "SYSTEM RECONCILE VIEW v")
        assert row["verdict"] == "equal"
        connection.execute("SYSTEM REPLAY VIEW v")


def test_or_are_stale_where_the_table_says_so(connection: Connection) -> None:
    make(connection, "SETTINGS ttl_retain = 0")
    with_view(connection, BY_WHO)
    expire(connection)
    assert verdict(connection, "v") == "stale"
    assert rows(connection, "SELECT DISTINCT cause FROM system.view_invalidations") == [("TTL",)]
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert rows(connection, "SELECT who, sum(c) FROM s GROUP BY who ORDER BY who") == [
        ("", 1),
        ("bob", 1),
    ]
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert row["verdict"] == "equal"


def test_a_view_that_does_not_read_the_column_stays_proven(connection: Connection) -> None:
    make(connection, "SETTINGS ttl_retain = 0")
    with_view(connection, "SELECT kept AS who, count() AS c FROM t GROUP BY who")
    connection.execute("SYSTEM RECONCILE VIEW v")
    expire(connection)
    assert verdict(connection, "v") not in {"stale", "retained"}
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert row["verdict"] == "equal"


def test_a_dimension_whose_values_expire_makes_its_views_stale(connection: Connection) -> None:
    connection.execute("CREATE TABLE facts (n UInt64) ENGINE = MergeTree ORDER BY n")
    make(connection)
    connection.execute(
        "CREATE TABLE s (who String, c UInt64) ENGINE = SummingMergeTree ORDER BY who"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO s AS SELECT t.who AS who, count() AS c FROM facts"
        " JOIN t ON facts.n = t.n GROUP BY who"
    )
    fill(connection)
    connection.execute("INSERT INTO facts VALUES (1), (1), (2)")
    expire(connection)
    assert verdict(connection, "v") == "stale"
    connection.execute("SYSTEM REPLAY VIEW v")
    assert rows(connection, "SELECT who, sum(c) FROM s GROUP BY who ORDER BY who") == [
        ("", 2),
        ("bob", 1),
    ]


def test_a_target_has_no_column_that_expires(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (d Date, n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute(
        "CREATE TABLE s (d Date, c UInt64 TTL d) ENGINE = SummingMergeTree ORDER BY d"
    )
    view = "CREATE MATERIALIZED VIEW v TO s AS SELECT d, count() AS c FROM t GROUP BY d"
    with pytest.raises(Error, match="TTL"):
        connection.execute(view)
    connection.execute("ALTER TABLE s MODIFY COLUMN c REMOVE TTL")
    connection.execute(view)
    with pytest.raises(Error, match="TTL"):
        connection.execute("ALTER TABLE s MODIFY COLUMN c TTL d")
