"""SIGKILL at every stage of every kind of statement that is one commit.

Reopened, the warehouse is as before the statement or as after it. A statement that did not happen
leaves no file. The rows of system.views are true. The statement, run again, has the same effect as
without a kill.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.runtime.failpoints import FAILPOINTS, recording
from tests.schedules.crash import run_and_die
from tests.schedules.operation import Answer
from tests.schedules.truth import dicts

pytestmark = pytest.mark.feature("crashes")

COLUMNS = "(p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k"
SUMS = "(p UInt8, k String, n Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY (p, k)"
QUERY = "SELECT p, k, sum(n) AS n FROM s GROUP BY p, k"
PREPARED = (
    f"CREATE TABLE s {COLUMNS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE other {COLUMNS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE sums {SUMS} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE more {SUMS}",
    "INSERT INTO s VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3)",
    "INSERT INTO other VALUES (1, 'z', 7), (3, 'z', 8)",
    "CREATE MATERIALIZED VIEW v TO sums AS " + QUERY,
    "CREATE MATERIALIZED VIEW w TO more AS SELECT p, k, sum(n) AS n FROM sums GROUP BY p, k",
    "INSERT INTO s VALUES (1, 'a', 10), (2, 'c', 20)",
)


@dataclass(frozen=True)
class Case:
    """A statement to kill; `before` runs first, on top of PREPARED."""

    statement: str
    before: tuple[str, ...] = ()

    @staticmethod
    def perform(connection: Connection, text: str) -> Answer:
        """Execute the statement."""
        connection.execute(text)
        return Answer()


CASES = {
    "adopt": Case(
        "SYSTEM ADOPT VIEW v",
        (f"INSERT INTO sums {QUERY.replace('s GROUP', 's WHERE s.n < 10 GROUP')}",),
    ),
    "insert": Case("INSERT INTO s VALUES (1, 'a', 5), (4, 'd', 6)"),
    "insert by hand": Case("INSERT INTO sums VALUES (1, 'a', 5)"),
    "delete": Case("DELETE FROM s WHERE k = 'a'"),
    "update": Case("ALTER TABLE s UPDATE n = 0 WHERE k = 'a'"),
    "truncate": Case("TRUNCATE TABLE s"),
    "truncate the target": Case("TRUNCATE TABLE sums"),
    "drop partition": Case("ALTER TABLE s DROP PARTITION 1"),
    "detach partition": Case("ALTER TABLE s DETACH PARTITION 1"),
    "attach partition": Case(
        "ALTER TABLE s ATTACH PARTITION 1", ("ALTER TABLE s DETACH PARTITION 1",)
    ),
    "attach partition from": Case("ALTER TABLE s ATTACH PARTITION 1 FROM other"),
    "replace partition": Case("ALTER TABLE s REPLACE PARTITION 1 FROM other"),
    "move partition": Case("ALTER TABLE other MOVE PARTITION 3 TO TABLE s"),
    "add column": Case("ALTER TABLE s ADD COLUMN m Int64 DEFAULT n * 2"),
    "modify query": Case("ALTER TABLE v MODIFY QUERY " + QUERY.replace("sum(n)", "sum(n * 2)")),
    "detach view": Case("DETACH VIEW v"),
    "drop view": Case("DROP VIEW w"),
    "rename": Case("RENAME TABLE s TO s1"),
    "exchange": Case("EXCHANGE TABLES s AND other"),
    "create view": Case(f"CREATE MATERIALIZED VIEW x TO more AS {QUERY}"),
    "create table as": Case(
        f"CREATE TABLE copy {COLUMNS} SETTINGS inline_bytes_max = 0 AS SELECT * FROM s"
    ),
    "replay": Case("SYSTEM REPLAY VIEW v SETTINGS inline_bytes_max = 0"),
    "replay stale": Case("SYSTEM REPLAY VIEW v STALE", ("DELETE FROM s WHERE k = 'a'",)),
    "reconcile": Case("SYSTEM RECONCILE VIEW v", ("SYSTEM BACKFILL VIEW v",)),
    "optimize": Case(
        "OPTIMIZE TABLE other FINAL", ("INSERT INTO other VALUES (1, 'y', 1), (3, 'y', 2)",)
    ),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill") / "warehouse"
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        for text in PREPARED:
            connection.execute(text)
    return folder


def state(connection: Connection) -> dict[str, Any]:
    """Return the rows of each table, and the status of each view."""
    tables = dicts(connection, "SELECT name, engine FROM system.tables WHERE database = 'default'")
    rows: dict[str, Counter[tuple[Any, ...]]] = {}
    for table in tables:
        if table["engine"] != "MaterializedView":
            final = "" if table["engine"] == "MergeTree" else " FINAL"
            found = connection.execute(f"SELECT * FROM {table['name']}{final}").fetchall()
            rows[table["name"]] = Counter(map(tuple, found))
    status = "SELECT name, attached, verdict, gap_rows, bypass_rows, definition_version FROM system.views"
    return {"rows": rows, "views": dicts(connection, status)}


def prepared(template: Path, folder: Path, case: Case) -> Path:
    """Copy the template and run the statements before the killed one."""
    shutil.copytree(template, folder)
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        for text in case.before:
            connection.execute(text)
    return folder


def stages_of(folder: Path, case: Case) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Run the statement; return the stages that it reaches, and the states before and after it."""
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        before = state(connection)
        with recording() as stages:
            connection.execute(case.statement)
        return list(stages), before, state(connection)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_killed_at_every_stage(name: str, template: Path, tmp_path: Path) -> None:
    """Kill once at each stage."""
    kill(name, template, tmp_path, thorough=False)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", CASES)
