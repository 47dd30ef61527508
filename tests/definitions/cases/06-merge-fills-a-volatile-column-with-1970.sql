--# A merge that writes out a column which older parts lack evaluates now(), serverUUID(), queryID() outside of any statement: 1970-01-01, zeros, ''.
--# untrue [values]: v1: ['covered']: [values] (1, 1) instead of (1, 10)
CREATE TABLE s (y UInt8) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t1 (m0 Int64) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT y AS m0 FROM s;
INSERT INTO s (y) VALUES (1);
ALTER TABLE t1 ADD COLUMN n1 UInt64 MATERIALIZED length(toString(toUnixTimestamp(now())));
OPTIMIZE TABLE t1 FINAL;
