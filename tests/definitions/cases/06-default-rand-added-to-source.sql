--# Volatile MATERIALIZED/DEFAULT added to the source: another value at each read.
--# untrue [m]: w2: ['covered']: [m] the only row.m: '17708289836661488774' instead of '5068628527622064219'
CREATE TABLE s (k UInt8) ENGINE = MergeTree ORDER BY k;
INSERT INTO s (k) VALUES (0);
ALTER TABLE s ADD COLUMN n2 String MATERIALIZED toString(rand64());
CREATE TABLE tw2 (m SimpleAggregateFunction(max, String)) ENGINE = AggregatingMergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW w2 TO tw2 AS SELECT max(n2) AS m FROM s;
SYSTEM BACKFILL VIEW w2;
