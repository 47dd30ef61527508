"""REPLAY, RECONCILE, vacuum and readers, as atomic steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.commits import Change, part_ids, views_are
from tests.protocol.model import (
    DIMENSION,
    PARTITIONS,
    Atom,
    Catalog,
    Part,
    View,
    World,
    actual,
    apply_view,
    blocks_of,
    by_partition,
    covers,
    data_version,
    dimension_state,
    expected,
    fingerprint,
    is_bypass,
    last_block,
    parts_of,
    touches,
    views_into,
    views_on,
)
from tests.protocol.operations import again
from tests.protocol.turn import Draft, Step, Turn


class Replay(NamedTuple):
    """REPLAY: recomputes slices of a target from the parts that its views cover, and swaps them in.

    `slices` None: all of them.  The fence is the target's last block at the snapshot.
    """

    table: str
    slices: tuple[str, ...] | None = None
    discard_bypass: bool = False

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Recompute, plan the swap on the newest catalog, commit."""
        memory = turn.actor.memory
        match turn.actor.step:
            case 0:
                attempt = memory[0] if memory else 0
                yield self._recompute(turn, attempt)
            case 1:
                yield self._swap(turn)
            case 2:
                attempt, requirements, changes, gone = memory
                outcome = turn.commit(requirements, changes)
                if isinstance(outcome, World):
                    kept = frozenset(k for k in outcome.kept if k not in gone)
                    yield "commits", turn.done(outcome._replace(kept=kept))
                else:
                    yield again(turn, attempt, outcome)

    def _recompute(self, turn: Turn, attempt: int) -> Step:
        snapshot = turn.catalog
        writers = views_into(snapshot, self.table)
        if not writers:
            return "finds no view", turn.done(turn.world)
        draft = Draft(turn, snapshot, attempt, "6")
        draft.change("AddBlock", self.table, "replay")
        replayed = writers if turn.protocol.on("6.all_writers") else writers[:1]
        for view in replayed:
            made = self._made(draft, view)
            for slice_, piece in by_partition(made).items():
                if self._chosen(slice_):
                    draft.part(self.table, slice_, piece, frozenset({view.id}), 0)
        world = turn.pinned(draft.staged())
        memory = (attempt, snapshot, tuple(draft.requirements), tuple(draft.changes))
        return "recomputes the slices", turn.go(world, 1, *memory)

    def _chosen(self, slice_: str) -> bool:
        return self.slices is None or slice_ in self.slices

    def _made(self, draft: Draft, view: View) -> tuple[Atom, ...]:
        """Return the view's output for the parts that it covers, and require their state."""
        snapshot = draft.snapshot
        draft.require("6.view", "ViewIs", view.id, view.version)
        if view.reads_dimension:
            draft.require("6.dimension", "DimensionIs", part_ids(parts_of(snapshot, DIMENSION)))
        made: tuple[Atom, ...] = ()
        for part in parts_of(snapshot, view.source):
            if not covers(snapshot, view.id, part):
                continue
            version = data_version(snapshot, part.table, part.partition)
            draft.require("6.data_version", "DataVersionIs", part.table, part.partition, version)
            made += apply_view(view, part.content, dimension_state(snapshot))
        return made

    def _swap(self, turn: Turn) -> Step:
        """Choose the parts to replace on the newest catalog: merges may have changed them since
        the snapshot."""
        attempt, snapshot, requirements, changes = turn.actor.memory
        assert isinstance(snapshot, Catalog)
        now = turn.catalog
        draft = Draft(turn, now, attempt, "6")
        draft.requirements = list(requirements)
        draft.changes = list(changes)
        fence = last_block(snapshot, self.table)
        added = {str(c.facts[2]): c for c in draft.changes if c.kind == "AddPart"}
        old, straddles = self._old(turn, now, fence)
        if straddles:
            return again(turn, attempt, "6.straddle")
        # Bypass as of the snapshot: a view created since has no rows up to the fence.
        removed = [p for p in old if not is_bypass(snapshot, p) or self._discards(turn)]
        touched = sorted({*added, *(p.partition for p in old), *(self.slices or ())})
        whole = data_version(snapshot, self.table, "")
        draft.require("6.whole_target", "DataVersionIs", self.table, "", whole)
        for slice_ in touched:
            ids = part_ids(p for p in old if p.partition == slice_)
            up_to = fence if turn.protocol.on("6.fence") else None
            draft.require("6.parts", "PartsOfPartitionAre", self.table, slice_, ids, up_to)
            version = data_version(snapshot, self.table, slice_)
            draft.require("6.target_version", "DataVersionIs", self.table, slice_, version)
            draft.change("RaiseDataVersion", self.table, slice_)
        draft.change("RemoveParts", part_ids(removed))
        self._clear(draft, snapshot)
        self._downstream(draft, removed)
        gone: frozenset[tuple[str, Atom]] = frozenset()
        if self.discard_bypass:
            gone = frozenset(
                (self.table, a) for p in removed if is_bypass(now, p) for a in p.content
            )
        memory = (attempt, tuple(draft.requirements), tuple(draft.changes), gone)
        return "plans the swap", turn.go(turn.world, 2, *memory)

    def _discards(self, turn: Turn) -> bool:
        return self.discard_bypass or not turn.protocol.on("6.bypass_stays")

    def _old(self, turn: Turn, now: Catalog, fence: int) -> tuple[list[Part], bool]:
        """Return the parts to replace, and whether one of them lies across the fence."""
        chosen = [p for p in parts_of(now, self.table) if self._chosen(p.partition)]
        if not turn.protocol.on("6.fence"):
            return chosen, False
        up_to = [p for p in chosen if p.first <= fence]
        straddles = any(p.last > fence for p in up_to)
        return up_to, straddles and turn.protocol.on("6.straddle")

    def _clear(self, draft: Draft, snapshot: Catalog) -> None:
        """Clear the invalidations from before the snapshot."""
        limit = snapshot.number if draft.turn.protocol.on("6.clear_up_to") else 1 << 30
        for view in views_into(snapshot, self.table):
            for slice_ in self.slices or (None,):
                draft.change("Clear", view.id, slice_, limit)

    def _downstream(self, draft: Draft, removed: list[Part]) -> None:
        """Invalidate the output of views on the target for the replaced rows; the new block
        counts as covered, since their own replay reads it."""
        now = draft.snapshot
        watchers = views_are(now, self.table, attached=False)
        draft.require("6.watchers", "ViewsOnTableAre", self.table, watchers)
        new = [c for c in draft.changes if c.kind == "AddPart"]
        for view in views_on(now, self.table):
            seen = [p for p in removed if touches(now, view.id, p)]
            for part in removed:
                if part not in seen:
                    blocks = tuple(blocks_of(part))
                    draft.require(
                        "6.downstream_not_covered", "NotCovered", view.id, part.partition, blocks
                    )
            if not seen:
                continue
            if draft.turn.protocol.on("6.downstream_stale"):
                rows = [a for p in seen for a in p.content]
                rows += [a for c in new for a in c.facts[3]]
                for slice_ in by_partition(apply_view(view, rows, dimension_state(now))):
                    draft.change("Invalidate", view.id, slice_)
            draft.changes.append(Change("CoverNew", (view.id, 0)))


