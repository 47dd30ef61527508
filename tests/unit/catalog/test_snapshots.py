"""Snapshots are immutable and cheap, and see each commit whole."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest

from olapdb.catalog.sqlite import schema_cache, statements
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.catalog.sqlite.schema_cache import DELTAS_MAX, TableParts
from olapdb.errors import BadArguments, SnapshotTooOld
from olapdb.model.changes import AddBlock, AddPart, Commit, RemoveParts
from olapdb.model.part import BlockRange, NewBlock, Part
from tests.harness.commits import create_all, insert, make_part
from tests.unit.catalog.conftest import Clock

pytestmark = pytest.mark.feature("commits")


def test_the_same_snapshot_until_something_changes(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    one = catalog.snapshot()
    assert catalog.snapshot() is one
    insert(catalog, lease)
    two = catalog.snapshot()
    assert two is not one
    assert two.by_id("s") is one.by_id("s")
    assert (len(one.parts("s")), len(two.parts("s"))) == (0, 1)


def test_past_snapshots_by_number(catalog: SqliteCatalog, lease: str) -> None:
    created = create_all(catalog).number
    for _ in range(3):
        insert(catalog, lease)
    for ago in range(4):
        snapshot = catalog.snapshot(created + ago)
        assert snapshot.number == created + ago
        assert len(snapshot.parts("s")) == ago
    for number in (0, created + 4):
        with pytest.raises(BadArguments):
            catalog.snapshot(number)
    assert catalog.snapshot(1).find("default", "s") is None


def test_an_insert_does_not_read_the_parts_again(
    catalog: SqliteCatalog, lease: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_all(catalog)
    for _ in range(5):
        insert(catalog, lease)
    assert len(catalog.snapshot().parts("s")) == 5
    monkeypatch.setattr(statements, "parts_at", lambda *a, **b: pytest.fail("read again"))
    old = catalog.snapshot()
    for _ in range(5):
        insert(catalog, lease)
    assert len(catalog.snapshot().parts("s")) == 10
    assert len(old.parts("s")) == 5
    assert catalog.snapshot().part_count("s", "all") == 10


def test_another_connections_commits_are_followed(tmp_path: object) -> None:
    path = f"{tmp_path}/catalog.sqlite"
    ours, theirs = SqliteCatalog(path), SqliteCatalog(path)
    lease = theirs.open_lease("theirs")
    create_all(theirs)
    assert ours.snapshot().parts("s") == ()
    for expected in range(1, 6):
        insert(theirs, lease)
        assert len(ours.snapshot().parts("s")) == expected
    gone = theirs.snapshot().parts("s")[2]
    before = ours.snapshot()
    theirs.apply(Commit((), (RemoveParts("s", (gone.id,)),), "TEST"))
    assert gone not in ours.snapshot().parts("s")
    assert gone in before.parts("s")
    assert ours.snapshot().parts("s") == theirs.snapshot().parts("s")
    ours.close()
    theirs.close()


def test_a_table_in_heavy_use_is_read_once(tmp_path: object) -> None:
    """Commits during a read must not make each reader load all parts."""
    path = f"{tmp_path}/catalog.sqlite"
    ours, theirs = SqliteCatalog(path), SqliteCatalog(path)
    lease = theirs.open_lease("theirs")
    create_all(theirs)
    insert(theirs, lease)
    with mock.patch.object(statements, "parts_at", wraps=statements.parts_at) as read:
        for expected in range(1, 6):
            behind = ours.snapshot()
            insert(theirs, lease)
            assert ours.snapshot().number > behind.number
            insert(theirs, lease)  # a commit that the first process has not noticed yet
            assert len(behind.parts("s")) == 2 * expected - 1
        assert read.call_count == 1
    assert len(ours.snapshot().parts("s")) == 11
    ours.close()
    theirs.close()


def test_stepping_back_equals_reading_the_past() -> None:
    """TableParts.at(n) returns the parts live at n, for all n within its deltas."""
    chance = random.Random(5)
    table_parts = TableParts(0, ())
    live: dict[str, Part] = {}
    history: dict[int, set[str]] = {0: set()}
    for commit in range(1, DELTAS_MAX + 200):
        block = BlockRange(commit, commit)
        added = (
            [make_part("s", blocks=block, partition_id=chance.choice("pq"))]
            if chance.random() < 0.7
            else []
        )
        removed = chance.sample(sorted(live), min(len(live), chance.choice((0, 0, 1, 2))))
        table_parts.advance(commit, added, removed)
        for one in removed:
            del live[one]
        live.update((p.id, p) for p in added)
        history[commit] = set(live)
    known = 0
    for number, expected in history.items():
        found = table_parts.at(number)
        if found is not None:
            known += 1
            assert {p.id for p in found} == expected
            assert list(found) == sorted(found, key=lambda p: (p.partition_id, p.block_range.first))
            counts = Counter(p.partition_id for p in found)
            assert (table_parts.count("p", number), table_parts.count("q", number)) == (
                counts["p"],
                counts["q"],
            )
        else:
            assert table_parts.count("p", number) is None
    assert known >= DELTAS_MAX


def test_readers_see_whole_commits_while_threads_write(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    stop = threading.Event()
    problems: list[str] = []

    def read() -> None:
        while not stop.is_set():
            snapshot = catalog.snapshot()
            parts, made = len(snapshot.parts("s")), len(snapshot.parts("t"))
            blocks = snapshot.coverage("v").everywhere
            last = blocks[0].last if blocks else 0
            if not parts == made == last:
                problems.append(f"{parts} parts, {made} of the view, {last} blocks covered")

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [
        threading.Thread(target=lambda: [insert(catalog, lease) for _ in range(40)])
        for _ in range(3)
    ]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert problems == []
    assert [p.block_range.first for p in catalog.snapshot().parts("s")] == list(range(1, 121))


def test_pins_hold_vacuum_back(catalog: SqliteCatalog, lease: str, clock: Clock) -> None:
    create_all(catalog)
    insert(catalog, lease)
    with catalog.pinned() as pinned:
        (part,) = pinned.parts("s")
        block = NewBlock("s", 0)
        catalog.apply(
            Commit(
                (), (AddBlock(block, 1), AddPart(make_part("s")), RemoveParts("s", (part.id,))), "X"
            )
        )
        clock.ms += 1000
        assert catalog.oldest_pin() == pinned.number
        assert catalog.dropped_parts(clock.ms, 10) == ()
    (dropped,) = catalog.dropped_parts(clock.ms, 10)
    assert dropped.part == part
    assert dropped.dropped_commit == catalog.snapshot().number
    assert catalog.dropped_parts(clock.ms - 1000 - 1, 10) == (), "not old enough"
    assert catalog.purge_parts([dropped]) == (part.path,)
    assert part.path not in catalog.referenced_paths()
    with pytest.raises(SnapshotTooOld):
        catalog.snapshot(pinned.number)
    with pytest.raises(SnapshotTooOld):
        catalog.pin(pinned.number)
    assert catalog.oldest_pin() == catalog.snapshot().number, "the failed pin is not kept"


def test_history_is_forgotten_but_for_what_snapshots_need(
    catalog: SqliteCatalog, lease: str, clock: Clock
) -> None:
    create_all(catalog)
    for _ in range(5):
        insert(catalog, lease)
    clock.ms += 10_000
    before = catalog.snapshot()
    catalog.purge_history(clock.ms - 1000, commits_max=2)
    assert [c.number for c in catalog.commits()] == [before.number - 1, before.number]
    insert(catalog, lease)
    after = catalog.snapshot()
    assert len(after.parts("s")) == 6
    assert after.coverage("v").everywhere == (BlockRange(1, 6),)
    assert after.number == before.number + 1


@pytest.mark.parametrize("whose", ["our own commit", "another's commit"])
def test_an_interrupt_while_a_commit_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """After Ctrl-C during an update of a table's parts, they are read again."""
    with (
        contextlib.closing(SqliteCatalog(tmp_path / "c.sqlite")) as catalog,
        contextlib.closing(SqliteCatalog(tmp_path / "c.sqlite")) as other,
    ):
        create_all(catalog)
        lease = catalog.open_lease("writer")
        insert(catalog, lease)
        before = catalog.snapshot().parts("s")
        real, left = schema_cache.insort, [1]

        def interrupted(*arguments: object, **named: object) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            real(*arguments, **named)  # type: ignore[call-overload]

        writer = catalog if whose == "our own commit" else other
        if writer is other:
            insert(other, lease, part=make_part("s", id="second"))

        def follow() -> None:
            if writer is catalog:
                insert(catalog, lease, part=make_part("s", id="second"))
            catalog.snapshot()

        monkeypatch.setattr(schema_cache, "insort", interrupted)
        with pytest.raises(KeyboardInterrupt):
            follow()
        found = catalog.snapshot().parts("s")
        assert {p.id for p in found} == {"second", *(p.id for p in before)}
        assert found == other.snapshot().parts("s")
