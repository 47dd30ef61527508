-- Statements that both engines refuse, with the same error. `!` marks what is run first.

-- queries
!CREATE TABLE a (id UInt64, s String, n Nullable(Int32), d Date, dt DateTime, f Float64, arr Array(UInt32), m Map(String, UInt64), t Tuple(UInt8, String), dec Decimal(9,2), lc LowCardinality(String), u UUID, fs FixedString(3)) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY id
!CREATE TABLE b (id UInt64, v Int64 DEFAULT 7, w Int64 MATERIALIZED v * 2, al String ALIAS toString(v)) ENGINE = MergeTree ORDER BY id
!CREATE TABLE r (id UInt64, ver UInt32, del UInt8) ENGINE = ReplacingMergeTree(ver, del) ORDER BY id
!CREATE TABLE mem (id UInt64, v Int64) ENGINE = Memory
!CREATE TABLE lg (id UInt64, v Int64) ENGINE = Log
!CREATE TABLE nul (id UInt64, v Int64) ENGINE = Null
!CREATE VIEW vw AS SELECT id, v FROM b
!CREATE TABLE tgt (id UInt64, c SimpleAggregateFunction(sum, UInt64)) ENGINE = AggregatingMergeTree ORDER BY id
!CREATE MATERIALIZED VIEW mv TO tgt AS SELECT id, count() AS c FROM a GROUP BY id
!INSERT INTO b (id, v) VALUES (1, 2), (2, 3), (3, 4)
SELECT
SELECT FROM b
SELECT * FROM nope
SELECT * FROM nope.b
SELECT nope FROM b
SELECT b.nope FROM b
SELECT x.id FROM b
SELECT nofunc(id) FROM b
SELECT toUInt8()
SELECT toUInt8(1, 2, 3)
SELECT plus(1)
SELECT 1 + 'a'
SELECT 'a' - 1
SELECT 1 + [1]
SELECT length(1)
SELECT upper(1)
SELECT substring(1, 1)
SELECT substring('abc', 'x')
SELECT toDate('x')
SELECT toDateTime('x')
SELECT toUInt8('x')
SELECT toUInt8('')
SELECT toInt32('1x')
SELECT toFloat64('x')
SELECT toUUID('x')
SELECT toFixedString('abcd', 3)
SELECT toFixedString('a', 0)
SELECT CAST('x' AS UInt8)
SELECT CAST('x' AS Nope)
SELECT CAST(1 AS Array(UInt8))
SELECT CAST('[1,x]' AS Array(UInt8))
SELECT CAST(NULL AS UInt8)
SELECT CAST([NULL] AS Array(UInt8))
SELECT CAST('x' AS Bool)
SELECT CAST('x' AS DateTime64(12))
SELECT CAST('1' AS Decimal(80, 2))
SELECT CAST('1' AS Decimal(5, 8))
SELECT CAST('1' AS FixedString(0))
SELECT CAST(1 AS Nullable(Array(UInt8)))
SELECT CAST(1 AS Nullable(Nullable(UInt8)))
SELECT CAST(1 AS LowCardinality(Array(UInt8)))
SELECT CAST(1 AS Map(Array(String), UInt8))
SELECT intDiv(1, 0)
SELECT intDiv(id, 0) FROM b
SELECT id % 0 FROM b
SELECT intDiv(-9223372036854775808, -1)
SELECT toDecimal32(1, 2) / 0
SELECT toDecimal32(1, 2) / toDecimal32(0, 2)
SELECT toDecimal64(999999999999999, 3) * toDecimal64(999999999999999, 3)
SELECT if('a', 1, 2)
SELECT if(1, 2)
SELECT multiIf(1, 2)
SELECT [1, 'a']
SELECT map(1)
SELECT tuple(1, 2).3
SELECT tuple(1, 2).x
SELECT t.5 FROM a
SELECT (1, 2).0
SELECT arrayElement([1, 2], 'a')
SELECT arrayJoin(1)
SELECT arrayConcat([1], ['a'])
SELECT has([1], 'a')
SELECT has(1, 1)
SELECT arraySum(['a'])
SELECT range('a')
SELECT range(1000000000)
SELECT m['a'] FROM b
SELECT 1 = 'a'
SELECT 1 = [1]
SELECT today() = 'x'
SELECT d = 'x' FROM a
SELECT 1 IN ('a')
SELECT id IN ('x') FROM b
SELECT id IN (SELECT id, v FROM b) FROM b
SELECT (id, v) IN (SELECT id FROM b) FROM b
SELECT 'a' LIKE 1
SELECT 1 LIKE 'a'
SELECT match('a', '(')
SELECT not 'a'
SELECT 1 AND 'a'
SELECT -'a'
SELECT sum(s) FROM a
SELECT avg(s) FROM a
SELECT sum() FROM b
SELECT sum(id, v) FROM b
SELECT min() FROM b
SELECT max(id, v) FROM b
SELECT argMax(id) FROM b
SELECT quantile(2)(id) FROM b
SELECT quantile(0.5)(s) FROM a
SELECT quantiles(id) FROM b
SELECT uniq() FROM b
SELECT sumIf(id) FROM b
SELECT sumIf(id, 'a') FROM b
SELECT countIf() FROM b
SELECT countIf('a') FROM b
SELECT sum(1)(id) FROM b
SELECT sumMerge(id) FROM b
SELECT uniqMerge(id) FROM b
SELECT nopeMerge(id) FROM b
SELECT groupArray('a')(id) FROM b
SELECT groupArray(-1)(id) FROM b
SELECT groupArray(0)(id) FROM b
SELECT sum(sum(id)) FROM b
SELECT sum(id) FROM b WHERE sum(id) > 1
SELECT id, sum(v) FROM b
SELECT id FROM b GROUP BY v
SELECT id, count() FROM b GROUP BY id HAVING v > 1
SELECT id FROM b GROUP BY sum(id)
SELECT id FROM b GROUP BY 5
SELECT id FROM b GROUP BY 0
SELECT id FROM b ORDER BY 5
SELECT id FROM b ORDER BY nope
SELECT id FROM b LIMIT 'a'
SELECT id FROM b LIMIT id
SELECT id FROM b OFFSET 'a'
SELECT id FROM b LIMIT 1 BY nope
SELECT id FROM b WHERE 'a'
SELECT id FROM b WHERE s
SELECT id FROM b WHERE [1]
SELECT id FROM b HAVING 'a'
SELECT id FROM b WHERE v = 'x'
SELECT id FROM b PREWHERE nope
SELECT id FROM mem PREWHERE v = 1
SELECT id FROM mem FINAL
SELECT id FROM b FINAL
SELECT 1 UNION SELECT 2
SELECT 1 UNION ALL SELECT 1, 2
SELECT (SELECT 1, 2) + 1
SELECT (SELECT id FROM b)
SELECT (SELECT id FROM b) + 1
SELECT * FROM b JOIN a
SELECT * FROM b JOIN a ON 1 = 'a'
SELECT * FROM b JOIN a USING (v)
SELECT * FROM b JOIN a USING (nope)
SELECT * FROM b JOIN a ON b.id = a.s
SELECT * FROM b JOIN a ON b.nope = a.id
SELECT * FROM b ARRAY JOIN id
SELECT * FROM b ARRAY JOIN nope
SELECT id AS x, v AS x FROM b
SELECT 1 AS x, 2 AS x
SELECT x + 1 AS x
SELECT a AS b, b AS a
WITH x AS (SELECT 1) SELECT * FROM y
WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x
SELECT COLUMNS('(') FROM b
SELECT nope.* FROM b
SELECT * FROM numbers('a')
SELECT * FROM numbers(1, 2, 3, 4)
SELECT * FROM nofunc(1)
SELECT id FROM b SETTINGS nope = 1
SELECT id FROM b SETTINGS max_threads = 'x'
SET nope = 1
SET max_threads = 'abc'
SET max_block_size = -5
SELECT {p:UInt8}
SELECT now() + INTERVAL 1 NOPE
SELECT today() + today()
SELECT dateDiff('nope', today(), today())
SELECT dateTrunc('nope', today())
SELECT toStartOfInterval(today(), 5)
SELECT formatDateTime(today(), 1)
SELECT toTimeZone(now(), 'Nope/Zone')
SELECT toDateTime('2020-01-01 00:00:00', 'Nope/Zone')
SELECT CAST('x' AS DateTime('Nope'))
SELECT throwIf(1)
SELECT throwIf(1, 'boo')
SELECT splitByChar('ab', 'x')
SELECT splitByChar(1, 'x')
SELECT round('a')
SELECT round(1, 'a')
SELECT bitAnd(1.5, 1)
SELECT greatest()
SELECT greatest(1, 'a')
SELECT nullIf(1)
SELECT isNull()
SELECT assumeNotNull()
SELECT toTypeName()
SELECT tupleElement((1, 2), 3)
SELECT tupleElement((1, 2), 'a')
SELECT tupleElement(1, 1)
SELECT hex()
SELECT unhex(1)
SELECT replaceAll('a', 'b')
SELECT replaceRegexpAll('a', '(', 'b')
SELECT 'unclosed
SELECT 1 FROM
SELECT 1,, 2
SELECT (1
SELECT 1)
SELEC 1
SELECT 1 1
SELECT * FROM b WHERE
SELECT * FROM b GROUP BY