class Reconcile(NamedTuple):
    """RECONCILE: compares each slice of a target with a recomputation, at one snapshot."""

    table: str

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Compare at a pinned snapshot, then commit the verdicts."""
        if turn.actor.step == 0:
            yield "compares", turn.go(turn.pinned(turn.world), 1, turn.catalog)
            return
        snapshot = turn.actor.memory[0]
        assert isinstance(snapshot, Catalog)
        outcome = turn.commit((), self._changes(turn, snapshot))
        if isinstance(outcome, World):
            yield "records its verdicts", turn.done(outcome)
        else:
            yield f"gives up ({outcome})", turn.done(turn.world)

    def _changes(self, turn: Turn, snapshot: Catalog) -> list[Change]:
        wanted = expected(snapshot, self.table)
        there = actual(snapshot, self.table, bypass=True)
        limit = snapshot.number if turn.protocol.on("9.clear_up_to") else 1 << 30
        live = {v.id for v in turn.catalog.views}
        changes = []
        for slice_ in PARTITIONS:
            equal = wanted.get(slice_, ()) == there.get(slice_, ())
            about = fingerprint(snapshot, turn.protocol, self.table, slice_)
            for view in views_into(snapshot, self.table):
                if view.id not in live:
                    continue
                if equal:
                    changes.append(Change("RecordCheck", (view.id, slice_, about)))
                    changes.append(Change("Clear", (view.id, slice_, limit)))
                else:
                    changes.append(Change("ForgetCheck", (view.id, slice_)))
        return changes


class Read(NamedTuple):
    """A reader of the newest snapshot: takes its number, pins it, reads."""

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Take a snapshot, pin it, check the mark, read."""
        match turn.actor.step:
            case 0:
                yield "takes a snapshot", turn.go(turn.world, 1, turn.catalog)
            case 1:
                snapshot = turn.actor.memory[0]
                assert isinstance(snapshot, Catalog)
                pins = turn.world.pins | {(turn.number, snapshot, False)}
                yield "pins it", turn.go(turn.world._replace(pins=pins), 2, snapshot)
            case 2:
                yield self._look(turn)
            case 3:
                yield "has read", turn.done(turn.world)

    def _look(self, turn: Turn) -> Step:
        """Check the mark after writing the pin. Vacuum writes the mark, then reads the pins: so
        one of the two sees the other."""
        snapshot = turn.actor.memory[0]
        assert isinstance(snapshot, Catalog)
        if turn.protocol.on("13.mark") and snapshot.number < turn.world.mark:
            return "is told SNAPSHOT_TOO_OLD", turn.done(turn.world)
        pins = turn.world.pins - {(turn.number, snapshot, False)}
        world = turn.world._replace(pins=pins | {(turn.number, snapshot, True)})
        return "finds it whole", turn.go(world, 3)


