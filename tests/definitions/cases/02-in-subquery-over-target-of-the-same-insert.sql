--# IN over a table that another view of the same INSERT writes.
--# untrue [rows]: v2: ['covered']: [rows] 0 rows instead of 2: [] instead of [(1,), (2,)]
CREATE TABLE s (k String, g UInt8, x UInt8, y UInt16) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t1 (k0 UInt8) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT g AS k0 FROM s;
CREATE TABLE t2 (k0 UInt8) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g AS k0 FROM s WHERE g IN (SELECT k0 FROM t1);
-- arrow s {'k': ['c', 'ab'], 'g': [2, 1], 'x': [0, 200], 'y': [300, 0]};
