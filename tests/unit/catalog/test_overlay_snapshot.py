"""A snapshot in which objects and parts are exchanged answers as one commit later would."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.model.changes import AddPart
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import MaterializedView, Table
from tests.harness.commits import create_all, insert, make_part

pytestmark = pytest.mark.feature("commits")


def test_an_empty_overlay_is_its_base(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    insert(catalog, lease)
    base = catalog.snapshot()
    overlay = OverlaySnapshot(base)
    assert overlay.objects() == list(base.objects())
    for item in base.objects():
        assert overlay.find(item.database, item.name) is base.by_id(item.id) is item
        assert overlay.parts(item.id) == base.parts(item.id)
        assert overlay.views_on(item.id) == base.views_on(item.id)
        assert overlay.views_into(item.id) == base.views_into(item.id)
    assert overlay.part_count("s", "all") == base.part_count("s", "all") == 1
    assert overlay.derived("key", lambda: [1]) is overlay.derived("key", lambda: [1])


def test_changed_objects_hide_those_of_the_base(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    base = catalog.snapshot()
    table = base.by_id("s")
    assert isinstance(table, Table)
    (view,) = base.views_on("s")
    overlay = OverlaySnapshot.of(base, replace(table, name="renamed"), replace(view, name="w"))
    assert overlay.find(table.database, table.name) is None
    assert overlay.find(table.database, "renamed") is overlay.by_id("s")
    assert [one.name for one in overlay.views_on("s")] == ["w"]
    assert [one.name for one in overlay.views_into(view.target_id)] == ["w"]
    names = [item.name for item in overlay.objects(table.database)]
    assert names == sorted(names)
    assert {"renamed", "w"} <= set(names)
    assert overlay.derived("key", lambda: [1]) is not overlay.derived("key", lambda: [1])


def test_removed_objects_are_gone(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    base = catalog.snapshot()
    (view,) = base.views_on("s")
    overlay = OverlaySnapshot(base, removed=frozenset({view.id}))
    assert overlay.by_id(view.id) is overlay.find(view.database, view.name) is None
    assert overlay.views_on("s") == overlay.views_into(view.target_id) == ()
    assert not any(isinstance(item, MaterializedView) for item in overlay.objects())


def test_staged_parts_replace_live_ones_in_their_place(catalog: SqliteCatalog, lease: str) -> None:
    create_all(catalog)
    for _ in range(3):
        insert(catalog, lease)
    base = catalog.snapshot()
    first, second, third = base.parts("s")
    staged = make_part("s", blocks=second.blocks)
    overlay = OverlaySnapshot(
        base,
        replaced={first.id: None, second.id: AddPart(staged, b"rows")},
        inline={staged.id: b"rows"},
    )
    assert overlay.parts("s") == (staged, third)
    assert overlay.part_count("s", third.partition_id) == 2
    assert overlay.inline_rows(staged) == b"rows"
    assert base.parts("s") == (first, second, third)
