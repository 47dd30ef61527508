--# The cast of the minimum of all rows is not the minimum of cast ones: -1 is the greatest UInt64.
CREATE TABLE s (k UInt8, u Int8) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, m SimpleAggregateFunction(min, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, CAST(min(u) AS UInt64) AS m FROM s GROUP BY k;
INSERT INTO s VALUES (1, 5);
INSERT INTO s VALUES (1, -1);
SYSTEM RECONCILE VIEW v;
