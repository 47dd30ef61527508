"""The protocol of commits as a small executable model: facts, requirements, changes.

    s --v--> t --w--> u          v may read the dimension d, which x may write
    s --x--> d
    s --v*-> n                   the version that a REBUILD of v makes; w may read it by the name t

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

SOURCE, TARGET, CHAINED, DIMENSION, REBUILT = "s", "t", "u", "d", "n"
TABLES = (SOURCE, TARGET, CHAINED, DIMENSION, REBUILT)
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
    named: str = TARGET
    """The table that has the target's name: a swap gives it to another one."""


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
    gone.  The ghosts: `unlike` are differences that a swap showed to readers of the name; `acknowledged` and `removed` are source rows, `kept` (table, atom) are rows
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
    unlike: frozenset[str] = frozenset()


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
