"""ALTER TABLE, column kinds, constraints and mutations, statement by statement beside ClickHouse."""

from __future__ import annotations

from itertools import count

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

_numbers = count()

SCRIPTS: dict[str, str] = {
    "add": """
        CREATE TABLE T (k UInt32, v Int64, s String) ENGINE = MergeTree ORDER BY k
        INSERT INTO T VALUES (1, 10, 'x'), (2, 300, '12')
        ALTER TABLE T ADD COLUMN w UInt64 DEFAULT v * 2 AFTER v
        SELECT * FROM T ORDER BY k
        ALTER TABLE T ADD COLUMN w UInt64
        ALTER TABLE T ADD COLUMN IF NOT EXISTS w UInt64
        ALTER TABLE T ADD COLUMN f String FIRST
        ALTER TABLE T ADD COLUMN z String AFTER nope
        ALTER TABLE T ADD COLUMN d2 DEFAULT v + 1
        ALTER TABLE T ADD COLUMN bad UInt8 DEFAULT nope
        INSERT INTO T (k, v) VALUES (3, 7)
        SELECT * FROM T ORDER BY k
        SELECT k FROM T WHERE w > 100 ORDER BY k
        SELECT w, count() FROM T GROUP BY w ORDER BY w
        OPTIMIZE TABLE T FINAL
        SELECT * FROM T ORDER BY k
    """,
    "named tuples": """
        CREATE TABLE T (k UInt8, x Tuple(a UInt8, b String), y Array(Tuple(a UInt8, b String))) ENGINE = MergeTree ORDER BY k
        INSERT INTO T VALUES (1, (1, 'one'), [(1, 'one')])
        ALTER TABLE T MODIFY COLUMN x Tuple(c UInt8, d String)
        ALTER TABLE T MODIFY COLUMN y Array(Tuple(c UInt8, d String))
        SELECT * FROM T
        ALTER TABLE T MODIFY COLUMN x Tuple(d String, c UInt16)
        SELECT * FROM T
    """,
    "defaults": """
        CREATE TABLE T (k UInt32, v Int64) ENGINE = MergeTree ORDER BY k
        INSERT INTO T VALUES (1, 10)
        ALTER TABLE T ADD COLUMN w UInt64 DEFAULT v * 3, ADD COLUMN x Array(String) DEFAULT ['a', toString(w)]
        SELECT * FROM T
        ALTER TABLE T MODIFY COLUMN w DEFAULT v * 4
        SELECT * FROM T
        ALTER TABLE T MATERIALIZE COLUMN w
        ALTER TABLE T MODIFY COLUMN w DEFAULT v * 5
        SELECT * FROM T
        INSERT INTO T (k, v) VALUES (2, 1)
        SELECT k, w FROM T ORDER BY k
        ALTER TABLE T MODIFY COLUMN w REMOVE DEFAULT
        ALTER TABLE T MODIFY COLUMN w REMOVE DEFAULT
        INSERT INTO T (k, v) VALUES (3, 1)
        SELECT k, w FROM T ORDER BY k
        ALTER TABLE T MATERIALIZE COLUMN v
        ALTER TABLE T MATERIALIZE COLUMN nope
        ALTER TABLE T MATERIALIZE COLUMN k
    """,
    "drop": """
        CREATE TABLE T (k UInt32, v Int64, n Nullable(Int32), d Date) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY k
        INSERT INTO T VALUES (1, 10, NULL, '2024-01-01')
        ALTER TABLE T ADD COLUMN x UInt32 DEFAULT v + 1, ADD COLUMN y UInt32 MATERIALIZED x + 1, ADD COLUMN z UInt32 ALIAS y + 1
        SELECT *, y, z FROM T
        ALTER TABLE T DROP COLUMN x
        ALTER TABLE T DROP COLUMN k
        ALTER TABLE T DROP COLUMN d
        ALTER TABLE T DROP COLUMN nope
        ALTER TABLE T DROP COLUMN IF EXISTS nope
        ALTER TABLE T DROP COLUMN z, DROP COLUMN y, DROP COLUMN x
        SELECT * FROM T
        ALTER TABLE T DROP COLUMN v, ADD COLUMN v String
        SELECT * FROM T
        INSERT INTO T VALUES (2, 5, '2024-01-02', 'five')
        SELECT * FROM T ORDER BY k
        OPTIMIZE TABLE T FINAL
        SELECT * FROM T ORDER BY k
        SELECT k FROM T WHERE v = 'five'
        SELECT k FROM T WHERE v = ''
    """,
    "rename": """
        CREATE TABLE T (k UInt32, v Int64, e Int64 DEFAULT v + 1, CONSTRAINT pos CHECK v > 0) ENGINE = MergeTree ORDER BY k
        INSERT INTO T (k, v) VALUES (1, 10), (2, 20)
        ALTER TABLE T RENAME COLUMN v TO w
        SELECT * FROM T ORDER BY k
        SELECT k FROM T WHERE w = 10
        INSERT INTO T (k, w) VALUES (3, -1)
        INSERT INTO T (k, w) VALUES (3, 30)
        SELECT * FROM T ORDER BY k
        ALTER TABLE T RENAME COLUMN w TO e
        ALTER TABLE T RENAME COLUMN k TO kk
        ALTER TABLE T RENAME COLUMN nope TO v2
        ALTER TABLE T RENAME COLUMN IF EXISTS nope TO v2
        ALTER TABLE T RENAME COLUMN w TO x, RENAME COLUMN x TO y
        ALTER TABLE T RENAME COLUMN e TO p, ADD COLUMN e String
        SELECT * FROM T ORDER BY k
        SELECT k FROM T WHERE p = 11
        SELECT count() FROM T WHERE e = ''
        OPTIMIZE TABLE T FINAL
        SELECT * FROM T ORDER BY k
    """,
    "types": """
        CREATE TABLE T (k UInt32, v Int64, n Nullable(Int32), s String, t DateTime, f Float64) ENGINE = MergeTree ORDER BY k
        INSERT INTO T VALUES (1, 10, NULL, '12', '2024-01-01 01:02:03', 1.5), (2, 300, 5, '7', '2024-01-02 00:00:00', -2.5)
        ALTER TABLE T MODIFY COLUMN v Int8
        SELECT v FROM T ORDER BY k
        SELECT k FROM T WHERE v = 44
        ALTER TABLE T MODIFY COLUMN s UInt16
        SELECT s + 1 FROM T ORDER BY k
        SELECT k FROM T WHERE s < 10
        ALTER TABLE T MODIFY COLUMN n Int32
        ALTER TABLE T MODIFY COLUMN n Int32 DEFAULT 7
        SELECT n FROM T ORDER BY k
        SELECT k FROM T WHERE n = 7
        ALTER TABLE T ALTER COLUMN n TYPE Nullable(String)
        SELECT n FROM T ORDER BY k
        ALTER TABLE T MODIFY COLUMN t Date
        SELECT t FROM T ORDER BY k
        ALTER TABLE T MODIFY COLUMN t DateTime64(3)
        SELECT t FROM T ORDER BY k
        SELECT k FROM T WHERE t > '2024-01-01 12:00:00'
        ALTER TABLE T MODIFY COLUMN f Int32
        SELECT f FROM T ORDER BY k
        ALTER TABLE T MODIFY COLUMN f String FIRST
        SELECT * FROM T ORDER BY k
        ALTER TABLE T MODIFY COLUMN k UInt64
        ALTER TABLE T MODIFY COLUMN nope UInt8
        ALTER TABLE T MODIFY COLUMN IF EXISTS nope UInt8
        INSERT INTO T (k, v, f) VALUES (3, 1, 'q')
        OPTIMIZE TABLE T FINAL
        SELECT * FROM T ORDER BY k
    """,
    "kinds": """
        CREATE TABLE T (k UInt32, e String EPHEMERAL, e2 String EPHEMERAL 'abc', a String DEFAULT upper(e), m UInt32 MATERIALIZED k * 2, al UInt32 ALIAS m + 1) ENGINE = MergeTree ORDER BY k
        INSERT INTO T (k, e) VALUES (1, 'x')
        INSERT INTO T VALUES (2, 'x')
        INSERT INTO T (k, m) VALUES (1, 2)
        SELECT * FROM T ORDER BY k
        SELECT k, a, m, al FROM T WHERE al = 3 GROUP BY ALL
        SELECT al, sum(al) FROM T GROUP BY al ORDER BY al
        ALTER TABLE T MODIFY COLUMN m UInt32 MATERIALIZED k * 3
        SELECT k, m FROM T ORDER BY k
        ALTER TABLE T MATERIALIZE COLUMN m
        SELECT k, m FROM T ORDER BY k
        ALTER TABLE T DROP COLUMN e
        ALTER TABLE T DROP COLUMN m
        ALTER TABLE T MODIFY COLUMN m REMOVE MATERIALIZED
        SELECT * FROM T ORDER BY k
        ALTER TABLE T MODIFY COLUMN al REMOVE ALIAS
        SELECT * FROM T ORDER BY k
        ALTER TABLE T ADD COLUMN y String DEFAULT concat(e2, '!')
        INSERT INTO T (k, e2) VALUES (5, 'q')
        SELECT k, y FROM T ORDER BY k
    """,
    "bad columns": """
        CREATE TABLE T (k UInt32, a UInt8 DEFAULT nope) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a UInt8 DEFAULT sum(k)) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a UInt8 DEFAULT b, b UInt8 DEFAULT a) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a UInt8 DEFAULT (SELECT 1)) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a UInt32 DEFAULT a + 1) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a Array(Nullable(Array(UInt8)))) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a DateTime('No/Zone')) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a Nullable(Nullable(UInt8))) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a LowCardinality(Array(String))) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a LowCardinality(DateTime64(3))) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a Map(Nullable(String), UInt8)) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a Nullable(Map(String, UInt8))) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a Nullable(LowCardinality(String))) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32, a Nothing) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32 ALIAS 1, a UInt32) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (k UInt32 EPHEMERAL, a UInt32) ENGINE = MergeTree ORDER BY k
        CREATE TABLE T (a UInt32 ALIAS 1) ENGINE = MergeTree ORDER BY tuple()
        CREATE TABLE T (a UInt32 MATERIALIZED now()) ENGINE = MergeTree ORDER BY tuple()
        CREATE TABLE T (k UInt32, a UInt8 DEFAULT 200) ENGINE = MergeTree ORDER BY k
        INSERT INTO T (k) VALUES (1)
        SELECT * FROM T
    """,
    "constraints": """
        CREATE TABLE T (k UInt32, v Int64, CONSTRAINT pos CHECK v > 0) ENGINE = MergeTree ORDER BY k
        INSERT INTO T VALUES (1, 1), (2, -5), (3, 4)
        INSERT INTO T VALUES (1, 1)
        SELECT * FROM T
        ALTER TABLE T ADD CONSTRAINT pos CHECK v < 100
        ALTER TABLE T ADD CONSTRAINT small CHECK k < 100
        INSERT INTO T VALUES (100, 1)
        ALTER TABLE T DROP CONSTRAINT small
        INSERT INTO T VALUES (100, 1)
        ALTER TABLE T DROP CONSTRAINT nope
        ALTER TABLE T DROP CONSTRAINT IF EXISTS nope
        ALTER TABLE T ADD CONSTRAINT bad CHECK nope > 1
        ALTER TABLE T ADD CONSTRAINT nul CHECK toNullable(v) > 1
        INSERT INTO T VALUES (4, 1)
        ALTER TABLE T DROP COLUMN v
        SELECT * FROM T ORDER BY k
    """,
    "updates": """
        CREATE TABLE T (k UInt32, v Int64, s String, m Int64 MATERIALIZED v * 2, al Int64 ALIAS v + 1, w Int64 DEFAULT v + 100) ENGINE = MergeTree PARTITION BY k % 2 ORDER BY k
        INSERT INTO T (k, v, s) VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')
        ALTER TABLE T UPDATE v = v + 10 WHERE k = 2
        SELECT k, v, s, m, al, w FROM T ORDER BY k
        ALTER TABLE T UPDATE v = v + 10, s = concat(s, toString(v)) IN PARTITION 1 WHERE 1
        SELECT k, v, s, m, al, w FROM T ORDER BY k
        ALTER TABLE T UPDATE k = 5 WHERE 1
        ALTER TABLE T UPDATE nope = 5 WHERE 1
        ALTER TABLE T UPDATE m = 5 WHERE 1
        ALTER TABLE T UPDATE al = 5 WHERE 1
        ALTER TABLE T UPDATE v = 5, v = 6 WHERE 1
        ALTER TABLE T UPDATE v = NULL WHERE k = 1
        ALTER TABLE T UPDATE v = 300 WHERE nope = 1
        ALTER TABLE T UPDATE v = (SELECT 7) WHERE k = 3
        ALTER TABLE T UPDATE v = 8 WHERE k IN (SELECT 3), DELETE WHERE k = 1
        SELECT k, v, s, m, al, w FROM T ORDER BY k
        ALTER TABLE T UPDATE v = CAST(1.7, 'Int64'), s = 'q' WHERE al > 0
        ALTER TABLE T ADD COLUMN nu Int32, UPDATE nu = 5 WHERE 1
        SELECT * FROM T ORDER BY k
        ALTER TABLE T CLEAR COLUMN nu IN PARTITION 0
        SELECT * FROM T ORDER BY k
        ALTER TABLE T CLEAR COLUMN k
        ALTER TABLE T CLEAR COLUMN nope
        ALTER TABLE T CLEAR COLUMN IF EXISTS nope
        ALTER TABLE T DELETE IN PARTITION 0 WHERE v = 1
        SELECT * FROM T ORDER BY k
    """,
    "duplicates": """
        CREATE TABLE T (k UInt32, v Int64, s String, m Int64 MATERIALIZED v * 2) ENGINE = MergeTree PARTITION BY k % 2 ORDER BY k
        INSERT INTO T VALUES (1, 1, 'a'), (1, 1, 'a'), (1, 2, 'a'), (2, 1, 'a')
        INSERT INTO T VALUES (1, 1, 'a'), (1, 1, 'b'), (2, 1, 'a')
        OPTIMIZE TABLE T FINAL DEDUPLICATE
        SELECT *, m FROM T ORDER BY k, v, s
        OPTIMIZE TABLE T FINAL DEDUPLICATE BY v, s
        OPTIMIZE TABLE T FINAL DEDUPLICATE BY k, nope
        OPTIMIZE TABLE T FINAL DEDUPLICATE BY * EXCEPT (v)
        SELECT count() FROM T
        OPTIMIZE TABLE T FINAL DEDUPLICATE BY k
        SELECT k FROM T ORDER BY k
    """,
    "keys": """
        CREATE TABLE T (a UInt32, b UInt32, c UInt32, e UInt32) ENGINE = MergeTree PRIMARY KEY a ORDER BY (a, b, c)
        INSERT INTO T VALUES (1, 2, 3, 4), (1, 1, 5, 6)
        ALTER TABLE T MODIFY ORDER BY (a, c, b)
        ALTER TABLE T MODIFY ORDER BY b
        ALTER TABLE T MODIFY ORDER BY tuple()
        ALTER TABLE T MODIFY ORDER BY (a, b, e)
        ALTER TABLE T ADD COLUMN n UInt32 DEFAULT 5, MODIFY ORDER BY (a, b, c, n)
        ALTER TABLE T ADD COLUMN n UInt32, MODIFY ORDER BY (a, b, n % 3)
        INSERT INTO T VALUES (1, 1, 1, 1, 8), (1, 1, 1, 1, 7)
        SELECT * FROM T ORDER BY a, b, c, e, n
        OPTIMIZE TABLE T FINAL
        SELECT * FROM T WHERE n = 7
        ALTER TABLE T MODIFY ORDER BY a
        ALTER TABLE T DROP COLUMN n, DROP COLUMN b
        SELECT * FROM T ORDER BY a, c, e
    """,
    "settings": """
        CREATE TABLE T (k UInt32) ENGINE = MergeTree ORDER BY k
        ALTER TABLE T MODIFY SETTING index_granularity = 100
        ALTER TABLE T MODIFY SETTING parts_to_throw_insert = 100
        ALTER TABLE T MODIFY SETTING nope = 100
        ALTER TABLE T RESET SETTING parts_to_throw_insert
        ALTER TABLE T RESET SETTING nope
        ALTER TABLE T COMMENT COLUMN nope 'x'
        ALTER TABLE T MODIFY COLUMN k COMMENT 'c', MODIFY COLUMN k CODEC(ZSTD(3))
        ALTER TABLE T MODIFY COLUMN k REMOVE COMMENT, MODIFY COLUMN k REMOVE CODEC
        ALTER TABLE T MODIFY COLUMN k REMOVE COMMENT
        ALTER TABLE T MODIFY COLUMN k REMOVE TTL
    """,
    "engines": """
        CREATE TABLE T (k UInt32, v Int64, ver UInt32) ENGINE = ReplacingMergeTree(ver) ORDER BY k
        INSERT INTO T VALUES (1, 1, 1)
        ALTER TABLE T DROP COLUMN ver
        ALTER TABLE T RENAME COLUMN ver TO x
        ALTER TABLE T MODIFY COLUMN ver String
        ALTER TABLE T UPDATE ver = 5 WHERE 1
        ALTER TABLE T ADD COLUMN x UInt8 DEFAULT v + 1
        INSERT INTO T (k, v, ver) VALUES (1, 2, 2), (2, 5, 1)
        SELECT * FROM T FINAL ORDER BY k
        SELECT * FROM T FINAL WHERE x = 3
        OPTIMIZE TABLE T FINAL
        SELECT * FROM T ORDER BY k
    """,
}


pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("schema")]


def ours(connection: Connection, statement: str) -> object:
    """Return the rows as printed, or the error's name."""
    try:
        result = connection.session.execute(statement)
        if not result.has_columns:
            return []
        columns = [
            display(column.combine_chunks(), data_type)
            for column, data_type in zip(result.read_all().columns, result.types, strict=True)
        ]
    except Error as error:
        return error.name
    return list(zip(*columns, strict=True))


def theirs(oracle: Oracle, statement: str) -> object:
    try:
        return oracle.query(statement).rows
    except OracleError as error:
        return error.name


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_clickhouse(name: str, oracle: Oracle, connection: Connection) -> None:
    table = f"alter_{next(_numbers)}"
    for line in SCRIPTS[name].strip().splitlines():
        statement = line.strip().replace(" T ", f" {table} ").removesuffix(" T")
        statement = f"{statement} ".replace(" T ", f" {table} ").strip()
        assert ours(connection, statement) == theirs(oracle, statement), statement
