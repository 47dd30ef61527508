--# (The expected value was wrong.) A DEFAULT that is summed is computed of each row, and then merged.
CREATE TABLE s (g UInt8) ENGINE = MergeTree ORDER BY tuple();
INSERT INTO s (g) VALUES (1), (0);
CREATE TABLE t1 (k1 UInt16, own Int64 DEFAULT k1) ENGINE = SummingMergeTree ORDER BY k1;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT intHash64(length(ifNull(toString(g), ''))) % 3 AS k1 FROM s;
SYSTEM BACKFILL VIEW v1;
