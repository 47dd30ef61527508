"""The protocol of commits as a small executable model: facts, requirements, changes.

    s --v--> t --w--> u          v may read the dimension d, which x may write
    s --x--> d

A source row is a name like "a1": row 1 of partition a.  A view maps an input row to the atom
(definition, input, dimension). So a target's content shows from which rows, by which definition and
with which state of the dimension each of its rows was computed, and shows duplicates. Everything is
immutable and hashable: a world is a state of the exploration.

Each guard has an id, "3.data_version": the number of its rule in docs/invariants.md and a name. A
`Protocol` leaves some of them out; the exploration then has to find what goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

Atom: TypeAlias = "str | tuple[str, Atom, int]"

SOURCE, TARGET, CHAINED, DIMENSION = "s", "t", "u", "d"
TABLES = (SOURCE, TARGET, CHAINED, DIMENSION)
PARTITIONS = ("a", "b")
HAND = "hand"
"""The definition of rows that a client inserted into a target directly: bypass."""


class Part(NamedTuple):
    """A part. `made` holds the views whose rows it contains, empty for rows of no view. The id
    is also its file's: (actor, operation, attempt, count)."""

    id: tuple[int, int, int, int]
    table: str
    partition: str
    first: int
    last: int
    content: tuple[Atom, ...]
    made: frozenset[str]


class View(NamedTuple):
    """A materialized view: what it reads and writes, its definition, and whether it is attached."""

    id: str
    name: str
    version: int
    definition: str
    source: str
    target: str
    attached: bool
    reads_dimension: bool


class Catalog(NamedTuple):
    """The state of the catalog at one commit number. `last_block` is by table, in the order of
    TABLES; coverage holds (view, partition or None, block); invalid (view, slice or None,
    commit); checks (view, slice, fingerprint)."""

    number: int = 0
    parts: frozenset[Part] = frozenset()
    last_block: tuple[int, ...] = (0,) * len(TABLES)
    versions: frozenset[tuple[str, str, int]] = frozenset()
    views: frozenset[View] = frozenset()
    coverage: frozenset[tuple[str, str | None, int]] = frozenset()
    invalid: frozenset[tuple[str, str | None, int]] = frozenset()
    checks: frozenset[tuple[str, str, tuple[object, ...]]] = frozenset()
    tokens: frozenset[str] = frozenset()


class Actor(NamedTuple):
    """One process: its operation in its program, the step of it, and its memory."""

    operation: int = 0
    step: int = 0
    memory: tuple[Any, ...] = ()
    dead: bool = False


class World(NamedTuple):
    """The catalog, disk and processes; and ghosts: facts that the engine never sees.

    `ended` leases are closed or revoked. `pins` are (actor, catalog that it reads, whether it may):
    a pin is written first, then checked. `mark` is the newest commit whose dropped parts may be
    gone.  The ghosts: `acknowledged` and `removed` are source rows, `kept` (table, atom) are rows
    of no view that only a client may remove, `owed` are (view, block) committed while the view was
    attached.
    """

    catalog: Catalog = Catalog()
    dropped: frozenset[tuple[Part, int]] = frozenset()
    files: frozenset[tuple[int, int, int, int]] = frozenset()
    ended: frozenset[tuple[int, int]] = frozenset()
    pins: frozenset[tuple[int, Catalog, bool]] = frozenset()
    mark: int = 0
    actors: tuple[Actor, ...] = ()
    crashes_left: int = 0
    acknowledged: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    kept: frozenset[tuple[str, Atom]] = frozenset()
    owed: frozenset[tuple[str, int]] = frozenset()


class Protocol(NamedTuple):
    """The protocol without the guards in `off`."""

    off: frozenset[str] = frozenset()

    def on(self, guard: str) -> bool:
        """Return whether the guard is in force."""
        return guard not in self.off


# --- queries -------------------------------------------------------------------------------------


