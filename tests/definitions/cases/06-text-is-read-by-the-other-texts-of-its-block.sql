--# A text with a time was no Date where the block had a text that is none, and the digits beyond an integer wrapped
--# unless there was one that is no number. An INSERT of the same rows in two blocks gave other rows.
CREATE TABLE s (k UInt8, b String) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t (k UInt8, day Nullable(Date), n Nullable(Int64)) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v TO t AS SELECT k, toDateOrNull(b) AS day, CAST(b AS Nullable(Int64)) AS n FROM s;
INSERT INTO s VALUES (1, '2024-01-02 03:04:05');
INSERT INTO s VALUES (2, '9999999999999999999999');
INSERT INTO s VALUES (3, 'a,b');
INSERT INTO s VALUES (4, '2024-01-02 03:04:05'), (5, '9999999999999999999999'), (6, 'a,b');
