"""SIGKILL at every stage of a vacuum of a busy warehouse, the first time and the last.

The vacuum purges parts and their files, joins blocks, shortens the log of commits and cuts the
catalog's file. After a kill all rows exist, each view equals its source, no file stays unreferenced
for good, and block numbers go on. The next vacuum leaves the same as an undisturbed one.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.catalog.sqlite import compaction, free_space
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.dbapi.connection import Connection
from olapdb.maintenance import vacuum as vacuuming
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.part import BlockRange
from olapdb.runtime.failpoints import recording
from tests.schedules.crash import run_and_die
from tests.schedules.operation import Answer

pytestmark = pytest.mark.feature("crashes", "upkeep")

INSERTS = 40
SMALL = (
    (compaction, "BLOCKS_KEPT_MAX", 4),
    (compaction, "BLOCKS_A_STEP", 9),
    (vacuuming, "PARTS_A_STEP", 25),
    (vacuuming, "COMMITS_KEPT", 5),
    (free_space, "SLACK_BYTES", 16 << 10),
    (free_space, "PAGES_A_STEP", 8),
)
STAGES = (
    "vacuum.marked",
    "vacuum.forgotten",
    "vacuum.file_deleted",
    "vacuum.revoked",
    "vacuum.history_forgotten",
    "vacuum.blocks_compacted",
    "vacuum.space_given_back",
)


def make_small() -> None:
    """Lower the limits of a vacuum's steps in this process."""
    for module, name, value in SMALL:
        setattr(module, name, value)


class Vacuum:
    """The vacuum of the process that dies."""

    @staticmethod
    def perform(connection: Connection, text: str) -> Answer:
        """Vacuum in small steps."""
        make_small()
        vacuum(connection.database.services, lifetime_seconds=0)
        return Answer()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vacuum") / "warehouse"
    with olapdb.connect(str(folder)) as connection:
        for text in (
            "SYSTEM STOP MERGES",
            "CREATE TABLE s (k UInt8, n Int64, t String) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE f (k UInt8, n Int64) ENGINE = MergeTree ORDER BY k"
            " SETTINGS inline_bytes_max = 0",
            "CREATE TABLE sums (k UInt8, n Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT k, sum(n) AS n FROM s GROUP BY k",
        ):
            connection.execute(text)
        for number in range(INSERTS):
            connection.execute(
                f"INSERT INTO s SELECT {number % 5}, {number}, hex(number * 7919 * {number + 1})"
                " FROM numbers(100)"
            )
            connection.execute(f"INSERT INTO f VALUES ({number % 5}, {number})")
        for name in ("s", "f", "sums"):
            connection.execute(f"OPTIMIZE TABLE {name} FINAL")
    return folder


def state(connection: Connection) -> dict[str, Any]:
    """Return the rows and verdicts, which must not change."""
    queries = {
        "s": "SELECT k, n, t FROM s ORDER BY ALL",
        "f": "SELECT k, n FROM f ORDER BY ALL",
        "sums": "SELECT k, sum(n) FROM sums GROUP BY k ORDER BY k",
        "views": "SELECT name, verdict, gap_rows, lag_blocks FROM system.views",
    }
    return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def left(connection: Connection) -> dict[str, Any]:
    """Return the counts of the catalog and of files after a vacuum."""
    services = connection.database.services
    catalog = services.catalog
    assert isinstance(catalog, SqliteCatalog)
    snapshot = catalog.snapshot()
    counts: dict[str, Any] = {}
    with catalog.connections.reading() as reader:
        for name in ("parts", "inline_rows", "blocks", "commits", "coverage"):
            counts[name] = reader.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
    for table in snapshot.objects():
        counts[table.name] = snapshot.block_span(table.id, BlockRange(1, 1 << 40))[0]
    counts["files"] = len(list(services.store.list("data/")))
    counts["overdue"] = catalog.overdue_parts(services.clock_ms() + 1)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_killed_vacuum(stage: str, template: Path, tmp_path: Path) -> None:
    calm = tmp_path / "calm"
    shutil.copytree(template, calm)
    with olapdb.connect(str(calm)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        before = state(connection)
        with recording() as reached:
            vacuum(connection.database.services, lifetime_seconds=0)
        assert state(connection) == before
        expected = left(connection)
    assert set(reached) >= set(STAGES), "every stage is tried"
    for turn, count in enumerate(sorted({1, reached.count(stage)})):
        folder = tmp_path / f"{turn}"
        shutil.copytree(template, folder)
        answer = run_and_die(str(folder), Vacuum(), "VACUUM", stage, count)  # type: ignore[arg-type]
        assert answer is None, "it died there"
        with olapdb.connect(str(folder)) as connection:
            connection.execute("SYSTEM STOP MERGES")
            services = connection.database.services
            assert state(connection) == before
            problems = check_database(services.catalog, services.store)
            assert [
                problem for problem in problems if "referred to by nothing" not in problem
            ] == []
            vacuum(services, lifetime_seconds=0)
            assert left(connection) == expected
            assert state(connection) == before
            blocks = left(connection)["s"]
            connection.execute("INSERT INTO s VALUES (1, 1, '')")
            assert left(connection)["s"] == blocks + 1, "numbers go on"
            assert check_database(services.catalog, services.store) == []
