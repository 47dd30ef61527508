--# A merge of a dimension (VersionedCollapsing) that IN reads without FINAL changes the answer; the view stays covered.
--# untrue [m1]: v3__v1: ['covered']: [m1] the only row.m1: 2 instead of 1
CREATE TABLE s (k String) ENGINE = MergeTree ORDER BY tuple();
CREATE TABLE d (k String, sg Int8, ver UInt32) ENGINE = VersionedCollapsingMergeTree(sg, ver) ORDER BY k;
INSERT INTO d (k, sg, ver) VALUES ('a', -1, 2);
INSERT INTO d (k, sg, ver) VALUES ('b', -1, 2), ('a', 1, 2);
INSERT INTO s (k) VALUES ('b');
CREATE TABLE t3 (m1 UInt64) ENGINE = SummingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v3 TO t3 AS SELECT count() AS m1 FROM s WHERE k IN (SELECT k FROM d);
INSERT INTO s (k) VALUES ('a');
OPTIMIZE TABLE d;
SYSTEM REBUILD VIEW v3;
SYSTEM BACKFILL VIEW default.v3__v1;
