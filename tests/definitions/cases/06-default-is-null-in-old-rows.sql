--# ALTER adds a column whose DEFAULT is NULL in rows that are there: nothing could read them.
CREATE TABLE s (k Nullable(String)) ENGINE = MergeTree ORDER BY k SETTINGS allow_nullable_key = 1;
CREATE TABLE t2 (k Nullable(String)) ENGINE = SummingMergeTree ORDER BY k SETTINGS allow_nullable_key = 1;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT k FROM s GROUP BY k;
INSERT INTO s (k) VALUES (NULL);
ALTER TABLE t2 ADD COLUMN n1 String DEFAULT concat(k, 'm');
