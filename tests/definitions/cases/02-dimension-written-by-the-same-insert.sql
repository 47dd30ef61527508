--# A view lower in the chain joins the table that is inserted into; the INSERT's own rows joined the old state; covered.
--# untrue [rows]: v2: ['covered']: [rows] 1 rows instead of 0: [(0,)] instead of []
CREATE TABLE s (k Date, x UInt8, sg Int8) ENGINE = CollapsingMergeTree(sg) ORDER BY k;
CREATE TABLE t1 (k0 Date) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT k AS k0 FROM s;
CREATE TABLE t2 (m1 UInt8) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT j.x AS m1 FROM t1 AS s LEFT JOIN s AS j ON s.k0 = j.k WHERE s.k0 NOT IN (SELECT k FROM s);
INSERT INTO s (k, x, sg) VALUES ('2024-02-01', 1, -1);
