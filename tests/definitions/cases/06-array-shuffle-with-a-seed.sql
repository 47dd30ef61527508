--# arrayShuffle draws from row to row, with a seed too: another cut into blocks gives other orders.
CREATE TABLE s (k UInt32, p UInt8) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t (k UInt32, g UInt32) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, arrayShuffle([k, p], 42)[1] AS g FROM s;
INSERT INTO s VALUES (4, 1), (5, 2), (6, 3), (7, 1), (8, 2), (9, 3), (10, 1);
INSERT INTO s VALUES (11, 1), (12, 2), (13, 3), (14, 1), (15, 2), (16, 3), (17, 1);
OPTIMIZE TABLE s FINAL;
