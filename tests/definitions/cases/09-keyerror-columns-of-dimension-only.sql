--# KeyError.
--# InternalError in views/shape.py:_through: Code: 49. The statement failed: KeyError: 'w'. This is a bug of olapdb: please report it with the statement. (LOGICAL_ERROR)
CREATE TABLE s (k String, g UInt8, x Int64, y Float32) ENGINE = ReplacingMergeTree ORDER BY g;
CREATE TABLE d (k String, w Float32) ENGINE = MergeTree ORDER BY k;
CREATE TABLE t1 (m0 Float64) ENGINE = MergeTree ORDER BY m0;
CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT j.w AS m0 FROM (SELECT k, g, x, y FROM s) AS s JOIN d AS j ON s.k = j.k;
