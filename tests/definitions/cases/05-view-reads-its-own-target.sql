--# A view that reads its own target.
--# untrue [row]: v3: ['covered']: [row] ('a',): ('a',) instead of None
CREATE TABLE s (k String) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE t3 (k String) ENGINE = SummingMergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v3 TO t3 AS SELECT k FROM s WHERE k NOT IN (SELECT k FROM t3) GROUP BY k;
INSERT INTO s (k) VALUES ('a');
