--# The same of a default that is computed from one that changes.
CREATE TABLE r (g UInt8) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t2 (k0 Int64, e Int64 EPHEMERAL k0 + 1, own Int64 DEFAULT e * 2) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT g AS k0 FROM r;
INSERT INTO r (g) VALUES (2);
ALTER TABLE t2 MODIFY COLUMN e Int64 EPHEMERAL k0 + 5;
