--# queryID, initialQueryID, uptime, serverUUID ... are volatile as well.
--# untrue [m]: w1: ['covered']: [m] the only row.m: 'e9310928-b0b0-4fe8-9f86-55c105f2c806' instead of 'cc69346f-dc2e-49f4-809f-35f3c0d54106'
CREATE TABLE s (k String) ENGINE = MergeTree ORDER BY k;
INSERT INTO s (k) VALUES ('a');
ALTER TABLE s ADD COLUMN n1 String DEFAULT toString(initialQueryID());
CREATE TABLE tw1 (m SimpleAggregateFunction(max, String)) ENGINE = AggregatingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW w1 TO tw1 AS SELECT max(n1) AS m FROM s;
SYSTEM BACKFILL VIEW w1;
