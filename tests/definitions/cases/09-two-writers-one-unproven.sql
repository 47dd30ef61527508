--# Mend names RECONCILE for ever.
--# mend does not end: v1 is covered: ; mend: SYSTEM RECONCILE VIEW default.v1
CREATE TABLE s (k UInt8, g UInt8, x UInt8, y UInt8) ENGINE = MergeTree ORDER BY k;
CREATE TABLE d (k UInt8) ENGINE = SummingMergeTree ORDER BY k;
CREATE TABLE t1 (m0 UInt8) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT y AS m0 FROM s WHERE k IN (SELECT k FROM d);
CREATE MATERIALIZED VIEW v2 TO t1 AS SELECT sumIf(s.x, s.g > 0) AS m0 FROM s;
SYSTEM RECONCILE VIEW default.v1;
SYSTEM RECONCILE VIEW default.v1;
SYSTEM RECONCILE VIEW default.v1;
SYSTEM RECONCILE VIEW default.v1;
