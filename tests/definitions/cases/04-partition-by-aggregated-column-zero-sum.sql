--# PARTITION BY an aggregated column: 300 and -300 lie in two partitions and never cancel.
--# untrue [row]: v1: ['covered']: [row] the only row: (300,) instead of None
CREATE TABLE s (g UInt8, y Int32) ENGINE = MergeTree ORDER BY g;
INSERT INTO s (g, y) VALUES (2, 300);
CREATE TABLE t1 (m0 Int64) ENGINE = SummingMergeTree PARTITION BY m0 % 2 ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT sumIf(y, g > 0) AS m0 FROM s;
SYSTEM BACKFILL VIEW v1;
INSERT INTO s (g, y) VALUES (1, -300);
