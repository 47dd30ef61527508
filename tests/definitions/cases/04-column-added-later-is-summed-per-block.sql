--# MATERIALIZED column that ALTER adds to a summing target.
--# untrue [n1]: v2: ['covered']: [n1] (1,).n1: 2 instead of 1
CREATE TABLE s (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t2 (g Int8) ENGINE = SummingMergeTree ORDER BY g;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g FROM s WHERE g IN (1, 2) GROUP BY g;
INSERT INTO s (g) SETTINGS max_insert_block_size = 2 VALUES (0), (1), (1);
ALTER TABLE t2 ADD COLUMN n1 Int64 MATERIALIZED length(toString(g));
