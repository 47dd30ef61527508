--# The expected value was wrong: a number that a Date column takes counts days.
--# seed 30003406
CREATE TABLE s (k Date) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t1 (k0 Date) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT k AS k0 FROM s;
CREATE TABLE t2 (k0 Float64, k1 Date) ENGINE = MergeTree ORDER BY k1;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT intHash64(length(ifNull(toString(k0), ''))) % 3 AS k0, k0 AS k1 FROM t1;
INSERT INTO s (k) VALUES ('2024-01-01');
