"""Faults to plant in the engine: for each guard, a way to disable it.

Most remove a requirement or a change from commits on their way to `Catalog.apply`; others replace
the function that implements the guard.  A fault without visible effect means that no test protects
the guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from unittest import mock

from olapdb.catalog.protocol import Catalog
from olapdb.ingest.block_stager import BlockStager
from olapdb.model import changes as c
from olapdb.model import fingerprints
from olapdb.model import requirements as required
from olapdb.model.changes import Change, Commit, Committed
from olapdb.model.part import BlockRange
from olapdb.model.requirements import Requirement
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import CoverageRow
from olapdb.views.jobs.replay_attempt import ReplayAttempt

Edit: TypeAlias = Callable[[Commit, Snapshot], Commit]
FOR_EVER = 1 << 40


@dataclass(frozen=True)
class Fault:
    """A disabled guard. `words` describe the fault for the table in docs/protocol.md."""

    guard: str
    words: str
    edit: Edit | None = None
    patches: Mapping[str, Any] = field(default_factory=dict)
    """Replacements by dotted name."""

    @contextmanager
    def planted(self, catalog: Catalog) -> Iterator[None]:
        """Plant the fault: edit the catalog's commits and patch the names."""
        apply, edit = catalog.apply, self.edit

        def edited(commit: Commit) -> Committed:
            return apply(edit(commit, catalog.snapshot()) if edit is not None else commit)

        with ExitStack() as stack:
            for name, replacement in self.patches.items():
                stack.enter_context(mock.patch(name, replacement))
            stack.enter_context(mock.patch.object(catalog, "apply", edited))
            yield


# --- ways to disable something -------------------------------------------------------------------


def lost(
    guard: str,
    kind: str,
    *types: type[Any],
    where: Callable[[Any, Snapshot], bool] = lambda r, s: True,
    patches: Mapping[str, Any] | None = None,
) -> Fault:
    """Disable requirements of these types in commits of the kind ("" for all)."""

    def edit(commit: Commit, snapshot: Snapshot) -> Commit:
        if kind not in ("", commit.kind):
            return commit
        kept: list[Requirement] = [
            r for r in commit.requirements if not (isinstance(r, types) and where(r, snapshot))
        ]
        return replace(commit, requirements=tuple(kept))

    names = ", ".join(f"`{data_type.__name__}`" for data_type in types)
    return Fault(guard, f"{kind or 'no commit'} does not require {names}", edit, patches or {})


def forgotten(
    guard: str, kind: str, of: type[Any], where: Callable[[Any, Snapshot], bool] = lambda r, s: True
) -> Fault:
    """Leave changes of the type out of commits of the kind."""
    return rewritten(
        guard,
        kind,
        f"{kind} leaves out `{of.__name__}`",
        lambda change, snapshot: (
            [] if isinstance(change, of) and where(change, snapshot) else [change]
        ),
    )


def rewritten(
    guard: str, kind: str, words: str, rewrite: Callable[[Change, Snapshot], Sequence[Change]]
) -> Fault:
    """Replace each change of commits of the kind by the result of `rewrite`."""

    def edit(commit: Commit, snapshot: Snapshot) -> Commit:
        if kind not in ("", commit.kind):
            return commit
        made = [new for change in commit.changes for new in rewrite(change, snapshot)]
        return replace(commit, changes=tuple(made))

    return Fault(guard, words, edit)


def patched(guard: str, words: str, **by_name: Any) -> Fault:
    """Replace names, given as keywords with `__` for the dots."""
    return Fault(guard, words, None, {n.replace("__", "."): new for n, new in by_name.items()})


def both(guard: str, words: str, *faults: Fault) -> Fault:
    """Combine several faults."""

    def edit(commit: Commit, snapshot: Snapshot) -> Commit:
        for fault in faults:
            commit = fault.edit(commit, snapshot) if fault.edit is not None else commit
        return commit

    return Fault(
        guard, words, edit, {n: new for fault in faults for n, new in fault.patches.items()}
    )


