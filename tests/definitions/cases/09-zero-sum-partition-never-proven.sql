--# A summing target's partition whose sums are all zero: physical rows are there, FINAL shows none, RECONCILE gives no verdict for that partition, so the view is covered for ever and mend says RECONCILE for ever.
--# mend does not end: v2 is covered: ; mend: SYSTEM RECONCILE VIEW default.v2
CREATE TABLE s (k UInt8, x Int8) ENGINE = SummingMergeTree ORDER BY k;
CREATE TABLE t2 (k UInt8, m0 Int64) ENGINE = SummingMergeTree PARTITION BY k ORDER BY k;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT k, sum(x) AS m0 FROM s GROUP BY k;
INSERT INTO s (k, x) VALUES (2, -1);
INSERT INTO s (k, x) VALUES (2, 1);
