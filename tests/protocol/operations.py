"""The statements of users as atomic steps: INSERT, DELETE, TRUNCATE, and statements about views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.commits import Change, part_ids, views_are
from tests.protocol.model import (
    DIMENSION,
    HAND,
    SOURCE,
    TARGET,
    Actor,
    Atom,
    Part,
    View,
    World,
    apply_view,
    blocks_of,
    by_partition,
    covers,
    data_version,
    dimension_state,
    ordered,
    parts_of,
    touches,
    view_named,
    views_into,
    views_on,
)
from tests.protocol.turn import ATTEMPTS_MAX, Draft, Step, Turn


class Insert(NamedTuple):
    """INSERT of rows into a table, with the cascade of its views, in one commit.

    Rows into a view's target are bypass.  `unknown`: the client may not see whether it committed.
    With a `token`, a repetition is acknowledged and does nothing.
    """

    table: str
    rows: tuple[str, ...]
    token: str = ""
    unknown: bool = False

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Stage the parts, then commit."""
        match turn.actor.step:
            case 0:
                yield self._stage(turn)
            case 1:
                yield from self._commit(turn)
            case 2:  # "13.write_first" is off: published before it was written
                yield (
                    "writes its files",
                    turn.done(
                        turn.world._replace(files=turn.world.files | set(turn.actor.memory[0]))
                    ),
                )
            case 3:  # "1.one_commit" is off: the views' part of it
                again = turn.commit((), turn.actor.memory[0])
                assert isinstance(again, World)
                yield "commits the views' rows", turn.done(again)

    def _stage(self, turn: Turn) -> Step:
        attempt = turn.actor.memory[0] if turn.actor.memory else 0
        draft = Draft(turn, turn.catalog, attempt)
        draft.block(self.table, self._content(), "insert")
        if self.table == DIMENSION:
            draft.dimension_changed()
        if self.token:
            draft.require("12.token", "TokenIsNew", self.token)
            draft.change("RecordToken", self.token)
        world = draft.staged() if turn.protocol.on("13.write_first") else turn.world
        memory = (attempt, tuple(draft.requirements), tuple(draft.changes), tuple(draft.files))
        return "stages its parts", turn.go(world, 1, *memory)

    def _content(self) -> tuple[Atom, ...]:
        if self.table in (SOURCE, DIMENSION):
            return self.rows
        return tuple((HAND, row, 0) for row in self.rows)

    def _commit(self, turn: Turn) -> Iterator[Step]:
        attempt, requirements, changes, files = turn.actor.memory
        if not turn.protocol.on("1.one_commit"):
            yield from self._commit_halves(turn, changes)
            return
        outcome = turn.commit(requirements, changes)
        if isinstance(outcome, World):
            if not turn.protocol.on("13.write_first"):
                yield "commits before it wrote", turn.go(self._told(outcome), 2, files)
                return
            yield "commits", turn.done(self._told(outcome))
            if self.unknown:
                yield "commits, and does not learn it", turn.done(self._unknown(turn, outcome))
                yield "fails, and does not learn it", turn.done(self._unknown(turn, turn.world))
        elif outcome == "12.token":
            yield "is a duplicate", turn.done(self._acknowledged(turn.discard(turn.world)))
        elif outcome != "13.lease" and attempt + 1 < ATTEMPTS_MAX:
            yield f"fires again ({outcome})", turn.go(turn.discard(turn.world), 0, attempt + 1)
        else:
            yield f"gives up ({outcome})", turn.done(turn.discard(turn.world))

    def _commit_halves(self, turn: Turn, changes: tuple[Change, ...]) -> Iterator[Step]:
        """Commit the INSERT's own rows first, and its views' output in a second commit (guard
        1.one_commit is off)."""
        own = 1 + len(by_partition(self._content()))
        first = turn.commit((), changes[:own])
        assert isinstance(first, World)
        rest = [c for c in changes[own:] if c.kind != "CoverNew"]
        rest = [
            c._replace(facts=(*c.facts[:5], c.facts[5] - 1)) if c.kind == "AddPart" else c
            for c in rest
        ]
        yield "commits its own rows", turn.go(self._told(first), 3, tuple(rest))

    def _unknown(self, turn: Turn, world: World) -> World:
        if not turn.protocol.on("14.keep_files"):
            return turn.discard(world)
        return world

    def _told(self, world: World) -> World:
        """Return the world in which the client knows that its rows were inserted."""
        if self.table not in (SOURCE, DIMENSION):
            rows = {(self.table, atom) for atom in self._content()}
            return world._replace(kept=world.kept | rows)
        return self._acknowledged(world)

    def _acknowledged(self, world: World) -> World:
        if self.table != SOURCE:
            return world
        return world._replace(acknowledged=world.acknowledged | set(self.rows))


