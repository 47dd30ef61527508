"""Columns of system tables and of information_schema beside ClickHouse's: names and types."""

from __future__ import annotations

from contextlib import suppress

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import AccessDenied, UnknownTable
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle, OracleError

OTHER_TYPES = {
    ("grants", "access_type"),
    ("key_column_usage", "CONSTRAINT_SCHEMA"),
    ("key_column_usage", "CONSTRAINT_CATALOG"),
}
"""Columns whose types differ: an Enum of all privileges is a text, the others are Nullable in upper
case only."""
OWN = frozenset(
    [
        "asynchronous_metrics",
        "deduplication",
        "part_log",
        "query_log",
        "query_views_log",
        "snapshots",
        "source_offsets",
        "uncompressed_cache",
        "user_functions",
        "view_checks",
        "view_coverage",
        "view_dependencies",
        "view_invalidations",
        "view_job_chunks",
        "view_jobs",
        "view_retained",
        "views",
    ]
)
"""The tables that an embedded ClickHouse does not have."""
ENDLESS = ("numbers", "numbers_mt", "primes", "zeros", "zeros_mt")
ABSENT = frozenset(
    [
        "jemalloc_sampled_allocations",
        "privileges",
        "projection_parts_columns",
        "unicode",
        "user_query_log",
    ]
)
INFORMATION = (
    "schemata",
    "tables",
    "columns",
    "views",
    "key_column_usage",
    "referential_constraints",
    "statistics",
    "engines",
)


pytestmark = [
    pytest.mark.warehouse(
        "CREATE DATABASE shop",
        (
            "CREATE TABLE shop.sales (day Date, at DateTime, item String, paid Decimal(9, 2), "
            "note Nullable(FixedString(8)), INDEX i paid TYPE minmax) "
            "ENGINE = MergeTree PARTITION BY (toYYYYMM(day), toDate(at)) ORDER BY (item, day)"
        ),
        (
            "INSERT INTO shop.sales VALUES ('2024-01-05', '2024-01-05 10:00:00', 'a', 1.5, NULL), "
            "('2024-01-09', '2024-01-05 12:00:00', 'b', 2, 'x')"
        ),
        "CREATE VIEW shop.seen AS SELECT item FROM shop.sales",
    ),
    pytest.mark.feature("introspection"),
]


def _columns(connection: Connection, database: str) -> dict[tuple[str, str], str]:
    rows = connection.execute(
        f"SELECT table, name, type FROM system.columns WHERE database = '{database}'"
    ).fetchall()
    return {(table, name): data_type for table, name, data_type in rows}


@pytest.mark.parametrize("database", ["system", "information_schema"])
def test_columns_of_one_name_have_one_type(
    connection: Connection, oracle: Oracle, database: str
) -> None:
    theirs = {
        (table, name): str(data_type)
        for table, name, data_type in oracle.query(
            f"SELECT table, name, type FROM system.columns WHERE database = '{database}'"
        ).rows
    }
    ours = _columns(connection, database)
    shared = ours.keys() & theirs.keys() - OTHER_TYPES
    assert len(shared) > (1200 if database == "system" else 200)
    different = {k: (ours[k], theirs[k]) for k in shared if ours[k] != theirs[k]}
    assert different == {}


def test_system_tables_have_clickhouses_columns_in_its_order(
    connection: Connection, oracle: Oracle
) -> None:
    columns = "SELECT table, name FROM system.columns WHERE database = 'system'"
    theirs: dict[str, list[str]] = {}
    for table, name in oracle.query(f"{columns} AND default_kind = '' ORDER BY position").rows:
        theirs.setdefault(str(table), []).append(str(name))
    ours: dict[str, list[str]] = {}
    for table, name in connection.execute(f"{columns} ORDER BY position").fetchall():
        ours.setdefault(str(table), []).append(str(name))
    assert ours.keys() - theirs.keys() == OWN
    missing = {name for name in theirs.keys() - ours.keys() if not name.startswith("jemalloc")}
    assert missing <= ABSENT
    for table in ours.keys() & theirs.keys():
        assert ours[table][: len(theirs[table])] == theirs[table], table


@pytest.mark.parametrize("table", INFORMATION)
def test_information_schema_has_all_columns_in_both_cases(
    connection: Connection, oracle: Oracle, table: str
) -> None:
    theirs = oracle.query(f"DESCRIBE information_schema.{table}").column("name")
    ours = [name for of, name in _columns(connection, "information_schema") if of == table]
    assert sorted(ours) == sorted(str(name) for name in theirs)
    for spelt in (f"information_schema.{table}", f"INFORMATION_SCHEMA.{table.upper()}"):
        described = connection.execute(f"DESCRIBE {spelt}").fetchall()
        assert [row[0] for row in described] == ours
        connection.execute(f"SELECT * FROM {spelt}").fetchall()


def test_information_schema_tells_tables_and_columns(connection: Connection) -> None:
    tables = connection.execute(
        "SELECT TABLE_NAME, table_type, table_rows, engine FROM information_schema.tables "
        "WHERE table_schema = 'shop' ORDER BY 1"
    ).fetchall()
    assert tables == [("sales", "BASE TABLE", 2, "MergeTree"), ("seen", "VIEW", None, None)]
    columns = connection.execute(
        "SELECT column_name, ordinal_position, is_nullable, numeric_precision, numeric_scale, "
        "character_octet_length, column_key FROM INFORMATION_SCHEMA.COLUMNS "
        "WHERE table_name = 'sales' ORDER BY ordinal_position"
    ).fetchall()
    assert columns == [
        ("day", 1, "0", None, None, None, "PRI"),
        ("at", 2, "0", None, None, None, ""),
        ("item", 3, "0", None, None, None, "PRI"),
        ("paid", 4, "0", 9, 2, None, ""),
        ("note", 5, "1", None, None, 8, ""),
    ]
    views = connection.execute(
        "SELECT table_name, view_definition, is_insertable_into, toTypeName(is_updatable)"
        " FROM information_schema.views "
        "WHERE table_schema = 'shop'"
    ).fetchall()
    enum = "Enum8('NO' = 0, 'YES' = 1)"
    assert [(row[0], row[2], row[3]) for row in views] == [("seen", "NO", enum)]
    assert "sales" in str(views[0][1])


