"""TTL … GROUP BY: which rules are allowed, which rows they group and when, and the verdicts of views."""

from __future__ import annotations

import datetime

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import BadTtlExpression, Error, NoSuchColumn
from tests.unit.views.warehouse import dicts, rows, verdict

pytestmark = [
    pytest.mark.warehouse(merges=False, on_disk=True, checked=True),
    pytest.mark.feature("changes"),
]

TODAY = (datetime.datetime.now(tz=datetime.UTC) + datetime.timedelta(hours=12)).date()
OLD = (TODAY - datetime.timedelta(days=9)).isoformat()


def make(
    connection: Connection, settings: str = "", ttl: str = "GROUP BY k SET n = sum(n)"
) -> None:
    connection.execute(
        "CREATE TABLE t (k UInt32, d Date, n UInt64, who String) ENGINE = MergeTree ORDER BY (k, d)"
        f" TTL d + INTERVAL 1 DAY {ttl} {settings}"
    )


def fill(connection: Connection) -> None:
    connection.execute(
        f"INSERT INTO t VALUES (1, '{OLD}', 1, 'a'), (1, '{OLD}', 2, 'b'), (1, '{TODAY}', 4, 'c'),"
        f" (2, '{OLD}', 8, 'd')"
    )


def expire(connection: Connection) -> int:
    return connection.execute("ALTER TABLE t MATERIALIZE TTL").rowcount


def test_the_expired_rows_of_a_group_become_one(connection: Connection) -> None:
    make(connection)
    fill(connection)
    assert expire(connection) == 2
    assert rows(connection, "SELECT k, n, who FROM t ORDER BY k, d") == [
        (1, 3, "a"),
        (1, 4, "c"),
        (2, 8, "d"),
    ]
    assert expire(connection) == 0
    assert rows(connection, "SELECT count() FROM system.snapshots WHERE kind = 'TTL'") == [(1,)]


def test_optimize_groups_what_its_merge_brings_together(connection: Connection) -> None:
    make(connection, "SETTINGS inline_bytes_max = 0")
    for _ in range(3):
        fill(connection)
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(
        connection, "SELECT k, d < today(), sum(n), count() FROM t GROUP BY ALL ORDER BY ALL"
    ) == [(1, 0, 12, 3), (1, 1, 9, 1), (2, 1, 24, 1)]


def test_rows_that_leave_by_another_rule_are_not_counted(connection: Connection) -> None:
    make(
        connection,
        ttl="WHERE who = 'a', d + INTERVAL 2 DAY GROUP BY k SET n = sum(n), who = max(who)",
    )
    fill(connection)
    expire(connection)
    assert rows(connection, "SELECT k, n, who FROM t ORDER BY k, d") == [
        (1, 2, "b"),
        (1, 4, "c"),
        (2, 8, "d"),
    ]