class ChangeView(NamedTuple):
    """CREATE, DETACH, ATTACH, DROP and MODIFY QUERY of a view; source, target and dimension are
    for CREATE."""

    kind: str
    name: str
    source: str = ""
    target: str = ""
    reads_dimension: bool = False

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Commit in a single step."""
        view = view_named(turn.catalog, self.name)
        if (view is None) != (self.kind == "CREATE"):
            yield f"finds nothing to {self.kind}", turn.done(turn.world)
            return
        changes = list(self._create(turn)) if view is None else list(self._change(turn, view))
        world = turn.commit((), changes)
        assert isinstance(world, World)
        yield "commits", turn.done(world)

    def _create(self, turn: Turn) -> Iterator[Change]:
        number = turn.catalog.number + 1
        own = turn.protocol.on("10.identity")
        view_id = f"{self.name}#{number}" if own else self.name
        yield Change(
            "PutView",
            (
                View(
                    view_id,
                    self.name,
                    1,
                    f"{self.name}@{number}",
                    named(turn, self.source),
                    named(turn, self.target),
                    True,
                    self.reads_dimension,
                ),
            ),
        )
        if not turn.protocol.on("2.coverage_opens"):
            for part in parts_of(turn.catalog, self.source):
                yield Change("Cover", (view_id, part.partition, tuple(blocks_of(part))))

    def _change(self, turn: Turn, view: View) -> Iterator[Change]:
        if self.kind == "DROP":
            yield Change("DropView", (view,))
        elif self.kind == "MODIFY":
            number = turn.catalog.number + 1
            changed = view._replace(version=view.version + 1, definition=f"{view.name}@{number}")
            yield Change("PutView", (changed,))
            if turn.protocol.on("11.stale"):
                yield Change("Invalidate", (view.id, None))
        else:
            yield Change("PutView", (view._replace(attached=self.kind == "ATTACH"),))


def named(turn: Turn, table: str) -> str:
    """Return the table that has the target's name now, for this name; others keep theirs."""
    return turn.catalog.named if table == TARGET else table


