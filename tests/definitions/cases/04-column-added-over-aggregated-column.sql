--# ALTER ADD COLUMN MATERIALIZED over an aggregated column of the target.
--# untrue [n1]: v3: ['covered']: [n1] (0,).n1: '-1m' instead of '-2m'
CREATE TABLE s (g UInt8, y Float64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY (g) SETTINGS allow_nullable_key = 1;
CREATE TABLE t3 (g Int8, m1 Float64, m2 Float64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY (g);
CREATE MATERIALIZED VIEW v3 TO t3 AS SELECT g, sum(y) AS m1, sum(y) AS m2 FROM s GROUP BY g;
INSERT INTO s (g, y) VALUES (0, -1);
ALTER TABLE t3 ADD COLUMN n1 String MATERIALIZED concat(toString(m1), 'm');
ALTER TABLE s ADD COLUMN n3 String DEFAULT concat(toString(g), 'm');
INSERT INTO s (g, y, n3) VALUES (0, -1, 'given');
