"""UNDROP TABLE: a dropped table comes back whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import TableAlreadyExists, UnknownDatabase, UnknownTable
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, make, rows, verdict

pytestmark = pytest.mark.feature("schema")


def whole(connection: Connection) -> None:
    """Require a sound database."""
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def dropped(connection: Connection) -> list[tuple[object, ...]]:
    """Return database, table and completeness of the dropped tables."""
    return rows(connection, "SELECT database, table, complete FROM system.dropped_tables")


def test_a_dropped_table_comes_back_with_its_rows(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as connection, olapdb.connect(str(tmp_path)) as other:
        for one in (connection, other):
            one.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (x Int64) ENGINE = MergeTree PARTITION BY x % 2 ORDER BY x"
            " SETTINGS inline_bytes_max = 100"
        )
        connection.execute("INSERT INTO t VALUES (1), (2)")
        connection.execute("INSERT INTO t SELECT number FROM numbers(1000)")
        before = rows(
            connection, "SELECT name, rows FROM system.parts WHERE table = 't' AND active"
        )
        uuid = rows(connection, "SELECT uuid FROM system.tables WHERE name = 't'")
        assert rows(other, "SELECT count() FROM t") == [(1002,)]
        connection.execute("DROP TABLE t")
        assert dropped(other) == [("default", "t", 1)]
        assert rows(other, "EXISTS TABLE t") == [(0,)]
        connection.execute("UNDROP TABLE t")
        for one in (connection, other):
            assert rows(one, "SELECT count(), sum(x) FROM t") == [(1002, 499503)]
            assert (
                rows(one, "SELECT name, rows FROM system.parts WHERE table = 't' AND active")
                == before
            )
            assert rows(one, "SELECT uuid FROM system.tables WHERE name = 't'") == uuid
        assert dropped(other) == []
        other.execute("INSERT INTO t VALUES (5)")
        other.execute("OPTIMIZE TABLE t FINAL")
        assert rows(connection, "SELECT count() FROM t") == [(1003,)]
        vacuum(connection.database.services, lifetime_seconds=0)
        assert rows(connection, "SELECT count() FROM t") == [(1003,)]
        whole(connection)


def test_it_comes_back_after_a_reopening_and_a_vacuum_in_time(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("CREATE TABLE t (x Int64) ENGINE = MergeTree ORDER BY x")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("DROP TABLE t")
        vacuum(connection.database.services)
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("UNDROP TABLE t")
        assert rows(connection, "SELECT x FROM t") == [(1,)]
        whole(connection)


@pytest.mark.parametrize("inline_bytes_max", [0, 65536])
def test_what_was_vacuumed_stays_gone(inline_bytes_max: int) -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (x Int64) ENGINE = MergeTree ORDER BY x"
            f" SETTINGS inline_bytes_max = {inline_bytes_max}"
        )
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("DROP TABLE t")
        vacuum(connection.database.services, lifetime_seconds=0)
        with pytest.raises(UnknownTable):
            connection.execute("UNDROP TABLE t")
        vacuum(connection.database.services, lifetime_seconds=0)
        assert dropped(connection) == []
        with pytest.raises(UnknownTable, match="No dropped table"):
            connection.execute("UNDROP TABLE t")


def test_a_table_of_which_parts_are_vacuumed_does_not_come_back_in_part() -> None:
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE TABLE t (x Int64) ENGINE = MergeTree ORDER BY x")
        for value in (1, 2):
            connection.execute(f"INSERT INTO t VALUES ({value})")
        connection.execute("DROP TABLE t")
        catalog = connection.database.services.catalog
        first, _ = catalog.dropped_parts(connection.database.services.clock_ms() + 1, 10)
        catalog.purge_parts([first])
        assert dropped(connection) == [("default", "t", 0)]
        with pytest.raises(UnknownTable, match="vacuumed"):
            connection.execute("UNDROP TABLE t")


def test_vacuum_keeps_a_dropped_table_as_long_as_its_setting_says() -> None:
    with olapdb.connect() as connection:
        for name, seconds in (("short", 0), ("long", 100_000)):
            connection.execute(
                f"CREATE TABLE {name} (x Int64) ENGINE = MergeTree ORDER BY x"
                f" SETTINGS old_parts_lifetime = {seconds}"
            )
            connection.execute(f"INSERT INTO {name} VALUES (1)")
            connection.execute(f"DROP TABLE {name}")
        vacuum(connection.database.services)
        assert ("default", "long", 1) in dropped(connection)
        with pytest.raises(UnknownTable):
            connection.execute("UNDROP TABLE short")
        connection.execute("UNDROP TABLE long")
        assert rows(connection, "SELECT x FROM long") == [(1,)]


def test_parts_that_are_kept_for_long_do_not_keep_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This holds even if one table has more dropped parts than vacuum deletes in a round."""
    monkeypatch.setattr("olapdb.maintenance.vacuum.PARTS_A_STEP", 2)
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        for name, seconds, parts in (("long", 100_000, 3), ("short", 0, 1)):
            connection.execute(
                f"CREATE TABLE {name} (x Int64) ENGINE = MergeTree ORDER BY x"
                f" SETTINGS old_parts_lifetime = {seconds}"
            )
            for value in range(parts):
                connection.execute(f"INSERT INTO {name} VALUES ({value})")
            connection.execute(f"DROP TABLE {name}")
        assert vacuum(connection.database.services).parts == 1
        assert ("default", "long", 1) in dropped(connection)


