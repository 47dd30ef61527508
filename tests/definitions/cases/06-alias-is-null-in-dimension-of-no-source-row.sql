--# (The expected value was wrong.) An ALIAS of a dimension cannot be read in one row, and the source has no
--# row that would need it; with one, its INSERT fails.
CREATE TABLE s (k UInt8, g UInt8) ENGINE = MergeTree ORDER BY k;
CREATE TABLE d (k Nullable(UInt8)) ENGINE = MergeTree ORDER BY k SETTINGS allow_nullable_key = 1;
INSERT INTO d (k) VALUES (NULL);
ALTER TABLE d ADD COLUMN n1 String ALIAS concat(k, 'm');
CREATE TABLE tw1 (g UInt8, m SimpleAggregateFunction(max, String)) ENGINE = AggregatingMergeTree ORDER BY g;
CREATE MATERIALIZED VIEW w1 TO tw1 AS SELECT s.g AS g, max(j.n1) AS m FROM s AS s JOIN d AS j ON s.k = j.k GROUP BY s.g;
INSERT INTO s (k, g) VALUES (1, 1);