def test_killed_the_first_and_the_last_time(name: str, template: Path, tmp_path: Path) -> None:
    kill(name, template, tmp_path, thorough=True)


def kill(name: str, template: Path, tmp_path: Path, *, thorough: bool) -> None:
    """Kill the statement at each stage, once, or (`thorough`) the first and the last time."""
    case = CASES[name]
    dry = prepared(template, tmp_path / "dry", case)
    stages, before, after = stages_of(dry, case)
    assert stages
    happened = Counter[bool]()
    for index, (stage, count) in enumerate(Counter(stages).items()):
        for occurrence in sorted({1, count}) if thorough else [count if index % 2 else 1]:
            folder = prepared(template, tmp_path / f"{stage}-{occurrence}", case)
            where = f"{name}, {stage} #{occurrence}"
            answer = run_and_die(str(folder), case, case.statement, stage, occurrence)  # type: ignore[arg-type]
            assert answer is None, f"{where}: not reached"
            happened[verify(folder, case, before, after, where)] += 1
            shutil.rmtree(folder)
    if before != after and thorough:
        assert set(happened) == {True, False}, "kills fell on both sides of the commit"


def verify(
    folder: Path, case: Case, before: dict[str, Any], after: dict[str, Any], where: str
) -> bool:
    """Check the warehouse; return whether the statement happened, after running it again where
    it did not."""
    with olapdb.connect(str(folder)) as connection:
        services = connection.database.services
        connection.execute("SYSTEM STOP MERGES")
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == [], where
        assert vacuum(services, lifetime_seconds=0).files == 0, "a second recovery changes nothing"
        found = state(connection)
        assert found in (before, after), where
        done = found == after
        if not done:
            connection.execute(case.statement)
            assert state(connection) == after, where
        assert check_database(services.catalog, services.store) == [], where
        return done


def test_every_stage_is_killed_somewhere(template: Path, tmp_path: Path) -> None:
    """Require that each failpoint is reached here, or is named in another fault test or random
    schedule."""
    reached: set[str] = set()
    for name, case in CASES.items():
        reached.update(stages_of(prepared(template, tmp_path / name, case), case)[0])
    here = Path(__file__)
    for file in (*here.parent.glob("*.py"), *(here.parents[1] / "schedules").glob("*.py")):
        reached.update(re.findall(r'"([a-z]+\.[a-z_]+)"', file.read_text()) if file != here else ())
    assert set(FAILPOINTS) <= reached, set(FAILPOINTS) - reached