def test_the_last_one_of_a_name_or_the_one_with_the_uuid() -> None:
    with olapdb.connect() as connection:
        uuids = []
        for value in (1, 2):
            connection.execute("CREATE TABLE t (x Int64) ENGINE = MergeTree ORDER BY x")
            connection.execute(f"INSERT INTO t VALUES ({value})")
            uuids += rows(connection, "SELECT uuid FROM system.tables WHERE name = 't'")[0]
            connection.execute("DROP TABLE t")
        connection.execute("UNDROP TABLE t")
        assert rows(connection, "SELECT x FROM t") == [(2,)]
        with pytest.raises(TableAlreadyExists):
            connection.execute("UNDROP TABLE t")
        connection.execute("RENAME TABLE t TO u")
        connection.execute(f"UNDROP TABLE t UUID '{uuids[0]}'")
        assert rows(connection, "SELECT x FROM t") == [(1,)]


def test_it_needs_its_database() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE DATABASE shop")
        connection.execute("CREATE TABLE shop.t (x Int64) ENGINE = MergeTree ORDER BY x")
        connection.execute("INSERT INTO shop.t VALUES (1)")
        connection.execute("DROP DATABASE shop")
        with pytest.raises(UnknownDatabase):
            connection.execute("UNDROP TABLE shop.t")
        connection.execute("CREATE DATABASE shop")
        connection.execute("UNDROP TABLE shop.t")
        assert rows(connection, "SELECT x FROM shop.t") == [(1,)]


def test_the_target_of_a_view_that_is_gone_is_adopted_by_a_new_one() -> None:
    """The rows name their view. That view is dropped, so for the next view they are bypass rows."""
    with olapdb.connect() as connection:
        make(connection)
        add(connection, ("2024-01-01", "a", 1, 1), ("2024-02-01", "b", 2, 5))
        connection.execute("DROP VIEW daily_mv")
        connection.execute("DROP TABLE daily")
        connection.execute("UNDROP TABLE daily")
        assert rows(connection, READ) == rows(connection, DIRECT)
        connection.execute(VIEW)
        connection.execute("SYSTEM ADOPT VIEW daily_mv")
        assert verdict(connection) == "proven"
        whole(connection)


def test_older_snapshots_see_what_they_saw(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("CREATE TABLE t (x Int64) ENGINE = MergeTree ORDER BY x")
        connection.execute("INSERT INTO t VALUES (1)")
        catalog = connection.database.services.catalog
        there = catalog.snapshot()
        table = there.find("default", "t")
        assert table is not None
        connection.execute("DROP TABLE t")
        gone = catalog.snapshot()
        connection.execute("UNDROP TABLE t")
        connection.execute("INSERT INTO t VALUES (2)")
        assert gone.find("default", "t") is None
    with olapdb.connect(str(tmp_path)) as connection:
        catalog = connection.database.services.catalog
        assert len(catalog.snapshot(there.number).parts(table.id)) == 1
        assert len(catalog.snapshot(gone.number + 1).parts(table.id)) == 1
        assert len(catalog.snapshot().parts(table.id)) == 2


def test_what_was_delivered_is_known_again(tmp_path: Path) -> None:
    """Tokens and keys return with the table, even after vacuum purged history in between."""
    day = {"day": [1, 2]}
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute(
            "CREATE TABLE t (day Int64) ENGINE = MergeTree ORDER BY day"
            " SETTINGS old_parts_lifetime = 100000, deduplicate_by = 'day'"
        )
        assert connection.insert("t", day, token="one") == 2
        connection.execute("DROP TABLE t")
        catalog = connection.database.services.catalog
        catalog.purge_history(connection.database.services.clock_ms(), 10)
        connection.execute("UNDROP TABLE t")
        assert connection.insert("t", day, token="one") == 0
        assert connection.insert("t", {"day": [2, 3]}) == 1
        assert rows(connection, "SELECT day FROM t ORDER BY day") == [(1,), (2,), (3,)]
        whole(connection)


def test_a_backup_has_no_dropped_tables(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path / "warehouse")) as connection:
        for name in ("t", "gone"):
            connection.execute(f"CREATE TABLE {name} (x Int64) ENGINE = MergeTree ORDER BY x")
            connection.execute(f"INSERT INTO {name} VALUES (1)")
        connection.execute("DROP TABLE gone")
        connection.execute(f"SYSTEM BACKUP TO '{tmp_path / 'backup'}'")
        assert dropped(connection) == [("default", "gone", 1)]
    with olapdb.connect(str(tmp_path / "backup"), read_only=True) as connection:
        assert dropped(connection) == []
        assert rows(connection, "SELECT x FROM t") == [(1,)]
