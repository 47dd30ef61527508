"""Temporary tables, each statement beside ClickHouse, in one session of each."""

from __future__ import annotations

import pytest

import olapdb
from tests.harness.oracle import Oracle
from tests.oracle.test_statements import ours, theirs

pytestmark = pytest.mark.feature("schema", "introspection")

SCRIPT = """
CREATE TEMPORARY TABLE t (a UInt32, b String DEFAULT 'x')
INSERT INTO t (a) VALUES (1), (2)
SELECT * FROM t ORDER BY a
SELECT database, name, engine, is_temporary, create_table_query, engine_full, total_rows FROM system.tables WHERE is_temporary
SELECT database, table, name, type, default_kind FROM system.columns WHERE table = 't'
SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_name = 't'
SHOW TEMPORARY TABLES
SHOW TABLES
EXISTS TABLE t
EXISTS TEMPORARY TABLE t
EXISTS t
DESCRIBE TABLE t
SELECT * FROM default.t
CREATE TEMPORARY TABLE t (a Int8)
CREATE TEMPORARY TABLE IF NOT EXISTS t (z Int8)
CREATE OR REPLACE TEMPORARY TABLE t (a Int8)
SELECT * FROM t
CREATE TEMPORARY TABLE default.q (a Int8)
ALTER TABLE t ADD COLUMN zz Int8
INSERT INTO t VALUES (1, 2)
SELECT * FROM t
TRUNCATE TABLE t
SELECT count() FROM t
TRUNCATE TEMPORARY TABLE t
TRUNCATE TEMPORARY TABLE missing
DROP TEMPORARY TABLE t
DROP TEMPORARY TABLE t
DROP TEMPORARY TABLE IF EXISTS t
CREATE TEMPORARY TABLE n AS SELECT number AS n FROM numbers(3)
SELECT * FROM n ORDER BY n
CREATE TEMPORARY TABLE e EMPTY AS SELECT 1 AS a
SELECT count() FROM e
CREATE TABLE p (x Int8) ENGINE = MergeTree ORDER BY x
INSERT INTO p VALUES (1), (2)
CREATE TEMPORARY TABLE like_p AS p
SELECT engine FROM system.tables WHERE name = 'like_p'
CREATE TEMPORARY TABLE sorted (a Int8) ORDER BY a
CREATE TEMPORARY TABLE s (x Int8)
INSERT INTO s VALUES (1)
SELECT count() FROM p WHERE x IN (SELECT x FROM s)
SELECT count() FROM p WHERE x IN s
INSERT INTO p SELECT x + 10 FROM s
INSERT INTO s SELECT x FROM p
SELECT * FROM s ORDER BY x
SELECT p.x, r.x FROM p JOIN s AS r ON p.x = r.x ORDER BY p.x
WITH s AS (SELECT 42 AS x) SELECT * FROM s
CREATE TEMPORARY TABLE p (y String)
SELECT * FROM p
INSERT INTO p VALUES ('a')
SELECT y FROM p
SELECT count() FROM t.p
TRUNCATE TABLE p
SELECT count() FROM p
SELECT count() FROM t.p
DROP TABLE p
SELECT count() FROM p
DROP TABLE s, p
EXISTS TEMPORARY TABLE s
EXISTS TABLE p
CREATE TEMPORARY TABLE m (a UInt32, d Date) ENGINE = MergeTree ORDER BY a PARTITION BY toYYYYMM(d)
INSERT INTO m VALUES (1, '2024-01-01'), (2, '2024-02-01')
ALTER TABLE m ADD COLUMN e UInt8 DEFAULT 3
ALTER TABLE m DELETE WHERE a = 1 SETTINGS mutations_sync = 2
SELECT * FROM m ORDER BY a
OPTIMIZE TABLE m FINAL
ALTER TABLE m DROP PARTITION 202402
SELECT count() FROM m
SHOW FULL TEMPORARY TABLES
SHOW TEMPORARY TABLES LIKE 'm%'
RENAME TABLE m TO m2
EXCHANGE TABLES m AND n
CREATE TEMPORARY TABLE r (a UInt32) ENGINE = ReplicatedMergeTree ORDER BY a
CREATE TEMPORARY TABLE k (a Nullable(Int8), b Int64 MATERIALIZED a + 1, c Int8 ALIAS 3, CONSTRAINT q CHECK a > 0)
INSERT INTO k VALUES (0)
INSERT INTO k VALUES (4)
SELECT *, b, c FROM k
SET readonly = 2
CREATE TEMPORARY TABLE ro (x Int8)
INSERT INTO ro VALUES (1)
SELECT * FROM ro
DROP TEMPORARY TABLE ro
CREATE TABLE refused (x Int8) ENGINE = Memory
"""


def test_as_clickhouse() -> None:
    with Oracle() as oracle, olapdb.connect() as connection:
        connection.execute("CREATE DATABASE t")
        connection.execute("USE t")
        for statement in SCRIPT.strip().splitlines():
            assert (statement, ours(connection, statement)) == (
                statement,
                theirs(oracle, statement),
            )
