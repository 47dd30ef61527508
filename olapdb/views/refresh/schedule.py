"""The times of refreshes.

EVERY divides time into slots of one period, which begin `offset` after a multiple of it: of seconds
since the epoch, of weeks since a Monday, of months since January 1970, all in UTC.  AFTER counts from
the end of the last refresh.  RANDOMIZE FOR moves each refresh by at most half of its length, by an
amount that depends on the view and the slot alone, so that all processes agree.
"""

from __future__ import annotations

import hashlib

import numpy as np

from olapdb.errors import BadArguments
from olapdb.model.schema import RefreshableView
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import parse_refresh

_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
_MONTHS = {"MONTH": 1, "YEAR": 12}
FIRST_MONDAY_MS = 4 * 86_400_000
"""The first Monday after the epoch, a Thursday."""

LENGTH_MS_MAX = 50 * 366 * 86_400_000
"""So that the next refresh is a DateTime."""

_SETTINGS = {
    "refresh_retries": 2,
    "refresh_retry_initial_backoff_ms": 100,
    "refresh_retry_max_backoff_ms": 60_000,
}
"""The settings of a REFRESH clause and their defaults, those of ClickHouse."""


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time: calendar months and milliseconds."""

    months: int = 0
    ms: int = 0

    @staticmethod
    def of(periods: nodes.Periods) -> Length:
        """Return the sum of the periods."""
        return Length(
            sum(count * _MONTHS.get(unit, 0) for count, unit in periods),
            sum(count * 1_000 * _SECONDS.get(unit, 0) for count, unit in periods),
        )

    def after(self, ms: int) -> int:
        """Return the time this long after `ms`. The last day of a month is never passed: a month
        after 31 January is 28 or 29 February."""
        if self.months:
            ms = _add_months(ms, self.months)
        return ms + self.ms

    @property
    def least_ms(self) -> int:
        """Return the shortest this length can be, in milliseconds."""
        return self.months * 28 * 86_400_000 + self.ms


@dataclass(frozen=True, slots=True)
class Schedule:
    """A checked REFRESH clause."""

    clause: nodes.RefreshClause

    @staticmethod
    def of(view: RefreshableView) -> Schedule:
        """Return the schedule of the view."""
        return Schedule(parse_refresh(view.refresh))

    def setting(self, name: str) -> int:
        """Return a setting of the clause, or its default."""
        given = {setting.name: setting.value for setting in self.clause.settings}
        value = given.get(name)
        return int(str(value)) if value is not None else _SETTINGS[name]

    def next_ms(self, view: RefreshableView) -> int:
        """Return when the next refresh is due. 0: at once, since there was none."""
        if view.retry:
            first, most = (
                self.setting(f"refresh_retry_{name}_backoff_ms") for name in ("initial", "max")
            )
            return view.last_attempt_ms + min(first << min(view.retry - 1, 40), most)
        if not view.scheduled_from_ms:
            return 0
        slot = self.slot_after(view.scheduled_from_ms)
        return slot + self._jitter(view.id, slot)

    def slot_after(self, ms: int) -> int:
        """Return the beginning of the first slot after `ms`. For AFTER return the end of a period
        that begins at `ms`."""
        period = Length.of(self.clause.period)
        if self.clause.kind == "AFTER":
            return period.after(ms)
        offset = Length.of(self.clause.offset)
        start = _floor(ms, period)
        # An offset can put `ms` into the slot that began a period earlier.
        for candidate in (_floor(start - 1, period), start, period.after(start)):
            if (begins := offset.after(candidate)) > ms:
                return begins
        return offset.after(period.after(period.after(start)))

    def slot_of(self, view: RefreshableView) -> int:
        """Return the beginning of the slot that the next refresh serves; 0 if there was none
        before."""
        return self.slot_after(view.scheduled_from_ms) if view.scheduled_from_ms else 0

    def served_ms(self, view: RefreshableView, started_ms: int) -> int:
        """Return the time from which the next slot is counted, after a refresh that began at
        `started_ms`. RANDOMIZE FOR can begin a refresh before its slot; the slot then counts as
        served."""
        slot = self.slot_of(view)
        if (
            slot
            and self.clause.kind == "EVERY"
            and slot + self._jitter(view.id, slot) <= started_ms
        ):
            return max(started_ms, slot)
        return started_ms

    def gives_up(self, failures: int) -> bool:
        """Return whether this number of failed attempts ends a refresh until its next slot: it is more than the setting
        refresh_retries, which -1 makes endless."""
        retries = self.setting("refresh_retries")
        return 0 <= retries < failures

    def _jitter(self, view_id: str, slot_ms: int) -> int:
        """Return the milliseconds by which RANDOMIZE FOR moves the slot's refresh."""
        length = Length.of(self.clause.randomize)
        spread = length.least_ms
        if not spread:
            return 0
        digest = hashlib.blake2b(f"{view_id} {slot_ms}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % spread - spread // 2


def checked(clause: nodes.RefreshClause) -> Schedule:
    """Return the schedule of a clause as written. Raise BadArguments for a period of zero, an EVERY
    of mixed units, an OFFSET that is too long or that stands with AFTER, and unknown settings."""

    def refuse(message: str, hint: str) -> BadArguments:
        """Return (do not raise) the error at the clause's position."""
        return BadArguments(message, hint=hint, position=clause.position)

    period, offset = Length.of(clause.period), Length.of(clause.offset)
    if any(count <= 0 for count, _ in (*clause.period, *clause.offset, *clause.randomize)):
        raise refuse("A length of time in REFRESH is not positive.", "Say EVERY 1 HOUR.")
    lengths = (period, offset, Length.of(clause.randomize))
    if any(length.least_ms > LENGTH_MS_MAX for length in lengths):
        raise refuse("A length of time in REFRESH exceeds 50 years.", "Shorten it.")
    if clause.kind == "EVERY" and len(clause.period) > 1:
        raise refuse("REFRESH EVERY takes one unit of time.", "Say EVERY 90 MINUTE.")
    if clause.offset and clause.kind == "AFTER":
        raise refuse("OFFSET is for REFRESH EVERY.", "Leave OFFSET out, or say EVERY.")
    if clause.offset and offset.months * 31 * 86_400_000 + offset.ms >= period.least_ms:
        raise refuse("OFFSET must be shorter than the period of REFRESH EVERY.", "Shorten it.")
    for setting in clause.settings:
        value = setting.value
        least = -1 if setting.name == "refresh_retries" else 0
        if setting.name not in _SETTINGS:
            raise refuse(
                f"REFRESH has no setting {setting.name}.", f"There are {', '.join(_SETTINGS)}."
            )
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise refuse(f"{setting.name} is a whole number, at least {least}.", "Say = 3.")
    return Schedule(clause)


def _floor(ms: int, period: Length) -> int:
    """Return the last multiple of the period up to `ms`."""
    if period.months:
        month = int(np.datetime64(ms, "ms").astype("datetime64[M]").astype(np.int64))
        return _month_start(month // period.months * period.months)
    origin = FIRST_MONDAY_MS if period.ms % (_SECONDS["WEEK"] * 1_000) == 0 else 0
    return (ms - origin) // period.ms * period.ms + origin


def _month_start(month: int) -> int:
    """Return the first millisecond of a month, counted from January 1970."""
    return int(np.datetime64(month, "M").astype("datetime64[ms]").astype(np.int64))


def _add_months(ms: int, months: int) -> int:
    """Return the time `months` calendar months after `ms`; a day that the month lacks is its last one."""
    month = int(np.datetime64(ms, "ms").astype("datetime64[M]").astype(np.int64))
    start, later = _month_start(month), month + months
    length = _month_start(later + 1) - _month_start(later)
    into_month = ms - start
    days, rest = divmod(into_month, 86_400_000)
    return _month_start(later) + min(days, length // 86_400_000 - 1) * 86_400_000 + rest
