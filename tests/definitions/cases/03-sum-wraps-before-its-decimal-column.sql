--# The sum of a block wraps at 64 bits, merges of the target do not.
CREATE TABLE s (k UInt8, x Int64) ENGINE=MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, v Decimal(38,0)) ENGINE=SummingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(x) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1,9223372036854775807);
INSERT INTO s VALUES (1,9223372036854775807);
