--# Narrow target column wraps.
--# untrue [m0]: v1: ['covered']: [m0] the only row.m0: 44 instead of 300
CREATE TABLE s (y UInt16) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t1 (m0 SimpleAggregateFunction(max, UInt8)) ENGINE = AggregatingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT max(y) AS m0 FROM s;
INSERT INTO s (y) VALUES (300);