def partition_of(atom: Atom) -> str:
    """Return the partition of a row; an odd state of the dimension moves a view's row to the
    other one."""
    if isinstance(atom, str):
        return atom[0]
    inner = partition_of(atom[1])
    if atom[2] % 2 == 0:
        return inner
    return PARTITIONS[1 - PARTITIONS.index(inner)]


def by_partition(content: Iterable[Atom]) -> dict[str, tuple[Atom, ...]]:
    """Group rows by their partition, both sorted."""
    found: dict[str, list[Atom]] = {}
    for atom in content:
        found.setdefault(partition_of(atom), []).append(atom)
    return {p: ordered(found[p]) for p in sorted(found)}


def ordered(content: Iterable[Atom]) -> tuple[Atom, ...]:
    """Sort rows of any kind."""
    return tuple(sorted(content, key=repr))


def parts_of(catalog: Catalog, table: str, partition: str | None = None) -> list[Part]:
    """Return the live parts of a table, sorted; `partition` None: of all partitions."""
    return sorted(p for p in catalog.parts if p.table == table and partition in (None, p.partition))


def last_block(catalog: Catalog, table: str) -> int:
    """Return the newest block number of a table."""
    return catalog.last_block[TABLES.index(table)]


def data_version(catalog: Catalog, table: str, partition: str) -> int:
    """Return the data version of a partition, 0 at first."""
    return max((v for t, p, v in catalog.versions if (t, p) == (table, partition)), default=0)


def views_on(catalog: Catalog, table: str) -> list[View]:
    """Return the views that read the table as their source, sorted."""
    return sorted(v for v in catalog.views if v.source == table)


def views_into(catalog: Catalog, table: str) -> list[View]:
    """Return the views that write the table, sorted."""
    return sorted(v for v in catalog.views if v.target == table)


def view_named(catalog: Catalog, name: str) -> View | None:
    """Return the view of this name, if there is one."""
    return next((v for v in catalog.views if v.name == name), None)


def dimension_state(catalog: Catalog) -> int:
    """Return the number of rows in the dimension: every change of it is another state."""
    return sum(len(p.content) for p in parts_of(catalog, DIMENSION))


def apply_view(view: View, content: Iterable[Atom], dimension: int) -> tuple[Atom, ...]:
    """Run the view on rows: the same function for trigger, backfill, replay and reconciliation."""
    read = dimension if view.reads_dimension else 0
    return ordered((view.definition, atom, read) for atom in content)


def blocks_seen(catalog: Catalog, view_id: str, partition: str) -> set[int]:
    """Return the source blocks of the partition that the view covers."""
    return {b for v, p, b in catalog.coverage if v == view_id and p in (None, partition)}


def covers(catalog: Catalog, view_id: str, part: Part) -> bool:
    """Return whether the view covers all blocks of the part."""
    return blocks_of(part) <= blocks_seen(catalog, view_id, part.partition)


def touches(catalog: Catalog, view_id: str, part: Part) -> bool:
    """Return whether the view covers at least one block of the part."""
    return not blocks_of(part).isdisjoint(blocks_seen(catalog, view_id, part.partition))


def blocks_of(part: Part) -> set[int]:
    """Return the block numbers of the part."""
    return set(range(part.first, part.last + 1))


def is_bypass(catalog: Catalog, part: Part) -> bool:
    """Return whether the part holds rows of none of the views that write the table."""
    return part.made.isdisjoint(v.id for v in views_into(catalog, part.table))


def expected(catalog: Catalog, table: str) -> dict[str, tuple[Atom, ...]]:
    """Return the rows by slice that the views must have written for the parts that they cover."""
    made: list[Atom] = []
    for view in views_into(catalog, table):
        for part in parts_of(catalog, view.source):
            if covers(catalog, view.id, part):
                made += apply_view(view, part.content, dimension_state(catalog))
    return by_partition(made)


