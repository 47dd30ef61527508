--# A replay of v1 gives the rows that were there, so v2 stays covered; deleting its rows left it covered.
--# seed 30011621
CREATE TABLE s (k String, b String) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t1 (k0 UInt64, b String) ENGINE = MergeTree ORDER BY b;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT length(k) AS k0, b FROM s;
CREATE TABLE t2 (m1 UInt8) ENGINE = MergeTree ORDER BY m1;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT 1 AS m1 FROM t1;
INSERT INTO s (k, b) VALUES ('ab', 'x');
SYSTEM REPLAY VIEW v1;
ALTER TABLE t2 DETACH PARTITION ALL;