class Delete(NamedTuple):
    """DELETE of source rows: their parts are replaced, and slices that the rows reached become
    stale."""

    rows: tuple[str, ...]

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Rewrite the parts, then commit."""
        if turn.actor.step == 0:
            yield self._plan(turn)
            return
        attempt, requirements, changes, found = turn.actor.memory
        outcome = turn.commit(requirements, changes)
        if isinstance(outcome, World):
            removed = outcome.removed | set(found)
            yield "commits", turn.done(outcome._replace(removed=removed))
        else:
            yield again(turn, attempt, outcome)

    def _plan(self, turn: Turn) -> Step:
        attempt = turn.actor.memory[0] if turn.actor.memory else 0
        parts = [p for p in parts_of(turn.catalog, SOURCE) if set(self.rows) & set(p.content)]
        if not parts:
            return "finds no rows", turn.done(turn.world)
        draft = Draft(turn, turn.catalog, attempt)
        draft.require("4.parts_live", "PartsLive", part_ids(parts))
        draft.change("RemoveParts", part_ids(parts))
        gone: list[Atom] = []
        for part in parts:
            leaving = tuple(r for r in part.content if r in self.rows)
            gone += leaving
            left = tuple(r for r in part.content if r not in self.rows)
            if left:
                file = turn.file(attempt, len(draft.files))
                draft.files.append(file)
                draft.change("PutPart", part._replace(id=file, content=left))
            if turn.protocol.on("4.raise"):
                draft.change("RaiseDataVersion", SOURCE, part.partition)
            watch(draft, part, leaving)
        world = turn.pinned(draft.staged())
        memory = (attempt, tuple(draft.requirements), tuple(draft.changes), tuple(gone))
        return "rewrites the parts", turn.go(world, 1, *memory)


def watch(draft: Draft, part: Part, leaving: tuple[Atom, ...]) -> None:
    """Invalidate the slices of views that rows leaving a source part had reached (rule 4)."""
    snapshot = draft.snapshot
    watchers = views_are(snapshot, part.table, attached=False)
    draft.require("4.watchers", "ViewsOnTableAre", part.table, watchers)
    for view in views_on(snapshot, part.table):
        if not touches(snapshot, view.id, part):
            blocks = tuple(blocks_of(part))
            draft.require("4.not_covered", "NotCovered", view.id, part.partition, blocks)
            continue
        if view.reads_dimension:
            draft.require(
                "4.dimension_read", "DimensionIs", part_ids(parts_of(snapshot, DIMENSION))
            )
        if draft.turn.protocol.on("4.stale"):
            for slice_ in by_partition(apply_view(view, leaving, dimension_state(snapshot))):
                draft.change("Invalidate", view.id, slice_)


class Truncate(NamedTuple):
    """TRUNCATE of a view's target: the coverage is removed with the rows (rule 5)."""

    table: str

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Read the parts, then commit."""
        if turn.actor.step == 0:
            yield self._plan(turn)
            return
        attempt, requirements, changes = turn.actor.memory
        outcome = turn.commit(requirements, changes)
        if isinstance(outcome, World):
            kept = frozenset(k for k in outcome.kept if k[0] != self.table)
            yield "commits", turn.done(outcome._replace(kept=kept))
        else:
            yield again(turn, attempt, outcome)

    def _plan(self, turn: Turn) -> Step:
        attempt = turn.actor.memory[0] if turn.actor.memory else 0
        snapshot = turn.catalog
        draft = Draft(turn, snapshot, attempt)
        parts = parts_of(snapshot, self.table)
        draft.require("5.all_parts", "PartsOfPartitionAre", self.table, None, part_ids(parts), None)
        draft.change("RemoveParts", part_ids(parts))
        for view in views_into(snapshot, self.table):
            if turn.protocol.on("5.coverage_leaves"):
                draft.change("Uncover", view.id)
        if turn.protocol.on("5.raise_whole"):
            draft.change("RaiseDataVersion", self.table, "")
        for part in parts:
            draft.change("RaiseDataVersion", self.table, part.partition)
            watch(draft, part, part.content)
        memory = (attempt, tuple(draft.requirements), tuple(draft.changes))
        return "reads what is there", turn.go(turn.world, 1, *memory)


class Backfill(NamedTuple):
    """One chunk of a backfill: a partition of the view's gap, published with its coverage in one
    commit."""

    name: str
    partition: str

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Compute the chunk, then commit."""
        if turn.actor.step == 0:
            yield self._compute(turn)
            return
        attempt, requirements, changes = turn.actor.memory
        outcome = turn.commit(requirements, changes)
        if isinstance(outcome, World):
            yield "publishes its chunk", turn.done(outcome)
        else:
            yield again(turn, attempt, outcome)

    def _compute(self, turn: Turn) -> Step:
        attempt = turn.actor.memory[0] if turn.actor.memory else 0
        snapshot = turn.catalog
        view = view_named(snapshot, self.name)
        if view is None:
            return "finds no view", turn.done(turn.world)
        live = parts_of(snapshot, view.source, self.partition)
        chunk = [p for p in live if not covers(snapshot, view.id, p)]
        if not chunk:
            return "finds no gap", turn.done(turn.world)
        draft = Draft(turn, snapshot, attempt, "5")
        rows = tuple(a for p in chunk for a in p.content)
        made = apply_view(view, rows, dimension_state(snapshot))
        fires = turn.protocol.on("5.chunk_fires")
        draft.block(view.target, made, "backfill", frozenset({view.id}), fires=fires)
        blocks = tuple(sorted(b for p in chunk for b in blocks_of(p)))
        self._require(draft, view, blocks)
        if turn.protocol.on("3.coverage_with_rows"):
            draft.change("Cover", view.id, self.partition, blocks)
        memory = (attempt, tuple(draft.requirements), tuple(draft.changes))
        return "computes its chunk", turn.go(turn.pinned(draft.staged()), 1, *memory)

    def _require(self, draft: Draft, view: View, blocks: tuple[int, ...]) -> None:
        snapshot = draft.snapshot
        version = data_version(snapshot, view.source, self.partition)
        draft.require("3.view", "ViewIs", view.id, view.version)
        draft.require("3.data_version", "DataVersionIs", view.source, self.partition, version)
        draft.require("3.not_covered", "NotCovered", view.id, self.partition, blocks)
        draft.require("3.no_straddle", "PartsWithinRanges", view.source, self.partition, blocks)
        if view.reads_dimension:
            ids = part_ids(parts_of(snapshot, DIMENSION))
            draft.require("3.dimension", "DimensionIs", ids)