# --- predicates of requirements and changes, and rewritten changes -------------------------------


def _is_source(requirement: Any, snapshot: Snapshot) -> bool:
    """Return whether the requirement is about a source that is no target."""
    return bool(snapshot.views_on(requirement.table_id)) and not _is_target(requirement, snapshot)


def _is_target(requirement: Any, snapshot: Snapshot) -> bool:
    return bool(snapshot.views_into(requirement.table_id))


def _is_dimension(requirement: Any, snapshot: Snapshot) -> bool:
    return any(
        isinstance(item, MaterializedView) and requirement.table_id in item.dimension_ids
        for item in snapshot.objects()
    )


def _whole(one: Any, snapshot: Snapshot) -> bool:
    return one.partition_id == ""


def _slice(one: Any, snapshot: Snapshot) -> bool:
    return one.partition_id != "" and _is_target(one, snapshot)


def _of_chunk(change: Any, snapshot: Snapshot) -> bool:
    return change.row.partition is not None


def _endless(change: Change, snapshot: Snapshot) -> list[Change]:
    if isinstance(change, c.ClearInvalidations):
        return [replace(change, up_to_commit=FOR_EVER)]
    return [change]


def _covered_at_once(change: Change, snapshot: Snapshot) -> list[Change]:
    """Let a new view claim to cover all rows of its source."""
    if not isinstance(change, c.PutObject) or not isinstance(change.object, MaterializedView):
        return [change]
    view = change.object
    source = snapshot.by_id(view.source_id)
    last = snapshot.next_block(source) - 1  # type: ignore[arg-type]
    if last < 1:
        return [change]
    return [change, c.AddCoverage(CoverageRow(view.id, None, BlockRange(1, last)))]


def _named_by_name(change: Change, snapshot: Snapshot) -> list[Change]:
    if isinstance(change, c.PutObject) and isinstance(change.object, MaterializedView):
        return [c.PutObject(replace(change.object, id=f"id of {change.object.name}"))]
    return [change]


def _of_nobody(change: Change, snapshot: Snapshot) -> list[Change]:
    if isinstance(change, c.AddPart):
        return [replace(change, part=replace(change.part, contributions=()))]
    return [change]


def _remove_what_is_there(self: Any, table_id: str, part_ids: Sequence[str]) -> None:
    """Replace Application._remove_parts by one that ignores missing parts."""
    import json

    from olapdb.catalog.sqlite import statements as sql

    sql.drop_parts(
        self._connection,
        part_ids=json.dumps(list(part_ids)),
        of_table=table_id,
        number=self._number,
        now_ms=self._now_ms,
    )
    self.removed.setdefault(table_id, []).extend(part_ids)


def _fires_nothing(self: Any, *given: Any, fires: bool, **named: Any) -> Any:
    return _add_view_block(self, *given, fires=False, **named)


def _first_writer_only(self: Any, views: Sequence[Any]) -> Any:
    return _recompute(self, views[:1])


def _without_views(commit: Commit, snapshot: Snapshot) -> Commit:
    """Reduce an INSERT's commit to its own table."""
    blocks = [change.block for change in commit.changes if isinstance(change, c.AddBlock)]
    if commit.kind != "INSERT" or not blocks:
        return commit
    own = blocks[0].table_id
    kept = [
        change
        for change in commit.changes
        if not isinstance(change, c.AddCoverage)
        and (not isinstance(change, c.AddBlock) or change.block.table_id == own)
        and (not isinstance(change, c.AddPart) or change.part.table_id == own)
    ]
    return replace(commit, changes=tuple(kept))


_add_view_block = BlockStager.add_view_block
_recompute = ReplayAttempt._recompute
_UNCHECKED = {
    "olapdb.catalog.sqlite.apply_changes.CommitApplier._remove_parts": _remove_what_is_there
}


