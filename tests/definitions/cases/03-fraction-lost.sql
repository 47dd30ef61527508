--# A fraction is cut off silently.
--# untrue [values]: v2: ['covered']: [values] [1] instead of [1.25]
CREATE TABLE s (y Decimal(9, 2)) ENGINE = MergeTree ORDER BY tuple();
INSERT INTO s (y) VALUES (1.25);
CREATE TABLE t2 (m1 Decimal(9, 0)) ENGINE = MergeTree ORDER BY m1;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT y AS m1 FROM s;
SYSTEM BACKFILL VIEW default.v2;
