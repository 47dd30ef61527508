--# As 07-sum-of-a-plain-column-of-aggregating, of a dimension read without FINAL.
CREATE TABLE s (k UInt32, v Int64) ENGINE = MergeTree ORDER BY k;
CREATE TABLE d (k UInt32, w Int64) ENGINE = AggregatingMergeTree ORDER BY k;
CREATE TABLE t (k UInt32, w Int64) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT s.k AS k, q.w AS w FROM s JOIN (SELECT k, sum(w) AS w FROM d GROUP BY k) AS q ON s.k = q.k;
INSERT INTO d VALUES (1, 5), (2, 1);
INSERT INTO d VALUES (1, 7);
INSERT INTO s VALUES (1, 1), (2, 1);
OPTIMIZE TABLE d FINAL;
