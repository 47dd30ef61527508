--# SimpleAggregateFunction(min) MATERIALIZED m1 + 1 over an aggregated column.
--# untrue [own]: v1: ['covered']: [own] ('',).own: 2 instead of 3
CREATE TABLE s (k String, y Nullable(Int32)) ENGINE = MergeTree ORDER BY (k);
CREATE TABLE d (k String) ENGINE = MergeTree PARTITION BY k ORDER BY (k);
INSERT INTO s (k, y) SETTINGS max_insert_block_size = 1 VALUES ('', NULL);
CREATE TABLE t1 (k0 String, m0 SimpleAggregateFunction(sum, Nullable(Int64)), m1 SimpleAggregateFunction(sum, UInt64), own SimpleAggregateFunction(min, Int64) MATERIALIZED m1 + 1) ENGINE = AggregatingMergeTree ORDER BY (k0);
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT ifNull(toString(s.k), '-') AS k0, sum(s.y) AS m0, count() AS m1 FROM (SELECT * FROM s WHERE toString(k) != '2') AS s SEMI LEFT JOIN (SELECT DISTINCT * FROM d) AS j ON s.k = j.k GROUP BY ifNull(toString(s.k), '-');
INSERT INTO s (k, y) VALUES ('', 300);
INSERT INTO d (k) VALUES ('');
SYSTEM REPLAY VIEW default.v1 STALE;
SYSTEM BACKFILL VIEW default.v1;
