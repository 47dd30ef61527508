"""Staged files go when the commit surely failed, and stay when nobody knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.commit.insert_throttle import insert_delay_ms
from olapdb.commit.transaction import Transaction
from olapdb.errors import Aborted, CommitConflict, CommitUnknown, TooManyParts
from olapdb.maintenance.check import check_database
from olapdb.model.changes import AddBlock, AddPart, Commit, Committed, SchemaIs
from olapdb.model.part import NewBlock
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import FAILPOINTS, recording
from olapdb.runtime.services import Services
from olapdb.storage.store import LocalStore
from tests.harness.commits import create, make_part, make_table, rows_of


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    store = LocalStore(tmp_path)
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite", sync_files=store.sync)
    create(catalog, make_table("s"))
    yield Services(catalog, store, catalog.open_lease("test"))
    catalog.close()


def stage(transaction: Transaction) -> AddPart:
    staged = transaction.stage(
        make_table("s"),
        rows_of(("a", 1), ("b", 2)),
        partition_id="all",
        partition_value=(),
        blocks=NewBlock("s", 0),
    )
    return AddPart(staged.part, staged.inline_rows)


def files(services: Services) -> list[str]:
    return [f.path for f in services.store.list("data/")]


def test_a_commit(services: Services) -> None:
    with recording() as stages, Transaction(services) as transaction:
        part = stage(transaction)
        transaction.commit(
            lambda snapshot: Commit(
                (transaction.lease, SchemaIs("s", 1)), (AddBlock(NewBlock("s", 0), 2), part), "TEST"
            )
        )
    assert files(services) == [part.part.path]
    assert check_database(services.catalog, services.store) == []
    assert stages == [
        "stage.before_part",
        "stage.part_staged",
        "transaction.before_commit",
        "transaction.committed",
    ]


def test_conflicts_are_tried_again_then_raised(services: Services) -> None:
    seen: list[int] = []

    def build(snapshot: Snapshot) -> Commit:
        seen.append(snapshot.number)
        create(services.catalog, make_table(f"other{len(seen)}"))  # type: ignore[arg-type]
        version = 1 if len(seen) == 3 else 7
        return Commit((SchemaIs("s", version),), (AddBlock(NewBlock("s", 0), 2), part), "TEST")

    with Transaction(services) as transaction:
        part = stage(transaction)
        transaction.commit(build)
    assert seen == [2, 3, 4]
    assert files(services) == [part.part.path]

    with pytest.raises(CommitConflict), Transaction(services, attempts_max=2) as transaction:  # noqa: PT012
        part = stage(transaction)
        assert len(files(services)) == 2
        transaction.commit(lambda s: Commit((SchemaIs("s", 9),), (), "TEST"))
    assert len(files(services)) == 1


def test_an_exception_before_the_commit_cleans_up(services: Services) -> None:
    with pytest.raises(ZeroDivisionError), Transaction(services) as transaction:  # noqa: PT012
        stage(transaction)
        raise ZeroDivisionError
    assert files(services) == []


def test_a_revoked_lease_aborts_at_once(services: Services) -> None:
    services.catalog.close_lease(services.lease_id)
    attempts = []
    with pytest.raises(Aborted), Transaction(services) as transaction:  # noqa: PT012
        stage(transaction)
        transaction.commit(lambda s: attempts.append(s) or Commit((transaction.lease,), (), "TEST"))
    assert len(attempts) == 1
    assert files(services) == []


def test_an_unknown_outcome_deletes_nothing(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody_knows(commit: Commit) -> Committed:
        raise CommitUnknown("planted")

    monkeypatch.setattr(services.catalog, "apply", nobody_knows)
    with pytest.raises(CommitUnknown), Transaction(services) as transaction:  # noqa: PT012
        part = stage(transaction)
        transaction.commit(lambda s: Commit((), (), "TEST"))
    assert files(services) == [part.part.path]


def test_crowded_partitions_slow_then_refuse_inserts(services: Services) -> None:
    limits = (("parts_to_delay_insert", 5), ("parts_to_throw_insert", 9))
    table = make_table("s", settings=limits)
    catalog = services.catalog

    def delay() -> int:
        return insert_delay_ms(catalog.snapshot(), table, ["all", "other"])

    delays = []
    for _ in range(9):
        delays.append(delay())
        block = NewBlock("s", 0)
        catalog.apply(Commit((), (AddBlock(block, 1), AddPart(make_part("s"))), "TEST"))
    assert delays[:5] == [0] * 5
    assert 0 < delays[5] < delays[6] < delays[8] <= 1000
    with pytest.raises(TooManyParts, match="9"):
        delay()
    assert insert_delay_ms(catalog.snapshot(), table, ["other"]) == 0


def test_every_stage_in_the_code_is_listed() -> None:
    root = Path(olapdb.__file__).parent
    found = {
        stage
        for path in root.rglob("*.py")
        for stage in re.findall(r"failpoint\(\s*\"([a-z._]+)\"\s*\)", path.read_text())
        if path.name != "failpoints.py"
    }
    made_up = {stage for stage in FAILPOINTS if stage.endswith(".chunk_computed")}  # f"{kind}.…"
    assert found | made_up == set(FAILPOINTS)


def test_check_database_sees_what_is_wrong(services: Services) -> None:
    with Transaction(services) as transaction:
        part = stage(transaction)
        transaction.commit(lambda s: Commit((), (AddBlock(NewBlock("s", 0), 2), part), "TEST"))
    catalog, store = services.catalog, services.store
    store.write("data/s/dead-part.parquet", lambda sink: sink.write(b"x"))
    (orphan,) = check_database(catalog, store)
    assert "dead-part" in orphan
    assert "nothing" in orphan
    store.delete("data/s/dead-part.parquet")
    local = store.local_path(part.part.path)
    assert local is not None
    good = Path(local).read_bytes()
    Path(local).write_bytes(good[:40] + b"\0" + good[41:])
    (damaged,) = check_database(catalog, store)
    assert part.part.id in damaged
    Path(local).unlink()
    (missing,) = check_database(catalog, store)
    assert "does not exist" in missing
