--# The sum of a summing dimension outgrows its Decimal while the source has no row: nothing is
--# claimed of it. With a row the INSERT makes the view stale, and REPLAY says why it fails.
CREATE TABLE s (k String) ENGINE = MergeTree ORDER BY k;
CREATE TABLE d (k String, w Decimal(9, 2)) ENGINE = SummingMergeTree ORDER BY k;
INSERT INTO d (k, w) VALUES ('a', 9999999.99);
CREATE TABLE t2 (k0 String) ENGINE = AggregatingMergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT s.k AS k0 FROM s AS s JOIN d AS j FINAL ON s.k = j.k;
INSERT INTO d (k, w) VALUES ('a', 9999999.99);
INSERT INTO d (k, w) VALUES ('a', 9999999.99);
INSERT INTO d (k, w) VALUES ('b', 1);
