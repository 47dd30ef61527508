--# What a user may do to a warehouse of three views between two proofs, one history each. `prelude` is run before each
--# block, `end` after it.
--= prelude
CREATE TABLE s (k UInt64, g UInt8, x Int64) ENGINE = MergeTree PARTITION BY g ORDER BY k;
CREATE TABLE d (k UInt64, z Int64) ENGINE = MergeTree ORDER BY k;
INSERT INTO d VALUES (1, 100), (2, 7);
CREATE TABLE t (g UInt8, x Int64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY g;
CREATE TABLE t2 (g UInt8, x Int64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY g;
CREATE TABLE j (k UInt64, m Int64) ENGINE = MergeTree ORDER BY k;
INSERT INTO s VALUES (1, 1, 10), (2, 2, 20), (3, 1, 5);
CREATE MATERIALIZED VIEW v TO t AS SELECT g, sum(x) AS x FROM s GROUP BY g;
CREATE MATERIALIZED VIEW w TO t2 AS SELECT g, sum(x + 1) AS x FROM s GROUP BY g;
CREATE MATERIALIZED VIEW vj TO j AS SELECT s.k AS k, a.z AS m FROM s JOIN d AS a ON s.k = a.k;
SYSTEM BACKFILL VIEW v;
SYSTEM BACKFILL VIEW w;
SYSTEM BACKFILL VIEW vj;
INSERT INTO s VALUES (1, 1, 1), (2, 2, 2);
SYSTEM RECONCILE VIEW v;
SYSTEM RECONCILE VIEW w;
SYSTEM RECONCILE VIEW vj;
--= end
INSERT INTO s VALUES (1, 1, 3), (5, 2, 4), (2, 3, 1);
OPTIMIZE TABLE t FINAL;
SYSTEM RECONCILE VIEW v;
SYSTEM RECONCILE VIEW w;
--= move_between_targets
ALTER TABLE t MOVE PARTITION 1 TO TABLE t2;
--= attach_from_other_target
ALTER TABLE t ATTACH PARTITION 1 FROM t2;
--= replace_from_other_target
ALTER TABLE t REPLACE PARTITION 1 FROM t2;
--= detach_attach_target_cross
ALTER TABLE t DETACH PARTITION 1;
INSERT INTO s VALUES (1, 1, 50);
ALTER TABLE t ATTACH PARTITION 1;
--= detach_source_attach_twice
ALTER TABLE s DETACH PARTITION 1;
ALTER TABLE s ATTACH PARTITION 1;
ALTER TABLE s ATTACH PARTITION 1;
--= source_partition_to_other_and_back
CREATE TABLE s3 AS s;
ALTER TABLE s MOVE PARTITION 1 TO TABLE s3;
SYSTEM RECONCILE VIEW v;
ALTER TABLE s3 MOVE PARTITION 1 TO TABLE s;
--= exchange_targets
EXCHANGE TABLES t AND t2;
--= exchange_views
EXCHANGE TABLES v AND w;
--= exchange_source_dim
EXCHANGE TABLES s AND d;
--= replace_target_as_itself
CREATE OR REPLACE TABLE t ENGINE = SummingMergeTree ORDER BY g AS SELECT * FROM t;
--= replace_source_as_itself
CREATE OR REPLACE TABLE s ENGINE = MergeTree ORDER BY k AS SELECT * FROM s;
--= replace_dim_as_itself
CREATE OR REPLACE TABLE d ENGINE = MergeTree ORDER BY k AS SELECT * FROM d;
--= replace_dim_summing
CREATE OR REPLACE TABLE d ENGINE = SummingMergeTree ORDER BY k AS SELECT * FROM d;
INSERT INTO d VALUES (1, 5);
OPTIMIZE TABLE d FINAL;
--= stop_start
SYSTEM STOP VIEW v;
INSERT INTO s VALUES (9, 1, 9);
SYSTEM START VIEW v;
--= detach_perm
DETACH TABLE v PERMANENTLY;
INSERT INTO s VALUES (9, 1, 9);
ATTACH TABLE v;
--= insert_replace_source
INSERT INTO s REPLACE WHERE g = 1 SELECT 1, 1, 1000;
--= insert_replace_dim
INSERT INTO d REPLACE USING (k) SELECT 1, 5;
--= delete_target_adopt
DELETE FROM t WHERE g = 1;
INSERT INTO t SELECT g, sum(x) FROM s WHERE g = 1 GROUP BY g;
SYSTEM ADOPT VIEW v;
--= retain_then_attach
ALTER TABLE s DETACH PARTITION 1 SETTINGS retain = 1;
SYSTEM RECONCILE VIEW v;
ALTER TABLE s ATTACH PARTITION 1;
--= retain_drop_insert
ALTER TABLE s DROP PARTITION 1 SETTINGS retain = 1;
INSERT INTO s VALUES (1, 1, 4);
SYSTEM REPLAY VIEW v;
SYSTEM REPLAY VIEW w STALE;
--= retain_then_replay_discard
ALTER TABLE s DROP PARTITION 1 SETTINGS retain = 1;
SYSTEM REPLAY VIEW v DISCARD BYPASS;
DELETE FROM t WHERE g = 1;
--= ignore_errors
ALTER TABLE v MODIFY QUERY SELECT g, sum(x + throwIf(x = 13)) AS x FROM s GROUP BY g;
INSERT INTO s SETTINGS materialized_views_ignore_errors = 1 VALUES (1, 1, 13), (1, 1, 14);
DELETE FROM s WHERE x = 13;
--= modify_and_back
ALTER TABLE v MODIFY QUERY SELECT g, sum(x * 2) AS x FROM s GROUP BY g;
INSERT INTO s VALUES (1, 1, 4);
ALTER TABLE v MODIFY QUERY SELECT g, sum(x) AS x FROM s GROUP BY g;
--= rebuild_rollback
SYSTEM REBUILD VIEW v AS SELECT g, sum(x * 2) AS x FROM s GROUP BY g;
INSERT INTO s VALUES (1, 1, 4);
SYSTEM ROLLBACK VIEW v;
DELETE FROM s WHERE k = 1;
SYSTEM ROLLBACK VIEW v;
--= two_rebuilds
SYSTEM REBUILD VIEW v;
DELETE FROM s WHERE k = 1;
SYSTEM REBUILD VIEW v;
EXCHANGE TABLES t AND t2;
--= second_writer
CREATE MATERIALIZED VIEW u TO t AS SELECT g, sum(x) AS x FROM s WHERE k > 1 GROUP BY g;
INSERT INTO s VALUES (2, 1, 4);
DROP VIEW u;
--= second_writer_dropped_made_again
CREATE MATERIALIZED VIEW u TO t AS SELECT g, sum(x) AS x FROM s WHERE k > 1 GROUP BY g;
INSERT INTO s VALUES (2, 1, 4);
DROP VIEW u;
CREATE MATERIALIZED VIEW u TO t AS SELECT g, sum(x) AS x FROM s WHERE k > 1 GROUP BY g;
SYSTEM BACKFILL VIEW u;
--= view_dropped_made_again
DROP VIEW v;
INSERT INTO s VALUES (2, 1, 4);
CREATE MATERIALIZED VIEW v TO t AS SELECT g, sum(x) AS x FROM s GROUP BY g;
SYSTEM BACKFILL VIEW v;
--= view_dropped_made_again_adopt
DROP VIEW v;
CREATE MATERIALIZED VIEW v TO t AS SELECT g, sum(x) AS x FROM s GROUP BY g;
SYSTEM ADOPT VIEW v;
--= create_or_replace_view
CREATE OR REPLACE MATERIALIZED VIEW v TO t AS SELECT g, sum(x * 3) AS x FROM s GROUP BY g;
--= clear_column_source
ALTER TABLE s CLEAR COLUMN x IN PARTITION 1;
--= clear_column_dim
ALTER TABLE d CLEAR COLUMN z;
--= materialize_ttl
ALTER TABLE s MODIFY TTL toDate('2020-01-01') + INTERVAL g YEAR SETTINGS materialize_ttl_after_modify = 0;
ALTER TABLE s MATERIALIZE TTL;
--= column_ttl_source
ALTER TABLE s MODIFY COLUMN x Int64 TTL toDate('2020-01-01') + INTERVAL g YEAR;
OPTIMIZE TABLE s FINAL;
--= target_ttl
ALTER TABLE t MODIFY TTL toDate('2020-01-01') + INTERVAL g YEAR;
OPTIMIZE TABLE t FINAL;
--= narrow_source
ALTER TABLE s MODIFY COLUMN x Int8;
ALTER TABLE s MODIFY COLUMN x Int64;
--= rename_columns_swap
ALTER TABLE s RENAME COLUMN x TO y, ADD COLUMN x Int64 DEFAULT 5;
INSERT INTO s (k, g, y, x) VALUES (1, 1, 1, 2);
--= dim_rename_column
ALTER TABLE d RENAME COLUMN z TO z2, ADD COLUMN z Int64 DEFAULT 9;
--= modify_order_source
ALTER TABLE s ADD COLUMN o UInt8, MODIFY ORDER BY (k, o);
--= truncate_source_dim
TRUNCATE TABLE s;
TRUNCATE TABLE d;
--= session_zone_insert
INSERT INTO s SETTINGS session_timezone = 'Asia/Tokyo', join_use_nulls = 1, final = 1, limit = 1 VALUES (1, 1, 4), (2, 1, 4);
--= insert_from_target
INSERT INTO s SELECT g, g, x FROM t;
--= insert_dim_from_source
INSERT INTO d SELECT k, x FROM s;
DELETE FROM d WHERE k = 1;
UPDATE d SET z = z + 1 WHERE k = 2;
--= undrop_target
DROP VIEW v;
DROP TABLE t;
UNDROP TABLE t;
CREATE MATERIALIZED VIEW v TO t AS SELECT g, sum(x) AS x FROM s GROUP BY g;
SYSTEM BACKFILL VIEW v;
SYSTEM ADOPT VIEW v;
--= undrop_source
DROP VIEW v;
DROP VIEW w;
DROP VIEW vj;
DROP TABLE s;
UNDROP TABLE s;
CREATE MATERIALIZED VIEW v TO t AS SELECT g, sum(x) AS x FROM s GROUP BY g;
SYSTEM ADOPT VIEW v;
--= shadow_temporary
CREATE TEMPORARY TABLE t (g UInt8, x Int64);
INSERT INTO t VALUES (1, 1);
CREATE TEMPORARY TABLE s (k UInt64, g UInt8, x Int64);
INSERT INTO s VALUES (7, 7, 7);
DROP TEMPORARY TABLE s;
DROP TEMPORARY TABLE t;
--= function_replaced
CREATE FUNCTION f AS (a) -> a + 1;
ALTER TABLE v MODIFY QUERY SELECT g, sum(f(x)) AS x FROM s GROUP BY g;
CREATE OR REPLACE FUNCTION f AS (a) -> a + 2;
SYSTEM REPLAY VIEW v STALE;
--= rename_db
RENAME DATABASE default TO other;
RENAME DATABASE other TO default;
