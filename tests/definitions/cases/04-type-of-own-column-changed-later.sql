--# A column that the target fills itself gets another type: 3 of before is 3.5 recomputed.
CREATE TABLE r (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t2 (k0 String, own Int64 DEFAULT toInt64(3.5)) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g AS k0 FROM r;
INSERT INTO r (g) VALUES (2);
ALTER TABLE t2 MODIFY COLUMN own Float64 DEFAULT 3.5;
ALTER TABLE t2 MODIFY COLUMN own String;
