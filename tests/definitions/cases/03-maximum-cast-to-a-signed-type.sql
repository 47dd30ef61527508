--# The cast of the maximum of all rows is not the maximum of cast ones: 2^63 is less than 5 as an Int64.
CREATE TABLE s (k UInt8, u UInt64) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, m SimpleAggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, toInt64(max(u)) AS m FROM s GROUP BY k;
INSERT INTO s VALUES (1, 5);
INSERT INTO s VALUES (1, 9223372036854775900);
SYSTEM RECONCILE VIEW v;
