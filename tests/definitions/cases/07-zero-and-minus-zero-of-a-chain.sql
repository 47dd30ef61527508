--# A merge of t1 keeps 0 or -0 as the key of both; v2 had written them apart, and stayed covered.
CREATE TABLE s (f Float64) ENGINE = MergeTree ORDER BY f;
CREATE TABLE t1 (f Float64, n UInt64) ENGINE = SummingMergeTree ORDER BY f;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT f, count() AS n FROM s GROUP BY f;
CREATE TABLE t2 (g String, n UInt64) ENGINE = SummingMergeTree ORDER BY g;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT toString(f) AS g, sum(n) AS n FROM t1 GROUP BY g;
INSERT INTO s (f) VALUES (0);
INSERT INTO s (f) VALUES (-0.);
OPTIMIZE TABLE t1 FINAL;
-- mend;
