"""`deduplicate_by`: which rows are new, which keys are remembered, and for how long."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import olapdb
from olapdb.catalog.sqlite import deliveries
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.dml.insert import commit_staged, snapshot_for_insert
from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    BadTypeOfField,
    DuplicateColumn,
    IllegalColumn,
    NoSuchColumn,
    NotSupportedError,
    SettingOutOfRange,
    UnknownSetting,
)
from olapdb.ingest.block_stager import stage_insert
from olapdb.ingest.trigger import TriggerContext
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.schema import Table
from olapdb.result import InsertedRows
from tests.unit.views.warehouse import rows

EVENTS = """
    CREATE TABLE events (id String, kind String, n Int64) ENGINE = MergeTree ORDER BY kind
    SETTINGS deduplicate_by = 'id'
"""
TOTALS = """
    CREATE TABLE totals (kind String, events UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY kind
"""
TOTALS_MV = """
    CREATE MATERIALIZED VIEW totals_mv TO totals AS
    SELECT kind, count() AS events, sum(n) AS n FROM events GROUP BY kind
"""


pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("insert")]


def add(
    connection: Connection, *ids: str | None, table: str = "events", **more: Any
) -> InsertedRows:
    count = len(ids)
    data = {"id": list(ids), "kind": ["a"] * count, "n": list(range(count))}
    return connection.insert(table, data, **more)


def ids(connection: Connection, table: str = "events") -> list[str]:
    return [one for (one,) in rows(connection, f"SELECT id FROM {table} ORDER BY id, n")]


def held(connection: Connection, table: str = "events") -> tuple[int, int]:
    """Return system.deduplication's keys held and rows dropped of the table."""
    found = rows(
        connection,
        f"SELECT keys_held, rows_dropped FROM system.deduplication WHERE table = '{table}'",
    )
    return (int(found[0][0]), int(found[0][1]))


# --- which rows


def test_the_first_row_of_a_key_wins_and_the_rest_are_counted(connection: Connection) -> None:
    connection.execute(EVENTS)
    first = connection.insert("events", {"id": ["x", "y", "x"], "kind": ["a"] * 3, "n": [1, 2, 3]})
    assert (first, first.duplicates_dropped, first.duplicate) == (2, 1, False)
    again = connection.insert("events", {"id": ["y", "z"], "kind": ["b"] * 2, "n": [4, 5]})
    assert (again, again.duplicates_dropped) == (1, 1)
    assert rows(connection, "SELECT * FROM events ORDER BY id") == [
        ("x", "a", 1),
        ("y", "a", 2),
        ("z", "b", 5),
    ]
    assert held(connection) == (3, 2)


def test_the_statistics_of_a_statement_count_them(connection: Connection) -> None:
    connection.execute(EVENTS)
    cursor = connection.execute("INSERT INTO events VALUES ('x', 'a', 1), ('x', 'a', 2)")
    assert cursor.rowcount == 1
    assert cursor.statistics.duplicates_dropped == 1
    cursor = connection.execute("INSERT INTO events SELECT * FROM events")
    assert (cursor.rowcount, cursor.statistics.duplicates_dropped) == (0, 1)
    many = connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?)", [("x", "a", 1), ("q", "a", 1), ("q", "a", 1)]
    )
    assert many.rowcount == 1


@pytest.mark.parametrize("block_rows", [1, 2, 7, 1_000])
def test_how_the_rows_are_cut_into_blocks_does_not_matter(
    connection: Connection, block_rows: int
) -> None:
    for text in (EVENTS, TOTALS, TOTALS_MV):
        connection.execute(text)
    connection.execute(
        "INSERT INTO events SELECT toString(number % 40), toString(number % 3), number"
        f" FROM numbers(100) SETTINGS max_insert_block_size = {block_rows}"
    )
    assert rows(connection, "SELECT count(), sum(n), max(n) FROM events") == [(40, 780, 39)]
    assert rows(connection, "SELECT sum(events), sum(n) FROM totals") == [(40, 780)]


