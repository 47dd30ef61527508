"""A statement of each family that lost three races takes the catalog's turn, and commits.

The races are planted: the catalog refuses the first three commits of the statement, as after a
rival's commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

import olapdb
from olapdb.commit.retry import FREE_ATTEMPTS_MAX
from olapdb.dbapi.connection import Connection
from olapdb.errors import CommitConflict
from olapdb.maintenance.check import check_database
from olapdb.model.changes import Commit
from tests.faults.operations import OPERATIONS, QUERY, REBUILD, Operation, expected, prepare, state

pytestmark = pytest.mark.feature("crashes")

WITHOUT_A_TURN = {
    "merge": "OPTIMIZE plans its merges again",
    "backfill": "computed chunks wait for the next round",
    "staged backfill": "computed chunks wait for the next round",
    "rebuild": "its commits are those of several statements",
    "vacuum": "makes no commit",
    "backup": "makes no commit",
}
MORE = {
    "create view": Operation(f"CREATE MATERIALIZED VIEW late2 TO late AS {QUERY}"),
    "drop view": Operation("DROP VIEW x"),
    "detach view": Operation("DETACH VIEW x"),
    "modify query": Operation(
        f"ALTER TABLE x MODIFY QUERY {QUERY.replace('sum(n)', 'sum(3 * n)')}"
    ),
    "rebuild that begins": Operation(REBUILD),
    "create table": Operation("CREATE TABLE made (a UInt8) ORDER BY a"),
    "rename": Operation("RENAME TABLE other TO others"),
    "ttl": Operation(
        "ALTER TABLE s MATERIALIZE TTL",
        (
            "ALTER TABLE s MODIFY TTL toDate('2001-01-01') + toIntervalDay(p)"
            " SETTINGS materialize_ttl_after_modify = 0",
        ),
    ),
    "drop partition": Operation("ALTER TABLE s DROP PARTITION 1"),
}
ALL = {**{n: o for n, o in OPERATIONS.items() if n not in WITHOUT_A_TURN}, **MORE}


@contextmanager
def losing(connection: Connection, races: int) -> Iterator[list[str]]:
    """Refuse so many commits; the yielded list has the holder of each turn taken, and "" for
    each commit."""
    catalog = connection.database.services.catalog
    story: list[str] = []
    apply, turn = catalog.apply, catalog.turn

    def refusing(commit: Commit) -> object:
        story.append("")
        if story.count("") <= races:
            raise CommitConflict("planted")
        return apply(commit)

    def told(what: str) -> object:
        story.append(what)
        return turn(what)

    with mock.patch.object(catalog, "apply", refusing), mock.patch.object(catalog, "turn", told):
        yield story


@pytest.mark.parametrize("name", ALL)
def test_a_statement_that_lost_three_races_gets_the_turn(name: str, tmp_path: Path) -> None:
    operation = ALL[name]
    prepare(tmp_path / "w", operation)
    with olapdb.connect(str(tmp_path / "w")) as connection:
        connection.execute("SYSTEM STOP MERGES")
        with losing(connection, FREE_ATTEMPTS_MAX) as story:
            operation.run(connection, tmp_path / "w")
        assert story[:FREE_ATTEMPTS_MAX] == [""] * FREE_ATTEMPTS_MAX
        assert story[FREE_ATTEMPTS_MAX], "the fourth attempt took no turn"
        assert story[FREE_ATTEMPTS_MAX + 1] == ""
        services = connection.database.services
        assert services.activity.events()["CommitRetry"] >= FREE_ATTEMPTS_MAX
        assert check_database(services.catalog, services.store) == []
        after = state(connection) if name in OPERATIONS else None
    if after is not None:
        prepare(tmp_path / "other", operation)
        assert after == expected(tmp_path, tmp_path / "other", operation)[1]
