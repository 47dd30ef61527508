--# A fraction was cut off on the way into an Enum of the target, and RECONCILE proved it: 1.25 became 'b' = 1.
CREATE TABLE s (k UInt8, x Decimal(9, 2), f Float64) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t1 (k UInt8, x Enum8('a' = 2, 'b' = 1), f Enum8('a' = 2, 'b' = 1)) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT k, x, f FROM s;
INSERT INTO s VALUES (2, 1.25, 1);
INSERT INTO s VALUES (3, 1, 1.5);
SYSTEM RECONCILE VIEW v1;
