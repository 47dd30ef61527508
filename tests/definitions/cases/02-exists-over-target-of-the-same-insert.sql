--# EXISTS over a table that another view of the same INSERT writes.
--# untrue [rows]: v2: ['covered']: [rows] 0 rows instead of 1: [] instead of [(1,)]
CREATE TABLE s (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t1 (k0 String) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT if(ifNull(toString(g), '') = 'a', 'first', 'rest') AS k0 FROM s GROUP BY if(ifNull(toString(g), '') = 'a', 'first', 'rest');
CREATE TABLE t2 (k1 UInt8) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g AS k1 FROM s WHERE EXISTS (SELECT 1 FROM t1);
INSERT INTO s (g) VALUES (1);
