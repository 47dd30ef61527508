"""An INSERT whose views write tables that other views of it join: these read the final rows.

For every order of views, number of blocks and way to insert: a view that is called covered equals
its query over the current source and dimensions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.dml.insert import commit_staged, snapshot_for_insert
from olapdb.functions.base import Environment
from olapdb.ingest.block_stager import stage_insert
from olapdb.ingest.trigger import TriggerContext
from olapdb.maintenance.check import check_database
from olapdb.model.schema import Table
from olapdb.runtime.cache import Cache
from tests.harness.race import Race
from tests.unit.views import warehouse
from tests.unit.views.warehouse import dicts, rows

JOIN = "SELECT s.k AS k, sum(s.x * hi.weight) AS w FROM s LEFT JOIN hi ON s.k = hi.k GROUP BY k"
INNER = JOIN.replace("LEFT", "INNER")
IN = "SELECT k, sum(x) AS w FROM s WHERE k IN (SELECT k FROM hi) GROUP BY k"
SCALAR = "SELECT k, sum(x * (SELECT max(weight) FROM hi)) AS w FROM s GROUP BY k"
PLAIN = JOIN.replace("JOIN hi", "JOIN hi_view AS hi")
WRITER = "SELECT k, 5 AS weight FROM s WHERE x > 0"


def verdict(connection: Connection, view: str = "v") -> str:
    return warehouse.verdict(connection, view)


pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE s (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE hi (k UInt64, weight Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE VIEW hi_view AS SELECT k, weight FROM hi WHERE weight > 1",
        (
            "CREATE TABLE t (k UInt64, w Int64) ENGINE = SummingMergeTree ORDER BY k PARTITION BY k % 3"
        ),
        merges=False,
    ),
    pytest.mark.feature("views"),
]


def siblings(connection: Connection, query: str, *, writer: str = "a", joins: str = "v") -> None:
    """Create two views of s: `writer` writes the table `hi`, which `joins` joins."""
    connection.execute(f"CREATE MATERIALIZED VIEW {writer} TO hi AS {WRITER}")
    connection.execute(f"CREATE MATERIALIZED VIEW {joins} TO t AS {query}")


def check(connection: Connection, query: str, view: str = "v", target: str = "t") -> None:
    """Require that the target is right or the verdict is stale, and that REPLAY makes it right."""
    held = rows(
        connection, f"SELECT k, sum(w) FROM {target} GROUP BY k HAVING sum(w) != 0 ORDER BY k"
    )
    wanted = rows(connection, f"SELECT k, w FROM ({query}) WHERE w != 0 ORDER BY k")
    found = verdict(connection, view)
    assert held == wanted or found == "stale", (found, held, wanted)
    if found == "stale":
        connection.execute(f"SYSTEM REPLAY VIEW {view} STALE")
    assert {one["verdict"] for one in dicts(connection, f"SYSTEM RECONCILE VIEW {view}")} <= {
        "equal"
    }


def sums(connection: Connection) -> list[tuple[int, int]]:
    """Return the target's sums by key, without zeros."""
    return rows(connection, "SELECT k, sum(w) FROM t GROUP BY k HAVING sum(w) != 0 ORDER BY k")


@pytest.mark.parametrize("names", [("a", "v"), ("z", "v")])
@pytest.mark.parametrize("query", [JOIN, INNER, IN, SCALAR, PLAIN])
@pytest.mark.parametrize(
    "settings", ["", "parallel_view_processing = 1", "materialized_views_ignore_errors = 1"]
)
def test_a_sibling_writes_the_dimension(
    connection: Connection, names: tuple[str, str], query: str, settings: str
) -> None:
    siblings(connection, query, writer=names[0], joins=names[1])
    settings = f" SETTINGS {settings}" if settings else ""
    connection.execute(f"INSERT INTO s{settings} VALUES (1, 1), (2, 1), (3, -1)")
    assert verdict(connection) == "covered"
    check(connection, query)
    connection.execute(f"INSERT INTO s{settings} VALUES (3, 1), (4, 1)")
    check(connection, query)


def test_the_rows_of_one_insert_join_each_other(connection: Connection) -> None:
    siblings(connection, JOIN)
    connection.execute("INSERT INTO s VALUES (1, 1), (2, 3)")
    assert sums(connection) == [(1, 5), (2, 15)]
    assert verdict(connection) == "covered"