def test_parts_tell_their_days(connection: Connection) -> None:
    import datetime

    (row,) = connection.execute(
        "SELECT min_date, max_date, min_time, max_time FROM system.parts WHERE table = 'sales'"
    ).fetchall()
    assert row[:2] == (datetime.date(2024, 1, 5), datetime.date(2024, 1, 9))
    assert [at.hour for at in row[2:]] == [10, 12]


@pytest.mark.parametrize("name", ["information_schema.Tables", "system.nope", "system.zookeeper"])
def test_a_missing_one_is_unknown_with_a_hint(connection: Connection, name: str) -> None:
    with pytest.raises(UnknownTable, match=r"system\.tables WHERE database"):
        connection.execute(f"SELECT * FROM {name}")


def test_every_table_can_be_read_whole(connection: Connection) -> None:
    names = connection.execute(
        "SELECT database, name FROM system.tables WHERE database IN "
        "('system', 'information_schema')"
    ).fetchall()
    assert len(names) > 120
    for database, name in names:
        if name not in ENDLESS:
            with suppress(AccessDenied):
                connection.execute(f"SELECT * FROM {database}.{name}").fetchall()


@pytest.mark.parametrize("name", ["users", "roles", "quotas", "row_policies", "role_grants"])
def test_those_about_access_are_refused_as_by_clickhouse(
    connection: Connection, oracle: Oracle, name: str
) -> None:
    with pytest.raises(AccessDenied, match="one user"):
        connection.execute(f"SELECT * FROM system.{name}").fetchall()
    with pytest.raises(OracleError, match="ACCESS_DENIED"):
        oracle.query(f"SELECT * FROM system.{name}")


def test_a_uuid_of_a_system_table_is_one(connection: Connection, oracle: Oracle) -> None:
    assert_same(
        connection,
        oracle,
        "SELECT uuid, toTypeName(uuid), metadata_path FROM system.tables WHERE name = 'one'",
    )
    rows = "SELECT count(), uniqExact(uuid) FROM system.parts WHERE uuid = (SELECT any(uuid) FROM system.parts)"
    assert connection.execute(rows).fetchall() == [(1, 1)]


def test_keywords_codecs_and_engines_of_databases(connection: Connection, oracle: Oracle) -> None:
    for query in (
        "SELECT keyword FROM system.keywords ORDER BY ALL",
        "SELECT DISTINCT name FROM system.database_engines WHERE name IN ('Atomic', 'Nope')",
        "SELECT name, method_byte, is_compression, is_generic_compression, is_encryption,"
        " is_timeseries_codec, is_experimental, tier FROM system.codecs WHERE name IN ('NONE', 'LZ4',"
        " 'LZ4HC', 'ZSTD', 'Delta', 'DoubleDelta', 'Gorilla', 'FPC', 'T64', 'GCD') ORDER BY name",
    ):
        assert_same(connection, oracle, query)


def test_names_that_are_listed_are_clickhouses(connection: Connection, oracle: Oracle) -> None:
    for table in ("aggregate_function_combinators", "table_engines", "data_type_families"):
        theirs = set(oracle.query(f"SELECT name FROM system.{table}").column("name"))
        if table == "aggregate_function_combinators":
            theirs.add("MergeState")
        ours = {r[0] for r in connection.execute(f"SELECT name FROM system.{table}").fetchall()}
        if table == "table_engines":  # an embedded ClickHouse lists no replicated ones
            ours = {name for name in ours if not name.startswith("Replicated")}
        lowered = {str(name).lower() for name in theirs}
        assert {name for name in ours if name.lower() not in lowered} <= {"Decimal", "Interval"}


ALIASES = """
SELECT table, name FROM system.tables WHERE database = currentDatabase() AND table = 'shown'
SELECT column, name, type FROM system.columns WHERE table = 'shown' AND column = 'v'
SELECT database FROM system.databases WHERE database IN ('system', 'nope')
SELECT part_name, name FROM system.parts WHERE table = 'shown' AND active
SELECT DISTINCT part_name FROM system.parts_columns WHERE table = 'shown' AND active
SELECT p.part_name, t.table FROM system.parts AS p JOIN system.tables AS t ON p.table = t.table WHERE t.table = 'shown' AND p.active
SELECT DISTINCT toTypeName(Settings.Names), mapKeys(Settings) = Settings.Names, mapValues(Settings) = Settings.Values FROM system.processes
SELECT `table` FROM (SELECT * FROM system.tables)
"""


@pytest.mark.parametrize("query", ALIASES.strip().splitlines())
def test_alias_columns_are_read_when_named(
    connection: Connection, oracle: Oracle, query: str
) -> None:
    for statement in (
        "DROP TABLE IF EXISTS shown",
        "CREATE TABLE shown (k UInt8, v String) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO shown VALUES (1, 'x')",
    ):
        oracle.execute(statement)
        connection.execute(statement)
    assert_same(connection, oracle, query)
