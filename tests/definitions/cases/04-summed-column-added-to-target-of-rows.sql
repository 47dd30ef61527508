--# A DEFAULT that ALTER adds to a summing target of rows: a part gives it once for each row that
--# merges left, a recomputation once for each row of the source.
CREATE TABLE s (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t (k UInt16, n Int64) ENGINE = SummingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT g AS k, 1 AS n FROM s;
INSERT INTO s (g) VALUES (1), (1);
INSERT INTO s (g) VALUES (1);
ALTER TABLE t ADD COLUMN own Int64 DEFAULT 5;
