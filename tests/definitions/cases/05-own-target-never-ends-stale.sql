--# A view that reads its own target is made stale by its own replay, for ever.
--# mend does not end: v1 is stale: Stale by DIMENSION CHANGE.; mend: SYSTEM REPLAY VIEW default.v1 STALE
CREATE TABLE s (k String) ENGINE = SummingMergeTree ORDER BY k;
INSERT INTO s (k) VALUES ('b');
CREATE TABLE t1 (k String) ENGINE = SummingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT k FROM s WHERE k NOT IN (SELECT k FROM t1) GROUP BY k;
INSERT INTO s (k) VALUES ('a');
SYSTEM REPLAY VIEW v1 DISCARD BYPASS;
