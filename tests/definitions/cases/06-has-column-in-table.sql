--# hasColumnInTable() was bound as a constant: an ALTER of the table changed it for later rows only.
CREATE TABLE s (k UInt8, x Int64) ENGINE=MergeTree ORDER BY k;
CREATE TABLE d (k UInt8, y Int64) ENGINE=MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, v UInt8) ENGINE=MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, hasColumnInTable('default','d','z') AS v FROM s;
INSERT INTO s VALUES (1,1);
ALTER TABLE d ADD COLUMN z Int64;
INSERT INTO s VALUES (2,1);
