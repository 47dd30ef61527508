--# ALTER TABLE target ADD CONSTRAINT that rows already violate: the view stays covered and RECONCILE (named by mend) fails with an error instead of a verdict.
--# mend fails (VIOLATED_CONSTRAINT): v1 (covered: ): SYSTEM RECONCILE VIEW default.v1: Code: 469. Constraint later of default.t1 is violated at row 1. Expression: (length(toString(m0)) < 3). Column values: m0 = 100. (while pushing to view default.v1) Nothing was inserted. Correct the row, or ALTER TABL
CREATE TABLE s (x Int8) ENGINE = MergeTree ORDER BY tuple();
INSERT INTO s (x) VALUES (100);
CREATE TABLE t1 (m0 Int8) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT x AS m0 FROM s;
SYSTEM BACKFILL VIEW v1;
ALTER TABLE t1 ADD CONSTRAINT later CHECK length(toString(m0)) < 3;
SYSTEM RECONCILE VIEW default.v1;
