--# A view that reads its own target, in a branch of UNION ALL.
--# untrue [m0]: v1: ['covered']: [m0] ('-1',).m0: 2 instead of 1; ('-1',).m1: -2 instead of -1; ('-1',).m2: -2.0 instead of -1
CREATE TABLE s (x Int32) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t1 (k0 String, m0 UInt64, m1 Int64, m2 Float64) ENGINE = SummingMergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT toString(x) AS k0, count() AS m0, sum(x) AS m1, sum(x) AS m2 FROM s WHERE toString(x) NOT IN (SELECT k0 FROM t1) GROUP BY toString(x) UNION ALL SELECT toString(x) AS k0, count() AS m0, sum(x) AS m1, sum(x) AS m2 FROM s GROUP BY toString(x);
INSERT INTO s (x) VALUES (-1);
