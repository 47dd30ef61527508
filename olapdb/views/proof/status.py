"""The health of a view: its verdict, the numbers behind it, and the statement that repairs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from olapdb.ingest.view_failure import FAILED
from olapdb.lineage.retention import FrozenKeys
from olapdb.model.part import subtract_ranges, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check
from olapdb.records import dataclass
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
    gaps = [row for row in slices if row.status == "gap"]
    bypass_rows = bypass(view, snapshot)
    checks = [
        check for check in snapshot.checks(view.id) if check_is_current(check, view, snapshot)
    ]
    stale = _stale(view, snapshot, checks)
    gap_rows = sum(row.rows for row in gaps)
    verdict, reason, mend = _unreadable(view, snapshot) or _verdict(
        view, snapshot, gap_rows, bypass_rows, stale, checks
    )
    gap_blocks, gap_since_ms = _lag(view, snapshot) if gaps else (0, 0)
    return ViewStatus(
        view_id=view.id,
        verdict=verdict,
        reason=reason,
        covered_rows=sum(row.rows for row in slices if row.status == "covered"),
        gap_rows=gap_rows,
        gap_parts=sum(row.parts for row in gaps),
        bypass_rows=sum(bypass_rows.values()),
        bypass=bypass_rows,
        stale=stale,
        last_check_ms=max(
            (check.checked_ms for check in snapshot.checks(view.id) if check.mode not in ATTEMPTS),
            default=0,
        ),
        mend=mend,
        gap_blocks=gap_blocks,
        gap_since_ms=gap_since_ms,
        retained_rows=sum(row.rows for row in slices if row.status == "retained"),
        last_proof_ms=max(
            (check.checked_ms for check in checks if check.verdict == "equal"), default=0
        ),
        stale_slices=_distinct_slices(view, snapshot, stale),
    )


def _lag(view: MaterializedView, snapshot: Snapshot) -> tuple[int, int]:
    """Return the number of source blocks that the view has not seen whole, and the time in ms of
    the oldest of them, or 0."""
    missed_ranges = union_ranges(
        part.block_range for gap in gap_slices(view, snapshot) for part in gap.parts
    )
    missed_ranges = subtract_ranges(missed_ranges, snapshot.coverage(view.id).everywhere)
    spans = [snapshot.block_span(view.source_id, gap) for gap in missed_ranges]
    return sum(count for count, _ in spans), min(
        (since_ms for _, since_ms in spans if since_ms), default=0
    )


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
    role_order = list(roles)
    damaged = [damage for damage in snapshot.damaged() if damage.table_id in roles]
    if not damaged:
        return None
    damaged.sort(key=lambda damage: (role_order.index(damage.table_id), damage.part))
    names: dict[str, str] = {}
    for damage in damaged:
        table = snapshot.by_id(damage.table_id)
        assert isinstance(table, Table)
        names[damage.table_id] = f"{quote_name(table.database)}.{quote_name(table.name)}"
    first = damaged[0]
    name = names[first.table_id]
    more = f" {len(damaged) - 1} more parts are damaged." if len(damaged) > 1 else ""
    reason = (
        f"Part {first.part} of {roles[first.table_id]} {name} is damaged: {first.reason}{more}"
        f" Restore its file and run CHECK TABLE {name}, or set the part aside (mend)."
    )
    statements = (
        f"SYSTEM QUARANTINE PART '{damage.part_id}' ON {names[damage.table_id]}"
        for damage in damaged[:MENDED_PARTS_MAX]
    )
    return "unverifiable", reason, "; ".join(statements)


def _stale(
    view: MaterializedView, snapshot: Snapshot, checks: list[Check]
) -> tuple[StaleSlice, ...]:
    """Return the invalidations of the view and its peers, and its checks with differences."""
    slices = [
        StaleSlice(
            note.target_partition,
            note.cause,
            note.statement,
            note.query_id,
            note.rows,
            note.since_ms,
            note.keys,
        )
        for peer in peers(view, snapshot)
        for note in snapshot.invalidations(peer.id)
        if note.cause != FAILED
    ]
    slices += [
        StaleSlice(
            check.target_partition,
            "RECONCILE",
            "",
            "",
            check.missing + check.extra + check.differing,
            check.checked_ms,
            check.examples,
        )
        for check in checks
        if check.verdict == "different"
    ]
    return tuple(slices)


def _distinct_slices(
    view: MaterializedView, snapshot: Snapshot, stale: tuple[StaleSlice, ...]
) -> int:
    """Return the number of distinct stale slices; a stale target counts its partitions, or 1."""
    partitions = {stale_slice.partition for stale_slice in stale}
    if None not in partitions:
        return len(partitions)
    live_partitions = {part.partition_id for part in snapshot.parts(view.target_id) if part.rows}
    return max(len((partitions | live_partitions) - {None}), 1)


def _verdict(
    view: MaterializedView,
    snapshot: Snapshot,
    gap_rows: int,
    bypass_rows: Mapping[str, int],
    stale: tuple[StaleSlice, ...],
    checks: list[Check],
) -> tuple[Health, str, str]:
    """Return (verdict, reason, mend) of the view: from the problems that the ledger knows, or,
    without any, from its checks. Reason and mend may be ""."""
    name = view_name(view)
    unproven = incomparable_reason(view, snapshot)
    if not stores_rows(snapshot, view.source_id):
        return (
            "unproven",
            unproven + _lost_rows_text(view, snapshot) + _irreparable_text(bypass_rows, stale),
            "",
        )
    keeps_no_rows = not stores_rows(snapshot, view.target_id)  # no stored row can be stale
    problems = _problems(view, snapshot, gap_rows, bypass_rows, () if keeps_no_rows else stale)
    retained = retained_description(view, snapshot)
    if unproven:  # Problems are reported and repaired also where the view is unproven.
        reason, mend = _reason_and_repair(problems) if problems else (retained, "")
        return "unproven", f"{unproven} {reason}".rstrip(), mend
    if problems:
        reason, mend = _reason_and_repair(problems)
        return (
            (problems[0].verdict if all(item.mend for item in problems) else "unproven"),
            reason,
            mend,
        )
    equal = {check.target_partition for check in checks if check.verdict in ("equal", "retained")}
    compared = {part.partition_id for part in compared_parts(view, snapshot)}
    proven = bool(checks) and compared <= equal
    failure = "" if proven else failed_attempt_error(view, snapshot, "RECONCILE")
    if failure:
        return "unproven", f"{_failed_words('RECONCILE', failure, name)} {retained}".rstrip(), ""
    if retained:
        rest = " The rest is proven." if proven else ""
        return "retained", retained + rest, "" if proven else f"SYSTEM RECONCILE VIEW {name}"
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


def _reason_and_repair(problems: Sequence[_Problem]) -> tuple[str, str]:
    """Return the reasons as text, and the statement to run first. Name all problems without a
    repair, but only the worst with one: repairs run one at a time."""
    irreparable = [problem.reason for problem in problems if not problem.mend]
    repairable = [problem for problem in problems if problem.mend][:1]
    text = " ".join((*irreparable, *(problem.reason for problem in repairable)))
    return text, repairable[0].mend if repairable else ""


def _problems(
    view: MaterializedView,
    snapshot: Snapshot,
    gap_rows: int,
    bypass_rows: Mapping[str, int],
    stale: tuple[StaleSlice, ...],
) -> list[_Problem]:
    """Return the problems that the ledger knows, the worst first: stale, bypassed, partial."""
    name = view_name(view)
    slices = [
        entry
        for entry in stale
        if not (entry.cause == "RECONCILE" and bypass_rows.get(entry.partition or ""))
    ]
    replay_failure = failed_attempt_error(view, snapshot, "REPLAY") if slices or bypass_rows else ""
    replay_failure = _failed_words("REPLAY", replay_failure, name) if replay_failure else ""
    backfill_error = failed_attempt_error(view, snapshot, "BACKFILL") if gap_rows else ""
    gap_text = f"It has not seen {gap_rows} rows." if gap_rows else ""
    problems: list[_Problem] = []
    if slices:
        mend = f"SYSTEM REPLAY VIEW {name} STALE"
        problems.append(_problem("stale", _stale_words(slices), mend, replay_failure))
    if bypass_rows:
        problem = _bypass_problem(view, snapshot, bypass_rows, bool(gap_rows), bool(backfill_error))
        if slices and problem.mends_stale:
            text = f"{_stale_words(slices)} {problem.reason} {gap_text}".rstrip()
            problems = [_problem("stale", text, problem.mend, replay_failure)]
        else:
            problems.append(
                _problem(
                    "bypassed",
                    f"{problem.reason} {gap_text}".rstrip(),
                    problem.mend,
                    replay_failure,
                )
            )
    if gap_rows:
        backfill_failure = _failed_words("BACKFILL", backfill_error, name) if backfill_error else ""
        text = gap_text + _failure_text(view, snapshot, gap_rows)
        problems.append(_problem("partial", text, f"SYSTEM BACKFILL VIEW {name}", backfill_failure))
    return problems


def _problem(verdict: Health, text: str, mend: str, no_repair_reason: str) -> _Problem:
    """Return the problem with `mend`; or without it, if `no_repair_reason` says why no repair
    succeeds."""
    return _Problem(
        verdict, f"{text} {no_repair_reason}".rstrip(), "" if no_repair_reason else mend
    )


@dataclass(frozen=True, slots=True)
class _BypassProblem:
    """A problem with rows that no view made. `mends_stale`: `mend` also repairs stale slices."""

    reason: str
    mend: str
    mends_stale: bool = False


def _bypass_problem(
    view: MaterializedView,
    snapshot: Snapshot,
    bypass_rows: Mapping[str, int],
    has_gap: bool,
    backfill_fails: bool,
) -> _BypassProblem:
    """Return the problem and the repair of rows that no view made.

    They may be rows that a view of the target missed, inserted by hand: ADOPT finds out. If ADOPT
    was refused, or no view missed rows, DISCARD BYPASS removes them. If the view itself has
    `has_gap` rows, the same statement backfills them, unless a backfill `backfill_fails`.
    """
    name, reason = view_name(view), _bypass_words(bypass_rows)
    discard = f"SYSTEM REPLAY VIEW {name} DISCARD BYPASS"
    removes = "DISCARD BYPASS removes them."
    if incomparable_reason(view, snapshot) and has_gap and not backfill_fails:
        return _BypassProblem(reason, f"SYSTEM BACKFILL VIEW {name}")
    if incomparable_reason(view, snapshot):
        return _BypassProblem(f"{reason} {removes}", discard)
    owner = next((peer for peer in peers(view, snapshot) if gap_slices(peer, snapshot)), None)
    frozen_keys = FrozenKeys.of(snapshot, view.target_id)
    if owner is None or backfill_fails or failed_attempt_error(owner, snapshot, "BACKFILL"):
        return _BypassProblem(f"{reason} {removes}", discard)
    if has_gap:
        discard = f"SYSTEM BACKFILL VIEW {name} DISCARD BYPASS"
    if any(frozen_keys.holds(partition) for partition in bypass_rows):
        explanation = "They lie beside rows that retention froze, and cannot be adopted."
        return _BypassProblem(f"{reason} {explanation} {removes}", discard, True)
    refused = refused_adoption(owner, snapshot)
    if refused is None:
        return _BypassProblem(reason, f"SYSTEM ADOPT VIEW {view_name(owner)}", True)
    adoption_text = f"They are not what it makes: {counts(refused)} keys, ADOPT found."
    if refused.verdict == "unverifiable":
        adoption_text = f"ADOPT cannot compare them: {refused.examples[0]}"
    return _BypassProblem(f"{reason} {adoption_text} {removes}", discard, True)


def _failed_words(attempt: str, error: str, name: str) -> str:
    """Return the error of a failed attempt, and what a person has to change before the next one."""
    next_step = "" if attempt == "RECONCILE" else f", then SYSTEM {attempt} VIEW {name}"
    next_step += " STALE" if attempt == "REPLAY" else ""
    return (
        f"{attempt} failed: {error} Change the rows that it fails on (ALTER TABLE … UPDATE, DELETE"
        f" FROM), or the definition (ALTER TABLE {name} MODIFY QUERY …){next_step}."
    )


def _stale_words(stale: Sequence[StaleSlice]) -> str:
    """Return the causes, "Stale by DELETE, DIMENSION CHANGE."; QUARANTINE PART with its SQL."""
    causes = dict.fromkeys(
        f"{entry.cause} ({entry.statement})" if entry.cause == "QUARANTINE PART" else entry.cause
        for entry in stale
    )
    return f"Stale by {', '.join(causes)}."


def _bypass_words(by_hand: Mapping[str, int]) -> str:
    """Return the number of bypass rows and their first five partitions as text."""
    partitions = ", ".join(list(by_hand)[:5])
    return f"{sum(by_hand.values())} rows of the target (in {partitions}) were made by no view."


def _irreparable_text(by_hand: Mapping[str, int], stale: Sequence[StaleSlice]) -> str:
    """Return the problems of a view whose source stores no rows: no statement can recompute it."""
    sentences = [_stale_words(stale)] if stale else []
    sentences += [_bypass_words(by_hand)] if by_hand else []
    return "".join(f" {sentence}" for sentence in sentences)


def _lost_rows_text(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return the text on INSERTs whose rows the view lacks for good: its source stores no rows."""
    notes = [note for note in snapshot.invalidations(view.id) if note.cause == FAILED]
    if not notes:
        return ""
    newest, rows = notes[-1], sum(note.rows for note in notes)
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
    newest, rows = notes[-1], min(sum(note.rows for note in notes), gap_rows)
    return f" It failed on {rows} of them, in INSERT {newest.query_id} at last: {newest.keys[0]}"
