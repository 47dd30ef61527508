--# CHECK over an aggregated column: INSERTs pass, the RECONCILE that mend names fails.
--# mend fails (VIOLATED_CONSTRAINT): v1 (covered: ): SYSTEM RECONCILE VIEW default.v1: Code: 469. Constraint some of default.t1 is violated at row 1. Expression: (m0 < 4). Column values: m0 = 4. (while pushing to view default.v1) Nothing was inserted. Correct the row, or ALTER TABLE … DROP CONSTRAINT s
CREATE TABLE s (d DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t1 (m0 UInt64, CONSTRAINT some CHECK m0 < 4) ENGINE = SummingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT count() AS m0 FROM s;
INSERT INTO s (d) SETTINGS max_insert_block_size = 1 VALUES ('2024-01-01 00:00:00.001'), ('2024-01-31 23:59:59.999'), ('2024-01-01 00:00:00.001'), ('2024-01-01 00:00:00.001');