def test_views_fire_on_what_is_left_alone(connection: Connection) -> None:
    for text in (EVENTS, TOTALS, TOTALS_MV):
        connection.execute(text)
    add(connection, "x", "y")
    add(connection, "y", "z", "z")
    add(connection, "x", "y", "z")
    assert rows(connection, "SELECT sum(events) FROM totals") == [(3,)]
    assert rows(connection, "SELECT verdict FROM system.views") == [("covered",)]
    connection.execute("SYSTEM RECONCILE VIEW totals_mv")
    assert rows(connection, "SELECT verdict FROM system.views") == [("proven",)]


def test_a_null_source_deduplicates_for_its_views(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE events (id String, kind String, n Int64) ENGINE = Null"
        " SETTINGS deduplicate_by = 'id'"
    )
    connection.execute(TOTALS)
    connection.execute(TOTALS_MV)
    add(connection, "x", "y", "y")
    add(connection, "x")
    assert rows(connection, "SELECT sum(events) FROM totals") == [(2,)]
    shown = rows(connection, "SHOW CREATE TABLE events")[0][0]
    assert shown.endswith("ENGINE = Null\nSETTINGS deduplicate_by = 'id'")
    connection.execute("TRUNCATE TABLE events")
    add(connection, "x")
    assert rows(connection, "SELECT sum(events) FROM totals") == [(3,)]


def test_a_row_with_null_in_its_key_has_no_identity(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (id Nullable(Int64), tenant String, n UInt8) ENGINE = MergeTree ORDER BY n"
        " SETTINGS deduplicate_by = 'tenant, id'"
    )
    values = "(1, 'a', 1), (NULL, 'a', 2), (NULL, 'a', 3), (1, 'b', 4), (1, 'a', 5)"
    assert connection.execute(f"INSERT INTO t VALUES {values}").rowcount == 4
    assert connection.execute(f"INSERT INTO t VALUES {values}").rowcount == 2
    assert held(connection, "t") == (2, 4)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("UInt8", ["0", "1", "255"]),
        ("Int64", ["-1", "0", "9223372036854775807"]),
        ("UInt64", ["0", "1", "18446744073709551615"]),
        ("String", ["''", "'a'", "'a\\0'", "'12345678'", "'123456789'", f"'{'x' * 1000}'"]),
        ("FixedString(3)", ["'a'", "'ab'", "'abc'"]),
        ("UUID", [f"'61f0c404-5cb3-11e7-907b-a6006ad3dba{i}'" for i in range(3)]),
        ("Date", ["'2024-01-01'", "'2024-01-02'"]),
        ("DateTime64(6)", ["'2024-01-01 00:00:00.000001'", "'2024-01-01 00:00:00.000002'"]),
        ("Decimal(38, 4)", ["0.0001", "0.0002", "-0.0001"]),
        ("Decimal(76, 4)", ["0.0001", "0.0002", "-0.0001"]),
        ("Bool", ["true", "false"]),
        ("LowCardinality(String)", ["'a'", "'b'"]),
    ],
)
def test_every_type_that_can_be_a_key(connection: Connection, kind: str, values: list[str]) -> None:
    connection.execute(
        f"CREATE TABLE t (id {kind}, n UInt8) ENGINE = MergeTree ORDER BY n"
        " SETTINGS deduplicate_by = 'id'"
    )
    everything = ", ".join(f"({value}, 1)" for value in values)
    assert connection.execute(f"INSERT INTO t VALUES {everything}").rowcount == len(values)
    assert connection.execute(f"INSERT INTO t VALUES {everything}").rowcount == 0


def test_a_materialized_column_can_be_the_key(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (a String, key String MATERIALIZED lower(a)) ENGINE = MergeTree ORDER BY a"
        " SETTINGS deduplicate_by = 'key'"
    )
    assert connection.execute("INSERT INTO t VALUES ('X'), ('x'), ('y')").rowcount == 2


