"""Requirements on a version of a view in the commit that gives it the view's name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olapdb.catalog.protocol import Catalog
from olapdb.errors import CommitConflict
from olapdb.model.changes import (
    AddBlock,
    AddPart,
    ClearInvalidations,
    Commit,
    Invalidate,
    PutObject,
)
from olapdb.model.part import NewBlock
from olapdb.model.requirements import (
    LeaseLive,
    NoBypass,
    NoGap,
    NothingStale,
    Requirement,
    VersionsAre,
)
from olapdb.model.schema import MaterializedView
from olapdb.model.view_state import Invalidation
from tests.harness.commits import create_all, insert, make_part, make_view

pytestmark = pytest.mark.feature("commits", "rebuild")


def holds(catalog: Catalog, requirement: Requirement) -> bool:
    try:
        catalog.apply(Commit((requirement,), (), "TEST"))
    except CommitConflict:
        return False
    return True


def by_hand(catalog: Catalog, lease: str, table_id: str) -> None:
    block = NewBlock(table_id, 0)
    catalog.apply(
        Commit((LeaseLive(lease),), (AddBlock(block, 10), AddPart(make_part(table_id))), "INSERT")
    )


def test_nothing_missed(catalog: Catalog, lease: str) -> None:
    create_all(catalog)
    assert holds(catalog, NoGap("v"))
    insert(catalog, lease)
    assert holds(catalog, NoGap("v"))
    by_hand(catalog, lease, "s")  # a block that fired no view
    assert not holds(catalog, NoGap("v"))
    assert not holds(catalog, NoGap("gone"))


def test_no_bypass(catalog: Catalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    assert holds(catalog, NoBypass("t", ("v",)))
    assert not holds(catalog, NoBypass("t", ("another",)))
    by_hand(catalog, lease, "t")
    assert not holds(catalog, NoBypass("t", ("v",)))


def test_nothing_stale(catalog: Catalog) -> None:
    create_all(catalog)
    assert holds(catalog, NothingStale("v"))
    mark = Invalidation("v", "all", "DELETE", "DELETE …", "q", 1, 0)
    done = catalog.apply(Commit((), (Invalidate(mark),), "DELETE"))
    assert not holds(catalog, NothingStale("v"))
    assert holds(catalog, NothingStale("w"))
    catalog.apply(Commit((), (ClearInvalidations("v", "all", done.number),), "REPLAY"))
    assert holds(catalog, NothingStale("v"))


def test_versions_are(catalog: Catalog) -> None:
    create_all(catalog)
    assert holds(catalog, VersionsAre("v", ()))
    candidate = replace(make_view("v2"), standing="candidate", stands_beside="v")
    catalog.apply(Commit((), (PutObject(candidate),), "REBUILD VIEW"))
    assert not holds(catalog, VersionsAre("v", ()))
    assert holds(catalog, VersionsAre("v", ("v2",)))
    found = catalog.snapshot().by_id("v2")
    assert isinstance(found, MaterializedView)
    assert (found.standing, found.stands_beside) == ("candidate", "v")
