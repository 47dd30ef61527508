--# AggregatingMergeTree keeps one row's value of a plain column: sum over it is not the same after a merge.
--# It was taken for a column that SummingMergeTree adds up.
CREATE TABLE s (k UInt32, v Int64) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE TABLE t (k UInt32, v Int64) ENGINE = SummingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(v) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1, 5), (1, -5), (3, 1);
INSERT INTO s VALUES (1, 4), (3, 2);
OPTIMIZE TABLE s FINAL;
