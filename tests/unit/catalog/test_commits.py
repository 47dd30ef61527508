"""A commit checks all requirements and makes all changes, or makes none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olapdb.catalog.sqlite import statements
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.errors import Aborted, CommitConflict, DuplicateInsert, InternalError
from olapdb.model.changes import (
    AddBlock,
    AddCoverage,
    AddDatabase,
    AddPart,
    Change,
    ClearInvalidations,
    Commit,
    CoverSource,
    DropDatabase,
    DropObject,
    Invalidate,
    PutObject,
    RaiseDataVersion,
    RecordCheck,
    RecordToken,
    RemoveCoverage,
    RemoveParts,
)
from olapdb.model.part import BlockRange, Contribution, NewBlock
from olapdb.model.requirements import (
    CoverageCommon,
    Covered,
    DatabaseExists,
    DatabaseIsEmpty,
    DataVersionIs,
    LeaseLive,
    NameIsFree,
    NoDependents,
    NotCovered,
    NoViewSince,
    PartsLive,
    PartsOfPartitionAre,
    Requirement,
    RevisionIs,
    SchemaIs,
    TokenIsNew,
    ViewIs,
    ViewsAre,
)
from olapdb.model.schema import DatabaseEntry, MaterializedView, SchemaObject, View
from olapdb.model.view_state import Check, CoverageRow, Invalidation
from tests.harness.commits import create_all, insert, make_part, make_table, make_view

pytestmark = pytest.mark.feature("commits")


def apply(catalog: SqliteCatalog, *changes: Change, needs: tuple[Requirement, ...] = ()) -> int:
    return catalog.apply(Commit(needs, changes, "TEST")).number


def read(catalog: SqliteCatalog, object_id: str) -> SchemaObject:
    found = catalog.snapshot().by_id(object_id)
    assert found is not None
    return found


def holds(catalog: SqliteCatalog, requirement: Requirement) -> bool:
    """Return whether a commit of the requirement alone succeeds; a conflict must name it."""
    try:
        apply(catalog, needs=(requirement,))
    except CommitConflict as conflict:
        return conflict.requirement != requirement
    except Aborted:
        return not isinstance(requirement, LeaseLive)
    return True


def test_an_insert_with_its_view(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    committed = insert(catalog, lease)
    again = insert(catalog, lease)
    assert committed.blocks == ((NewBlock("s", 0), 1), (NewBlock("t", 0), 1))
    assert again.blocks == ((NewBlock("s", 0), 2), (NewBlock("t", 0), 2))
    snapshot = catalog.snapshot()
    assert snapshot.number == again.number == committed.number + 1
    first, second = snapshot.parts("t")
    assert (first.blocks, second.blocks) == (BlockRange(1, 1), BlockRange(2, 2))
    assert second.contributions == (Contribution("v", 1, "s", None, (BlockRange(2, 2),), 3),)
    assert second.name == "all_2_2_0"
    assert second.created_commit == again.number
    assert snapshot.coverage("v").everywhere == (BlockRange(1, 2),)
    assert snapshot.next_block(make_table("s")) == 3
    assert [(b.number, b.rows, b.commit, b.kind, b.query_id) for b in snapshot.blocks("s")] == [
        (1, 10, committed.number, "insert", "q"),
        (2, 10, again.number, "insert", "q"),
    ]


def test_parts_come_back_whole_from_the_file(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    part = make_part(
        "s",
        partition_value=(202401, "x", None, b"\1", True),
        bounds={"n": (1, 2.5, 0), "k": (None, None, 3)},
        compressed_bytes={"n": 5},
        granules=2,
        level=3,
        schema_version=4,
        created_ms=77,
    )
    insert(catalog, lease, part=part)
    known = catalog.snapshot().parts("s")
    expected = replace(part, blocks=BlockRange(1, 1), created_commit=3)
    assert known == (expected,)
    fresh = catalog if catalog.connections.in_memory else SqliteCatalog(catalog.path)
    assert fresh.snapshot().parts("s") == known


def test_a_failed_requirement_changes_nothing(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    before = catalog.snapshot()
    with pytest.raises(CommitConflict) as caught:
        insert(catalog, lease, SchemaIs("t", 9))
    assert caught.value.requirement == SchemaIs("t", 9)
    assert catalog.snapshot() is before
    assert catalog.snapshot().next_block(make_table("s")) == 2
    assert insert(catalog, lease).number == before.number + 1


def test_schema_requirements(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    assert holds(catalog, SchemaIs("s", 1))
    assert not holds(catalog, SchemaIs("s", 2))
    assert not holds(catalog, SchemaIs("nothing", 1))
    assert not holds(catalog, SchemaIs("v", 1))
    assert holds(catalog, ViewIs("v", 1))
    assert not holds(catalog, ViewIs("v", 2))
    assert not holds(catalog, ViewIs("s", 1))
    assert holds(catalog, RevisionIs("v", read(catalog, "v").revision))
    assert not holds(catalog, RevisionIs("v", 0))
    assert not holds(catalog, RevisionIs("nothing", 0))
    assert holds(catalog, NameIsFree("default", "x"))
    assert not holds(catalog, NameIsFree("default", "s"))
    assert holds(catalog, DatabaseExists("default"))
    assert not holds(catalog, DatabaseExists("x"))
    assert not holds(catalog, DatabaseIsEmpty("default"))
    assert holds(catalog, LeaseLive(lease))
    assert not holds(catalog, LeaseLive("other"))
    catalog.close_lease(lease)
    assert not holds(catalog, LeaseLive(lease))


def test_a_put_replaces_what_was_read(catalog: SqliteCatalog) -> None:
    create_all(catalog)
    before = read(catalog, "v")
    apply(catalog, PutObject(replace(before, comment="first")))
    after = read(catalog, "v")
    assert after.revision == catalog.snapshot().number > before.revision
    assert after.version == before.version
    with pytest.raises(CommitConflict) as caught:
        apply(catalog, PutObject(replace(before, comment="second")))
    assert caught.value.requirement == RevisionIs("v", before.revision)
    assert read(catalog, "v").comment == "first"
    apply(catalog, DropObject("v"))
    with pytest.raises(CommitConflict):
        apply(catalog, PutObject(after))
    assert catalog.snapshot().by_id("v") is None


def test_one_commit_may_put_an_object_twice(catalog: SqliteCatalog) -> None:
    create_all(catalog)
    item = read(catalog, "s")
    first, second = replace(item, comment="a"), replace(item, comment="b")
    apply(catalog, PutObject(first), PutObject(second))
    assert read(catalog, "s").comment == "b"


@pytest.mark.parametrize("needed", ["s", "t"])
def test_dependents_are_views_that_read_or_write(catalog: SqliteCatalog, needed: str) -> None:
    create_all(catalog)
    assert not holds(catalog, NoDependents(needed))
    assert holds(catalog, NoDependents(needed, except_ids=("v",)))
    apply(catalog, DropObject("v"))
    assert holds(catalog, NoDependents(needed))


def test_no_view_since(catalog: SqliteCatalog) -> None:
    create_all(catalog)
    seen = catalog.snapshot().number
    apply(catalog, PutObject(make_table("x")))
    assert holds(catalog, NoViewSince(seen))
    apply(catalog, PutObject(replace(read(catalog, "v"), attached=False)))
    assert not holds(catalog, NoViewSince(seen))
    assert holds(catalog, NoViewSince(catalog.snapshot().number))


def test_views_are_those_attached(catalog: SqliteCatalog) -> None:
    create_all(catalog)
    assert holds(catalog, ViewsAre("s", (("v", 1),)))
    assert not holds(catalog, ViewsAre("s", ()))
    assert not holds(catalog, ViewsAre("s", (("v", 2),)))
    assert holds(catalog, ViewsAre("t", ()))
    apply(catalog, PutObject(replace(read(catalog, "v"), attached=False)))
    assert holds(catalog, ViewsAre("s", ()))
    assert [v.attached for v in catalog.snapshot().views_on("s")] == [False]


def test_part_requirements(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    insert(catalog, lease, part=make_part("s", partition_id="p"))
    one, two = (p.id for p in catalog.snapshot().parts("s"))
    assert holds(catalog, PartsLive("s", (one, two)))
    assert not holds(catalog, PartsLive("t", (one,)))
    assert holds(catalog, PartsOfPartitionAre("s", None, (two, one)))
    assert holds(catalog, PartsOfPartitionAre("s", "p", (two,)))
    assert holds(catalog, PartsOfPartitionAre("s", None, (one,), up_to_block=1))
    assert not holds(catalog, PartsOfPartitionAre("s", None, (one,)))
    apply(catalog, RemoveParts("s", (one,)))
    assert not holds(catalog, PartsLive("s", (one, two)))
    assert [p.id for p in catalog.snapshot().parts("s")] == [two]
    with pytest.raises(CommitConflict):
        apply(catalog, RemoveParts("s", (one, two)))
    assert [p.id for p in catalog.snapshot().parts("s")] == [two]


def test_data_versions_count_by_partition(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    assert holds(catalog, DataVersionIs("s", "p", 0))
    before = catalog.snapshot()
    apply(catalog, RaiseDataVersion("s", "p"))
    apply(catalog, RaiseDataVersion("s", "p"), RaiseDataVersion("s", "q"))
    assert holds(catalog, DataVersionIs("s", "p", 2))
    assert not holds(catalog, DataVersionIs("s", "p", 1))
    snapshot = catalog.snapshot()
    assert [snapshot.data_version("s", p) for p in "pqr"] == [2, 1, 0]
    assert before.data_version("s", "p") == 0


def test_coverage_of_chunks_and_triggers(catalog: SqliteCatalog, lease: str) -> None:
    """Blocks 1..3 are inserted without the view, 4..5 with it; chunks then fill partition p."""
    create_all(catalog)
    apply(catalog, PutObject(replace(read(catalog, "v"), attached=False)))
    for _ in range(3):
        apply(catalog, AddBlock(NewBlock("s", 0), 1), AddPart(make_part("s", partition_id="p")))
    apply(catalog, PutObject(replace(read(catalog, "v"), attached=True)))
    insert(catalog, lease)
    insert(catalog, lease)
    assert holds(catalog, NotCovered("v", "p", (BlockRange(1, 3),)))
    assert not holds(catalog, NotCovered("v", "p", (BlockRange(3, 4),)))
    assert holds(catalog, Covered("v", "p", (BlockRange(3, 4), BlockRange(5, 5))))
    assert not holds(catalog, Covered("v", "p", (BlockRange(3, 4), BlockRange(1, 2))))
    apply(catalog, AddCoverage(CoverageRow("v", "p", BlockRange(1, 1))))
    old = catalog.snapshot()
    apply(catalog, AddCoverage(CoverageRow("v", "p", BlockRange(2, 3))))
    found = catalog.snapshot().coverage("v")
    assert found.everywhere == (BlockRange(4, 5),)
    assert found.by_partition == {"p": (BlockRange(1, 3),)}
    assert found.covers("p", BlockRange(1, 5))
    assert not found.touches("q", BlockRange(1, 3))
    assert old.coverage("v").by_partition == {"p": (BlockRange(1, 1),)}
    assert not holds(catalog, NotCovered("v", "p", (BlockRange(2, 2),)))


def test_an_older_snapshot_does_not_see_coverage_grow(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    old = catalog.snapshot()
    insert(catalog, lease)
    assert old.coverage("v").everywhere == (BlockRange(1, 1),)
    assert catalog.snapshot().coverage("v").everywhere == (BlockRange(1, 2),)


def test_coverage_removed_from_one_partition_stays_in_others(
    catalog: SqliteCatalog, lease: str
) -> None:
    create_all(catalog)
    for partition in "ppq":
        insert(catalog, lease, part=make_part("s", partition_id=partition))
    apply(catalog, RemoveCoverage("v", (("p", (BlockRange(1, 3),)),)))
    found = catalog.snapshot().coverage("v")
    assert found.everywhere == ()
    assert found.by_partition == {"q": (BlockRange(1, 3),)}
    insert(catalog, lease)
    assert catalog.snapshot().coverage("v").everywhere == (BlockRange(4, 4),)
    apply(catalog, RemoveCoverage("v"))
    assert catalog.snapshot().coverage("v").by_partition == {}


def test_a_view_covers_what_its_source_has_at_the_commit(
    catalog: SqliteCatalog, lease: str
) -> None:
    create_all(catalog)
    apply(catalog, CoverSource("v"))
    assert catalog.snapshot().coverage("v").everywhere == ()
    for _ in range(3):
        insert(catalog, lease)
    apply(catalog, RemoveCoverage("v"), CoverSource("v"))
    assert catalog.snapshot().coverage("v").everywhere == (BlockRange(1, 3),)
    insert(catalog, lease)
    assert catalog.snapshot().coverage("v").everywhere == (BlockRange(1, 4),)


def test_merged_parts_have_one_coverage(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    apply(catalog, AddBlock(NewBlock("s", 0), 1), AddPart(make_part("s")))
    insert(catalog, lease)
    insert(catalog, lease)
    unseen, *seen = (p.id for p in catalog.snapshot().parts("s"))
    assert holds(catalog, CoverageCommon("s", tuple(seen)))
    assert not holds(catalog, CoverageCommon("s", (unseen, *seen)))
    apply(catalog, AddCoverage(CoverageRow("v", "all", BlockRange(1, 1))))
    assert holds(catalog, CoverageCommon("s", (unseen, *seen)))


def test_a_view_opens_at_the_next_block_of_its_commit(catalog: SqliteCatalog) -> None:
    apply(catalog, PutObject(make_table("s")), PutObject(make_table("t")))
    apply(catalog, AddBlock(NewBlock("s", 0), 1))
    apply(catalog, PutObject(make_view()))
    view = catalog.snapshot().by_id("v")
    assert isinstance(view, MaterializedView)
    assert view.first_block == 2


def test_tokens_name_an_insert(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease, TokenIsNew("s", "a"), more=(RecordToken("s", "a"),))
    before = catalog.snapshot()
    with pytest.raises(DuplicateInsert):
        insert(catalog, lease, TokenIsNew("s", "a"), more=(RecordToken("s", "a"),))
    with pytest.raises(DuplicateInsert):
        insert(catalog, lease, more=(RecordToken("s", "a"),))
    assert catalog.snapshot() is before
    insert(
        catalog, lease, TokenIsNew("s", "b"), TokenIsNew("t", "a"), more=(RecordToken("s", "b"),)
    )


def test_invalidations_until_they_are_repaired(catalog: SqliteCatalog) -> None:
    create_all(catalog)

    def stale(partition: str | None) -> Invalidation:
        return Invalidation("v", partition, "DELETE", "DELETE FROM s", "q", 5, 99, ("k1",))

    first = apply(catalog, Invalidate(stale("p")), Invalidate(stale("q")))
    snapshot = catalog.snapshot()
    assert [
        (i.target_partition, i.commit, i.keys, i.rows) for i in snapshot.invalidations("v")
    ] == [("p", first, ("k1",), 5), ("q", first, ("k1",), 5)]
    second = apply(catalog, Invalidate(stale("p")))
    apply(catalog, ClearInvalidations("v", "p", up_to_commit=first))
    left = catalog.snapshot().invalidations("v")
    assert [(i.target_partition, i.commit) for i in left] == [("q", first), ("p", second)]
    assert len(snapshot.invalidations()) == 2, "the older snapshot is as it was"
    apply(catalog, ClearInvalidations("v", None, up_to_commit=second))
    assert catalog.snapshot().invalidations() == ()


def test_the_newest_verdict_of_each_slice(catalog: SqliteCatalog) -> None:
    create_all(catalog)

    def verdict(partition: str, word: str) -> Check:
        return Check("v", partition, 2, "f", word, 5, 0, 0, 0, 0.0, ("x",), 7)  # type: ignore[arg-type]

    apply(catalog, RecordCheck(verdict("p", "different")), RecordCheck(verdict("q", "equal")))
    old = catalog.snapshot()
    apply(catalog, RecordCheck(verdict("p", "equal")))
    assert catalog.snapshot().checks("v") == (verdict("p", "equal"), verdict("q", "equal"))
    assert old.checks()[0] == verdict("p", "different")


def test_databases_and_names(catalog: SqliteCatalog) -> None:
    assert set(catalog.snapshot().databases) == {"default"}
    apply(catalog, AddDatabase(DatabaseEntry("d", "shop", "a comment")))
    old = catalog.snapshot()
    assert old.databases["shop"].comment == "a comment"
    with pytest.raises(CommitConflict):
        apply(catalog, AddDatabase(DatabaseEntry("d2", "shop")))
    view = View("x", "shop", "x", (), "SELECT 1")
    apply(catalog, PutObject(view))
    assert catalog.snapshot().find("shop", "x") == view
    with pytest.raises(InternalError):
        apply(catalog, PutObject(replace(view, id="y")))
    apply(catalog, DropObject("x"), needs=(RevisionIs("x", 3),))
    apply(catalog, DropDatabase("shop"), needs=(DatabaseIsEmpty("shop"),))
    assert "shop" not in catalog.snapshot().databases
    assert "shop" in old.databases
    with pytest.raises(CommitConflict):
        apply(catalog, PutObject(view))


def test_exchange_swaps_two_names_in_one_commit(catalog: SqliteCatalog) -> None:
    create_all(catalog)
    s, t = read(catalog, "s"), read(catalog, "t")
    apply(catalog, PutObject(s.renamed("default", "t")), PutObject(t.renamed("default", "s")))
    found = catalog.snapshot().find("default", "t")
    assert found is not None
    assert found.id == "s"
    assert [o.id for o in catalog.snapshot().objects("default")] == ["t", "s", "v"]


def test_dropping_takes_what_belongs_along(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    apply(catalog, Invalidate(Invalidation("v", None, "DELETE", "", "", 1, 1)))
    old = catalog.snapshot()
    apply(catalog, DropObject("v"), DropObject("t"))
    snapshot = catalog.snapshot()
    assert snapshot.by_id("t") is None
    assert snapshot.views_on("s") == ()
    assert snapshot.parts("t") == ()
    assert snapshot.invalidations() == ()
    assert snapshot.coverage("v").everywhere == ()
    assert len(old.parts("t")) == 1
    assert old.coverage("v").everywhere == (BlockRange(1, 1),)


def test_blocks_must_be_added_to_be_used(catalog: SqliteCatalog) -> None:
    create_all(catalog)
    with pytest.raises(InternalError):
        apply(catalog, AddPart(make_part("s")))
    with pytest.raises(InternalError):
        apply(catalog, AddBlock(NewBlock("s", 1), 1))
    with pytest.raises(InternalError):
        apply(catalog, AddBlock(NewBlock("s", 0), 1), AddPart(make_part("s", inline=True, path="")))
    committed = catalog.apply(
        Commit((), tuple(AddBlock(NewBlock("s", i), 1) for i in range(3)), "TEST")
    )
    assert [number for _, number in committed.blocks] == [1, 2, 3]


def test_the_log_says_what_each_commit_did(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    kinds = [(c.number, c.kind, c.query_id) for c in catalog.commits()]
    assert kinds == [(1, "create warehouse", ""), (2, "CREATE", ""), (3, "INSERT", "q")]
    assert [c.number for c in catalog.commits(since=2, up_to=2)] == [2]
    assert [c.number for c in catalog.commits(limit=1)] == [3]


def test_the_live_parts_are_read_once_for_all_partitions(
    catalog: SqliteCatalog, lease: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit about a thousand partitions has a requirement for each, while writers wait."""
    create_all(catalog)
    insert(catalog, lease)
    (part,) = catalog.snapshot().parts("s")
    read, asked = statements.live_parts_of, []

    def counted(connection: object, *, of_table: str) -> object:
        asked.append(of_table)
        return read(connection, of_table=of_table)  # type: ignore[arg-type]

    monkeypatch.setattr(statements, "live_parts_of", counted)
    names = [f"p{n}" for n in range(50)]
    needed = [PartsOfPartitionAre("s", name, ()) for name in names]
    needed.append(PartsOfPartitionAre("s", part.partition_id, (part.id,)))
    needed.append(PartsOfPartitionAre("s", None, (part.id,)))
    catalog.apply(Commit(tuple(needed), (RemoveParts("s", (part.id,)),), "DETACH"))
    assert asked == ["s"]
    with pytest.raises(CommitConflict):
        catalog.apply(Commit((PartsOfPartitionAre("s", None, (part.id,)),), (), "DETACH"))
