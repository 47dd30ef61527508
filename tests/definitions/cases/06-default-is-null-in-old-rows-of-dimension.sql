--# The same of a dimension.
CREATE TABLE s (k String) ENGINE = MergeTree ORDER BY k;
CREATE TABLE d (k Nullable(String)) ENGINE = MergeTree ORDER BY k SETTINGS allow_nullable_key = 1;
INSERT INTO d (k) VALUES (NULL);
ALTER TABLE d ADD COLUMN n1 Int64 MATERIALIZED k;
CREATE TABLE tw1 (m SimpleAggregateFunction(sum, Int64)) ENGINE = AggregatingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW w1 TO tw1 AS SELECT sum(j.n1) AS m FROM s AS s JOIN d AS j ON s.k = j.k;
INSERT INTO s (k) VALUES ('a');
