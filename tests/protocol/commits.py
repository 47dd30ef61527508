"""The commits of the model: what they require, and what they change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.protocol.model import (
    DIMENSION,
    TABLES,
    Catalog,
    Part,
    View,
    World,
    blocks_of,
    blocks_seen,
    covers,
    data_version,
    is_bypass,
    last_block,
    parts_of,
    touches,
    views_on,
)


class Requirement(NamedTuple):
    """A requirement of a commit. `guard` is the rule's id, `kind` a requirement of
    olapdb/model/changes.py."""

    guard: str
    kind: str
    facts: tuple[Any, ...]


class Change(NamedTuple):
    """A change of a commit; the facts depend on its kind."""

    kind: str
    facts: tuple[Any, ...]


def holds(world: World, requirement: Requirement) -> bool:
    """Return whether the requirement holds in the world."""
    catalog, facts = world.catalog, requirement.facts
    match requirement.kind:
        case "LeaseLive":
            return facts[0] not in world.ended
        case "ViewsAre":
            return views_are(catalog, facts[0], attached=True) == facts[1]
        case "ViewsOnTableAre":
            return views_are(catalog, facts[0], attached=False) == facts[1]
        case "DimensionViewsAre":
            return dimension_views(catalog) == facts[0]
        case "ViewIs":
            return any((v.id, v.version) == facts for v in catalog.views)
        case "DataVersionIs":
            return data_version(catalog, facts[0], facts[1]) == facts[2]
        case "DimensionIs":
            return part_ids(parts_of(catalog, DIMENSION)) == facts[0]
        case "PartsLive":
            return set(facts[0]) <= {p.id for p in catalog.parts}
        case "PartsOfPartitionAre":
            table, partition, ids, up_to = facts
            found = parts_of(catalog, table, partition)
            return part_ids(p for p in found if up_to is None or p.first <= up_to) == ids
        case "NotCovered":
            view_id, partition, blocks = facts
            return blocks_seen(catalog, view_id, partition).isdisjoint(blocks)
        case "NothingCovered":
            return all(v != facts[0] for v, _, _ in catalog.coverage)
        case "PartsWithinRanges":
            table, partition, blocks = facts
            claimed = set(blocks)
            return all(
                blocks_of(p) <= claimed or blocks_of(p).isdisjoint(claimed)
                for p in parts_of(catalog, table, partition)
            )
        case "CoverageCommon":
            (merged,) = facts
            return one_coverage(catalog, merged)
        case "TokenIsNew":
            return facts[0] not in catalog.tokens
        case "RevisionIs":
            return facts[0] in catalog.views
        case "NoGap":
            return all(
                covers(catalog, view.id, part)
                for view in catalog.views
                if view.id == facts[0]
                for part in parts_of(catalog, view.source)
            )
        case "NothingStale":
            return all(one[0] != facts[0] for one in catalog.invalid)
        case "NoBypass":
            return not any(is_bypass(catalog, part) for part in parts_of(catalog, facts[0]))
        case "NoDependents":
            return dependents(catalog, facts[0]) == facts[1]
    raise AssertionError(f"No requirement {requirement.kind}.")


def views_are(catalog: Catalog, table: str, *, attached: bool) -> tuple[tuple[str, int], ...]:
    """Return (id, version) of the views on a table; `attached` False: of all, attached or not."""
    return tuple((v.id, v.version) for v in views_on(catalog, table) if v.attached or not attached)


def dependents(catalog: Catalog, table: str) -> tuple[str, ...]:
    """Return the ids of the views that read or write the table, attached or not."""
    return tuple(sorted(v.id for v in catalog.views if table in (v.source, v.target)))


def dimension_views(catalog: Catalog) -> tuple[tuple[str, int], ...]:
    """Return (id, version) of the views that read the dimension."""
    return tuple((v.id, v.version) for v in sorted(catalog.views) if v.reads_dimension)


def part_ids(parts: Iterable[Part]) -> tuple[tuple[int, int, int, int], ...]:
    """Return the sorted ids of the parts."""
    return tuple(sorted(p.id for p in parts))


def one_coverage(catalog: Catalog, hull: Part) -> bool:
    """Return whether each view on the table covers all of the hull's blocks, or none."""
    return all(
        covers(catalog, v.id, hull) or not touches(catalog, v.id, hull)
        for v in views_on(catalog, hull.table)
    )


def change_world(world: World, changes: Iterable[Change]) -> World:
    """Apply the changes of one commit; block numbers are assigned here, as in the engine."""
    number = world.catalog.number + 1
    new: list[int] = []
    for change in changes:
        world = _change(world._replace(catalog=world.catalog._replace(number=number)), change, new)
    return world


