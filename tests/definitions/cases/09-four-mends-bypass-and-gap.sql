--# A bypassed view with a gap takes four statements of mend (ADOPT refused, DISCARD BYPASS, BACKFILL, RECONCILE), not three.
--# mend does not end: v1 is covered: ; mend: SYSTEM RECONCILE VIEW default.v1
CREATE TABLE s (y Float32) ENGINE = MergeTree ORDER BY tuple();
INSERT INTO s (y) VALUES (0);
CREATE TABLE t1 (m0 Float32) ENGINE = MergeTree ORDER BY m0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT y AS m0 FROM s;
INSERT INTO s (y) VALUES (1);
ALTER TABLE t1 DETACH PARTITION ALL;
ALTER TABLE t1 ATTACH PARTITION ALL;
