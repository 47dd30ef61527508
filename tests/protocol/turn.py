"""One actor's turn, and the draft of its commit: the shared parts of every operation of the
model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from typing import Protocol as Shape

from tests.protocol.commits import (
    Change,
    Requirement,
    change_world,
    dimension_views,
    holds,
    part_ids,
    views_are,
)
from tests.protocol.model import (
    DIMENSION,
    Actor,
    Atom,
    Catalog,
    Protocol,
    World,
    apply_view,
    by_partition,
    dimension_state,
    parts_of,
    view_named,
    views_on,
)

ATTEMPTS_MAX = 2
Step = tuple[str, World]


class Operation(Shape):
    """An operation of an actor, as atomic steps."""

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Yield each possible outcome of the actor's next atomic step."""
        ...


class Turn(NamedTuple):
    """An actor's turn: the world, its number, and the guards in force."""

    world: World
    number: int
    protocol: Protocol

    @property
    def actor(self) -> Actor:
        """The acting process."""
        return self.world.actors[self.number]

    @property
    def catalog(self) -> Catalog:
        """The newest state of the catalog."""
        return self.world.catalog

    @property
    def lease(self) -> tuple[int, int]:
        """The lease of the present operation."""
        return (self.number, self.actor.operation)

    def file(self, attempt: int, count: int) -> tuple[int, int, int, int]:
        """Return the id of a file that the operation writes."""
        return (*self.lease, attempt, count)

    def to(self, world: World, actor: Actor) -> World:
        """Return the world with the actor replaced."""
        actors = (*world.actors[: self.number], actor, *world.actors[self.number + 1 :])
        return world._replace(actors=actors)

    def go(self, world: World, step: int, *memory: object) -> World:
        """Return the world after the actor went to this step, with this memory."""
        return self.to(world, self.actor._replace(step=step, memory=memory))

    def pinned(self, world: World) -> World:
        """Return the world with the present catalog pinned by the actor."""
        return world._replace(pins=self._others(world) | {(self.number, self.catalog, True)})

    def _others(self, world: World) -> frozenset[tuple[int, Catalog, bool]]:
        return frozenset(p for p in world.pins if p[0] != self.number)

    def done(self, world: World) -> World:
        """Return the world after the operation: its lease is closed, its pin removed."""
        world = world._replace(pins=self._others(world), ended=world.ended | {self.lease})
        return self.to(world, Actor(operation=self.actor.operation + 1))

    def discard(self, world: World) -> World:
        """Delete the operation's staged files; only after a commit that certainly did not
        happen."""
        mine = frozenset(f for f in world.files if f[:2] == self.lease)
        return world._replace(files=world.files - mine)

    def commit(self, requirements: Iterable[Requirement], changes: Iterable[Change]) -> World | str:
        """Return the world after the commit, or the guard that refused it."""
        lease = Requirement("13.lease", "LeaseLive", (self.lease,))
        for one in (lease, *requirements):
            if self.protocol.on(one.guard) and not holds(self.world, one):
                return one.guard
        return change_world(self.world, changes)


class Draft:
    """Parts, coverage and requirements of a commit, with the output of the views that it fires."""

    def __init__(self, turn: Turn, snapshot: Catalog, attempt: int, rule: str = "1") -> None:
        self.turn, self.snapshot, self.attempt, self.rule = turn, snapshot, attempt, rule
        self.requirements: list[Requirement] = []
        self.changes: list[Change] = []
        self.files: list[tuple[int, int, int, int]] = []
        self._blocks = 0
        self._brought = 0

    def block(
        self,
        table: str,
        content: tuple[Atom, ...],
        kind: str,
        made: frozenset[str] = frozenset(),
        *,
        fires: bool = True,
    ) -> int:
        """Add a new block of a table, split by partition, and the output of the views on it;
        return its index."""
        index = self._blocks
        self._blocks += 1
        self.changes.append(Change("AddBlock", (table, kind)))
        for partition, piece in by_partition(content).items():
            self.part(table, partition, piece, made, index)
        if fires:
            self.cascade(table, content, index)
        return index

    def part(
        self, table: str, partition: str, piece: tuple[Atom, ...], made: frozenset[str], index: int
    ) -> None:
        """Add a part of the block with this index."""
        file = self.turn.file(self.attempt, len(self.files))
        self.files.append(file)
        self.changes.append(Change("AddPart", (file, table, partition, piece, made, index)))

    def cascade(self, table: str, content: tuple[Atom, ...], index: int) -> None:
        """Fire the attached views of the table on a block, and require them at the commit."""
        guard = "1.views" if self.rule == "1" else "5.views_of_target"
        attached = views_are(self.snapshot, table, attached=True)
        self.require(guard, "ViewsAre", table, attached)
        writes_dimension = False
        # Views that write the dimension fire first, and those that read it see the added rows.
        for view in sorted(views_on(self.snapshot, table), key=lambda v: v.target != DIMENSION):
            if not view.attached:
                continue
            writes_dimension |= view.target == DIMENSION
            brought = self._brought if self.turn.protocol.on("1.own_dimension") else 0
            made = apply_view(view, content, dimension_state(self.snapshot) + brought)
            if view.reads_dimension:
                self.require("1.dimension", "DimensionIs", part_ids(parts_of(self.snapshot, "d")))
            self.block(view.target, made, "view", frozenset({view.id}))
            if view.target == DIMENSION:
                self._brought += len(made)
            self.changes.append(Change("CoverNew", (view.id, index)))
        if writes_dimension:
            self.dimension_changed()

    def require(self, guard: str, kind: str, *facts: object) -> None:
        """Add a requirement unless the draft has it."""
        requirement = Requirement(guard, kind, facts)
        if requirement not in self.requirements:
            self.requirements.append(requirement)

    def change(self, kind: str, *facts: object) -> None:
        """Append a change."""
        self.changes.append(Change(kind, facts))

    def dimension_changed(self) -> None:
        """Invalidate all that views wrote with the dimension; require that views without
        coverage still have none at the commit."""
        self.require("4.dimension_watchers", "DimensionViewsAre", dimension_views(self.snapshot))
        for view in sorted(self.snapshot.views):
            if not view.reads_dimension:
                continue
            if any(v == view.id for v, _, _ in self.snapshot.coverage):
                if self.turn.protocol.on("4.dimension_stale"):
                    self.change("Invalidate", view.id, None)
            else:
                self.require("4.dimension_unseen", "NothingCovered", view.id)

    def staged(self) -> World:
        """Return the world with the draft's files written."""
        world = self.turn.world
        return world._replace(files=world.files | set(self.files))


def find(catalog: Catalog, name: str) -> tuple[str, int] | None:
    """Return (id, version) of the view of this name, if there is one."""
    view = view_named(catalog, name)
    return None if view is None else (view.id, view.version)
