--# A merge of the dimension takes the maximum before the cast, the subquery after it.
CREATE TABLE d (k UInt8, u SimpleAggregateFunction(max, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE TABLE s (k UInt8) ENGINE = MergeTree ORDER BY k;
INSERT INTO d VALUES (1, 5);
INSERT INTO d VALUES (1, 9223372036854775900);
CREATE TABLE t (k UInt8, m Int64) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, (SELECT max(y) FROM (SELECT toInt64(u) AS y FROM d)) AS m FROM s;
INSERT INTO s VALUES (1);
SYSTEM RECONCILE VIEW v;
OPTIMIZE TABLE d FINAL;
SYSTEM RECONCILE VIEW v;
