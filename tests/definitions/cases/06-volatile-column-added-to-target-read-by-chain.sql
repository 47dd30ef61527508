--# serverUUID()/rand() added to a target that another view reads.
--# untrue [m]: w1: ['covered']: [m] the only row.m: '00000000-0000-0000-0000-000000000000' instead of '3cd33789-93a0-44bf-906e-8ba7dba6d123'
CREATE TABLE s (g UInt8, d DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY g;
CREATE TABLE t1 (k0 Date) ENGINE = MergeTree ORDER BY k0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT toDate(d) AS k0 FROM s GROUP BY toDate(d);
INSERT INTO s (g, d) VALUES (2, '2024-01-01 00:00:00.001');
ALTER TABLE t1 ADD COLUMN n1 String DEFAULT toString(serverUUID());
CREATE TABLE tw1 (m SimpleAggregateFunction(max, String)) ENGINE = AggregatingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW w1 TO tw1 AS SELECT max(n1) AS m FROM t1;
SYSTEM BACKFILL VIEW w1;
