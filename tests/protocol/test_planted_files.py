"""Plants faults in tokens, leases, pins and unknown outcomes (rules 12 to 14); each test also
runs without its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import Aborted, CommitUnknown, Error, OperationalError, SnapshotTooOld
from olapdb.ingest import block_stager
from olapdb.maintenance import vacuum as vacuuming
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit, Committed
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import watching
from tests.protocol.planted import FAULTS
from tests.schedules.crash import run_and_die
from tests.schedules.operation import Answer

INSERT = "INSERT INTO s VALUES (1)"


# A table without inline parts: every part is a file.
pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE s (n UInt64) ENGINE = MergeTree ORDER BY n",
        merges=False,
        on_disk=True,
        settings={"inline_bytes_max": 0},
    ),
    pytest.mark.feature("commits"),
]


def problems(connection: Connection) -> list[str]:
    """Return the problems that check_database finds."""
    services = connection.database.services
    return check_database(services.catalog, services.store)


def clean(connection: Connection) -> None:
    """Vacuum with a part lifetime of 0."""
    vacuum(connection.database.services, lifetime_seconds=0)


def count(connection: Connection) -> int:
    """Return the number of rows in s."""
    return int(connection.execute("SELECT count() FROM s").fetchall()[0][0])


@contextmanager
def at(stage: str, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` once, when the stage is reached."""
    waiting = [act]

    def told(reached: str) -> None:
        if reached == stage and waiting:
            waiting.pop()()

    with watching(told):
        yield


def planted(connection: Connection, guard: str, really: bool) -> AbstractContextManager[None]:
    """Plant the fault of the guard, if `really`."""
    return FAULTS[guard].planted(connection.database.services.catalog) if really else nullcontext()


def maybe(really: bool, target: object, name: str, new: object) -> AbstractContextManager[object]:
    """Patch the attribute, if `really`."""
    return mock.patch.object(target, name, new) if really else nullcontext()


both_ways = pytest.mark.parametrize("fault", [False, True], ids=["guarded", "planted"])


@both_ways
def test_12_token(connection: Connection, fault: bool) -> None:
    with planted(connection, "12.token", fault):
        for _ in range(2):
            connection.execute("INSERT INTO s SETTINGS insert_deduplication_token = 'x' VALUES (1)")
    assert (count(connection) == 2) == fault


@both_ways
def test_13_lease(connection: Connection, fault: bool) -> None:
    """Revoke the lease of a slow writer before its commit, which fails at once: its view fires
    only once."""
    services = connection.database.services
    connection.execute(
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY n AS SELECT n FROM s"
    )

    def take_for_dead() -> None:
        services.catalog._end_leases([services.lease_id], "revoked")  # type: ignore[attr-defined]
        clean(connection)

    fired = mock.Mock(side_effect=block_stager.fire)
    refused = pytest.raises(Aborted, match="lease of this process was revoked")
    with (
        planted(connection, "13.lease", fault),
        at("insert.before_commit", take_for_dead),
        mock.patch.object(block_stager, "fire", fired),
        nullcontext() if fault else refused,
    ):
        connection.execute(INSERT)
    assert fired.call_count == 1
    assert bool(problems(connection)) == fault


def done(connection: Connection, text: str) -> bool:
    """Return whether the statement succeeds."""
    try:
        connection.execute(text)
    except Error:
        return False
    return True


@both_ways
def test_13_revoke_first(connection: Connection, fault: bool) -> None:
    """Plant a vacuum that deletes the files of a writer whose lease it did not revoke."""
    catalog = connection.database.services.catalog
    leases = catalog.leases

    def said_to_be_dead() -> Any:
        return tuple(replace(lease, state="revoked") for lease in leases())

    def come_by() -> None:
        with maybe(fault, catalog, "leases", said_to_be_dead):
            clean(connection)

    with at("insert.before_commit", come_by):
        assert done(connection, INSERT)
    assert bool(problems(connection)) == fault


@both_ways
def test_13_live_leases(connection: Connection, fault: bool) -> None:
    """Plant a vacuum that ignores which lease a file belongs to."""
    catalog = connection.database.services.catalog
    ended = catalog.open_lease("an end")
    catalog.close_lease(ended)

    def come_by() -> None:
        with maybe(fault, vacuuming, "lease_of_path", lambda path: ended):
            clean(connection)

    with at("insert.before_commit", come_by):
        assert done(connection, INSERT)
    assert bool(problems(connection)) == fault


class Statement:
    """A statement that another process runs whole."""

    def perform(self, connection: Connection, text: str) -> Answer:
        """Execute the statement."""
        connection.execute(text)
        return Answer()


