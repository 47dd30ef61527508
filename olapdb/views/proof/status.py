"""The health of a view: its verdict, the numbers behind it, and the statement that repairs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from olapdb.ingest.view_failure import FAILED
from olapdb.lineage.retention import FrozenKeys
from olapdb.model.part import subtract_ranges, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check
from olapdb.sql.literals import quote_name
from olapdb.views.jobs.job import view_name
from olapdb.views.jobs.retained_rows import retained_description
from olapdb.views.proof.coverage import bypass, coverage_rows, gap_slices, stores_rows
from olapdb.views.proof.failed_repairs import ATTEMPTS, failed_attempt_error
from olapdb.views.proof.shared_targets import compared_parts, incomparable_reason, peers
from olapdb.views.proof.verdicts import check_is_current, counts, failures, refused_adoption

Health: TypeAlias = Literal[
    "proven",
    "covered",
    "partial",
    "stale",
    "retained",
    "bypassed",
    "unproven",
    "unverifiable",
    "broken",
]
"""broken: a table that the view needs is gone. unverifiable: a part of its source, of a table that
it joins or of its target cannot be read. stale: a slice is known to differ, or may differ since an
input changed. bypassed: the target holds rows that no view made. partial: there is a gap. unproven:
the view cannot be proven. retained: rows of its source have left by retention, and what the view
made of them is frozen; there is no other problem. proven: every partition of the target was
compared and equal, and no input has changed since. covered: none of these."""


MENDED_PARTS_MAX = 100
"""Damaged parts that one `mend` sets aside."""


@dataclass(frozen=True, slots=True)
class StaleSlice:
    """A stale slice of a view's target; `partition` None: the whole target."""

    partition: str | None
    cause: str
    statement: str
    query_id: str
    rows: int
    since_ms: int
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """The verdict about a view, its `reason`, and the SQL that repairs the view (`mend`). Reason
    and mend are "" where all is well.

    The view is `gap_blocks` blocks behind its source; the oldest of them came at `gap_since_ms`.
    `last_check_ms`: the last comparison. `last_proof_ms`: the last equal one that still holds.
    Times are 0 where there is none.
    """

    view_id: str
    verdict: Health
    reason: str
    covered_rows: int
    gap_rows: int
    gap_parts: int
    bypass_rows: int
    bypass: Mapping[str, int]
    stale: tuple[StaleSlice, ...]
    last_check_ms: int
    mend: str
    gap_blocks: int = 0
    gap_since_ms: int = 0
    retained_rows: int = 0
    last_proof_ms: int = 0
    stale_slices: int = 0
    """The number of distinct stale slices; a stale target counts its partitions, or 1."""


def view_status(view: MaterializedView, snapshot: Snapshot) -> ViewStatus:
    """Return the view's status by arithmetic on the ledger, without reading a row."""
    broken = _broken(view, snapshot)
    if broken:
        drop = f"DROP VIEW {view_name(view)}"
        return ViewStatus(view.id, "broken", broken, 0, 0, 0, 0, {}, (), 0, drop)
    slices = coverage_rows(view, snapshot)
    gaps = [s for s in slices if s.status == "gap"]
    by_hand = bypass(view, snapshot)
    checks = [c for c in snapshot.checks(view.id) if check_is_current(c, view, snapshot)]
    stale = _stale(view, snapshot, checks)
    gap_rows = sum(s.rows for s in gaps)
    verdict, reason, mend = _unreadable(view, snapshot) or _verdict(
        view, snapshot, gap_rows, by_hand, stale, checks
    )
    gap_blocks, gap_since_ms = _lag(view, snapshot) if gaps else (0, 0)
    return ViewStatus(
        view_id=view.id,
        verdict=verdict,
        reason=reason,
        covered_rows=sum(s.rows for s in slices if s.status == "covered"),
        gap_rows=gap_rows,
        gap_parts=sum(s.parts for s in gaps),
        bypass_rows=sum(by_hand.values()),
        bypass=by_hand,
        stale=stale,
        last_check_ms=max(
            (c.checked_ms for c in snapshot.checks(view.id) if c.mode not in ATTEMPTS), default=0
        ),
        mend=mend,
        gap_blocks=gap_blocks,
        gap_since_ms=gap_since_ms,
        retained_rows=sum(s.rows for s in slices if s.status == "retained"),
        last_proof_ms=max((c.checked_ms for c in checks if c.verdict == "equal"), default=0),
        stale_slices=_distinct_slices(view, snapshot, stale),
    )