def _change(world: World, change: Change, new: list[int]) -> World:
    """Apply one change; `new` collects the block numbers that this commit assigns."""
    c, f = world.catalog, change.facts
    match change.kind:
        case "AddBlock":
            table, kind = f[0], f[1]
            at = TABLES.index(table)
            new.append(c.last_block[at] + 1)
            blocks = (*c.last_block[:at], new[-1], *c.last_block[at + 1 :])
            owed = {(v.id, new[-1]) for v in c.views if v.source == table and v.attached}
            return world._replace(
                catalog=c._replace(last_block=blocks),
                owed=world.owed | owed if kind != "replay" else world.owed,
            )
        case "AddPart":  # the id, table, partition, content, makers, index of the new block
            block = new[f[5]]
            part = Part(f[0], f[1], f[2], block, block, f[3], f[4])
            return world._replace(catalog=c._replace(parts=c.parts | {part}))
        case "PutPart":
            return world._replace(catalog=c._replace(parts=c.parts | {f[0]}))
        case "RemoveParts":
            gone = {p for p in c.parts if p.id in f[0]}
            return world._replace(
                catalog=c._replace(parts=c.parts - gone),
                dropped=world.dropped | {(p, c.number) for p in gone},
            )
        case "RaiseDataVersion":
            version = data_version(c, f[0], f[1]) + 1
            kept = {v for v in c.versions if v[:2] != f}
            return world._replace(
                catalog=c._replace(versions=frozenset(kept | {(f[0], f[1], version)}))
            )
        case "CoverNew":
            row = (f[0], None, new[f[1]])
            return world._replace(catalog=c._replace(coverage=c.coverage | {row}))
        case "Cover":
            rows = {(f[0], f[1], b) for b in f[2]}
            return world._replace(catalog=c._replace(coverage=c.coverage | rows))
        case "Uncover":
            return world._replace(
                catalog=c._replace(coverage=frozenset(r for r in c.coverage if r[0] != f[0])),
                owed=frozenset(o for o in world.owed if o[0] != f[0]),
            )
        case "CoverSource":
            (view,) = (v for v in c.views if v.id == f[0])
            seen = {(view.id, None, b) for b in range(1, last_block(c, view.source) + 1)}
            others = {one for one in c.coverage if one[0] != view.id}
            return world._replace(catalog=c._replace(coverage=frozenset(others | seen)))
        case "GiveName":
            return world._replace(catalog=c._replace(named=f[0]))
        case "Invalidate":
            row_ = (f[0], f[1], c.number)
            return world._replace(catalog=c._replace(invalid=c.invalid | {row_}))
        case "Clear":  # the view, its slice or None, up to which commit
            left = frozenset(
                i for i in c.invalid if not (i[0] == f[0] and f[1] in (None, i[1]) and i[2] <= f[2])
            )
            return world._replace(catalog=c._replace(invalid=left))
        case "RecordCheck":
            checks = {check for check in c.checks if check[:2] != f[:2]}
            return world._replace(catalog=c._replace(checks=frozenset(checks | {f})))
        case "ForgetCheck":
            return world._replace(
                catalog=c._replace(checks=frozenset(check for check in c.checks if check[:2] != f))
            )
        case "RecordToken":
            return world._replace(catalog=c._replace(tokens=c.tokens | {f[0]}))
        case "PutView":
            return _put_view(world, f[0])
        case "DropView":
            return _drop_view(world, f[0])
    raise AssertionError(f"No change {change.kind}.")


def _put_view(world: World, view: View) -> World:
    """Put a view. One that reads another source than before owes all blocks that this has."""
    c = world.catalog
    changed = c._replace(views=frozenset({v for v in c.views if v.id != view.id} | {view}))
    if not any(v.id == view.id and v.source != view.source for v in c.views):
        return world._replace(catalog=changed)
    owed = {one for one in world.owed if one[0] != view.id}
    owed |= {(view.id, block) for block in range(1, last_block(c, view.source) + 1)}
    return world._replace(catalog=changed, owed=frozenset(owed))


def _drop_view(world: World, view: View) -> World:
    """Remove a view and its ledger; its rows stay in the target, as rows of no view."""
    c = world.catalog
    views = c.views - {view}
    left = c._replace(
        views=views,
        coverage=frozenset(r for r in c.coverage if r[0] != view.id),
        invalid=frozenset(i for i in c.invalid if i[0] != view.id),
        checks=frozenset(check for check in c.checks if check[0] != view.id),
    )
    rows = {
        (p.table, atom)
        for p in parts_of(c, view.target)
        if view.id in p.made
        for atom in p.content
        if atom[0] == view.definition
    }
    return world._replace(
        catalog=left,
        kept=world.kept | rows,
        owed=frozenset(o for o in world.owed if o[0] != view.id),
    )
