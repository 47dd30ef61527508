"""Staged files go when the commit surely failed, and stay when nobody knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.insert_throttle import insert_delay_ms
from olapdb.commit.origin import STATEMENT_CHARACTERS_MAX, CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.commit.staging import Staging
from olapdb.config import Settings
from olapdb.errors import Aborted, CommitConflict, CommitUnknown, TooManyParts
from olapdb.maintenance.check import check_database
from olapdb.model.changes import AddBlock, AddPart, Commit, Committed
from olapdb.model.part import BlockRange, NewBlock
from olapdb.model.requirements import SchemaIs
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import FAILPOINTS
from olapdb.runtime.services import Services
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.store import LocalStore
from tests.harness.commits import create, make_part, make_table, rows_of

pytestmark = pytest.mark.feature("commits")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    store = LocalStore(tmp_path)
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite", sync_files=store.sync)
    create(catalog, make_table("s"))
    yield Services(catalog, store, catalog.open_lease("test"))
    catalog.close()


BLOCK = NewBlock("s", 0)


@pytest.fixture
def origin(services: Services) -> CommitOrigin:
    return CommitOrigin(services, "TEST")


def stage(staging: Staging) -> AddPart:
    return staging.stage_part(
        make_table("s"), rows_of(("a", 1), ("b", 2)), PartPlan("all", (), BLOCK)
    )


def files(services: Services) -> list[str]:
    return [f.path for f in services.store.list("data/")]


def test_a_commit(services: Services, origin: CommitOrigin) -> None:
    with Staging(origin) as staging:
        part = stage(staging)
        staging.publish(CommitDraft((origin.lease, SchemaIs("s", 1)), (AddBlock(BLOCK, 2), part)))
    assert files(services) == [part.part.path]
    assert check_database(services.catalog, services.store) == []


def test_conflicts_are_tried_again_then_raised(services: Services, origin: CommitOrigin) -> None:
    seen: list[int] = []

    def attempt(snapshot: Snapshot) -> None:
        seen.append(snapshot.number)
        create(services.catalog, make_table(f"other{len(seen)}"))  # type: ignore[arg-type]
        version = 1 if len(seen) == 3 else 7
        staging.publish(CommitDraft((SchemaIs("s", version),), (AddBlock(BLOCK, 2), part)))

    with Staging(origin) as staging:
        part = stage(staging)
        retry_commit(services, attempt, RetryPolicy("TEST"))
    assert seen == [2, 3, 4]
    assert files(services) == [part.part.path]
    events = services.activity.events()
    assert (events["CommitConflict"], events["CommitRetry"]) == (2, 2)

    def refused(snapshot: Snapshot) -> None:
        staging.publish(CommitDraft((SchemaIs("s", 9),)))

    with pytest.raises(CommitConflict, match="SchemaIs"), Staging(origin) as staging:  # noqa: PT012
        stage(staging)
        assert len(files(services)) == 2
        retry_commit(services, refused, RetryPolicy("TEST", attempts_max=2))
    assert len(files(services)) == 1


def test_the_last_conflict_becomes_the_error_of_the_policy(
    services: Services, origin: CommitOrigin
) -> None:
    lost: list[CommitConflict] = []
    policy = RetryPolicy("TEST", "Lost 4 times.", attempts_max=4, on_conflict=lost.append)
    with pytest.raises(CommitConflict, match="Lost 4 times") as caught:
        retry_commit(services, lambda _: publish(CommitDraft((SchemaIs("s", 9),)), origin), policy)
    assert caught.value.__cause__ is lost[-1]
    assert len(lost) == 4


def test_an_exception_before_the_commit_cleans_up(services: Services, origin: CommitOrigin) -> None:
    with pytest.raises(ZeroDivisionError), Staging(origin) as staging:  # noqa: PT012
        stage(staging)
        raise ZeroDivisionError
    assert files(services) == []


def test_a_revoked_lease_aborts_at_once(services: Services, origin: CommitOrigin) -> None:
    services.catalog.close_lease(services.lease_id)
    attempts: list[Snapshot] = []

    def attempt(snapshot: Snapshot) -> None:
        attempts.append(snapshot)
        staging.publish(CommitDraft((origin.lease,)))

    with pytest.raises(Aborted), Staging(origin) as staging:  # noqa: PT012
        stage(staging)
        retry_commit(services, attempt, RetryPolicy("TEST"))
    assert len(attempts) == 1
    assert files(services) == []


def test_an_unknown_outcome_deletes_nothing(
    services: Services, origin: CommitOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody_knows(commit: Commit) -> Committed:
        raise CommitUnknown("planted")

    monkeypatch.setattr(services.catalog, "apply", nobody_knows)
    with pytest.raises(CommitUnknown), Staging(origin) as staging:  # noqa: PT012
        part = stage(staging)
        staging.publish(CommitDraft())
    assert files(services) == [part.part.path]


def test_a_replacement_has_what_the_part_had(services: Services) -> None:
    origin = CommitOrigin(services, "TEST", settings={"max_threads": 2})
    assert origin.threads == 2
    rows = rows_of(("a", 1), ("b", 2))
    table = make_table("s", settings=(("inline_bytes_max", rows.nbytes),))
    with Staging(origin) as staging:
        in_file = make_part("s", partition_id="p", level=3, blocks=BlockRange(1, 2))
        replaced = staging.stage_replacement(table, in_file, rows).part
        assert (replaced.partition_id, replaced.level, replaced.inline) == ("p", 3, False)
        assert replaced.block_range == in_file.block_range
        inline = replace(in_file, path="", inline=True)
        assert staging.stage_replacement(table, inline, rows).part.inline
        assert not staging.stage_replacement(table, inline, rows_of(*[("a", 1)] * 9)).part.inline
    assert files(services) == []


def test_a_statement_s_text_is_cut_in_one_place(services: Services) -> None:
    origin = CommitOrigin(services, "TEST", statement="x" * 10_000)
    assert len(origin.statement) == STATEMENT_CHARACTERS_MAX
    assert origin.of_kind("OTHER").statement == origin.statement


def test_crowded_partitions_slow_then_refuse_inserts(services: Services) -> None:
    limits = (("parts_to_delay_insert", 5), ("parts_to_throw_insert", 9))
    table = make_table("s", settings=limits)
    catalog = services.catalog

    def delay() -> int:
        return insert_delay_ms(catalog.snapshot(), table, ["all", "other"], Settings())

    delays = []
    for _ in range(9):
        delays.append(delay())
        block = NewBlock("s", 0)
        catalog.apply(Commit((), (AddBlock(block, 1), AddPart(make_part("s"))), "TEST"))
    assert delays[:5] == [0] * 5
    assert 0 < delays[5] < delays[6] < delays[8] <= 1000
    with pytest.raises(TooManyParts, match="9"):
        delay()
    assert insert_delay_ms(catalog.snapshot(), table, ["other"], Settings()) == 0


def test_every_stage_in_the_code_is_listed() -> None:
    root = Path(olapdb.__file__).parent
    found = {
        stage
        for path in root.rglob("*.py")
        for stage in re.findall(r"(?:reach|failpoint)\(\s*\"([a-z._]+)\"\s*\)", path.read_text())
        if path.name != "failpoints.py"
    }
    made_up = {stage for stage in FAILPOINTS if stage.endswith(".chunk_computed")}  # f"{kind}.…"
    assert found | made_up == set(FAILPOINTS)


def test_check_database_sees_what_is_wrong(services: Services) -> None:
    origin = CommitOrigin(services, "TEST")
    with Staging(origin) as staging:
        part = stage(staging)
        staging.publish(CommitDraft((), (AddBlock(BLOCK, 2), part)))
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
