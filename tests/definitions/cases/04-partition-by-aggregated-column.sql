--# PARTITION BY an aggregated column.
--# untrue [m0]: v1: ['covered']: [m0] the only row.m0: 1 instead of 2
CREATE TABLE s (x Int32) ENGINE = SummingMergeTree ORDER BY tuple();
CREATE TABLE t1 (m0 Int64) ENGINE = SummingMergeTree PARTITION BY ifNull(m0, 0) % 2 ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT sum(x) AS m0 FROM s;
INSERT INTO s (x) VALUES (1);
INSERT INTO s (x) VALUES (1);