def actual(catalog: Catalog, table: str, *, bypass: bool) -> dict[str, tuple[Atom, ...]]:
    """Return the rows of the table by slice; with `bypass` False without those that the ledger
    attributes to no view."""
    found: dict[str, list[Atom]] = {}
    for part in parts_of(catalog, table):
        if bypass or not is_bypass(catalog, part):
            found.setdefault(part.partition, []).extend(part.content)
    return {p: ordered(c) for p, c in found.items()}


def stale(catalog: Catalog, table: str, partition: str) -> bool:
    """Return whether a writer's invalidation names the slice."""
    writers = {v.id for v in views_into(catalog, table)}
    return any(v in writers and p in (None, partition) for v, p, _ in catalog.invalid)


def fingerprint(
    catalog: Catalog, protocol: Protocol, table: str, partition: str
) -> tuple[object, ...]:
    """Return the facts on which a verdict about a slice depends (rule 9), invalidations apart."""
    facts: list[object] = []
    for view in views_into(catalog, table):
        facts.append((view.id, view.version if protocol.on("9.definition") else 0))
        if view.reads_dimension and protocol.on("9.dimension"):
            facts.append(dimension_state(catalog))
    if protocol.on("9.newest_block"):
        facts.append(max((p.last for p in parts_of(catalog, table, partition)), default=0))
    if protocol.on("9.target_version"):
        facts.append(data_version(catalog, table, partition))
    return tuple(facts)


def is_current(
    catalog: Catalog, protocol: Protocol, check: tuple[str, str, tuple[object, ...]]
) -> bool:
    """Return whether a verdict still counts: it lapses with its facts, and while its slice is
    stale."""
    view_id, slice_, about = check
    table = next(view.target for view in catalog.views if view.id == view_id)
    if protocol.on("9.stale") and stale(catalog, table, slice_):
        return False
    return fingerprint(catalog, protocol, table, slice_) == about


# --- requirements and changes --------------------------------------------------------------------


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
    raise AssertionError(f"No requirement {requirement.kind}.")


def views_are(catalog: Catalog, table: str, *, attached: bool) -> tuple[tuple[str, int], ...]:
    """Return (id, version) of the views on a table; `attached` False: of all, attached or not."""
    return tuple((v.id, v.version) for v in views_on(catalog, table) if v.attached or not attached)


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
        case "Invalidate":
            row_ = (f[0], f[1], c.number)
            return world._replace(catalog=c._replace(invalid=c.invalid | {row_}))
        case "Clear":  # the view, its slice or None, up to which commit
            left = frozenset(
                i for i in c.invalid if not (i[0] == f[0] and f[1] in (None, i[1]) and i[2] <= f[2])
            )
            return world._replace(catalog=c._replace(invalid=left))
        case "RecordCheck":
            checks = {one for one in c.checks if one[:2] != f[:2]}
            return world._replace(catalog=c._replace(checks=frozenset(checks | {f})))
        case "ForgetCheck":
            return world._replace(
                catalog=c._replace(checks=frozenset(one for one in c.checks if one[:2] != f))
            )
        case "RecordToken":
            return world._replace(catalog=c._replace(tokens=c.tokens | {f[0]}))
        case "PutView":
            view: View = f[0]
            return world._replace(
                catalog=c._replace(
                    views=frozenset({v for v in c.views if v.id != view.id} | {view})
                )
            )
        case "DropView":
            return _drop_view(world, f[0])
    raise AssertionError(f"No change {change.kind}.")


def _drop_view(world: World, view: View) -> World:
    """Remove a view and its ledger; its rows stay in the target, as rows of no view."""
    c = world.catalog
    views = c.views - {view}
    left = c._replace(
        views=views,
        coverage=frozenset(r for r in c.coverage if r[0] != view.id),
        invalid=frozenset(i for i in c.invalid if i[0] != view.id),
        checks=frozenset(one for one in c.checks if one[0] != view.id),
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