def _any_kind(state: Any, part: Any) -> object:
    return ()


def _takes_all(self: Any, now: Snapshot, target: Any, fence: int, more: Any) -> Any:
    """Replace ReplayAttempt._replaced by one without its fence."""
    return _replaced(self, now, target, fence, more, beyond=True)


def _takes_straddling(self: Any, now: Snapshot, target: Any, fence: int, more: Any) -> Any:
    return _replaced(self, now, target, fence, more, beyond=False)


def _replaced(
    self: Any, now: Snapshot, target: Any, fence: int, more: Any, *, beyond: bool
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {p: [] for p in {*more, *(self.slices or ())}}
    for part in now.parts(target.id):
        chosen = self.slices is None or part.partition_id in self.slices
        if chosen and part.partition_id and (beyond or part.block_range.first <= fence):
            found.setdefault(part.partition_id, []).append(part)
    return found


class _Blind:
    """A snapshot that hides some of the facts on which a verdict depends."""

    def __init__(self, snapshot: Snapshot, **seen: Any) -> None:
        self._snapshot, self._seen = snapshot, seen

    def __getattr__(self, name: str) -> Any:
        blind = self._seen.get(name)
        real = getattr(self._snapshot, name)
        return real if blind is None else lambda *given: blind(self._snapshot, real, *given)


def _fingerprint(guard: str, words: str, **seen: Any) -> Fault:
    original = fingerprints.fingerprint

    def blind(view: Any, snapshot: Any, *more: Any, **named: Any) -> str:
        return original(view, _Blind(snapshot, **seen), *more, **named)  # type: ignore[arg-type]

    names = ("olapdb.model.fingerprints.fingerprint", "olapdb.views.proof.reconcile.fingerprint")
    return Fault(guard, f"a verdict does not depend on {words}", None, dict.fromkeys(names, blind))


def _parts_without_targets(snapshot: Snapshot, real: Callable[[str], Any], table_id: str) -> Any:
    is_target = _is_target(required.SchemaIs(table_id, 0), snapshot)
    return () if is_target else real(table_id)


# --- the faults ----------------------------------------------------------------------------------

_PARTITION = required.PartsOfPartitionAre
_VERSION = required.DataVersionIs

FAULTS: Mapping[str, Fault] = {
    one.guard: one
    for one in (
        lost("1.views", "INSERT", required.ViewsAre),
        Fault("1.one_commit", "what views make is not in the INSERT's commit", _without_views),
        lost("1.dimension", "INSERT", _PARTITION, where=_is_dimension),
        Fault(
            "1.own_dimension",
            "views join what was there before the INSERT",
            None,
            {
                "olapdb.ingest.own_rows.Cascade.written_dimensions": lambda self, table_id: (
                    frozenset()
                )
            },
        ),
        rewritten(
            "2.coverage_opens",
            "CREATE MATERIALIZED VIEW",
            "a new view claims what is there already",
            _covered_at_once,
        ),
        lost("3.view", "BACKFILL", required.ViewIs),
        lost("3.data_version", "BACKFILL", _VERSION),
        lost("3.not_covered", "BACKFILL", required.NotCovered),
        lost("3.no_straddle", "BACKFILL", required.PartsWithinRanges),
        forgotten("3.coverage_with_rows", "BACKFILL", c.AddCoverage, _of_chunk),
        lost("3.dimension", "BACKFILL", _PARTITION, where=_is_dimension),
        lost("4.parts_live", "DELETE", required.PartsLive, patches=_UNCHECKED),
        forgotten("4.raise", "DELETE", c.RaiseDataVersion),
        forgotten("4.stale", "DELETE", c.Invalidate),
        lost("4.watchers", "DELETE", required.ViewsOnTableAre),
        lost("4.not_covered", "DELETE", required.NotCovered),
        forgotten("4.dimension_stale", "INSERT", c.Invalidate),
        lost("4.dimension_watchers", "INSERT", required.DimensionViewsAre),
        lost("4.dimension_unseen", "INSERT", required.NothingCovered),
        lost("4.dimension_read", "DELETE", _PARTITION, where=_is_dimension),
        lost("5.views_of_target", "BACKFILL", required.ViewsAre),
        Fault(
            "5.chunk_fires",
            "a chunk fires no view of its target",
            None,
            {"olapdb.ingest.block_stager.BlockStager.add_view_block": _fires_nothing},
        ),
        lost("5.all_parts", "TRUNCATE", _PARTITION),
        forgotten("5.coverage_leaves", "TRUNCATE", c.RemoveCoverage),
        forgotten("5.raise_whole", "TRUNCATE", c.RaiseDataVersion, _whole),
        lost("6.view", "REPLAY", required.ViewIs),
        lost("6.data_version", "REPLAY", _VERSION, where=_is_source),
        lost("6.dimension", "REPLAY", _PARTITION, where=_is_dimension),
        lost("6.whole_target", "REPLAY", _VERSION, where=_whole),
        both(
            "6.fence",
            "a replay takes what came after its snapshot",
            lost("", "REPLAY", _PARTITION),
            Fault(
                "",
                "",
                None,
                {"olapdb.views.jobs.replay_attempt.ReplayAttempt._replaced": _takes_all},
            ),
        ),
        Fault(
            "6.straddle",
            "a replay takes a part across its fence",
            None,
            {"olapdb.views.jobs.replay_attempt.ReplayAttempt._replaced": _takes_straddling},
        ),
        lost("6.parts", "REPLAY", _PARTITION, patches=_UNCHECKED),
        Fault(
            "6.all_writers",
            "a replay recomputes one view of several",
            None,
            {"olapdb.views.jobs.replay_attempt.ReplayAttempt._recompute": _first_writer_only},
        ),
        lost("6.target_version", "REPLAY", _VERSION, where=_slice),
        forgotten("6.downstream_stale", "REPLAY", c.Invalidate),
        lost("6.watchers", "REPLAY", required.ViewsOnTableAre),
        lost("6.downstream_not_covered", "REPLAY", required.NotCovered),
        rewritten("6.clear_up_to", "REPLAY", "a replay clears marks of whenever", _endless),
        patched(
            "6.bypass_stays",
            "a replay takes rows that no view made",
            olapdb__views__jobs__replay_attempt__is_bypass=lambda part, views: False,
        ),
        Fault(
            "7.bypass_apart",
            "rows by hand merge with a view's",
            None,
            {"olapdb.maintenance.merge_policy._merge_group": _any_kind},
        ),
        Fault(
            "7.makers_apart",
            "rows of two views merge",
            None,
            {"olapdb.maintenance.merge_policy._merge_group": _any_kind},
        ),
        lost("8.parts_live", "OPTIMIZE", required.PartsLive, patches=_UNCHECKED),
        lost("8.coverage_common", "OPTIMIZE", required.CoverageCommon),
        rewritten("8.contributions", "OPTIMIZE", "a merged part belongs to no view", _of_nobody),
        Fault(
            "9.stale",
            "a verdict about a stale slice counts",
            None,
            {"olapdb.model.fingerprints.is_stale": lambda *_: False},
        ),
        _fingerprint("9.newest_block", "the target's newest block", parts=_parts_without_targets),
        rewritten("9.clear_up_to", "RECONCILE", "a verdict clears marks of whenever", _endless),
        rewritten(
            "10.identity", "CREATE MATERIALIZED VIEW", "a view's id is its name", _named_by_name
        ),
        forgotten("11.stale", "MODIFY QUERY", c.Invalidate),
        both(
            "12.token",
            "no commit requires `TokenIsNew`, nor records the token",
            lost("", "INSERT", required.TokenIsNew),
            forgotten("", "INSERT", c.RecordToken),
        ),
        lost("13.lease", "", required.LeaseLive),
    )
}
