"""SHOW, DESCRIBE, RENAME, TRUNCATE, DROP, indexes, Nested, virtual columns and forced indexes, each
statement beside ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("sql")

TABLES = """
CREATE TABLE a (k UInt64, s String DEFAULT 'q', d Date COMMENT 'day', m UInt8 MATERIALIZED 3,
    x UInt8 ALIAS 4, INDEX i s TYPE bloom_filter GRANULARITY 2, INDEX j k TYPE minmax)
    ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY (k, d)
CREATE TABLE b (k UInt64) ENGINE = MergeTree ORDER BY k
CREATE TABLE c (k UInt64, v UInt8) ENGINE = ReplacingMergeTree ORDER BY k
CREATE TABLE memory (k UInt64) ENGINE = Memory
CREATE TABLE empty (k UInt64) ENGINE = MergeTree ORDER BY k
CREATE VIEW v AS SELECT k FROM b
INSERT INTO a (k, s, d) VALUES (1, 'x', '2024-01-01'), (2, 'y', '2024-02-01')
INSERT INTO b VALUES (1), (2)
INSERT INTO c VALUES (1, 1)
INSERT INTO memory VALUES (3)
"""

SHOWN = """
SHOW TABLES
SHOW FULL TABLES
SHOW FULL TABLES FROM t LIKE '%e%' LIMIT 1
SHOW TABLES NOT ILIKE 'A'
SHOW TABLES WHERE engine = 'View' LIMIT 3
SHOW TEMPORARY TABLES
SHOW DICTIONARIES
SHOW DATABASES LIKE 't'
SHOW INDEX FROM a
SHOW KEYS IN a FROM t WHERE index_type != 'MINMAX'
SHOW EXTENDED INDICES FROM b
SHOW COLUMNS FROM a
SHOW FULL COLUMNS FROM a LIKE '%k%'
SHOW EXTENDED FULL FIELDS FROM a FROM t WHERE key = '' LIMIT 2
SHOW SETTING max_block_size
SHOW MERGES
SHOW MERGES NOT ILIKE 'x%' LIMIT 1
SHOW CLUSTERS
SHOW CLUSTERS LIKE 'x%' LIMIT 3
SHOW CLUSTER 'x'
SHOW GRANTS FOR nobody
SHOW CHANGED SETTINGS LIKE 'max_block_size'
SHOW CREATE VIEW a
SHOW TABLES FROM nope
SHOW DATABASES WHERE name = 't'
SHOW FULL PROCESSLIST
DESCRIBE a SETTINGS describe_compact_output = 1
DESCRIBE (SELECT 1 AS x, 'y' AS y)
EXISTS VIEW v
EXISTS VIEW a
EXISTS DATABASE t
EXISTS DATABASE nope
SELECT _table, _database, k, toTypeName(_table) FROM a ORDER BY k
SELECT _table, k FROM memory
SELECT _table FROM v
SELECT DISTINCT x._table, b._table, b._database FROM a AS x JOIN b ON x.k = b.k
SELECT _table, count() FROM a GROUP BY _table
SELECT count() FROM a WHERE _table = 'b'
SELECT k FROM a WHERE _table = 'a' AND k = 1
SELECT _table FROM (SELECT * FROM a)
SELECT _database, _table FROM system.one
SELECT k, _table FROM (SELECT k, _table FROM a UNION ALL SELECT k, _table FROM b) ORDER BY ALL
SELECT * FROM a ORDER BY k SETTINGS asterisk_include_materialized_columns = 1
SELECT * FROM a ORDER BY k SETTINGS asterisk_include_alias_columns = 1
SELECT a.* FROM a ORDER BY k SETTINGS asterisk_include_alias_columns = 1, asterisk_include_materialized_columns = 1
SELECT * EXCEPT x FROM a ORDER BY k SETTINGS asterisk_include_alias_columns = 1
SELECT * FROM (SELECT * FROM a) ORDER BY k SETTINGS asterisk_include_alias_columns = 1
SELECT count(*) FROM a SETTINGS asterisk_include_alias_columns = 1
SELECT * FROM v ORDER BY k SETTINGS asterisk_include_alias_columns = 1
SELECT currentSchemas(true), currentProfiles(), currentRoles(), shardNum(), revision() > 0
SELECT toTypeName(uptime()), toTypeName(serverUUID()), serverUUID() = serverUUID(), FQDN() = fqdn()
SELECT initialQueryID() = queryID(), toTypeName(revision()), toTypeName(currentRoles())
SELECT k FROM a SETTINGS force_primary_key = 1
SELECT k FROM a WHERE k = 1 SETTINGS force_primary_key = 1
SELECT k FROM a PREWHERE k = 1 SETTINGS force_primary_key = 1
SELECT k FROM a WHERE s = 'x' SETTINGS force_primary_key = 1
SELECT k FROM a WHERE d = '2024-01-01' SETTINGS force_primary_key = 1
SELECT k FROM a WHERE k != 1 SETTINGS force_primary_key = 1
SELECT k FROM a WHERE k NOT IN (1, 3) SETTINGS force_primary_key = 1
SELECT k FROM a WHERE k % 2 = 1 SETTINGS force_primary_key = 1
SELECT k FROM a WHERE k = 1 OR s = 'x' SETTINGS force_primary_key = 1
SELECT k FROM a WHERE k = 1 AND s = 'x' SETTINGS force_primary_key = 1
SELECT k FROM a WHERE 1 SETTINGS force_primary_key = 1
SELECT count() FROM a SETTINGS force_primary_key = 1
SELECT k FROM v SETTINGS force_primary_key = 1
SELECT k FROM v WHERE k = 1 SETTINGS force_primary_key = 1
SELECT k FROM memory SETTINGS force_primary_key = 1
SELECT k FROM empty SETTINGS force_primary_key = 1
SELECT k FROM b WHERE k IN (SELECT k FROM c WHERE k = 1) SETTINGS force_primary_key = 1
SELECT k FROM b WHERE k IN (SELECT k FROM c) SETTINGS force_primary_key = 1
SELECT k FROM b WHERE k = (SELECT max(k) FROM c WHERE k = 1) SETTINGS force_primary_key = 1
SELECT k FROM c FINAL WHERE k = 1 SETTINGS force_primary_key = 1
SELECT k FROM c FINAL WHERE v = 1 SETTINGS force_primary_key = 1
SELECT k FROM a WHERE d = '2024-01-01' SETTINGS force_index_by_date = 1
SELECT k FROM a WHERE toYYYYMM(d) = 202401 SETTINGS force_index_by_date = 1
SELECT k FROM a WHERE k = 1 SETTINGS force_index_by_date = 1
SELECT k FROM b WHERE k = 1 SETTINGS force_index_by_date = 1
SELECT k FROM a WHERE s = 'x' SETTINGS force_data_skipping_indices = 'i'
SELECT k FROM a WHERE s = 'x' SETTINGS force_data_skipping_indices = 'i, j'
SELECT k FROM a WHERE s = 'x' SETTINGS force_data_skipping_indices = 'i', use_skip_indexes = 0
SELECT k FROM a WHERE k = 1 SETTINGS force_data_skipping_indices = 'i'
SELECT k FROM b WHERE k = 1 SETTINGS force_data_skipping_indices = 'nope'
"""

CHANGED = """
RENAME TABLE IF EXISTS nope TO n, c TO c2
RENAME TABLE IF EXISTS nope TO n, nope2 TO n2
RENAME TABLE b TO b2, IF EXISTS nope TO n
RENAME DATABASE IF EXISTS nope TO n
RENAME IF EXISTS b2 TO b
SHOW TABLES
DROP TABLE IF EMPTY memory
DROP TABLE IF EXISTS IF EMPTY a
DROP TABLE IF EMPTY empty
TRUNCATE ALL TABLES FROM t LIKE 'b%'
SELECT count() FROM b
SELECT count() FROM a
ALTER TABLE a ADD INDEX i1 k TYPE minmax FIRST
ALTER TABLE a ADD INDEX i2 k TYPE minmax AFTER i
ALTER TABLE a ADD INDEX i3 k TYPE minmax AFTER nope
ALTER TABLE a ADD INDEX IF NOT EXISTS i2 k TYPE minmax FIRST
SELECT name FROM system.data_skipping_indices WHERE database = 't'
ALTER TABLE a CLEAR INDEX i IN PARTITION 202401
ALTER TABLE a CLEAR INDEX IF EXISTS nope
ALTER TABLE a MATERIALIZE INDEX i IN PARTITION 202401
ALTER TABLE a MATERIALIZE INDEX IF EXISTS nope IN PARTITION 202401
ALTER TABLE a MATERIALIZE COLUMN s IN PARTITION 202401
CREATE INDEX IF NOT EXISTS i ON a (k) TYPE minmax
DROP INDEX i1 ON a
DROP INDEX i1 ON a
SELECT * FROM a WHERE s = 'x'
TRUNCATE ALL TABLES FROM t
SELECT count() FROM a
TRUNCATE ALL TABLES FROM nope
TRUNCATE ALL TABLES FROM IF EXISTS nope
DROP DATABASE IF EMPTY t
TRUNCATE DATABASE nope
TRUNCATE DATABASE t
SHOW TABLES
EXISTS DATABASE t
"""

NESTED = """
CREATE TABLE n (id UInt64, n Nested(a UInt8, b Nullable(String)) COMMENT 'c', x Array(UInt8)) ENGINE = MergeTree ORDER BY id
INSERT INTO n VALUES (1, [1, 2], ['x', NULL], [7])
INSERT INTO n VALUES (2, [1, 2], ['x'], [7])
INSERT INTO n (id, `n.a`) VALUES (3, [1, 2])
INSERT INTO n (id, `n.b`) SELECT 4, ['z']
INSERT INTO n (id) VALUES (5)
INSERT INTO n (id, n) VALUES (6, [(1, 'a')])
DESCRIBE n
SELECT * FROM n ORDER BY id
SELECT id, n.a, n.b FROM n ARRAY JOIN n ORDER BY ALL
SELECT id, m.a, m.b FROM n LEFT ARRAY JOIN n AS m ORDER BY ALL
ALTER TABLE n ADD COLUMN n.d Array(UInt16) AFTER id
SELECT id, n.d, length(n.d) = length(n.a) FROM n ORDER BY id
OPTIMIZE TABLE n FINAL
SELECT * FROM n ORDER BY id
ALTER TABLE n ADD COLUMN q Nested(r UInt8, s String) AFTER id
ALTER TABLE n ADD COLUMN p Nested(r UInt8, s String) FIRST
ALTER TABLE n ADD COLUMN q Nested(r UInt8, s String)
ALTER TABLE n ADD COLUMN IF NOT EXISTS q Nested(r UInt8, s String)
DESCRIBE n
SELECT q.s FROM n ORDER BY id
ALTER TABLE n RENAME COLUMN q TO w
ALTER TABLE n RENAME COLUMN q.r TO q.z
ALTER TABLE n RENAME COLUMN q.z TO z
ALTER TABLE n RENAME COLUMN x TO q.y
ALTER TABLE n MODIFY COLUMN q Nested(z UInt16)
ALTER TABLE n MODIFY COLUMN q.z Array(UInt16)
ALTER TABLE n CLEAR COLUMN x
ALTER TABLE n DROP COLUMN q
ALTER TABLE n DROP COLUMN p.r, DROP COLUMN p.s
DESCRIBE n
CREATE TABLE m (id UInt64, n Nested(a UInt8), y UInt64 DEFAULT length(n.a)) ENGINE = Memory
INSERT INTO m (id, `n.a`) VALUES (1, [1, 2])
SELECT * FROM m
"""


@pytest.fixture
def engines() -> Iterator[tuple[Oracle, olapdb.Connection]]:
    """Create the same tables in both, in a database `t`."""
    with Oracle() as oracle, olapdb.connect() as connection:
        connection.execute("CREATE DATABASE t")
        connection.execute("USE t")
        for statement in _statements(TABLES):
            oracle.execute(statement)
            connection.execute(statement)
        yield oracle, connection


@pytest.mark.parametrize("script", [SHOWN, CHANGED, NESTED], ids=["shown", "changed", "nested"])
def test_as_clickhouse(script: str, engines: tuple[Oracle, olapdb.Connection]) -> None:
    oracle, connection = engines
    for statement in _statements(script):
        assert (statement, ours(connection, statement)) == (statement, theirs(oracle, statement))


def _statements(text: str) -> Sequence[str]:
    """Split a script into statements, one a line; indented lines continue a statement."""
    return text.strip().replace("\n    ", " ").splitlines()


Answer = tuple[object, ...]


def theirs(oracle: Oracle, statement: str) -> Answer:
    """Return names, types and rows, or the error's name."""
    try:
        found = oracle.query(statement)
    except OracleError as error:
        return (error.name,)
    return found.names, found.types, found.rows


def ours(connection: olapdb.Connection, statement: str) -> Answer:
    try:
        cursor = connection.execute(statement)
    except olapdb.Error as error:
        return (error.name,)
    if cursor.description is None:
        return (), (), []
    types = tuple(str(column[1]) for column in cursor.description)
    rows = [tuple(_text(value, quoted=False) for value in row) for row in cursor.fetchall()]
    return tuple(column[0] for column in cursor.description), types, rows


def _text(value: object, *, quoted: bool) -> str | None:
    """Format a value as TabSeparated prints it."""
    if isinstance(value, list):
        return "[" + ",".join(_text(one, quoted=True) or "NULL" for one in value) + "]"
    if isinstance(value, str):
        return f"'{value}'" if quoted else value
    return None if value is None else str(value)
