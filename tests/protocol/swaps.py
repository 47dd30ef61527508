"""The swap at the end of a REBUILD, and its ROLLBACK, as atomic steps.

A REBUILD is three operations of the model: CREATE of a version `v*` beside `v`, its backfill, and the swap, which
gives it the names of `v` and of its target. Views that read the target by its name follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.commits import Requirement, dependents, holds
from tests.protocol.model import (
    Catalog,
    View,
    World,
    actual,
    apply_view,
    by_partition,
    dimension_state,
    parts_of,
    view_named,
    views_into,
    views_on,
)
from tests.protocol.operations import again
from tests.protocol.turn import Draft, Step, Turn

NAME, BESIDE = "v", "v*"


class Swap(NamedTuple):
    """The exchange of names between `v` and the version beside it. `steps_back`: a ROLLBACK, which takes a
    version that is not whole too."""

    steps_back: bool = False

    def moves(self, turn: Turn) -> Iterator[Step]:
        """Look at both versions and at what reads them, then commit."""
        if turn.actor.step == 0:
            yield self._plan(turn)
            return
        attempt, requirements, changes, old, new = turn.actor.memory
        outcome = turn.commit(requirements, changes)
        if isinstance(outcome, World):
            yield "commits", turn.done(self._shown(outcome, old, new))
        else:
            yield again(turn, attempt, outcome)

    def _plan(self, turn: Turn) -> Step:
        attempt = turn.actor.memory[0] if turn.actor.memory else 0
        snapshot = turn.catalog
        old, new = view_named(snapshot, NAME), view_named(snapshot, BESIDE)
        if old is None or new is None:
            return "finds no two versions", turn.done(turn.world)
        if any(len(views_into(snapshot, view.target)) > 1 for view in (old, new)):
            return "refuses another writer", turn.done(turn.world)
        draft = Draft(turn, snapshot, attempt, "10")
        draft.require("10.versions", "RevisionIs", old)
        draft.require("10.versions", "RevisionIs", new)
        for table in (old.target, new.target):
            draft.require("10.readers", "NoDependents", table, dependents(snapshot, table))
            draft.require("10.no_bypass", "NoBypass", table)
        if not self.steps_back:
            draft.require("10.no_gap", "NoGap", new.id)
            draft.require("10.nothing_stale", "NothingStale", new.id)
        if any(not self._may_hold(turn, requirement) for requirement in draft.requirements):
            return "refuses it", turn.done(turn.world)
        draft.change("PutView", new._replace(name=NAME))
        draft.change("PutView", old._replace(name=BESIDE))
        draft.change("GiveName", new.target)
        for reader in views_on(snapshot, old.target):
            self._follow(draft, reader, new.target)
        memory = (attempt, tuple(draft.requirements), tuple(draft.changes), old, new)
        return "plans it", turn.go(turn.world, 1, *memory)

    def _may_hold(self, turn: Turn, requirement: Requirement) -> bool:
        return not turn.protocol.on(requirement.guard) or holds(turn.world, requirement)

    def _follow(self, draft: Draft, reader: View, target: str) -> None:
        """Let a reader of the name read the new version: it counts all blocks as seen, and all it made as
        stale, for its own replay to make again."""
        on = draft.turn.protocol.on
        version = reader.version + on("10.reader_version")
        draft.change("PutView", reader._replace(source=target, version=version))
        if on("10.cover_source"):
            draft.change("CoverSource", reader.id)
        if on("10.reader_stale"):
            draft.change("Invalidate", reader.id, None)

    def _shown(self, world: World, old: View, new: View) -> World:
        """Note what readers of the name lost at this commit: rows that clients inserted by hand, or rows of
        the source that the new version lacks."""
        unlike = {f"{atom} of {table}" for table, atom in world.kept if table == old.target}
        if not self.steps_back and not _is_whole(world.catalog, new):
            unlike.add(f"rows that {new.id} lacks")
        return world._replace(unlike=world.unlike | unlike)


def _is_whole(catalog: Catalog, view: View) -> bool:
    """Return whether the target is what the view's query gives over all of the source."""
    rows = [atom for part in parts_of(catalog, view.source) for atom in part.content]
    wanted = by_partition(apply_view(view, rows, dimension_state(catalog)))
    return wanted == actual(catalog, view.target, bypass=True)
