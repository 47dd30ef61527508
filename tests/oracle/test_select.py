"""SELECT from text to rows, beside ClickHouse: names, types and values of every query agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle

SETUP = (
    "CREATE TABLE events (id UInt64, day Date, user Nullable(UInt32), kind LowCardinality(String),"
    " amount Float64, price Decimal(9, 2), tags Array(String), at DateTime)"
    " ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (kind, id)",
    "INSERT INTO events VALUES"
    " (1, '2024-01-01', 10, 'view', 0.5, 1.25, ['a'], '2024-01-01 10:00:00'),"
    " (2, '2024-01-02', NULL, 'click', 1.5, 0.00, ['a', 'b'], '2024-01-02 11:30:00'),"
    " (3, '2024-01-31', 11, 'view', -2, 7.50, [], '2024-01-31 23:59:59'),"
    " (4, '2024-02-01', 10, 'buy', nan, 100.10, ['c'], '2024-02-01 00:00:00')",
    "INSERT INTO events VALUES"
    " (5, '2024-02-15', 12, 'buy', 3.25, 20.00, ['b'], '2024-02-15 12:00:00'),"
    " (6, '2024-02-15', NULL, 'view', 0, 3.10, ['a', 'b'], '2024-02-15 12:00:01'),"
    " (7, '2024-03-01', 10, 'view', 1e10, 0.01, ['a'], '2024-03-01 09:00:00'),"
    " (8, '2024-03-02', 13, 'click', -0.5, 5.55, ['b', 'a'], '2024-03-02 09:00:00')",
    "CREATE TABLE users (id UInt32, name String, team Nullable(String)) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO users VALUES (10, 'ann', 'red'), (11, 'bob', NULL), (12, 'cy', 'red'), (99, 'zed', 'blue')",
    "CREATE TABLE totals (k UInt32, s Int64, n UInt64) ENGINE = SummingMergeTree ORDER BY k",
    "INSERT INTO totals VALUES (1, 5, 1), (2, 7, 1)",
    "INSERT INTO totals VALUES (1, -5, 1), (2, -7, 18446744073709551615), (3, 1, 1)",
    "CREATE TABLE states (k String, u AggregateFunction(uniqExact, UInt64),"
    " m SimpleAggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY k",
    "INSERT INTO states SELECT kind, uniqExactState(id), max(toInt64(id)) FROM events GROUP BY kind",
    "INSERT INTO states SELECT kind, uniqExactState(id + 100), max(toInt64(0)) FROM events GROUP BY kind",
)

QUERIES = (
    # rows and conditions
    "SELECT * FROM events ORDER BY id",
    "SELECT id FROM events WHERE day >= '2024-02-01' AND kind != 'view' ORDER BY id",
    "SELECT id FROM events PREWHERE kind = 'view' WHERE amount > 0 ORDER BY id",
    "SELECT id FROM events WHERE user IS NULL ORDER BY id",
    "SELECT id FROM events WHERE NOT (user = 10) ORDER BY id",
    "SELECT id FROM events WHERE user != 10 OR user IS NULL ORDER BY id",
    "SELECT id FROM events WHERE kind IN ('buy', 'click') ORDER BY id",
    "SELECT id FROM events WHERE user NOT IN (10, 11) ORDER BY id",
    "SELECT id FROM events WHERE (kind, id) IN (('view', 1), ('buy', 4), ('x', 9)) ORDER BY id",
    "SELECT id FROM events WHERE id BETWEEN 3 AND 5 ORDER BY id DESC",
    "SELECT id FROM events WHERE amount > 1 ORDER BY id",
    "SELECT id FROM events WHERE NOT (amount > 1) ORDER BY id",
    "SELECT id FROM events WHERE toYYYYMM(day) = 202402 ORDER BY id",
    "SELECT id FROM events WHERE toStartOfMonth(day) > '2024-01-01' ORDER BY id",
    "SELECT id FROM events WHERE kind LIKE 'v%' ORDER BY id",
    "SELECT id FROM events WHERE user ORDER BY id",
    "SELECT id, if(id = 4, 0, intDiv(100, id - 4)) AS q FROM events ORDER BY id",
    "SELECT 1 AS a, 'x' AS b, NULL AS c",
    "SELECT id FROM events WHERE 0",
    # order and limit
    "SELECT id, amount FROM events ORDER BY amount, id",
    "SELECT id, amount FROM events ORDER BY amount DESC, id",
    "SELECT id, user FROM events ORDER BY user DESC, id DESC",
    "SELECT id, user FROM events ORDER BY user NULLS FIRST, id",
    "SELECT id, tags FROM events ORDER BY tags, id",
    "SELECT id FROM events ORDER BY (kind, id)",
    "SELECT id FROM events ORDER BY id LIMIT 3 OFFSET 2",
    "SELECT kind FROM events ORDER BY kind LIMIT 3 WITH TIES",
    "SELECT kind, id FROM events ORDER BY kind, id LIMIT 1 BY kind",
    "SELECT kind, id FROM events ORDER BY kind, id LIMIT 1, 2 BY kind",
    "SELECT DISTINCT kind FROM events ORDER BY kind",
    "SELECT DISTINCT user FROM events ORDER BY user",
    # groups
    "SELECT count(), count(user), sum(id), min(day), max(at), avg(amount) FROM events WHERE id != 4",
    "SELECT kind, count(), sum(price), avg(price), min(amount), max(id) FROM events WHERE id != 4 GROUP BY kind ORDER BY kind",
    "SELECT user, count() FROM events GROUP BY user ORDER BY user",
    "SELECT count() FROM events GROUP BY (1, 'x')",
    "SELECT count(), user FROM events GROUP BY (1, user) ORDER BY user",
    "SELECT toStartOfMonth(day) AS m, kind, uniqExact(user), sum(id) FROM events GROUP BY m, kind ORDER BY m, kind",
    "SELECT tags, count() AS c FROM events GROUP BY tags ORDER BY tags",
    "SELECT isNaN(amount) AS n, count() FROM events GROUP BY n ORDER BY n",
    "SELECT kind, sumIf(id, user = 10), countIf(amount > 0) FROM events GROUP BY kind ORDER BY kind",
    "SELECT kind, argMax(id, at), argMin(day, id), any(kind) FROM events GROUP BY kind ORDER BY kind",
    "SELECT kind, arraySort(groupArray(id)) FROM events GROUP BY kind ORDER BY kind",
    "SELECT kind, count() AS c FROM events GROUP BY kind HAVING c > 2 ORDER BY kind",
    "SELECT count() FROM events WHERE 0",
    "SELECT sum(id), max(user), min(kind), avg(amount) FROM events WHERE 0",
    "SELECT kind, count() FROM events WHERE 0 GROUP BY kind",
    "SELECT quantile(0.5)(id), quantiles(0.1, 0.9)(id), median(id) FROM events",
    "SELECT sum(c) FROM (SELECT kind, count() AS c FROM events GROUP BY kind)",
    "SELECT uniqExactMerge(s) FROM (SELECT uniqExactState(id) AS s FROM events GROUP BY kind)",
    # joins
    "SELECT e.id, u.name FROM events AS e INNER JOIN users AS u ON e.user = u.id ORDER BY e.id",
    "SELECT e.id, u.name, u.team FROM events AS e LEFT JOIN users AS u ON e.user = u.id ORDER BY e.id",
    "SELECT e.id, u.name FROM events AS e RIGHT JOIN users AS u ON e.user = u.id ORDER BY e.id, u.name",
    "SELECT e.id, u.name FROM events AS e FULL JOIN users AS u ON e.user = u.id ORDER BY e.id, u.name",
    "SELECT e.id, u.name FROM events AS e LEFT JOIN users AS u ON e.user = u.id ORDER BY e.id SETTINGS join_use_nulls = 1",
    "SELECT id FROM events AS e LEFT SEMI JOIN users AS u ON e.user = u.id ORDER BY id",
    "SELECT id FROM events AS e LEFT ANTI JOIN users AS u ON e.user = u.id ORDER BY id",
    "SELECT count() FROM events CROSS JOIN users",
    "SELECT u.name, count() AS c FROM users AS u LEFT JOIN events AS e ON u.id = e.user GROUP BY u.name ORDER BY u.name",
    "SELECT e.id, u.id FROM events AS e INNER JOIN users AS u ON e.user = u.id AND e.id > 3 ORDER BY e.id",
    "SELECT a.id, b.id FROM events AS a INNER JOIN events AS b ON a.user = b.user AND a.kind = b.kind WHERE a.id < b.id ORDER BY a.id, b.id",
    # subqueries and sets
    "SELECT id FROM events WHERE user IN (SELECT id FROM users WHERE team = 'red') ORDER BY id",
    "SELECT id FROM events WHERE user NOT IN (SELECT id FROM users) ORDER BY id",
    "SELECT id FROM events WHERE amount = (SELECT max(amount) FROM events WHERE NOT isNaN(amount))",
    "WITH (SELECT count() FROM users) AS n SELECT id, n FROM events ORDER BY id LIMIT 1",
    "WITH recent AS (SELECT * FROM events WHERE day > '2024-02-01') SELECT count() FROM recent",
    "SELECT * FROM (SELECT id FROM users UNION ALL SELECT toUInt32(1)) ORDER BY id",
    "SELECT * FROM (SELECT id FROM users UNION DISTINCT SELECT toUInt32(10)) ORDER BY id",
    "SELECT * FROM (SELECT kind FROM events EXCEPT SELECT 'buy') ORDER BY kind",
    "SELECT * FROM (SELECT kind FROM events INTERSECT SELECT 'buy') ORDER BY kind",
    "SELECT * FROM (SELECT kind FROM events EXCEPT DISTINCT SELECT 'buy') ORDER BY kind",
    "SELECT * FROM (SELECT user FROM events EXCEPT ALL SELECT user FROM events WHERE id < 4) ORDER BY user",
    "SELECT * FROM (SELECT kind FROM events INTERSECT DISTINCT SELECT 'buy') ORDER BY kind",
    # tables that merge
    "SELECT * FROM totals FINAL ORDER BY k",
    "SELECT k, sum(s), sum(n) FROM totals GROUP BY k ORDER BY k",
    "SELECT * FROM totals FINAL WHERE s > 0 ORDER BY k",
    "SELECT k, finalizeAggregation(u), m FROM states FINAL ORDER BY k",
    "SELECT k, uniqExactMerge(u), max(m) + 0 FROM states GROUP BY k ORDER BY k",
    # numbers
    "SELECT number, number % 3 FROM numbers(5)",
    "SELECT sum(number) FROM numbers(10, 1000000)",
    "SELECT number % 10 AS d, count(), sum(number), max(number) FROM numbers(100000) GROUP BY d ORDER BY d",
)


@pytest.fixture(scope="module")
def engines(oracle: Oracle) -> Iterator[tuple[olapdb.Connection, Oracle]]:
    connection = olapdb.connect()
    for statement in SETUP:
        connection.cursor().execute(statement)
        oracle.execute(statement)
    yield connection, oracle
    connection.close()
    for name in ("events", "users", "totals", "states"):
        oracle.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize("query", QUERIES)
def test_same_answer(query: str, engines: tuple[olapdb.Connection, Oracle]) -> None:
    connection, oracle = engines
    expected = oracle.query(query)
    result = connection.session.execute(query)
    table = result.read_all()
    assert result.names == expected.names
    assert tuple(str(t) for t in result.types) == expected.types
    columns = [
        [text if valid else None for text, valid in zip(display(c, t), _valid(c), strict=True)]
        for c, t in zip((c.combine_chunks() for c in table.columns), result.types, strict=True)
    ]
    assert list(zip(*columns, strict=True)) == expected.rows


def _valid(column: object) -> list[bool]:
    return column.is_valid().to_pylist()  # type: ignore[attr-defined, no-any-return]