def _lag(view: MaterializedView, snapshot: Snapshot) -> tuple[int, int]:
    """Return the number of source blocks that the view has not seen whole, and the time in ms of
    the oldest of them, or 0."""
    missed = union_ranges(
        part.block_range for one in gap_slices(view, snapshot) for part in one.parts
    )
    missed = subtract_ranges(missed, snapshot.coverage(view.id).everywhere)
    spans = [snapshot.block_span(view.source_id, one) for one in missed]
    return sum(count for count, _ in spans), min((ms for _, ms in spans if ms), default=0)


def _broken(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return which of the view's tables is gone, as a sentence, or ""."""
    if not isinstance(snapshot.by_id(view.source_id), Table):
        return "Its source does not exist any more."
    if not isinstance(snapshot.by_id(view.target_id), Table):
        return "Its target does not exist any more."
    for table_id in view.dimension_ids:
        if snapshot.by_id(table_id) is None:
            return "A table that it joins does not exist any more."
    return ""


def _unreadable(view: MaterializedView, snapshot: Snapshot) -> tuple[Health, str, str] | None:
    """Return (verdict, reason, mend) if a table of the view has damaged parts, else None. Damage
    prevents each comparison. `mend` sets the parts aside, at most MENDED_PARTS_MAX."""
    roles = {view.target_id: "its target", view.source_id: "its source"}
    for table_id in view.dimension_ids:
        roles.setdefault(table_id, "a table that it joins")
    order = list(roles)
    damaged = [one for one in snapshot.damaged() if one.table_id in roles]
    if not damaged:
        return None
    damaged.sort(key=lambda one: (order.index(one.table_id), one.part))
    names: dict[str, str] = {}
    for one in damaged:
        table = snapshot.by_id(one.table_id)
        assert isinstance(table, Table)
        names[one.table_id] = f"{quote_name(table.database)}.{quote_name(table.name)}"
    first = damaged[0]
    name = names[first.table_id]
    more = f" {len(damaged) - 1} more parts are damaged." if len(damaged) > 1 else ""
    reason = (
        f"Part {first.part} of {roles[first.table_id]} {name} is damaged: {first.reason}{more}"
        f" Restore its file and run CHECK TABLE {name}, or set the part aside (mend)."
    )
    mends = (
        f"SYSTEM QUARANTINE PART '{one.part_id}' ON {names[one.table_id]}"
        for one in damaged[:MENDED_PARTS_MAX]
    )
    return "unverifiable", reason, "; ".join(mends)


def _stale(
    view: MaterializedView, snapshot: Snapshot, checks: list[Check]
) -> tuple[StaleSlice, ...]:
    """Return the invalidations of the view and its peers, and its checks with differences."""
    slices = [
        StaleSlice(i.target_partition, i.cause, i.statement, i.query_id, i.rows, i.since_ms, i.keys)
        for one in peers(view, snapshot)
        for i in snapshot.invalidations(one.id)
        if i.cause != FAILED
    ]
    slices += [
        StaleSlice(
            c.target_partition,
            "RECONCILE",
            "",
            "",
            c.missing + c.extra + c.differing,
            c.checked_ms,
            c.examples,
        )
        for c in checks
        if c.verdict == "different"
    ]
    return tuple(slices)


def _distinct_slices(
    view: MaterializedView, snapshot: Snapshot, stale: tuple[StaleSlice, ...]
) -> int:
    """Return the number of distinct stale slices; a stale target counts its partitions, or 1."""
    named = {one.partition for one in stale}
    if None not in named:
        return len(named)
    there = {part.partition_id for part in snapshot.parts(view.target_id) if part.rows}
    return max(len((named | there) - {None}), 1)


def _verdict(
    view: MaterializedView,
    snapshot: Snapshot,
    gap_rows: int,
    by_hand: Mapping[str, int],
    stale: tuple[StaleSlice, ...],
    checks: list[Check],
) -> tuple[Health, str, str]:
    """Return (verdict, reason, mend). Reason and mend may be ""."""
    name = view_name(view)
    why = incomparable_reason(view, snapshot)
    if not stores_rows(snapshot, view.source_id):
        return (
            "unproven",
            why + _lost_rows_text(view, snapshot) + _irreparable_text(by_hand, stale),
            "",
        )
    forgets = not stores_rows(snapshot, view.target_id)  # no stored row can be stale
    amiss = _problems(view, snapshot, gap_rows, by_hand, () if forgets else stale)
    kept = retained_description(view, snapshot)
    if why:  # Problems are reported and repaired also where the view is unproven.
        reason, mend = _reason_and_repair(amiss) if amiss else (kept, "")
        return "unproven", f"{why} {reason}".rstrip(), mend
    if amiss:
        reason, mend = _reason_and_repair(amiss)
        return (amiss[0].verdict if all(one.mend for one in amiss) else "unproven"), reason, mend
    equal = {c.target_partition for c in checks if c.verdict in ("equal", "retained")}
    there = {part.partition_id for part in compared_parts(view, snapshot)}
    proven = bool(checks) and there <= equal
    fails = "" if proven else failed_attempt_error(view, snapshot, "RECONCILE")
    if fails:
        return "unproven", f"{_failed_words('RECONCILE', fails, name)} {kept}".rstrip(), ""
    if kept:
        rest = " The rest is proven." if proven else ""
        return "retained", kept + rest, "" if proven else f"SYSTEM RECONCILE VIEW {name}"
    if proven:
        return "proven", "", ""
    return "covered", "", f"SYSTEM RECONCILE VIEW {name}"


# --- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    """A problem that the ledger knows. `mend` is "" if no statement helps before a person changes
    rows or the definition."""

    verdict: Health
    reason: str
    mend: str


def _reason_and_repair(amiss: Sequence[_Problem]) -> tuple[str, str]:
    """Return the reasons as text, and the statement to run first. Name all problems without a
    repair, but only the worst with one: repairs run one at a time."""
    hopeless = [one.reason for one in amiss if not one.mend]
    mended = [one for one in amiss if one.mend][:1]
    words = " ".join((*hopeless, *(one.reason for one in mended)))
    return words, mended[0].mend if mended else ""


def _problems(
    view: MaterializedView,
    snapshot: Snapshot,
    gap_rows: int,
    by_hand: Mapping[str, int],
    stale: tuple[StaleSlice, ...],
) -> list[_Problem]:
    """Return the problems that the ledger knows, the worst first: stale, bypassed, partial."""
    name = view_name(view)
    real = [s for s in stale if not (s.cause == "RECONCILE" and by_hand.get(s.partition or ""))]
    never = failed_attempt_error(view, snapshot, "REPLAY") if real or by_hand else ""
    never = _failed_words("REPLAY", never, name) if never else ""
    error = failed_attempt_error(view, snapshot, "BACKFILL") if gap_rows else ""
    missed = f"It has not seen {gap_rows} rows." if gap_rows else ""
    found: list[_Problem] = []
    if real:
        mend = f"SYSTEM REPLAY VIEW {name} STALE"
        found.append(_problem("stale", _stale_words(real), mend, never))
    if by_hand:
        one = _bypass_problem(view, snapshot, by_hand, bool(gap_rows), bool(error))
        if real and one.mends_stale:
            words = f"{_stale_words(real)} {one.reason} {missed}".rstrip()
            found = [_problem("stale", words, one.mend, never)]
        else:
            found.append(_problem("bypassed", f"{one.reason} {missed}".rstrip(), one.mend, never))
    if gap_rows:
        fails = _failed_words("BACKFILL", error, name) if error else ""
        words = missed + _failure_text(view, snapshot, gap_rows)
        found.append(_problem("partial", words, f"SYSTEM BACKFILL VIEW {name}", fails))
    return found


def _problem(verdict: Health, words: str, mend: str, never: str) -> _Problem:
    """Return the problem with `mend`; or without it, if `never` says why no repair succeeds."""
    return _Problem(verdict, f"{words} {never}".rstrip(), "" if never else mend)


@dataclass(frozen=True, slots=True)
class _BypassProblem:
    """A problem with rows that no view made. `mends_stale`: `mend` also repairs stale slices."""

    reason: str
    mend: str
    mends_stale: bool = False


def _bypass_problem(
    view: MaterializedView,
    snapshot: Snapshot,
    by_hand: Mapping[str, int],
    missed: bool,
    fails: bool,
) -> _BypassProblem:
    """Return the problem and the repair of rows that no view made.

    They may be rows that a view of the target missed, inserted by hand: ADOPT finds out. If ADOPT
    was refused, or no view missed rows, DISCARD BYPASS removes them. If the view itself has
    `missed` rows, the same statement backfills them, unless a backfill `fails`.
    """
    name, reason = view_name(view), _bypass_words(by_hand)
    discard = f"SYSTEM REPLAY VIEW {name} DISCARD BYPASS"
    removes = "DISCARD BYPASS removes them."
    if incomparable_reason(view, snapshot) and missed and not fails:
        return _BypassProblem(reason, f"SYSTEM BACKFILL VIEW {name}")
    if incomparable_reason(view, snapshot):
        return _BypassProblem(f"{reason} {removes}", discard)
    owner = next((one for one in peers(view, snapshot) if gap_slices(one, snapshot)), None)
    frozen = FrozenKeys.of(snapshot, view.target_id)
    if owner is None or fails or failed_attempt_error(owner, snapshot, "BACKFILL"):
        return _BypassProblem(f"{reason} {removes}", discard)
    if missed:
        discard = f"SYSTEM BACKFILL VIEW {name} DISCARD BYPASS"
    if any(frozen.holds(partition) for partition in by_hand):
        why = "They lie beside rows that retention froze, and cannot be adopted."
        return _BypassProblem(f"{reason} {why} {removes}", discard, True)
    refused = refused_adoption(owner, snapshot)
    if refused is None:
        return _BypassProblem(reason, f"SYSTEM ADOPT VIEW {view_name(owner)}", True)
    found = f"They are not what it makes: {counts(refused)} keys, ADOPT found."
    if refused.verdict == "unverifiable":
        found = f"ADOPT cannot compare them: {refused.examples[0]}"
    return _BypassProblem(f"{reason} {found} {removes}", discard, True)


def _failed_words(attempt: str, error: str, name: str) -> str:
    """Return the error of a failed attempt, and what a person has to change before the next one."""
    again = "" if attempt == "RECONCILE" else f", then SYSTEM {attempt} VIEW {name}"
    again += " STALE" if attempt == "REPLAY" else ""
    return (
        f"{attempt} failed: {error} Change the rows that it fails on (ALTER TABLE … UPDATE, DELETE"
        f" FROM), or the definition (ALTER TABLE {name} MODIFY QUERY …){again}."
    )


def _stale_words(stale: Sequence[StaleSlice]) -> str:
    """Return the causes, "Stale by DELETE, DIMENSION CHANGE."; QUARANTINE PART with its SQL."""
    causes = dict.fromkeys(
        f"{one.cause} ({one.statement})" if one.cause == "QUARANTINE PART" else one.cause
        for one in stale
    )
    return f"Stale by {', '.join(causes)}."


def _bypass_words(by_hand: Mapping[str, int]) -> str:
    """Return the number of bypass rows and their first five partitions as text."""
    where = ", ".join(list(by_hand)[:5])
    return f"{sum(by_hand.values())} rows of the target (in {where}) were made by no view."


def _irreparable_text(by_hand: Mapping[str, int], stale: Sequence[StaleSlice]) -> str:
    """Return the problems of a view whose source stores no rows: no statement can recompute it."""
    words = [_stale_words(stale)] if stale else []
    words += [_bypass_words(by_hand)] if by_hand else []
    return "".join(f" {one}" for one in words)


def _lost_rows_text(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return the text on INSERTs whose rows the view lacks for good: its source stores no rows."""
    notes = [one for one in snapshot.invalidations(view.id) if one.cause == FAILED]
    if not notes:
        return ""
    newest, rows = notes[-1], sum(one.rows for one in notes)
    return (
        f" It failed on {rows} rows, which it lacks for good, in INSERT {newest.query_id} at last:"
        f" {newest.keys[0]}"
    )


def _failure_text(view: MaterializedView, snapshot: Snapshot, gap_rows: int) -> str:
    """Return the text on the newest failure that left a gap (materialized_views_ignore_errors). The
    rows are at most `gap_rows`: some may have left the source since."""
    notes = failures(view, snapshot)
    if not notes:
        return ""
    newest, rows = notes[-1], min(sum(one.rows for one in notes), gap_rows)
    return f" It failed on {rows} of them, in INSERT {newest.query_id} at last: {newest.keys[0]}"
