"""The small chunks of a backfill share commits; each is still published as a whole, and once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BackfillIncomplete
from olapdb.maintenance.check import check_database
from olapdb.runtime.failpoints import watching
from olapdb.views.jobs import backfill_pass
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views")

PARTITIONS = 40
ON_FILES = "SETTINGS inline_bytes_max = 0"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "w") as opened:
        for statement in (
            "SYSTEM STOP MERGES",
            "CREATE TABLE s (p UInt16, k UInt64, v Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
            f"INSERT INTO s SELECT number % {PARTITIONS}, number, 1 FROM numbers({PARTITIONS * 2})",
            "CREATE TABLE t (p UInt16, v Int64) ENGINE = SummingMergeTree ORDER BY p",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT p, sum(v) AS v FROM s"
            " WHERE throwIf(s.v = 13, 'boom') = 0 GROUP BY p",
        ):
            opened.execute(statement)
        yield opened


def is_whole(connection: Connection, total: int) -> None:
    """Assert that the target is what the query gives, and that no staged file is left."""
    assert {row["verdict"] for row in dicts(connection, "SYSTEM RECONCILE VIEW v")} == {"equal"}
    assert rows(connection, "SELECT verdict FROM system.views WHERE name = 'v'") == [("proven",)]
    assert rows(connection, "SELECT sum(v) FROM t") == [(total,)]
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def test_many_small_chunks_are_few_commits(connection: Connection) -> None:
    done = dicts(connection, f"SYSTEM BACKFILL VIEW v {ON_FILES}")
    assert sorted(row["partition"] for row in done) == sorted(map(str, range(PARTITIONS)))
    assert {row["status"] for row in done} == {"published"}
    assert len({row["commit"] for row in done}) < PARTITIONS / 2
    assert rows(connection, "SELECT state, chunks, chunks_done FROM system.view_jobs") == [
        ("done", PARTITIONS, PARTITIONS)
    ]
    is_whole(connection, PARTITIONS * 2)


@pytest.mark.parametrize(("partitions", "commits"), [(7, 7), (9, 1)])
def test_eight_chunks_are_enough_to_share(
    tmp_path: Path, partitions: int, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine months are a usual gap: their commits would take longer than computing them."""
    monkeypatch.setattr(backfill_pass, "SHARED_SECONDS", 60.0)
    with olapdb.connect(tmp_path / "w") as opened:
        for statement in (
            "CREATE TABLE s (p UInt16, v Int64) ENGINE = MergeTree PARTITION BY p ORDER BY p",
            f"INSERT INTO s SELECT number % {partitions}, 1 FROM numbers({partitions * 2})",
            "CREATE TABLE t (p UInt16, v Int64) ENGINE = SummingMergeTree ORDER BY p",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT p, sum(v) AS v FROM s GROUP BY p",
        ):
            opened.execute(statement)
        done = dicts(opened, "SYSTEM BACKFILL VIEW v")
        assert len(done) == partitions
        assert len({row["commit"] for row in done}) == commits
        is_whole(opened, partitions * 2)


def test_views_on_the_target_fire_in_the_shared_commit(connection: Connection) -> None:
    connection.execute("CREATE TABLE u (n UInt8, v Int64) ENGINE = SummingMergeTree ORDER BY n")
    connection.execute(
        "CREATE MATERIALIZED VIEW w TO u AS SELECT 0 AS n, sum(v) AS v FROM t GROUP BY n"
    )
    connection.execute("SYSTEM BACKFILL VIEW v")
    assert rows(connection, "SELECT sum(v) FROM u") == [(PARTITIONS * 2,)]
    assert rows(connection, "SELECT verdict FROM system.views WHERE name = 'w'") == [("covered",)]


def test_only_the_partition_that_changed_is_computed_again(connection: Connection) -> None:
    reached_at: list[str] = []

    def told(reached: str) -> None:
        reached_at.append(reached)
        if reached == "backfill.before_commit" and reached_at.count(reached) == 1:
            connection.execute("DELETE FROM s WHERE p = 0")
            connection.execute("INSERT INTO s VALUES (0, 0, 5)")

    with watching(told):
        done = dicts(connection, f"SYSTEM BACKFILL VIEW v {ON_FILES}")
    assert reached_at.count("backfill.chunk_computed") in (PARTITIONS, PARTITIONS + 1)
    assert sum(row["status"] == "published" for row in done) >= PARTITIONS - 1
    is_whole(connection, (PARTITIONS - 1) * 2 + 5)


def test_a_chunk_that_fails_leaves_the_others_published(connection: Connection) -> None:
    connection.execute("ALTER TABLE s UPDATE v = 13 WHERE p = 3")
    with pytest.raises(BackfillIncomplete, match="boom"):
        connection.execute(f"SYSTEM BACKFILL VIEW v {ON_FILES}")
    assert rows(connection, "SELECT sum(v) FROM t") == [((PARTITIONS - 1) * 2,)]
    connection.execute("ALTER TABLE s UPDATE v = 1 WHERE p = 3")
    connection.execute("SYSTEM BACKFILL VIEW v")
    is_whole(connection, PARTITIONS * 2)


def test_a_cancelled_backfill_leaves_no_file(connection: Connection) -> None:
    def told(reached: str) -> None:
        if reached == "backfill.before_commit":
            connection.execute("SYSTEM CANCEL VIEW v")

    with watching(told), pytest.raises(olapdb.Error, match="cancelled"):
        connection.execute(f"SYSTEM BACKFILL VIEW v {ON_FILES}")
    assert rows(connection, "SELECT count() FROM t") == [(0,)]
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def test_chunks_of_a_joined_target_have_their_own_commits(connection: Connection) -> None:
    """So that a view which joins the target is stale only where the chunk reaches it."""
    connection.execute("CREATE TABLE u (p UInt16, m Int64) ENGINE = MergeTree ORDER BY p")
    connection.execute("CREATE TABLE e (p UInt16) ENGINE = MergeTree ORDER BY p")
    connection.execute(
        "CREATE MATERIALIZED VIEW w TO u AS SELECT e.p AS p, j.v AS m FROM e JOIN t AS j ON e.p = j.p"
    )
    done = dicts(connection, "SYSTEM BACKFILL VIEW v")
    assert len({row["commit"] for row in done}) == PARTITIONS
