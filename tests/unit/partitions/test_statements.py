"""ALTER TABLE … PARTITION and PART: what each statement changes, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    BadArguments,
    BadDataPartName,
    Error,
    IncompatibleColumns,
    InvalidPartitionValue,
    NotSupportedError,
    SupportIsDisabled,
    UnknownDisk,
    UnsupportedMethod,
)
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.schema import Table
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("changes")

TABLE = "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY n"


@pytest.fixture(params=[0, 262_144], ids=["files", "inline"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(str(tmp_path)) as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(f"SET inline_bytes_max = {request.param}")
        opened.execute(f"CREATE TABLE t {TABLE}")
        opened.execute("INSERT INTO t VALUES ('2024-01-01', 'a', 1), ('2024-02-01', 'b', 2)")
        opened.execute("INSERT INTO t VALUES ('2024-01-02', 'c', 3)")
        yield opened
        services = opened.database.services
        assert check_database(services.catalog, services.store) == []


def numbers(connection: Connection, table: str = "t") -> list[int]:
    return [n for (n,) in rows(connection, f"SELECT n FROM {table} ORDER BY n")]


def commits(connection: Connection) -> int:
    return int(rows(connection, "SELECT count() FROM system.snapshots")[0][0])


@pytest.mark.parametrize("name", ["202401", "ID '202401'", "'202401'"])
def test_drop_partition_by_value_and_id(connection: Connection, name: str) -> None:
    before = commits(connection)
    connection.execute(f"ALTER TABLE t DROP PARTITION {name}")
    assert numbers(connection) == [2]
    assert commits(connection) == before + 1


def test_drop_part_and_all(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DROP PART '202401_2_2_0'")
    assert numbers(connection) == [1, 2]
    connection.execute("ALTER TABLE t DROP PARTITION ALL")
    assert numbers(connection) == []
    connection.execute("ALTER TABLE t DROP PARTITION 209901")  # silent, as in ClickHouse


def test_tuple_names_the_only_partition(connection: Connection) -> None:
    connection.execute("CREATE TABLE one (n UInt64) ENGINE = MergeTree ORDER BY n")
    for name in ("tuple()", "ID 'all'"):
        connection.execute("INSERT INTO one VALUES (1)")
        connection.execute(f"ALTER TABLE one DROP PARTITION {name}")
        assert numbers(connection, "one") == []
    with pytest.raises(InvalidPartitionValue, match="no PARTITION BY"):
        connection.execute("ALTER TABLE one DROP PARTITION 7")


def test_keys_of_several_items(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE m (d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY (s, d) ORDER BY n"
    )
    connection.execute("INSERT INTO m VALUES ('2024-01-01', 'a', 1), ('2024-01-01', 'b', 2)")
    assert rows(connection, "SELECT partition FROM system.parts WHERE table = 'm' ORDER BY 1") == [
        ("('a','2024-01-01')",),
        ("('b','2024-01-01')",),
    ]
    connection.execute("ALTER TABLE m DROP PARTITION ('a', '2024-01-01')")
    assert numbers(connection, "m") == [2]
    with pytest.raises(InvalidPartitionValue, match="2 elements"):
        connection.execute("ALTER TABLE m DROP PARTITION 'a'")


def test_detach_and_attach(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DETACH PARTITION 202401")
    assert numbers(connection) == [2]
    detached = dicts(connection, "SELECT * FROM system.detached_parts ORDER BY name")
    assert [(d["table"], d["partition_id"], d["name"], d["rows"]) for d in detached] == [
        ("t", "202401", "202401_1_1_0", 1),
        ("t", "202401", "202401_2_2_0", 1),
    ]
    connection.execute("ALTER TABLE t ATTACH PART '202401_2_2_0'")
    assert numbers(connection) == [2, 3]
    connection.execute("ALTER TABLE t ATTACH PARTITION 202401")
    assert numbers(connection) == [1, 2, 3]
    assert rows(connection, "SELECT count() FROM system.detached_parts") == [(0,)]
    # Attached rows get new block numbers, so no merge or view takes them for older blocks.
    blocks = rows(connection, "SELECT min_block_number FROM system.parts ORDER BY 1")
    assert blocks == [(1,), (3,), (4,)]


def test_detached_rows_outlive_vacuum_and_columns(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DETACH PARTITION 202401")
    connection.execute("ALTER TABLE t ADD COLUMN more String DEFAULT concat(s, '!')")
    vacuum(connection.database.services, lifetime_seconds=0)
    connection.execute("ALTER TABLE t ATTACH PARTITION ALL")
    assert rows(connection, "SELECT n, more FROM t ORDER BY n") == [(1, "a!"), (2, "b!"), (3, "c!")]


def test_dropping_detached_parts_has_to_be_allowed(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DETACH PARTITION 202401")
    with pytest.raises(SupportIsDisabled, match="allow_drop_detached"):
        connection.execute("ALTER TABLE t DROP DETACHED PARTITION 202401")
    connection.execute(
        "ALTER TABLE t DROP DETACHED PART '202401_1_1_0' SETTINGS allow_drop_detached = 1"
    )
    connection.execute("ALTER TABLE t ATTACH PARTITION 202401")
    assert numbers(connection) == [2, 3]


def test_attach_from_shares_parts(connection: Connection) -> None:
    connection.execute(f"CREATE TABLE u {TABLE}")
    before = commits(connection)
    connection.execute("ALTER TABLE u ATTACH PARTITION 202401 FROM t")
    assert commits(connection) == before + 1
    assert numbers(connection, "u") == [1, 3]
    connection.execute("ALTER TABLE u ATTACH PARTITION 202401 FROM t")
    assert numbers(connection, "u") == [1, 1, 3, 3]
    paths = rows(connection, "SELECT uniqExact(path), count() FROM system.parts WHERE path != ''")
    assert paths in ([(3, 7)], [(0, 0)])  # share files; inline rows have none


def test_a_shared_file_stays_until_nobody_has_it(connection: Connection) -> None:
    connection.execute(f"CREATE TABLE u {TABLE}")
    connection.execute("ALTER TABLE u ATTACH PARTITION 202401 FROM t")
    connection.execute("DROP TABLE t")
    services = connection.database.services
    vacuum(services, lifetime_seconds=0)
    vacuum(services, lifetime_seconds=0)
    assert numbers(connection, "u") == [1, 3]
    connection.execute("OPTIMIZE TABLE u FINAL")
    vacuum(services, lifetime_seconds=0)
    assert numbers(connection, "u") == [1, 3]
    connection.execute("TRUNCATE TABLE u")
    vacuum(services, lifetime_seconds=0)
    vacuum(services, lifetime_seconds=0)
    assert list(services.store.list("data/")) == []


def test_replace_partition(connection: Connection) -> None:
    connection.execute(f"CREATE TABLE u {TABLE}")
    connection.execute("INSERT INTO u VALUES ('2024-01-09', 'z', 9)")
    connection.execute("ALTER TABLE t REPLACE PARTITION 202401 FROM u")
    assert numbers(connection) == [2, 9]
    assert numbers(connection, "u") == [9]
    connection.execute("ALTER TABLE t REPLACE PARTITION ID '202401' FROM u")
    assert numbers(connection) == [2, 9]
    with pytest.raises(BadArguments, match="no partition 202402"):
        connection.execute("ALTER TABLE t REPLACE PARTITION 202402 FROM u")
    connection.execute(
        "ALTER TABLE t REPLACE PARTITION 202402 FROM u"
        " SETTINGS allow_replace_partition_from_empty_source = 1"
    )
    assert numbers(connection) == [9]
    connection.execute("INSERT INTO u VALUES ('2024-05-09', 'z', 5)")
    connection.execute("ALTER TABLE t REPLACE PARTITION 202405 FROM u")  # no part has to be removed
    assert numbers(connection) == [5, 9]


def test_move_partition(connection: Connection) -> None:
    connection.execute(f"CREATE TABLE u {TABLE}")
    before = commits(connection)
    connection.execute("ALTER TABLE t MOVE PARTITION 202401 TO TABLE u")
    assert commits(connection) == before + 1
    assert (numbers(connection), numbers(connection, "u")) == ([2], [1, 3])
    connection.execute("ALTER TABLE t MOVE PART '202402_1_1_0' TO TABLE u")
    assert (numbers(connection), numbers(connection, "u")) == ([], [1, 2, 3])


def test_parts_that_differ_in_column_ids_are_copied(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE u (n UInt64, s String, d Date) ENGINE = MergeTree"
        " PARTITION BY toYYYYMM(d) ORDER BY n"
    )
    connection.execute("ALTER TABLE u ATTACH PARTITION 202401 FROM t")
    assert rows(connection, "SELECT n, s, toString(d) FROM u ORDER BY n") == [
        (1, "a", "2024-01-01"),
        (3, "c", "2024-01-02"),
    ]


def test_clone(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD COLUMN z UInt8 DEFAULT 7")
    connection.execute("ALTER TABLE t DROP COLUMN s")
    before = commits(connection)
    connection.execute("CREATE TABLE k CLONE AS t")
    assert commits(connection) == before + 1
    assert rows(connection, "SELECT n, z FROM k ORDER BY n") == [(1, 7), (2, 7), (3, 7)]
    connection.execute("DELETE FROM t WHERE n = 1")
    connection.execute("INSERT INTO k VALUES ('2024-03-01', 4, 1)")
    assert (numbers(connection), numbers(connection, "k")) == ([2, 3], [1, 2, 3, 4])
    connection.execute("CREATE OR REPLACE TABLE k CLONE AS t")
    assert numbers(connection, "k") == [2, 3]


@pytest.mark.parametrize(
    "made", ["CREATE TABLE k CLONE AS t", "CREATE TABLE k AS t", "CREATE TABLE k CLONE AS before"]
)
def test_a_dropped_column_of_a_shared_part_does_not_come_back(
    connection: Connection, made: str
) -> None:
    """Neither as a column of the same name that the other table adds, nor as one of another
    name."""
    for statement in (
        "CREATE TABLE before CLONE AS t",
        "ALTER TABLE t ADD COLUMN x Int64",
        "INSERT INTO t VALUES ('2024-01-09', 'i', 9, 5)",
        "ALTER TABLE t DROP COLUMN x",
        made,
        "TRUNCATE TABLE k",
        "ALTER TABLE k ATTACH PARTITION 202401 FROM t",
    ):
        connection.execute(statement)
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []
    for column in ("x", "y"):
        connection.execute(f"ALTER TABLE k ADD COLUMN {column} Int64 DEFAULT 7")
        assert rows(connection, f"SELECT {column} FROM k WHERE {column} = 7") == [(7,)] * 3
        connection.execute("ALTER TABLE k DETACH PARTITION 202401")
        connection.execute("ALTER TABLE k ATTACH PARTITION 202401")
        connection.execute("OPTIMIZE TABLE k FINAL")
        assert rows(connection, f"SELECT DISTINCT {column} FROM k") == [(7,)]
    assert check_database(services.catalog, services.store) == []


def test_a_clone_that_fails_leaves_the_files_of_its_source(connection: Connection) -> None:
    catalog = connection.database.services.catalog
    apply = catalog.apply

    def refused(commit: object) -> object:
        raise BadArguments("no")

    catalog.apply = refused  # type: ignore[method-assign, assignment]
    try:
        with pytest.raises(BadArguments, match="no"):
            connection.execute("CREATE TABLE k CLONE AS t")
        with pytest.raises(BadArguments, match="no"):
            connection.execute("ALTER TABLE t ATTACH PARTITION 202401 FROM t")
        with pytest.raises(BadArguments, match="no"):
            connection.execute("ALTER TABLE t DETACH PARTITION 202401")
    finally:
        catalog.apply = apply  # type: ignore[method-assign]
    assert numbers(connection) == [1, 2, 3]


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (
            "(d Date, s String) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY s",
            IncompatibleColumns,
            "structure",
        ),
        (
            "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY s",
            BadArguments,
            "ordering",
        ),
        (
            "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY d ORDER BY n",
            BadArguments,
            "partition key",
        ),
        ("(d Date, s String, n UInt64) ENGINE = Memory", UnsupportedMethod, "MergeTree family"),
    ],
)
def test_structure_is_checked(
    connection: Connection, other: str, error: type[Error], message: str
) -> None:
    connection.execute(f"CREATE TABLE u {other}")
    for statement in (
        "ALTER TABLE t ATTACH PARTITION 202401 FROM u",
        "ALTER TABLE t REPLACE PARTITION 202401 FROM u",
        "ALTER TABLE t MOVE PARTITION 202401 TO TABLE u",
    ):
        with pytest.raises(error, match=message):
            connection.execute(statement)
    assert numbers(connection) == [1, 2, 3]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("ALTER TABLE t DROP PART 'x'", BadDataPartName),
        ("ALTER TABLE t ATTACH PART 'x'", BadDataPartName),
        ("ALTER TABLE t MOVE PARTITION ALL TO TABLE t", SupportIsDisabled),
        ("ALTER TABLE t MOVE PARTITION 202401 TO TABLE t", BadArguments),
        ("ALTER TABLE t FETCH PARTITION 202401 FROM '/x'", NotSupportedError),
        ("ALTER TABLE t MOVE PARTITION 202401 TO DISK 'x'", UnknownDisk),
        ("ALTER TABLE t DROP PARTITION 202401, ADD COLUMN x UInt8", NotSupportedError),
    ],
)
def test_refused(connection: Connection, statement: str, error: type[Error]) -> None:
    before = commits(connection)
    with pytest.raises(error):
        connection.execute(statement)
    assert commits(connection) == before
    assert numbers(connection) == [1, 2, 3]


def test_a_replaced_dimension_has_no_detached_parts(connection: Connection) -> None:
    """The detached parts have the old keys. Nor has the table any where no view joins it: it is
    new."""
    for statement in (
        f"CREATE TABLE source {TABLE}",
        "CREATE TABLE target (s String, c UInt64) ENGINE = SummingMergeTree ORDER BY s",
        "CREATE MATERIALIZED VIEW v TO target AS SELECT t.s AS s, count() AS c FROM source JOIN t"
        " ON source.n = t.n GROUP BY s",
        "ALTER TABLE t ADD COLUMN x Int64",
        "ALTER TABLE t DROP COLUMN x",
        "ALTER TABLE t DETACH PARTITION 202401",
        "CREATE OR REPLACE TABLE t (d Date, s String, n UInt64, y Int64) ENGINE = MergeTree"
        " PARTITION BY n ORDER BY s",
    ):
        connection.execute(statement)
    assert rows(connection, "SELECT count() FROM system.detached_parts") == [(0,)]
    connection.execute("ALTER TABLE t ATTACH PARTITION ALL")
    assert rows(connection, "SELECT count() FROM t") == [(0,)]
    table = connection.database.services.catalog.snapshot().find("default", "t")
    assert isinstance(table, Table)
    y = table.column("y")
    assert y is not None
    assert y.id == 5, "an id is never given twice"
