--# The expected value was wrong: the text of a time, and the time that the target makes of it, are equal.
--# seed 9103148
CREATE TABLE s (d Date) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t1 (k0 Date) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT toStartOfMonth(d) AS k0 FROM s GROUP BY toStartOfMonth(d);
CREATE TABLE t3 (k0 String, k1 DateTime('UTC')) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v3 TO t3 AS SELECT upper(ifNull(toString(k0), '')) AS k0, k0 AS k1 FROM t1;
INSERT INTO s (d) VALUES ('2024-01-01');
