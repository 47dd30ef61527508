--# Volatile default in the target.
--# untrue [values]: v2: ['covered']: [values] [0.0, 20] instead of [0.0, 19]
CREATE TABLE s (k Nullable(String), g UInt8, x Int64, y Nullable(Int32)) ENGINE = MergeTree ORDER BY k SETTINGS allow_nullable_key = 1;
CREATE TABLE t2 (m0 Float64, own Int64 DEFAULT length(toString(rand64()))) ENGINE = MergeTree ORDER BY tuple();
CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT x AS m0 FROM s;
-- arrow s {'k': [None], 'g': [1], 'x': [0], 'y': [1]};
