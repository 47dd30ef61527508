--# The sums of a block wrap at 64 bits, merges of the target add up 256.
CREATE TABLE s (k UInt8, x Map(String,Int64)) ENGINE=MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, v SimpleAggregateFunction(sumMap, Map(String, Int256))) ENGINE=AggregatingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, sumMap(x) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1,{'a':9223372036854775807});
INSERT INTO s VALUES (1,{'a':9223372036854775807});
