--# KeyError: the shape of a query followed the result of a window function below the window. Seeds 29 and 197.
--# InternalError in views/definition/query_shape.py:_follow_projection: KeyError: 'count'
CREATE TABLE s (k String, x Int64) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t1 (k String, n UInt64) ENGINE = MergeTree ORDER BY k;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT k, count() OVER (PARTITION BY k) AS n FROM (SELECT * FROM s);
INSERT INTO s VALUES ('a', 1), ('a', 2);
