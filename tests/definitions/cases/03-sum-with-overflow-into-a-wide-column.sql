--# The sum of a block wraps at 8 bits, merges of the target at 64.
CREATE TABLE s (k UInt8, x Int8) ENGINE=MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, v SimpleAggregateFunction(sumWithOverflow, Int64)) ENGINE=AggregatingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, sumWithOverflow(x) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1,100);
INSERT INTO s VALUES (1,100);