# --- what is refused


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ("deduplicate_by = 'nope'", NoSuchColumn, "It has id, f, list, twice."),
        ("deduplicate_by = 'id,'", NoSuchColumn, "''"),
        ("deduplicate_by = 'f'", BadTypeOfField, "Float64"),
        ("deduplicate_by = 'list'", BadTypeOfField, "Array"),
        ("deduplicate_by = 'id, id'", DuplicateColumn, "twice"),
        ("deduplicate_by = 'twice'", IllegalColumn, "ALIAS"),
        ("deduplicate_window = 60", BadArguments, "deduplicate_by = 'event_id'"),
        ("deduplicate_by = 'id', deduplicate_window_rows = 0", BadArguments, "at least 1"),
        ("deduplicate_by = 'id', deduplicate_window = -1", SettingOutOfRange, "at least 0"),
        ("deduplicate_by = 'id', deduplicate_window_rows = 100000001", ArgumentOutOfBound, "most"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(
    connection: Connection, settings: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        connection.execute(
            "CREATE TABLE t (id Int64, f Float64, list Array(UInt8), twice Int64 ALIAS id * 2)"
            f" ENGINE = MergeTree ORDER BY id SETTINGS {settings}"
        )


def test_engines_that_cannot(connection: Connection) -> None:
    with pytest.raises(UnknownSetting, match="for storage Memory"):
        connection.execute(
            "CREATE TABLE t (id Int64) ENGINE = Memory SETTINGS deduplicate_by = 'id'"
        )
    with pytest.raises(BadArguments, match="Engine Null has no SETTINGS"):
        connection.execute("CREATE TABLE t (id Int64) ENGINE = Null SETTINGS index_granularity = 1")


def test_the_target_of_a_view_is_what_the_view_makes(connection: Connection) -> None:
    connection.execute(EVENTS)
    connection.execute(
        "CREATE TABLE copy (id String) ENGINE = MergeTree ORDER BY id SETTINGS deduplicate_by = 'id'"
    )
    with pytest.raises(NotSupportedError, match="Deduplicate the view's source instead"):
        connection.execute("CREATE MATERIALIZED VIEW v TO copy AS SELECT id FROM events")


# --- which keys are remembered


def test_the_newest_keys_are_remembered(connection: Connection) -> None:
    connection.execute(EVENTS + ", deduplicate_window_rows = 3")
    add(connection, "a", "b")
    add(connection, "c", "d")
    assert held(connection) == (3, 0)
    assert add(connection, "b", "c", "d") == 0
    assert add(connection, "a") == 1  # it left the window, so a late row is accepted again
    assert add(connection, "b") == 1
    assert add(connection, "a", "d") == 0


def test_an_insert_larger_than_the_window_knows_its_own_keys(connection: Connection) -> None:
    connection.execute(EVENTS + ", deduplicate_window_rows = 2")
    assert add(connection, "a", "b", "c", "d", "a", "b") == 4
    assert held(connection) == (2, 2)
    assert add(connection, "a", "d") == 1


def test_keys_are_remembered_for_so_many_seconds(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_800_000_000]
    monkeypatch.setattr("time.time_ns", lambda: now[0] * 1_000_000_000)
    connection.execute(EVENTS + ", deduplicate_window = 60")
    add(connection, "a")
    now[0] += 30
    add(connection, "b")
    now[0] += 29
    assert add(connection, "a", "b") == 0
    now[0] += 1
    assert held(connection)[0] == 1
    assert add(connection, "a", "b") == 1
    now[0] -= 1_000  # setting the clock back makes no key younger and forgets none
    assert add(connection, "a", "b", "c") == 1
    now[0] += 1_000 + 59
    assert add(connection, "a", "b", "c") == 1


def test_truncate_forgets_delete_and_drop_partition_do_not(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE events (id String, kind String, n Int64) ENGINE = MergeTree"
        " PARTITION BY kind ORDER BY n SETTINGS deduplicate_by = 'id'"
    )
    add(connection, "x", "y")
    connection.execute("DELETE FROM events WHERE id = 'x'")
    assert add(connection, "x", "y") == 0
    connection.execute("ALTER TABLE events DROP PARTITION 'a'")
    assert add(connection, "x", "y") == 0
    connection.execute("TRUNCATE TABLE events")
    assert held(connection) == (0, 4)
    assert add(connection, "x", "y", "y") == 2


def test_the_rule_goes_with_the_table_not_with_its_name(connection: Connection) -> None:
    connection.execute(EVENTS)
    add(connection, "x")
    connection.execute("RENAME TABLE events TO moved")
    connection.execute(EVENTS)
    assert add(connection, "x") == 1
    assert add(connection, "x", table="moved") == 0
    connection.execute("DROP TABLE moved")
    connection.execute(EVENTS.replace("TABLE events", "TABLE moved"))
    assert add(connection, "x", table="moved") == 1


def test_alter_keeps_the_keys_as_long_as_they_mean_the_same(connection: Connection) -> None:
    connection.execute("CREATE TABLE events (id Int32, n Int64) ENGINE = MergeTree ORDER BY n")
    connection.execute("INSERT INTO events VALUES (1, 1), (1, 2)")
    connection.execute(
        "ALTER TABLE events MODIFY SETTING deduplicate_by = 'id', deduplicate_window_rows = 50"
    )
    one = "INSERT INTO events VALUES (1, 3)"
    assert connection.execute(one).rowcount == 1  # rows that were stored before have no keys
    assert connection.execute(one).rowcount == 0
    connection.execute("ALTER TABLE events RENAME COLUMN id TO event_id")
    connection.execute("ALTER TABLE events MODIFY COLUMN event_id Int64, ADD COLUMN extra String")
    assert connection.execute("INSERT INTO events VALUES (1, 3, '')").rowcount == 0
    with pytest.raises(NoSuchColumn, match="deduplicate_by names 'event_id'"):
        connection.execute("ALTER TABLE events DROP COLUMN event_id")
    with pytest.raises(BadArguments, match="no meaning without deduplicate_by"):
        connection.execute("ALTER TABLE events RESET SETTING deduplicate_by")
    connection.execute("ALTER TABLE events MODIFY SETTING deduplicate_by = 'n'")
    assert held(connection)[0] == 0
    assert connection.execute("INSERT INTO events VALUES (1, 3, ''), (2, 3, '')").rowcount == 1
    assert held(connection)[0] == 1
    connection.execute(
        "ALTER TABLE events RESET SETTING deduplicate_by, RESET SETTING deduplicate_window_rows"
    )
    assert connection.execute("INSERT INTO events VALUES (1, 3, ''), (2, 3, '')").rowcount == 2


def test_alter_of_a_views_target_cannot_make_it_drop_rows(connection: Connection) -> None:
    for text in (EVENTS, TOTALS, TOTALS_MV):
        connection.execute(text)
    with pytest.raises(NotSupportedError, match="cannot be the target of a view"):
        connection.execute("ALTER TABLE totals MODIFY SETTING deduplicate_by = 'kind'")


def test_create_table_as_select_begins_with_the_keys_of_its_rows(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t ENGINE = MergeTree ORDER BY id SETTINGS deduplicate_by = 'id'"
        " AS SELECT number % 5 AS id, number AS n FROM numbers(20)"
    )
    assert rows(connection, "SELECT id, n FROM t ORDER BY id") == [(i, i) for i in range(5)]
    assert connection.execute("INSERT INTO t VALUES (4, 0), (5, 0)").rowcount == 1


def test_undrop_brings_the_keys_back_and_vacuum_takes_them(connection: Connection) -> None:
    connection.execute(EVENTS)
    add(connection, "x", token="t", offsets={"s": (0, 1)})
    table = connection.session.snapshot().find("default", "events")
    assert table is not None
    connection.execute("DROP TABLE events")
    connection.execute("UNDROP TABLE events")
    assert add(connection, "x") == 0
    assert add(connection, "y", offsets={"s": (0, 1)}).duplicate
    connection.execute("DROP TABLE events")
    catalog = connection.database.services.catalog
    assert catalog.has_deliveries(table.id)
    # Vacuum runs in the millisecond of the DROP.
    (dropped,) = catalog.dropped_tables()
    services = replace(connection.database.services, clock_ms=lambda: dropped.dropped_ms)
    vacuum(services, lifetime_seconds=0)
    assert not catalog.has_deliveries(table.id)
    assert catalog.key_ledger(table.id).next == 0


def test_a_backup_has_the_keys(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute(EVENTS)
        add(connection, "x", offsets={"s": (0, 1)})
        connection.execute(f"SYSTEM BACKUP TO '{tmp_path / 'copy'}'")
    with olapdb.connect(tmp_path / "copy") as connection:
        assert add(connection, "x", "y") == 1
        assert add(connection, "z", offsets={"s": (0, 1)}).duplicate


def test_keys_survive_a_restart(tmp_path: Path) -> None:
    for number in range(3):
        with olapdb.connect(tmp_path) as connection:
            if not number:
                connection.execute(EVENTS)
            assert add(connection, "x", f"own {number}") == (2 if number == 0 else 1)


def test_a_void_insert_is_a_commit_that_counts(connection: Connection) -> None:
    connection.execute(EVENTS)
    add(connection, "x")
    blocks = rows(connection, "SELECT count() FROM system.parts WHERE table = 'events'")
    again = add(connection, "x", token="t1")
    assert (again, again.duplicates_dropped, again.duplicate) == (0, 1, False)
    assert add(connection, "x", token="t1").duplicate
    # counts no rows of the duplicate INSERT, whose keys were not looked up
    assert held(connection) == (1, 1)
    assert rows(connection, "SELECT count() FROM system.parts WHERE table = 'events'") == blocks


def test_small_inserts_do_not_pile_up_in_the_catalog(connection: Connection) -> None:
    connection.execute(EVENTS + ", deduplicate_window_rows = 300")
    for number in range(200):
        add(connection, f"{number} a", f"{number} b", f"{number % 7} a")
    table = connection.session.snapshot().find("default", "events")
    assert table is not None
    ledger, batches = connection.database.services.catalog.accepted_keys(table.id, -1, 0)
    assert ledger.next - ledger.oldest == 300
    assert len(batches) <= 3 * deliveries.JOINED_ROWS
    assert add(connection, *(f"{n} a" for n in range(60, 200))) == 0
    assert rows(connection, "SELECT bytes < 20000 FROM system.deduplication") == [(True,)]


# --- what a cluster staged


def test_what_tasks_staged_is_deduplicated_by_who_commits_it(connection: Connection) -> None:
    for text in (EVENTS, TOTALS, TOTALS_MV):
        connection.execute(text)
    add(connection, "known")
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = snapshot.find("default", "events")
    assert isinstance(table, Table)
    frozen = pickle.loads(pickle.dumps(snapshot_for_insert(snapshot, table.id)))

    def staged(*keys: str) -> Any:
        block = pa.table({"id": list(keys), "kind": ["b"] * len(keys), "n": [1] * len(keys)})
        return stage_insert(
            table,
            block,
            TriggerContext(
                frozen,
                services.store,
                services.cache,
                {},
                connection.session._context("", None, None).environment,
            ),
            services.lease_id,
        )

    done = commit_staged(CommitOrigin(services), [staged("p", "q"), staged("r")])
    assert (done.rows, done.duplicates_dropped) == (3, 0)
    done = commit_staged(
        CommitOrigin(services), [staged("s", "p"), staged("known", "r"), staged("s", "u")]
    )
    assert (done.rows, done.duplicates_dropped) == (2, 4)
    assert ids(connection) == ["known", "p", "q", "r", "s", "u"]
    assert rows(connection, "SELECT sum(events) FROM totals") == [(6,)]


def test_tasks_cannot_stage_for_engines_that_join_rows(connection: Connection) -> None:
    connection.execute(EVENTS.replace("MergeTree", "ReplacingMergeTree"))
    snapshot = connection.session.snapshot()
    table = snapshot.find("default", "events")
    assert isinstance(table, Table)
    with pytest.raises(NotSupportedError, match="A cluster cannot insert"):
        snapshot_for_insert(snapshot, table.id)


@pytest.mark.parametrize("how", ["token", "offsets"])
def test_what_came_before_asks_no_view(how: str) -> None:
    """The first delivery landed. A view created since would fail on its rows, but the retry runs no
    view."""
    delivery: dict[str, Any] = (
        {"token": "batch-1"} if how == "token" else {"offsets": {"orders": (0, 1)}}
    )
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY n")
        assert connection.insert("t", {"n": [9]}, **delivery) == 1
        connection.execute("CREATE TABLE into (n Int64) ENGINE = MergeTree ORDER BY n")
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO into AS SELECT n + throwIf(n = 9) AS n FROM t"
        )
        again = connection.insert("t", {"n": [9]}, **delivery)
        assert (again, again.duplicate) == (0, True)
        assert rows(connection, "SELECT n FROM t") == [(9,)]
