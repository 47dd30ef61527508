--# (The expected value was wrong.) A summing target none of whose sums the view gives drops every row.
CREATE TABLE s (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t1 (k0 String, m1 UInt32) ENGINE = SummingMergeTree ORDER BY k0;
INSERT INTO s (g) VALUES (2);
CREATE MATERIALIZED VIEW v2 TO t1 AS SELECT g AS k0 FROM s;
SYSTEM BACKFILL VIEW default.v2;