-- rows and definitions
!CREATE TABLE a (id UInt64, s String, n Nullable(Int32), d Date, dt DateTime, f Float64, arr Array(UInt32), m Map(String, UInt64), t Tuple(UInt8, String), dec Decimal(9,2), lc LowCardinality(String), u UUID, fs FixedString(3)) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY id
!CREATE TABLE b (id UInt64, v Int64 DEFAULT 7, w Int64 MATERIALIZED v * 2, al String ALIAS toString(v)) ENGINE = MergeTree ORDER BY id
!CREATE TABLE r (id UInt64, ver UInt32, del UInt8) ENGINE = ReplacingMergeTree(ver, del) ORDER BY id
!CREATE TABLE mem (id UInt64, v Int64) ENGINE = Memory
!CREATE TABLE lg (id UInt64, v Int64) ENGINE = Log
!CREATE TABLE nul (id UInt64, v Int64) ENGINE = Null
!CREATE VIEW vw AS SELECT id, v FROM b
!CREATE TABLE tgt (id UInt64, c SimpleAggregateFunction(sum, UInt64)) ENGINE = AggregatingMergeTree ORDER BY id
!CREATE MATERIALIZED VIEW mv TO tgt AS SELECT id, count() AS c FROM a GROUP BY id
INSERT INTO nope VALUES (1)
INSERT INTO b VALUES (1)
INSERT INTO b VALUES (1, 2, 3)
INSERT INTO b VALUES ('x', 2)
INSERT INTO b VALUES (1, 'x')
INSERT INTO b VALUES (1, [1])
INSERT INTO b (id, nope) VALUES (1, 2)
INSERT INTO b (id, id) VALUES (1, 2)
INSERT INTO b (id, w) VALUES (1, 2)
INSERT INTO b (id, al) VALUES (1, 'x')
INSERT INTO b SELECT 1
INSERT INTO b SELECT 1, 2, 3
INSERT INTO b SELECT 'x', 2
INSERT INTO b SELECT [1], 2
INSERT INTO b SELECT nope FROM b
INSERT INTO a (d) VALUES ('x')
INSERT INTO a (dt) VALUES ('x')
INSERT INTO a (f) VALUES ('x')
INSERT INTO a (arr) VALUES (1)
INSERT INTO a (arr) VALUES ('x')
INSERT INTO a (arr) VALUES ([1, 'x'])
INSERT INTO a (m) VALUES (1)
INSERT INTO a (t) VALUES ((1, 2, 3))
INSERT INTO a (t) VALUES (1)
INSERT INTO a (dec) VALUES ('x')
INSERT INTO a (u) VALUES ('x')
INSERT INTO a (fs) VALUES ('abcd')
INSERT INTO a (id) VALUES (nofunc(1))
INSERT INTO a (id) VALUES (nope)
INSERT INTO a (id) VALUES (1
INSERT INTO a (id) VALUES (1) (2
INSERT INTO a (id) VALUES 1
INSERT INTO a (id) SETTINGS nope = 1 VALUES (1)
INSERT INTO vw VALUES (1, 2)
CREATE TABLE b (x UInt8) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = Nope
CREATE TABLE c1 (x Nope) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY y
CREATE TABLE c1 (x UInt8, x UInt8) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 () ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree(y) ORDER BY x
CREATE TABLE c1 (x Nullable(UInt8)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x PRIMARY KEY (x, x)
CREATE TABLE c1 (x UInt8, y UInt8) ENGINE = MergeTree ORDER BY x PRIMARY KEY y
CREATE TABLE c1 (x UInt8, y UInt8) ENGINE = MergeTree ORDER BY (x, y) PRIMARY KEY y
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY rand()
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY sum(x)
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY 1
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY (x, x)
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree PARTITION BY nope ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree PARTITION BY nofunc(x) ORDER BY x
CREATE TABLE c1 (x Float64) ENGINE = MergeTree PARTITION BY x ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree PARTITION BY rand() ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x SETTINGS nope = 1
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x SETTINGS index_granularity = 'a'
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x SETTINGS index_granularity = 0
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x TTL x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x TTL nope + INTERVAL 1 DAY
CREATE TABLE c1 (x UInt8) ENGINE = Memory ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = Memory(1)
CREATE TABLE c1 (x UInt8) ENGINE = Memory PARTITION BY x
CREATE TABLE c1 (x UInt8) ENGINE = Log ORDER BY x
CREATE TABLE c1 (x UInt8 DEFAULT nope) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 DEFAULT 'a') ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 DEFAULT x) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 DEFAULT y, y UInt8 DEFAULT x) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 DEFAULT sum(1)) ENGINE = MergeTree ORDER BY tuple()
CREATE TABLE c1 (x UInt8 DEFAULT (SELECT 1)) ENGINE = MergeTree ORDER BY tuple()
CREATE TABLE c1 (x UInt8 DEFAULT [1]) ENGINE = MergeTree ORDER BY tuple()
CREATE TABLE c1 (x UInt8 CODEC(Nope)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x String CODEC(Delta)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(ZSTD(99))) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(LZ4(1))) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(ZSTD, LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(Delta)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(Delta(3), LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(NONE, Delta)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x Float64 CODEC(T64)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x String CODEC(Gorilla)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i nope TYPE minmax GRANULARITY 1) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i x TYPE set GRANULARITY 1) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i x TYPE set('a') GRANULARITY 1) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i x TYPE bloom_filter(2) GRANULARITY 1) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i x TYPE bloom_filter('a') GRANULARITY 1) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i x TYPE minmax GRANULARITY 0) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, INDEX i x TYPE minmax, INDEX i x TYPE minmax) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, CONSTRAINT c CHECK nope) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = SummingMergeTree(nope) ORDER BY x
CREATE TABLE c1 (x UInt8, s String) ENGINE = SummingMergeTree(x) ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = ReplacingMergeTree(nope) ORDER BY x
CREATE TABLE c1 (x UInt8, s String) ENGINE = ReplacingMergeTree(s) ORDER BY x
CREATE TABLE c1 (x UInt8, v UInt8, d Int8) ENGINE = ReplacingMergeTree(v, d) ORDER BY x
CREATE TABLE c1 (x UInt8, v UInt8, d Int8) ENGINE = ReplacingMergeTree(v, d, x) ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = CollapsingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = CollapsingMergeTree(x) ORDER BY x
CREATE TABLE c1 (x UInt8) ENGINE = CollapsingMergeTree(nope) ORDER BY x
CREATE TABLE c1 (x UInt8, s Int8) ENGINE = VersionedCollapsingMergeTree(s) ORDER BY x
CREATE TABLE c1 (x UInt8, s Int8) ENGINE = VersionedCollapsingMergeTree(s, nope) ORDER BY x
CREATE TABLE c1 (x UInt8, s String) ENGINE = AggregatingMergeTree(x) ORDER BY x
CREATE TABLE c1 (x UInt8, c AggregateFunction(nope, UInt8)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, c AggregateFunction(sum, String)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, c AggregateFunction(sum)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, c SimpleAggregateFunction(avg, UInt8)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, c SimpleAggregateFunction(nope, UInt8)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, c SimpleAggregateFunction(sum, UInt8)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, c SimpleAggregateFunction(sum, String)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 (x AggregateFunction(sum, UInt8)) ENGINE = AggregatingMergeTree ORDER BY x
CREATE TABLE c1 ENGINE = MergeTree ORDER BY x AS SELECT 1 AS y
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x AS SELECT 'a' AS x
CREATE TABLE c1 (x UInt8) ENGINE = MergeTree ORDER BY x AS SELECT nope
CREATE TABLE nope.c1 (x UInt8) ENGINE = Memory
CREATE VIEW vw AS SELECT 1
CREATE VIEW v2 AS SELECT nope FROM b
CREATE VIEW v2 AS SELECT * FROM nope
CREATE MATERIALIZED VIEW mv2 TO nope AS SELECT id FROM a
CREATE MATERIALIZED VIEW mv2 TO tgt AS SELECT nope FROM a
CREATE MATERIALIZED VIEW mv2 ENGINE = Nope AS SELECT id FROM a
CREATE MATERIALIZED VIEW mv TO tgt AS SELECT id, count() AS c FROM a GROUP BY id
CREATE MATERIALIZED VIEW mv2 TO tgt ENGINE = Memory AS SELECT id, count() AS c FROM a GROUP BY id
DROP TABLE nope
DROP TABLE nope.b
DROP DATABASE nope
DROP VIEW nope
DROP VIEW b
TRUNCATE TABLE nope
TRUNCATE TABLE vw
RENAME TABLE nope TO x
RENAME TABLE b TO r
RENAME TABLE b TO nope.b
EXCHANGE TABLES b AND nope
DETACH TABLE nope
UNDROP TABLE nope
DESCRIBE TABLE nope
USE nope
EXPLAIN SELECT nope
EXPLAIN NOPE SELECT 1
OPTIMIZE TABLE nope
OPTIMIZE TABLE vw
OPTIMIZE TABLE mem
OPTIMIZE TABLE b PARTITION 'x'
OPTIMIZE TABLE b PARTITION 2024-01-01
ALTER TABLE a DROP PARTITION 2024-01-01
OPTIMIZE TABLE a PARTITION 'x'
OPTIMIZE TABLE b FINAL DEDUPLICATE BY nope
CHECK TABLE nope
CHECK TABLE vw
KILL QUERY WHERE nope = 1

-- changes of tables
!CREATE TABLE a (id UInt64, s String, n Nullable(Int32), d Date, arr Array(UInt32)) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY id
!CREATE TABLE b (id UInt64, v Int64 DEFAULT 7, w Int64 MATERIALIZED v * 2, al String ALIAS toString(v), INDEX ix v TYPE minmax, CONSTRAINT cc CHECK v < 100) ENGINE = MergeTree ORDER BY id
!CREATE TABLE r (id UInt64, ver UInt32, del UInt8) ENGINE = ReplacingMergeTree(ver, del) ORDER BY id
!CREATE TABLE mem (id UInt64, v Int64) ENGINE = Memory
!CREATE TABLE lg (id UInt64, v Int64) ENGINE = Log
!CREATE TABLE nul (id UInt64, v Int64) ENGINE = Null
!CREATE VIEW vw AS SELECT id, v FROM b
!INSERT INTO b (id, v) VALUES (1, 2), (2, 3), (3, 4)
!INSERT INTO a (id, d) VALUES (1, '2024-01-01'), (2, '2024-02-01')
INSERT INTO b (id, v) VALUES (1, 200)
ALTER TABLE nope ADD COLUMN x UInt8
ALTER TABLE b ADD COLUMN v UInt8
ALTER TABLE b ADD COLUMN x Nope
ALTER TABLE b ADD COLUMN x UInt8 AFTER nope
ALTER TABLE b ADD COLUMN x UInt8 DEFAULT nope
ALTER TABLE b ADD COLUMN x UInt8 DEFAULT 'a'
ALTER TABLE b ADD COLUMN x UInt8 CODEC(Nope)
ALTER TABLE b DROP COLUMN nope
ALTER TABLE b DROP COLUMN id
ALTER TABLE b DROP COLUMN v
ALTER TABLE a DROP COLUMN d
ALTER TABLE r DROP COLUMN ver
ALTER TABLE b MODIFY COLUMN nope UInt8
ALTER TABLE b MODIFY COLUMN id String
ALTER TABLE b MODIFY COLUMN v Nope
ALTER TABLE b MODIFY COLUMN v Array(UInt8)
ALTER TABLE b MODIFY COLUMN v REMOVE CODEC
ALTER TABLE b MODIFY COLUMN v REMOVE COMMENT
ALTER TABLE b MODIFY COLUMN w REMOVE DEFAULT
ALTER TABLE b MODIFY COLUMN v REMOVE TTL
ALTER TABLE b MODIFY COLUMN nope REMOVE DEFAULT
ALTER TABLE r MODIFY COLUMN ver String
ALTER TABLE b RENAME COLUMN nope TO x
ALTER TABLE b RENAME COLUMN id TO x
ALTER TABLE b RENAME COLUMN v TO id
ALTER TABLE b RENAME COLUMN v TO v
ALTER TABLE b COMMENT COLUMN nope 'x'
ALTER TABLE b CLEAR COLUMN nope
ALTER TABLE b CLEAR COLUMN id
ALTER TABLE b CLEAR COLUMN nope IN PARTITION tuple()
ALTER TABLE b MATERIALIZE COLUMN nope
ALTER TABLE a MATERIALIZE COLUMN id
ALTER TABLE b ADD INDEX ix v TYPE minmax
ALTER TABLE b ADD INDEX i2 nope TYPE minmax
ALTER TABLE b ADD INDEX i2 v TYPE minmax AFTER nope
ALTER TABLE b DROP INDEX nope
ALTER TABLE b ADD CONSTRAINT cc CHECK v > 0
ALTER TABLE b ADD CONSTRAINT c2 CHECK nope > 0
ALTER TABLE b DROP CONSTRAINT nope
ALTER TABLE b MODIFY ORDER BY v
ALTER TABLE b MODIFY ORDER BY (id, v)
ALTER TABLE b MODIFY TTL nope
ALTER TABLE b MODIFY TTL v
ALTER TABLE b REMOVE TTL
ALTER TABLE b MATERIALIZE TTL
ALTER TABLE b MODIFY SETTING nope = 1
ALTER TABLE b MODIFY SETTING index_granularity = 100
ALTER TABLE b RESET SETTING nope
ALTER TABLE b UPDATE nope = 1 WHERE 1
ALTER TABLE b UPDATE id = 1 WHERE 1
ALTER TABLE b UPDATE w = 1 WHERE 1
ALTER TABLE b UPDATE al = 'x' WHERE 1
ALTER TABLE b UPDATE v = nope WHERE 1
ALTER TABLE b UPDATE v = 'x' WHERE 1
ALTER TABLE b UPDATE v = [1] WHERE 1
ALTER TABLE b UPDATE v = 1 WHERE nope
ALTER TABLE b UPDATE v = 1
ALTER TABLE b UPDATE v = 1, v = 2 WHERE 1
ALTER TABLE b UPDATE v = NULL WHERE 1
ALTER TABLE a UPDATE d = today() WHERE 1
ALTER TABLE r UPDATE ver = 1 WHERE 1
ALTER TABLE b DELETE
ALTER TABLE b DELETE WHERE nope
ALTER TABLE b DELETE WHERE sum(v) = 1
ALTER TABLE lg DELETE WHERE id = 1
ALTER TABLE nul DELETE WHERE id = 1
ALTER TABLE vw DELETE WHERE id = 1
ALTER TABLE lg UPDATE v = 1 WHERE id = 1
DELETE FROM nope WHERE 1
DELETE FROM b WHERE nope = 1
ALTER TABLE mem ADD COLUMN x UInt8 FIRST AFTER id
ALTER TABLE lg ADD COLUMN x UInt8
ALTER TABLE nul MODIFY ORDER BY id
ALTER TABLE mem MODIFY ORDER BY id
ALTER TABLE mem MODIFY TTL now()
ALTER TABLE vw ADD COLUMN x UInt8
ALTER TABLE b NOPE
ALTER TABLE b
ALTER TABLE a DROP PARTITION 'x'
ALTER TABLE a DROP PARTITION (1, 2)
ALTER TABLE a DROP PARTITION '2024-01-01'
ALTER TABLE a DROP PART 'nope'
ALTER TABLE a DROP PART '202401_99_99_0'
ALTER TABLE a DETACH PART 'nope'
ALTER TABLE a DETACH PART '202401_99_99_0'
ALTER TABLE a ATTACH PART 'nope'
ALTER TABLE a ATTACH PART '202401_99_99_0'
ALTER TABLE a ATTACH PARTITION 202401 FROM nope
ALTER TABLE a ATTACH PARTITION 202401 FROM b
ALTER TABLE a ATTACH PARTITION 202401 FROM vw
ALTER TABLE a REPLACE PARTITION 202401 FROM b
ALTER TABLE a MOVE PARTITION 202401 TO TABLE b
ALTER TABLE a MOVE PARTITION 202401 TO TABLE nope
ALTER TABLE a DROP DETACHED PART 'nope'
ALTER TABLE a DROP DETACHED PARTITION 209901
ALTER TABLE a FETCH PARTITION 202401 FROM '/x'
ALTER TABLE b DROP PARTITION 'x'
ALTER TABLE b DROP PARTITION 1
ALTER TABLE mem DROP PARTITION 1
ALTER TABLE mem DROP PARTITION tuple()
ALTER TABLE vw DROP PARTITION 1
ALTER TABLE lg DROP PARTITION 1
ALTER TABLE nul DROP PARTITION tuple()
ALTER TABLE a UPDATE s = 'q' IN PARTITION 'x' WHERE 1
ALTER TABLE a DELETE IN PARTITION 'x' WHERE 1
ALTER TABLE b MODIFY COMMENT 5
ALTER TABLE b ADD COLUMN q1 UInt8, ADD COLUMN q1 UInt8
ALTER TABLE b ADD COLUMN q2 UInt8, DROP COLUMN nope
ALTER TABLE b ADD COLUMN `` UInt8

-- literals, codecs, keys
CREATE TABLE c1 (x UInt8 CODEC(Delta('a'), LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(NONE(1))) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(GCD(1), LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(LZ4, Delta)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(LZ4, ZSTD)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(Delta, NONE)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x Float64 CODEC(T64, LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x Float64 CODEC(GCD, LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(FPC, LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8 CODEC(Gorilla, LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UUID CODEC(Delta, LZ4)) ENGINE = MergeTree ORDER BY x
CREATE TABLE c1 (x UInt8, y UInt8) ENGINE = MergeTree ORDER BY (x, y, x)
CREATE TABLE c1 (x UInt8, y UInt8) ENGINE = MergeTree ORDER BY (x, 1)
CREATE TABLE c1 (x UInt8, y UInt8) ENGINE = MergeTree ORDER BY (x, toUInt8(1))
CREATE TABLE c1 (x UInt8, y UInt8) ENGINE = MergeTree ORDER BY (x+1, x + 1)
CREATE TABLE c1 (`` UInt8) ENGINE = MergeTree ORDER BY tuple()
CREATE TABLE `` (x UInt8) ENGINE = MergeTree ORDER BY tuple()
SELECT 1 AS ``
SELECT replaceRegexpOne('a', '(', 'b')
SELECT extractAll('a', '(')
SELECT splitByRegexp('(', 'b')
SELECT extract('a', '(')
SELECT match('a', '[')
SELECT dateDiff(5, today(), today())
SELECT dateTrunc(5, today())
SELECT dateDiff(materialize('day'), today(), today())
SELECT toDecimal32('1', materialize(2))
SELECT formatDateTime(today(), materialize('%Y'))
SELECT toFixedString('a', materialize(2))
SELECT toDateTime64('2020-01-01', 'x')
SELECT toDateTime64('2020-01-01', 10)
SELECT toDateTime64('2020-01-01', -1)
SELECT toDateTime('2020-01-01 00:00:00', materialize('UTC'))
SELECT toStartOfInterval(now(), INTERVAL 1 DAY, 'Nope')
SELECT toYYYYMM(now(), 'Nope')
SELECT range(10, 5, 0)
SELECT arraySlice([1], 'a')
SELECT [1, 2]['a']
SELECT CAST('[]' AS Array(Nope))
SELECT '5' = 5, '05' = 5, ' 5' = 5
SELECT ' 5' = 5
SELECT '5.5' = 5
SELECT '-1' = toUInt8(5)
SELECT '1e3' = 1000
SELECT '' = 5
SELECT toUInt8(5) IN ('-1')
SELECT toUInt8(5) IN ('5.5')
SELECT toDate('2020-01-01') IN ('x')
SELECT number = 'x' FROM numbers(1)
SELECT true = 'x'
SELECT sumMap([1,2],[1])
SELECT sumMap(1)
SELECT sumMap(['a'], ['b'])
SELECT sumMap(map('a','b'))
SELECT countResample(0, 5, 0)(1)
SELECT countResample(0, 5)(1)
SELECT countResample(0, 5, 1)('a')
SELECT countResample(0, 5, 1)(1.5)
!CREATE TABLE d (x Decimal(9, 2), y Decimal(18,4), z Decimal(38,10)) ENGINE = MergeTree ORDER BY tuple()
INSERT INTO d VALUES (12345678.99, 1, 1)
INSERT INTO d VALUES ('12345678.99', 1, 1)
INSERT INTO d VALUES (123456789.123, 1, 1)
INSERT INTO d VALUES ('', 1, 1)
INSERT INTO d VALUES ('abc', 1, 1)
INSERT INTO d VALUES ('1.2x', 1, 1)
INSERT INTO d VALUES (' 1.2', 1, 1)
INSERT INTO d VALUES ('1.2 ', 1, 1)
SELECT toDecimal32('12345678901', 2)
SELECT toDecimal32('123456789', 2)
SELECT toDecimal32(12345678901, 2)
SELECT toDecimal32(123456789, 2)
SELECT toDecimal32('', 2)
SELECT toDecimal32('abc', 2)
SELECT toDecimal32('1.2x', 2)
SELECT toDecimal32(' 1.2', 2)
SELECT toDecimal32('1.2 ', 2)
SELECT toDecimal32('1e', 2)
SELECT toDecimal32('nan', 2)
SELECT toDecimal32(nan, 2)
SELECT toDecimal32(inf, 2)
SELECT toDecimal32(1e30, 2)
SELECT toDecimal32('1', 10)
SELECT toDecimal32('1', 'a')
SELECT CAST(toDecimal64(12345678901.5, 2) AS Decimal(9,2))

-- texts of numbers
SELECT toUInt8('x')
SELECT toUInt8('-')
SELECT toUInt8('+')
SELECT toUInt8('-x')
SELECT toUInt8('+x')
SELECT toUInt8('1x')
SELECT toUInt8(' 1')
SELECT toUInt8('.')
SELECT toUInt8('e')
SELECT toUInt8('1.5')
SELECT toUInt8('1 ')
SELECT toUInt8('-1')
SELECT toUInt8('')
SELECT toUInt8('true')
SELECT toUInt8('inf')
SELECT toUInt8('in')
SELECT toUInt8('n')
SELECT toUInt8('--1')
SELECT toUInt8('1e')
SELECT toUInt8('1e5')
SELECT toUInt8('0x1')
SELECT toInt64('x')
SELECT toInt64('-')
SELECT toInt64('+')
SELECT toInt64('-x')
SELECT toInt64('+x')
SELECT toInt64('1x')
SELECT toInt64(' 1')
SELECT toInt64('.')
SELECT toInt64('e')
SELECT toInt64('1.5')
SELECT toInt64('1 ')
SELECT toInt64('')
SELECT toInt64('true')
SELECT toInt64('inf')
SELECT toInt64('in')
SELECT toInt64('n')
SELECT toInt64('--1')
SELECT toInt64('1e')
SELECT toInt64('1e5')
SELECT toInt64('0x1')
SELECT toFloat64('x')
SELECT toFloat64('-')
SELECT toFloat64('+')
SELECT toFloat64('-x')
SELECT toFloat64('+x')
SELECT toFloat64('1x')
SELECT toFloat64(' 1')
SELECT toFloat64('.')
SELECT toFloat64('e')
SELECT toFloat64('1 ')
SELECT toFloat64('true')
SELECT toFloat64('in')
SELECT toFloat64('n')
SELECT toFloat64('--1')
SELECT toFloat64('1e')
SELECT toFloat64('0x1')
SELECT toDecimal32('x',2)
SELECT toDecimal32('-x',2)
SELECT toDecimal32('+x',2)
SELECT toDecimal32('1x',2)
SELECT toDecimal32(' 1',2)
SELECT toDecimal32('e',2)
SELECT toDecimal32('1 ',2)
SELECT toDecimal32('',2)
SELECT toDecimal32('true',2)
SELECT toDecimal32('inf',2)
SELECT toDecimal32('in',2)
SELECT toDecimal32('n',2)
SELECT toDecimal32('--1',2)
SELECT toDecimal32('1e',2)
SELECT toDecimal32('0x1',2)
SELECT toUInt8(materialize('x'))
SELECT toInt64(materialize('-'))
