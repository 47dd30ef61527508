--# a summing target's partition whose sums are all zero: physical rows are there, FINAL shows none, RECONCILE gives no row for that partition, so the view is covered for ever and mend says RECONCILE for ever.
--# mend does not end: v4 is covered: ; mend: SYSTEM RECONCILE VIEW default.v4
CREATE TABLE s (k String, g UInt8, x UInt64, y Int64, d DateTime64(3, 'UTC')) ENGINE = MergeTree PARTITION BY g ORDER BY (k, g);
INSERT INTO s (k, g, x, y, d) VALUES ('c', 1, 0, 0, '2024-01-01 00:00:00.001'), ('', 2, 2, 1, '2024-01-01 00:00:00.001');
INSERT INTO s (k, g, x, y, d) VALUES ('c', 1, 2, -1, '2024-01-01 00:00:00.001'), ('b', 2, 2, 1, '2024-01-31 23:59:59.999');
CREATE TABLE t4 (g UInt8, m0 Int64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY (g);
CREATE MATERIALIZED VIEW v4 TO t4 AS SELECT g, sum(y) AS m0 FROM s GROUP BY g;
INSERT INTO s (k, g, x, y, d) VALUES ('c', 2, 2, -1, '2024-01-01 00:00:00.001');
INSERT INTO s (k, g, x, y, d) VALUES ('b', 2, 300, -1, '2024-01-01 00:00:00.001'), ('c', 1, 300, -1, '2024-01-31 23:59:59.999');
SYSTEM BACKFILL VIEW default.v4;