class Merge(NamedTuple):
    """A merge of any two parts of one partition that the policy allows."""

    table: str

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Choose and stage one of the possible merges, then commit."""
        if turn.actor.step == 0:
            yield from self._choose(turn)
            return
        requirements, changes = turn.actor.memory
        outcome = turn.commit(requirements, changes)
        if isinstance(outcome, World):
            yield "commits", turn.done(outcome)
        else:
            yield f"gives up ({outcome})", turn.done(turn.discard(turn.world))

    def _choose(self, turn: Turn) -> Iterator[Step]:
        parts = parts_of(turn.catalog, self.table)
        pairs = [(a, b) for a in parts for b in parts if a.first < b.first]
        some = False
        for left, right in pairs:
            hull = hull_of(turn, left, right)
            if left.partition == right.partition and may_merge(turn, left, right, hull):
                some = True
                yield f"joins {left.first} and {right.first}", self._stage(turn, left, right, hull)
        if not some:
            yield "finds nothing to merge", turn.done(turn.world)

    def _stage(self, turn: Turn, left: Part, right: Part, hull: Part) -> World:
        draft = Draft(turn, turn.catalog, 0, "8")
        draft.files.append(hull.id)
        draft.require("8.parts_live", "PartsLive", part_ids((left, right)))
        draft.require("8.coverage_common", "CoverageCommon", hull)
        draft.change("RemoveParts", part_ids((left, right)))
        draft.change("PutPart", hull)
        memory = (tuple(draft.requirements), tuple(draft.changes))
        return turn.go(turn.pinned(draft.staged()), 1, *memory)


def hull_of(turn: Turn, left: Part, right: Part) -> Part:
    """Return the merged part of two."""
    made = left.made | right.made
    return Part(
        turn.file(0, 0),
        left.table,
        left.partition,
        min(left.first, right.first),
        max(left.last, right.last),
        ordered((*left.content, *right.content)),
        made if turn.protocol.on("8.contributions") else frozenset(),
    )


def may_merge(turn: Turn, left: Part, right: Part, hull: Part) -> bool:
    """Return whether the policy allows the merge. Bypass rows stay apart from a view's, and so
    do rows of different views, since one view may be dropped. Coverage is only required at the
    commit: a policy checks it earlier to save work."""
    protocol = turn.protocol
    if protocol.on("7.bypass_apart") and bool(left.made) != bool(right.made):
        return False
    return not (protocol.on("7.makers_apart") and left.made and right.made) or (
        left.made == right.made
    )


def again(turn: Turn, attempt: int, guard: str) -> Step:
    """Delete the staged files after a conflict, and compute again, bounded."""
    world = turn.discard(turn.world)
    if guard != "13.lease" and attempt + 1 < ATTEMPTS_MAX:
        cleared = world._replace(pins=frozenset(p for p in world.pins if p[0] != turn.number))
        return f"computes again ({guard})", turn.go(cleared, 0, attempt + 1)
    return f"gives up ({guard})", turn.done(world)


def crash(turn: Turn) -> World:
    """End the process: its memory and pins are gone; files and lease remain."""
    world = turn.world
    pins = frozenset(p for p in world.pins if p[0] != turn.number)
    dead = Actor(turn.actor.operation, dead=True)
    return turn.to(world._replace(pins=pins, crashes_left=world.crashes_left - 1), dead)
