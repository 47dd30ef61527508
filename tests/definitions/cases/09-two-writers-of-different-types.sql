--# (The expected value was wrong.) Two views of types without a common one write one target.
CREATE TABLE s (g UInt8, d DateTime('UTC')) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t1 (k1 UInt8) ENGINE = MergeTree ORDER BY k1;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT s.g AS k1 FROM s;
CREATE MATERIALIZED VIEW v4 TO t1 AS SELECT toMonday(d) AS k1 FROM s;
INSERT INTO s (g, d) VALUES (1, '1970-01-08 00:00:00');
