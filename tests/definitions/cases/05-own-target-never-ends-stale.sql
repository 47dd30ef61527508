--# Item 5: a view that reads its own target is stale by its own replay for ever.
--# mend does not end: v2 is stale: Stale by DIMENSION CHANGE.; mend: SYSTEM REPLAY VIEW default.v2 STALE
CREATE TABLE s (g UInt8) ENGINE = ReplacingMergeTree ORDER BY g;
INSERT INTO s (g) VALUES (2);
CREATE TABLE t2 (g UInt8) ENGINE = SummingMergeTree ORDER BY g;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g FROM s WHERE g NOT IN (SELECT g FROM t2) GROUP BY g;
INSERT INTO s (g) VALUES (0);
SYSTEM BACKFILL VIEW default.v2;