@both_ways
def test_13_catalog_last(connection: Connection, fault: bool) -> None:
    """Commit and end a lease in another process while vacuum lists files: the catalog is queried
    last."""
    services = connection.database.services
    folder = connection.database.location
    known = services.catalog.referenced_paths()
    text = "INSERT INTO s SETTINGS inline_bytes_max = 0 VALUES (1)"
    never = "vacuum.marked"
    listed = services.store.list

    def list_after_another(prefix: str) -> Any:
        run_and_die(folder, Statement(), text, never, 1)  # type: ignore[arg-type]
        return listed(prefix)

    with (
        mock.patch.object(services.store, "list", list_after_another),
        maybe(fault, services.catalog, "referenced_paths", lambda: known),
    ):
        clean(connection)
    assert count_or_gone(connection) == (None if fault else 1)


def count_or_gone(connection: Connection) -> int | None:
    """Return the number of rows, None where the table cannot be read."""
    try:
        return len(connection.execute("SELECT n FROM s").fetchall())
    except Error:
        return None


def replace_all(connection: Connection) -> None:
    """Merge two parts into one; the old files may be needed by a reader."""
    connection.execute("OPTIMIZE TABLE s FINAL")


def files_of(connection: Connection, snapshot: Snapshot) -> bool:
    """Return whether all files that the snapshot reads exist."""
    there = {file.path for file in connection.database.services.store.list("data/")}
    table = snapshot.find("default", "s")
    assert table is not None
    return {part.path for part in snapshot.parts(table.id)} <= there


def two_parts(connection: Connection) -> None:
    """Insert two parts."""
    connection.execute(INSERT)
    connection.execute("INSERT INTO s VALUES (2)")


@both_ways
def test_13_pins(connection: Connection, fault: bool) -> None:
    catalog = connection.database.services.catalog
    two_parts(connection)
    with catalog.pinned() as snapshot:
        assert files_of(connection, snapshot)
        replace_all(connection)
        with maybe(fault, catalog, "oldest_pin", lambda: catalog.snapshot().number):
            clean(connection)
        assert files_of(connection, snapshot) != fault


@both_ways
def test_13_mark(connection: Connection, fault: bool) -> None:
    """Pin a commit number only after its parts were deleted."""
    catalog = connection.database.services.catalog
    two_parts(connection)
    snapshot = catalog.snapshot()
    assert files_of(connection, snapshot)
    replace_all(connection)
    clean(connection)
    with ExitStack() as stack:
        if fault:
            for home in ("head_cache", "catalog_reader", "lease_catalog"):
                stack.enter_context(mock.patch(f"olapdb.catalog.sqlite.{home}.refuse_vacuumed"))
            catalog.pin(snapshot.number)
            assert not files_of(connection, snapshot), "it reads what is not there"
        else:
            with pytest.raises(SnapshotTooOld):
                catalog.pin(snapshot.number)


@both_ways
def test_13_look_again(connection: Connection, fault: bool) -> None:
    """Pin just after vacuum has read the pins, and before it wrote its mark."""
    catalog = connection.database.services.catalog
    two_parts(connection)
    snapshot = catalog.snapshot()
    assert files_of(connection, snapshot)
    replace_all(connection)
    dropped = catalog.dropped_parts

    def pinned_meanwhile(*given: Any) -> Any:
        found = dropped(*given)
        catalog.pin(snapshot.number)
        return found

    with (
        mock.patch.object(catalog, "dropped_parts", pinned_meanwhile),
        maybe(fault, catalog, "oldest_pin", lambda: catalog.snapshot().number),
    ):
        clean(connection)
    assert files_of(connection, snapshot) != fault
    catalog.unpin(snapshot.number)


@both_ways
def test_13_write_first(connection: Connection, fault: bool) -> None:
    """Plant a commit that is published before its file is on the disk."""
    folder = Path(connection.database.location)

    def lose() -> None:
        for file in folder.glob("data/*/*.parquet") if fault else ():
            file.unlink()

    with at("catalog.before_commit", lose):
        assert done(connection, INSERT)
    assert bool(problems(connection)) == fault


@both_ways
def test_14_keep_files(connection: Connection, fault: bool) -> None:
    """Hide the outcome of a commit that happened: the writer must not treat that as a failure."""
    catalog = connection.database.services.catalog
    apply = catalog.apply

    def in_doubt(commit: Commit) -> Committed:
        apply(commit)
        raise OperationalError("Failed.") if fault else CommitUnknown("Nobody knows.")

    with mock.patch.object(catalog, "apply", in_doubt):
        assert not done(connection, INSERT)
    assert bool(problems(connection)) == fault
    assert count_or_gone(connection) == (None if fault else 1)
