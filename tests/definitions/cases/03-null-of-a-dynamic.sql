--# NULL of a Dynamic became 0 in a column of the target that is not Nullable, and RECONCILE proved it.
CREATE TABLE s (k UInt8, x Dynamic) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t1 (k UInt8, x Int64) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT k, x FROM s;
INSERT INTO s VALUES (1, 1);
INSERT INTO s VALUES (2, NULL);
SYSTEM RECONCILE VIEW v1;
