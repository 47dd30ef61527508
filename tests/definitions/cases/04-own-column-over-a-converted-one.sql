--# (The expected value was wrong.) A MATERIALIZED column is computed of what the target stores.
CREATE TABLE s (k Int32, d Date) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t2 (k0 DateTime('UTC'), own Int64 MATERIALIZED length(ifNull(toString(k0), ''))) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT d AS k0 FROM s;
INSERT INTO s (k, d) VALUES (300, '2024-02-01');
