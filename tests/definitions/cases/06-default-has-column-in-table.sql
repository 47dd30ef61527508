--# The same in a DEFAULT.
CREATE TABLE d (k UInt32, x Int64) ENGINE=MergeTree ORDER BY k;
CREATE TABLE s (k UInt32, x Int64, h UInt8 DEFAULT hasColumnInTable('default','d','z')) ENGINE=MergeTree ORDER BY k;
CREATE TABLE t (k UInt32, v Int64) ENGINE=MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, x + h AS v FROM s;
INSERT INTO s (k,x) VALUES (1,1);
ALTER TABLE d ADD COLUMN z Int64;
INSERT INTO s (k,x) VALUES (1,1);
