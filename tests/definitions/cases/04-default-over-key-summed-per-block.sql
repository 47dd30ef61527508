--# Own column DEFAULT in a summing target depends on the number of INSERTs.
--# untrue [own]: v1: ['covered']: [own] (0,).own: 2 instead of 1
CREATE TABLE s (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t1 (g UInt8, own Int64 DEFAULT g + 1) ENGINE = SummingMergeTree ORDER BY g;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT g FROM s GROUP BY g;
INSERT INTO s (g) VALUES (0);
INSERT INTO s (g) VALUES (0);
