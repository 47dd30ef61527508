--# A merge of the source takes the maximum before the cast, the view after it.
CREATE TABLE s (k UInt8, u SimpleAggregateFunction(max, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE TABLE t (k UInt8, m SimpleAggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, max(y) AS m FROM (SELECT k, toInt64(u) AS y FROM s) GROUP BY k;
INSERT INTO s VALUES (1, 5);
INSERT INTO s VALUES (1, 9223372036854775900);
SYSTEM RECONCILE VIEW v;
OPTIMIZE TABLE s FINAL;
SYSTEM RECONCILE VIEW v;