@pytest.mark.parametrize("query", [JOIN, INNER, IN, SCALAR, PLAIN])
@pytest.mark.parametrize("rows_max", [1, 2, 3])
def test_over_several_blocks(connection: Connection, query: str, rows_max: int) -> None:
    """The first block's rows join rows that a later block adds to the dimension."""
    siblings(connection, query)
    connection.execute(
        "INSERT INTO s SELECT number % 4, if(number >= 4, 3, -1) FROM numbers(8)"
        f" SETTINGS max_insert_block_size = {rows_max}, max_block_size = {rows_max},"
        " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0"
    )
    blocks = -(-8 // rows_max)
    assert rows(connection, "SELECT count() FROM system.parts WHERE table = 's'") == [(blocks,)]
    assert verdict(connection) == "covered"
    check(connection, query)


@pytest.mark.parametrize("through", ["s", "s_view"])
@pytest.mark.parametrize("join", ["LEFT", "INNER"])
def test_a_view_lower_in_the_chain_joins_the_table_that_is_inserted_into(
    connection: Connection, through: str, join: str
) -> None:
    connection.execute("CREATE VIEW s_view AS SELECT k, x FROM s WHERE x > 0")
    connection.execute("CREATE TABLE t1 (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW mv1 TO t1 AS SELECT k, x FROM s")
    query = (
        f"SELECT t1.k AS k, sum(t1.x * d.x) AS w FROM t1 {join} JOIN {through} AS d ON t1.k = d.k"
        " GROUP BY k"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW mv2 TO t AS {query}")
    connection.execute("INSERT INTO s VALUES (1, 5)")
    assert sums(connection) == [(1, 25)]
    assert verdict(connection, "mv2") == "covered"
    connection.execute(
        "INSERT INTO s SELECT number % 2, number + 1 FROM numbers(6)"
        " SETTINGS max_insert_block_size = 2, max_block_size = 2,"
        " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0"
    )
    check(connection, query, "mv2")


def test_a_backfill_of_the_chain_joins_all_of_the_source(connection: Connection) -> None:
    """A chunk of mv1 reads one partition of s; mv2 joins all of s."""
    connection.execute("DROP TABLE s")
    connection.execute(
        "CREATE TABLE s (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k PARTITION BY x"
    )
    connection.execute("CREATE TABLE t1 (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO s VALUES (1, 5), (1, 7), (2, 1)")
    query = (
        "SELECT t1.k AS k, sum(t1.x * d.x) AS w FROM t1 LEFT JOIN s AS d ON t1.k = d.k GROUP BY k"
    )
    connection.execute("CREATE MATERIALIZED VIEW mv1 TO t1 AS SELECT k, x FROM s")
    connection.execute(f"CREATE MATERIALIZED VIEW mv2 TO t AS {query}")
    connection.execute("SYSTEM BACKFILL VIEW mv1")
    assert sums(connection) == [(1, 144), (2, 1)]
    check(connection, query, "mv2")


@pytest.mark.parametrize("staged", [0, 1])
def test_a_backfill_writes_a_dimension_below(connection: Connection, staged: int) -> None:
    """Chunks of mv1 fire two views on t1: one writes the table that the other joins."""
    connection.execute("DROP TABLE s")
    connection.execute(
        "CREATE TABLE s (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k PARTITION BY x"
    )
    connection.execute("CREATE TABLE t1 (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO s VALUES (1, -1), (1, 5), (1, 7), (2, 1)")
    query = JOIN.replace("FROM s LEFT", "FROM t1 AS s LEFT")
    connection.execute("CREATE MATERIALIZED VIEW mv1 TO t1 AS SELECT k, x FROM s")
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    connection.execute(
        "CREATE MATERIALIZED VIEW z TO hi AS SELECT k, 5 AS weight FROM t1 WHERE x > 0"
    )
    connection.execute(f"SYSTEM BACKFILL VIEW mv1 SETTINGS backfill_staging = {staged}")
    check(connection, query)


def test_each_joins_what_the_other_writes(connection: Connection) -> None:
    """No firing order is right: the views fire until they agree, or a view is called stale."""
    connection.execute("CREATE TABLE lo (k UInt64, w Int64) ENGINE = MergeTree ORDER BY k")
    first = "SELECT s.k AS k, s.x + lo.w AS weight FROM s LEFT JOIN lo ON s.k = lo.k"
    second = "SELECT s.k AS k, s.x + hi.weight AS w FROM s LEFT JOIN hi ON s.k = hi.k"
    try:
        connection.execute(f"CREATE MATERIALIZED VIEW a TO hi AS {first}")
        connection.execute(f"CREATE MATERIALIZED VIEW v TO lo AS {second}")
    except olapdb.Error:
        pytest.skip("a circle of dimensions is refused")
    connection.execute("INSERT INTO s VALUES (1, 1)")
    verdicts = {name: verdict(connection, name) for name in ("a", "v")}
    assert "stale" in verdicts.values()
    for name, query, target in (("a", first, "hi"), ("v", second, "lo")):
        right = rows(connection, query) == rows(connection, f"SELECT * FROM {target}")
        assert right or verdicts[name] == "stale"


def test_a_failed_writer_brings_nothing(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW a TO hi AS SELECT k, throwIf(x = 1) + 5 AS weight FROM s"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {JOIN}")
    connection.execute(
        "INSERT INTO s SETTINGS materialized_views_ignore_errors = 1 VALUES (1, 1), (2, 2)"
    )
    assert verdict(connection, "a") == "partial"
    assert verdict(connection) == "covered"
    assert sums(connection) == []
    check(connection, JOIN)


@pytest.mark.parametrize(
    "engine", ["Null", "ReplacingMergeTree ORDER BY k", "SummingMergeTree ORDER BY k"]
)
def test_sources_that_do_not_keep_what_fired(connection: Connection, engine: str) -> None:
    connection.execute("DROP TABLE s")
    connection.execute(f"CREATE TABLE s (k UInt64, x Int64) ENGINE = {engine}")
    siblings(connection, JOIN)
    connection.execute(
        "INSERT INTO s SELECT number % 2, if(number >= 2, 3, -1) FROM numbers(4)"
        " SETTINGS max_insert_block_size = 2, max_block_size = 2,"
        " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0"
    )
    held = sums(connection)
    assert held == [(0, 10), (1, 10)] or verdict(connection) in ("stale", "unproven")


def test_arrow_and_deduplicated_rows(connection: Connection) -> None:
    siblings(connection, JOIN)
    connection.insert(
        "s", pa.table({"k": pa.array([1, 2], pa.uint64()), "x": pa.array([1, 2])}), token="one"
    )
    assert sums(connection) == [(1, 5), (2, 10)]
    connection.insert(
        "s", pa.table({"k": pa.array([1, 2], pa.uint64()), "x": pa.array([1, 2])}), token="one"
    )
    assert sums(connection) == [(1, 5), (2, 10)]
    check(connection, JOIN)


def test_two_dimensions_that_one_statement_changes(connection: Connection) -> None:
    """A partition moves from one dimension to another: only both changes together make a
    difference."""
    for name in ("d1", "d2"):
        connection.execute(
            f"CREATE TABLE {name} (k UInt64, y Int64) ENGINE = MergeTree ORDER BY k PARTITION BY k"
        )
    query = (
        "SELECT s.k AS k, sum(s.x) AS w FROM s LEFT JOIN d1 ON s.k = d1.k LEFT JOIN d2 ON s.k = d2.k"
        " WHERE d1.y = 0 AND d2.y = 1 GROUP BY k"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    connection.execute("INSERT INTO d1 VALUES (1, 1)")
    connection.execute("INSERT INTO s VALUES (1, 4)")
    check(connection, query)
    connection.execute("ALTER TABLE d1 MOVE PARTITION 1 TO TABLE d2")
    assert verdict(connection) == "stale"
    check(connection, query)


def test_source_and_dimension_of_one_statement(connection: Connection) -> None:
    connection.execute("DROP TABLE s")
    for name in ("s", "d"):
        connection.execute(
            f"CREATE TABLE {name} (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k PARTITION BY k"
        )
    query = "SELECT s.k AS k, sum(s.x + d.x) AS w FROM s LEFT JOIN d ON s.x = d.x GROUP BY k"
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    connection.execute("INSERT INTO s VALUES (1, 4), (2, 4), (3, 5)")
    check(connection, query)
    connection.execute("ALTER TABLE s MOVE PARTITION 2 TO TABLE d")
    check(connection, query)
    connection.execute("ALTER TABLE d MOVE PARTITION 2 TO TABLE s")
    assert verdict(connection) in ("partial", "stale")
    connection.execute("SYSTEM BACKFILL VIEW v")
    check(connection, query)


def test_what_tasks_staged_apart(connection: Connection) -> None:
    """No task sees the rows of the other tasks. The commit of all of them fires the views with
    both."""
    siblings(connection, JOIN)
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = snapshot.find("default", "s")
    assert isinstance(table, Table)
    frozen = snapshot_for_insert(snapshot, table.id)
    staged = [
        stage_insert(
            table,
            pa.table({"k": pa.array([1], pa.uint64()), "x": pa.array([x], pa.int64())}),
            TriggerContext(frozen, services.store, Cache(), {}, Environment()),
            services.lease_id,
        )
        for x in (-1, 3, -1)
    ]
    commit_staged(CommitOrigin(services), staged)
    assert verdict(connection) == "covered"
    assert sums(connection) == [(1, 5)]
    check(connection, JOIN)


def test_blocks_that_are_not_kept_in_memory_are_read_back(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olapdb.dml.insert_writer.BLOCKS_IN_MEMORY_BYTES_MAX", 0)
    siblings(connection, JOIN)
    connection.execute(
        "INSERT INTO s SELECT number % 2, if(number >= 2, 3, -1) FROM numbers(4)"
        " SETTINGS max_insert_block_size = 2, max_block_size = 2,"
        " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0"
    )
    assert verdict(connection) == "covered"
    assert sums(connection) == [(0, 10), (1, 10)]


@pytest.mark.parametrize(
    "meanwhile",
    [
        "INSERT INTO hi VALUES (1, 100)",
        "DELETE FROM hi WHERE k = 2",
        "OPTIMIZE TABLE hi FINAL",
        "INSERT INTO s VALUES (1, 1)",
        "DETACH VIEW a",
        "DETACH VIEW v",
        "SYSTEM REPLAY VIEW v",
    ],
)
def test_a_dimension_moves_just_before_the_commit(tmp_path: Path, meanwhile: str) -> None:
    with olapdb.connect(tmp_path / "w") as one, olapdb.connect(tmp_path / "w") as other:
        one.execute("SYSTEM STOP MERGES")
        one.execute("CREATE TABLE s (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k")
        one.execute("CREATE TABLE hi (k UInt64, weight Int64) ENGINE = MergeTree ORDER BY k")
        one.execute("CREATE TABLE t (k UInt64, w Int64) ENGINE = SummingMergeTree ORDER BY k")
        one.execute("INSERT INTO hi VALUES (2, 7), (3, 8)")
        siblings(one, JOIN)
        one.execute("INSERT INTO s VALUES (2, 1)")
        check(one, JOIN)
        with Race(one, other).meddling(meanwhile):
            one.execute("INSERT INTO s VALUES (1, 1), (2, 1)")
        if verdict(one) == "partial":
            one.execute("SYSTEM BACKFILL VIEW v")
        check(one, JOIN)


def test_no_staged_file_stays(tmp_path: Path) -> None:
    """The files that earlier firings wrote are deleted."""
    with olapdb.connect(tmp_path / "w") as opened:
        opened.execute("CREATE TABLE s (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("CREATE TABLE hi (k UInt64, weight Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("CREATE TABLE t (k UInt64, w Int64) ENGINE = SummingMergeTree ORDER BY k")
        siblings(opened, JOIN)
        opened.execute(
            "INSERT INTO s SELECT number % 2, if(number >= 2, 3, -1) FROM numbers(4)"
            " SETTINGS max_insert_block_size = 2, max_block_size = 2, inline_bytes_max = 0,"
            " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0"
        )
        assert sums(opened) == [(0, 10), (1, 10)]
        services = opened.database.services
        present = {file.path for file in services.store.list("data/")}
        assert present
        assert present <= services.catalog.referenced_paths()
        assert check_database(services.catalog, services.store) == []
