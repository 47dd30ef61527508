--# Rows made before MODIFY COLUMN … DEFAULT keep the old default, a recomputation has the new one.
CREATE TABLE r (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t2 (k0 String, own Int64) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g AS k0 FROM r;
INSERT INTO r (g) VALUES (2);
ALTER TABLE t2 MODIFY COLUMN own Int64 DEFAULT 3;
