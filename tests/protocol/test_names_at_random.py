"""Names under load: threads rename, exchange, drop, undrop, create views, detach and insert at
once.

Afterwards every view names exactly the tables that it is bound to, and is right.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import olapdb
from olapdb.bind.analysis import referenced_tables
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, InternalError
from olapdb.maintenance.check import check_database
from olapdb.model.schema import MaterializedView, View
from olapdb.sql.parser import parse_query
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("commits")

SECONDS = 4.0
THREADS = 4
TABLES = ("a", "b", "c", "d")
TARGETS = ("t", "u")
VIEWS = ("v", "w")


def statement(chance: random.Random) -> str:
    """Return a random statement about names, or an INSERT."""
    one, other = chance.sample(TABLES, 2)
    target, view = chance.choice(TARGETS), chance.choice(VIEWS)
    return chance.choice(
        (
            f"CREATE TABLE {one} (k Int64, n Int64) ENGINE = MergeTree ORDER BY k",
            f"INSERT INTO {one} VALUES ({chance.randrange(5)}, {chance.randrange(100)})",
            f"INSERT INTO {one} VALUES ({chance.randrange(5)}, {chance.randrange(100)})",
            f"RENAME TABLE {one} TO {other}",
            f"EXCHANGE TABLES {one} AND {other}",
            f"EXCHANGE TABLES {target} AND {one}",
            f"DROP TABLE {one}",
            f"UNDROP TABLE {one}",
            f"ALTER TABLE {one} MODIFY COMMENT '{chance.randrange(9)}'",
            f"CREATE MATERIALIZED VIEW {view} TO {target} AS"
            f" SELECT k, sum(n) AS n FROM {one} GROUP BY k",
            f"CREATE VIEW p{view} AS SELECT k, n FROM {one}",
            f"DETACH VIEW {view}",
            f"ATTACH VIEW {view}",
            f"DROP VIEW {view}",
            f"DROP VIEW p{view}",
            "RENAME DATABASE x TO y",
            "RENAME DATABASE y TO x",
            f"RENAME TABLE {one} TO x.{one}",
            f"RENAME TABLE y.{one} TO {one}",
        )
    )


def run(folder: Path, seed: int, until: float, said: Counter[str], wrong: list[str]) -> None:
    """Execute random statements until the time is over; count the outcomes, collect internal
    errors."""
    chance = random.Random(seed)
    with olapdb.connect(str(folder)) as connection:
        while time.monotonic() < until:
            text = statement(chance)
            try:
                connection.execute(text)
            except InternalError as error:
                wrong.append(f"{text}: {error}")
            except Error as error:
                said[error.name] += 1
            else:
                said[f"ok {text.split()[0]}"] += 1


def check_names(connection: Connection) -> None:
    """Require that each view's query names the tables that it is bound to."""
    snapshot = connection.session.snapshot()
    for item in snapshot.objects():
        if not isinstance(item, View | MaterializedView):
            continue
        found = []
        for name in referenced_tables(parse_query(item.query)):
            table = snapshot.find(name.database or "", name.name)
            if table is not None:
                found.append(table.id)
            else:  # a plain view of a table that was dropped is broken, as anywhere
                assert isinstance(item, View), f"{item.name} names {name}, which is not there"
        if isinstance(item, MaterializedView):
            assert set(found) == {item.source_id}
            assert snapshot.by_id(item.target_id) is not None


def check_views(connection: Connection) -> None:
    """Backfill, replay and reconcile all views: every verdict must be "equal"."""
    for database, name in rows(connection, "SELECT database, name FROM system.views"):
        view = f"{database}.{name}"
        connection.execute(f"SYSTEM BACKFILL VIEW {view}")
        connection.execute(f"SYSTEM REPLAY VIEW {view} DISCARD BYPASS")
    for _, database, name in rows(
        connection, "SELECT verdict, database, name FROM system.views WHERE verdict != 'unproven'"
    ):
        found = connection.execute(f"SYSTEM RECONCILE VIEW {database}.{name}").fetch_arrow_table()
        assert set(found.column("verdict").to_pylist()) <= {"equal"}


def test_names_under_load(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    said: Counter[str] = Counter()
    wrong: list[str] = []
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("CREATE DATABASE x")
        for target in TARGETS:
            connection.execute(
                f"CREATE TABLE {target} (k Int64, n Int64) ENGINE = SummingMergeTree ORDER BY k"
            )
        until = time.monotonic() + SECONDS
        threads = [
            threading.Thread(target=run, args=(tmp_path, seed + n, until, said, wrong))
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert said["ok RENAME"] > 0
        check_names(connection)
        check_views(connection)
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