@pytest.mark.parametrize(
    ("ttl", "error", "message"),
    [
        ("GROUP BY n SET k = max(k)", BadTtlExpression, "prefix of primary key"),
        ("GROUP BY d SET n = max(n)", BadTtlExpression, "prefix of primary key"),
        ("GROUP BY k SET n = max(n), n = min(n)", BadTtlExpression, "Multiple"),
        ("GROUP BY k SET n = n + 1", BadTtlExpression, "n"),
        ("GROUP BY k SET x = max(n)", NoSuchColumn, "x"),
        ("GROUP BY k SET n = max(y)", Error, "y"),
        ("GROUP BY k SET n = (SELECT 1)", Error, "subquery"),
    ],
)
def test_refused(connection: Connection, ttl: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        make(connection, ttl=ttl)
    make(connection)
    with pytest.raises(error, match=message):
        connection.execute(f"ALTER TABLE t MODIFY TTL d {ttl}")


def test_rows_stay_in_their_partition(connection: Connection) -> None:
    create = (
        "CREATE TABLE t (k UInt32, d Date, n UInt64) ENGINE = MergeTree PARTITION BY {} ORDER BY k"
        " TTL d + INTERVAL 1 DAY GROUP BY k SET n = sum(n), d = max(d)"
    )
    with pytest.raises(BadTtlExpression, match="partition"):
        connection.execute(create.format("n"))
    connection.execute(create.format("toYYYYMM(d)"))
    connection.execute(
        "INSERT INTO t VALUES (1, '2020-01-01', 1), (1, '2020-01-09', 2), (1, '2020-02-01', 4)"
    )
    expire(connection)
    assert rows(connection, "SELECT d, n FROM t ORDER BY d") == [
        (datetime.date(2020, 1, 9), 3),
        (datetime.date(2020, 2, 1), 4),
    ]


def test_states_are_merged(connection: Connection) -> None:
    create = (
        "CREATE TABLE t (k UInt32, d Date, s AggregateFunction(uniqExact, UInt64))"
        " ENGINE = AggregatingMergeTree ORDER BY (k, d) TTL d GROUP BY k"
    )
    with pytest.raises(BadTtlExpression, match="uniqExactMergeState"):
        connection.execute(create)
    connection.execute(create + " SET s = uniqExactMergeState(s)")
    connection.execute(
        "INSERT INTO t SELECT 1, toDate('2020-01-01') + number % 3, uniqExactState(number)"
        " FROM numbers(9) GROUP BY number % 3"
    )
    assert rows(connection, "SELECT count() FROM t") == [(3,)]
    expire(connection)
    assert rows(connection, "SELECT count(), uniqExactMerge(s) FROM t") == [(1, 9)]


def test_alter_knows_the_columns(connection: Connection) -> None:
    make(connection)
    connection.execute("ALTER TABLE t RENAME COLUMN n TO hits")
    assert "GROUP BY k SET hits = sum(hits)" in str(rows(connection, "SHOW CREATE TABLE t"))
    with pytest.raises(Error, match="TTL"):
        connection.execute("ALTER TABLE t DROP COLUMN hits")
    connection.execute("ALTER TABLE t REMOVE TTL")
    connection.execute("ALTER TABLE t DROP COLUMN hits")


VIEW = "CREATE MATERIALIZED VIEW v TO s AS SELECT k, sum(n) AS n, count() AS c FROM t GROUP BY k"


def with_view(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE s (k UInt32, n UInt64, c UInt64) ENGINE = SummingMergeTree ORDER BY k"
    )
    connection.execute(VIEW)
    fill(connection)


RESULT = "SELECT k, sum(n), sum(c) FROM s GROUP BY k ORDER BY k"


def test_views_keep_what_they_computed(connection: Connection) -> None:
    make(connection)
    with_view(connection)
    expire(connection)
    assert verdict(connection, "v") == "retained"
    for _ in range(2):
        assert rows(connection, RESULT) == [(1, 7, 3), (2, 8, 1)]
        (row,) = dicts(connection, "SYSTEM RECONCILE VIEW v")
        assert row["verdict"] == "equal"
        connection.execute("SYSTEM REPLAY VIEW v")


def test_or_are_stale_where_the_table_says_so(connection: Connection) -> None:
    make(connection, "SETTINGS ttl_retain = 0")
    with_view(connection)
    expire(connection)
    assert verdict(connection, "v") == "stale"
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert rows(connection, RESULT) == [(1, 7, 2), (2, 8, 1)]
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert row["verdict"] == "equal"


def test_a_target_has_no_such_rule(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (k UInt32, n UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE TABLE s (k UInt32, d Date, c UInt64) ENGINE = SummingMergeTree ORDER BY k"
        " TTL d GROUP BY k SET c = sum(c)"
    )
    view = "CREATE MATERIALIZED VIEW v TO s AS SELECT k, count() AS c FROM t GROUP BY k"
    with pytest.raises(Error, match="TTL"):
        connection.execute(view)
    connection.execute("ALTER TABLE s REMOVE TTL")
    connection.execute(view)
    with pytest.raises(Error, match="TTL"):
        connection.execute("ALTER TABLE s MODIFY TTL d GROUP BY k SET c = sum(c)")