class Vacuum(NamedTuple):
    """Vacuum: purges dropped parts, revokes dead leases, deletes unreferenced files.

    `suspects`: it may take a slow process for a dead one.
    """

    suspects: bool = False

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Find and mark due parts, purge them, revoke leases, list files, delete orphans."""
        world, memory = turn.world, turn.actor.memory
        match turn.actor.step:
            case 0:
                due = frozenset(d for d in world.dropped if d[1] <= horizon(turn))
                yield "finds what is due", turn.go(world, 1 if due else 3, due)
            case 1:
                mark = max(number for _, number in memory[0])
                marked = world._replace(mark=max(world.mark, mark))
                yield "marks what is due", turn.go(marked, 2, *memory)
            case 2:
                limit = horizon(turn) if turn.protocol.on("13.look_again") else 1 << 30
                due = frozenset(d for d in memory[0] if d[1] <= limit)
                files = world.files - {p.id for p, _ in due}
                forgotten = world._replace(dropped=world.dropped - due, files=files)
                yield "forgets dropped parts", turn.go(forgotten, 3)
            case 3:
                yield from self._revoke(turn)
            case 4:
                known = referenced(world) if not turn.protocol.on("13.catalog_last") else None
                yield "lists the files", turn.go(world, 5, memory[0], world.files, known)
            case 5:
                yield "deletes orphans", turn.done(self._delete(turn))

    def _revoke(self, turn: Turn) -> Iterator[Step]:
        world = turn.world
        dead = {(i, a.operation) for i, a in enumerate(world.actors) if a.dead}
        slow = {
            (i, a.operation)
            for i, a in enumerate(world.actors)
            if i != turn.number and a.step and not a.dead
        }
        choices = [dead] + ([dead | slow] if self.suspects and slow else [])
        for leases in choices:
            ended = world.ended | leases if turn.protocol.on("13.revoke_first") else world.ended
            label = "revokes dead leases" if leases == dead else "takes a slow process for dead"
            yield label, turn.go(world._replace(ended=ended), 4, frozenset(leases))

    def _delete(self, turn: Turn) -> World:
        world = turn.world
        revoked, listed, known = turn.actor.memory
        known = referenced(world) if known is None else known
        orphans = set()
        for file in listed:
            over = file[:2] in world.ended or file[:2] in revoked
            if file not in known and (over or not turn.protocol.on("13.live_leases")):
                orphans.add(file)
        return world._replace(files=world.files - orphans)


def referenced(world: World) -> frozenset[tuple[int, int, int, int]]:
    """Return the ids of files of live and dropped parts."""
    return frozenset({p.id for p in world.catalog.parts} | {p.id for p, _ in world.dropped})


def horizon(turn: Turn) -> int:
    """Return the oldest commit that any reader pins."""
    if not turn.protocol.on("13.pins"):
        return turn.catalog.number
    return min((pin[1].number for pin in turn.world.pins), default=turn.catalog.number)
