--# The sum of all rows wraps at 8 bits before it is cast, sums of the target at 64.
CREATE TABLE s (k UInt8, u Int8) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, m SimpleAggregateFunction(sumWithOverflow, Int64)) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, toInt64(sumWithOverflow(u)) AS m FROM s GROUP BY k;
INSERT INTO s VALUES (1, 100);
INSERT INTO s VALUES (1, 100);
SYSTEM RECONCILE VIEW v;
