--# -1 into UInt64.
--# untrue [m0]: v1: ['covered']: [m0] the only row.m0: 18446744073709551615 instead of -1
CREATE TABLE s (k String, x Int32) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE d (k String, w Float32) ENGINE = MergeTree ORDER BY tuple();
INSERT INTO s (k, x) VALUES ('c', -1);
CREATE TABLE t1 (m0 UInt64) ENGINE = SummingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT sum(x) AS m0 FROM s WHERE k NOT IN (SELECT k FROM d WHERE w = 1);
SYSTEM BACKFILL VIEW v1;
