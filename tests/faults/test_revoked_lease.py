"""A process whose lease was revoked: every statement that stages files is Aborted at its first
commit.

It computes nothing again, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Aborted
from olapdb.ingest import block_stager
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit
from olapdb.model.requirements import LeaseLive
from tests.faults.operations import OPERATIONS, SMALL, Operation, expected, prepare, state

pytestmark = pytest.mark.feature("crashes", "commits")

CATALOG_ONLY = ("exchange", "drop table", "undrop", "backup", "vacuum")
"""Operations that need no lease: they stage no file that vacuum could have deleted."""

MORE = {
    "insert into many": Operation("INSERT INTO s SELECT number % 3, 'k', 1 FROM numbers(10)"),
    "insert with a token": Operation(
        "INSERT INTO s SETTINGS insert_deduplication_token = 'once' VALUES (1, 'a', 5)"
    ),
    "insert by keys": Operation(
        "INSERT INTO keyed VALUES (1, 2)",
        (
            "CREATE TABLE keyed (k UInt64, n UInt64) ENGINE = MergeTree ORDER BY k"
            " SETTINGS deduplicate_by = 'k'",
        ),
    ),
    "alter delete": Operation("ALTER TABLE s DELETE WHERE k = 'a'"),
    "drop partition": Operation("ALTER TABLE s DROP PARTITION 1"),
    "reconcile": Operation("SYSTEM RECONCILE VIEW v"),
    "replay of a partition": Operation("SYSTEM REPLAY VIEW v PARTITION ID '1'"),
    "rebuild that goes on": Operation(f"SYSTEM REBUILD VIEW x SETTINGS {SMALL}"),
}
ALL = {**{n: o for n, o in OPERATIONS.items() if n not in CATALOG_ONLY}, **MORE}


@contextmanager
def counting(connection: Connection) -> Iterator[tuple[list[Commit], mock.Mock]]:
    """Yield the attempted commits, and a mock that counts the firings of views."""
    catalog = connection.database.services.catalog
    tried: list[Commit] = []
    really = catalog.apply

    def apply(commit: Commit) -> object:
        tried.append(commit)
        return really(commit)

    fired = mock.Mock(side_effect=block_stager.fire)
    with mock.patch.object(catalog, "apply", apply), mock.patch.object(block_stager, "fire", fired):
        yield tried, fired


def revoke(connection: Connection) -> None:
    """Revoke the lease of this process."""
    services = connection.database.services
    services.catalog._end_leases([services.lease_id], "revoked")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ALL)
def test_a_statement_under_a_revoked_lease_is_aborted_at_once(name: str, tmp_path: Path) -> None:
    operation = ALL[name]
    prepare(tmp_path / "w", operation)
    with olapdb.connect(str(tmp_path / "w")) as connection:
        connection.execute("SYSTEM STOP MERGES")
        before = state(connection)
        revoke(connection)
        with counting(connection) as (tried, fired):
            with pytest.raises(Aborted, match="lease") as caught:
                operation.run(connection, tmp_path / "w")
            assert "reconnect" in caught.value.hint
        assert sum(map(has_lease, tried)) == 1, "a dead lease was tried again"
        assert fired.call_count <= 4, "views were fired again"  # v of s and w of sums, by partition
        assert state(connection) == before
        vacuum(connection.database.services, lifetime_seconds=0)
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
    with olapdb.connect(str(tmp_path / "w")) as connection:  # a new lease
        connection.execute("SYSTEM STOP MERGES")
        operation.run(connection, tmp_path / "w")


@pytest.mark.parametrize("name", [name for name in CATALOG_ONLY if name != "vacuum"])
def test_a_statement_that_stages_no_file_needs_no_lease(name: str, tmp_path: Path) -> None:
    prepare(tmp_path / "w", OPERATIONS[name])
    prepare(tmp_path / "other", OPERATIONS[name])
    after = expected(tmp_path, tmp_path / "other", OPERATIONS[name])[1]
    with olapdb.connect(str(tmp_path / "w")) as connection:
        connection.execute("SYSTEM STOP MERGES")
        revoke(connection)
        OPERATIONS[name].run(connection, tmp_path / "w")
        assert state(connection) == after


def has_lease(commit: Commit) -> bool:
    """Return whether the commit requires a live lease."""
    return any(isinstance(requirement, LeaseLive) for requirement in commit.requirements)
