"""GROUP BY of many keys: rows, or partials, are divided by a hash of their keys, and threads group a few divisions at a
time. What they make of different divisions has no key in common, so that nothing is merged afterwards.

Batches of few repeats are kept as rows of keys and arguments: their states would take more memory than they do, and
all that could be saved by grouping a batch is grouped again with the other batches anyway."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.compute.context import LOOK_AHEAD_PER_THREAD, ExecutionContext
from olapdb.compute.divisions import DIVISIONS, DividedColumns, divided, factorised, joined, ranges
from olapdb.compute.group_codes import Factorised
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.spill.budget import SpillBudget
from olapdb.config import tuning
from olapdb.execute.operators.compact_columns import have_one_dictionary
from olapdb.execute.operators.partials import Partial, first_of_groups, merge_partials
from olapdb.plan.expressions import AggregateCall
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.execute.spill.group_merger import GroupMerger

States = Callable[[Factorised, list[list[pa.Array]]], list[pa.Array]]
"""Makes the states of groups from the arguments of each call."""


_COPIES = 3
"""What grouping divisions needs of the bytes of their rows: joined columns, keys of the groups, and states."""
_ROW_BYTES = 40
"""The number of each row and group, and the hash table."""
_DRAINED_RANGES = 16
"""Rows become partials in so many steps where memory does not take more of them."""


@dataclass(frozen=True)
class LooseRows:
    """A batch as keys and arguments, or a partial as keys and states, divided by the keys.

    `places[c]` has the columns that are the arguments of call c; several calls may have one. It is None for a partial."""

    rows: DividedColumns
    keys: int
    places: tuple[tuple[int, ...], ...] | None

    @staticmethod
    def of(
        calls: Sequence[AggregateCall],
        keys: Sequence[pa.Array],
        arguments: Sequence[Sequence[pa.Array]],
        rows: int,
    ) -> LooseRows:
        """Return the rows of a batch with these keys and arguments."""
        columns, places = list(keys), []
        known: dict[object, int] = {}
        for call, values in zip(calls, arguments, strict=True):
            own = []
            for expression, value in zip(call.arguments, values, strict=True):
                place = known.setdefault((expression, str(value.type)), len(columns))
                if place == len(columns):
                    columns.append(value)
                own.append(place)
            places.append(tuple(own))
        return LooseRows(divided(columns, keys, rows), len(keys), tuple(places))

    @staticmethod
    def of_partial(partial: Partial) -> LooseRows:
        """Return the groups of a partial."""
        partial = partial.with_lists()
        rows = divided([*partial.keys, *partial.states], partial.keys, partial.groups)
        return LooseRows(rows, len(partial.keys), None)

    def suits(self, other: LooseRows) -> bool:
        """Return whether the keys have the types and dictionaries of others, so that equal ones are in the same
        division, and the arguments, too, where both are rows of batches."""
        are_rows = self.places is not None and self.places == other.places
        count = None if are_rows else self.keys
        pairs = zip(self.rows.columns[:count], other.rows.columns[:count], strict=True)
        return all(a.type == b.type and have_one_dictionary(a, b) for a, b in pairs) and (
            are_rows or None in (self.places, other.places)
        )


class DividedGroups:
    """Loose rows of a GROUP BY, in the order of their batches, counted on an account."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        states: States,
        context: ExecutionContext,
        account: MemoryAccount,
    ) -> None:
        self._calls = calls
        self._states = states
        self._context = context
        self._account = account
        self._budget = SpillBudget("group_by", context, account)
        self._pieces: list[LooseRows] = []
        self._rows = self._nbytes = 0
        self._checked_at = tuning.DIVIDED_BYTES_MAX

    def __bool__(self) -> bool:
        """Return whether there are rows."""
        return bool(self._pieces)

    def takes(self, more: LooseRows) -> bool:
        """Return whether memory takes these rows, they suit those before, and keeping rows pays."""
        if self._pieces and not all(map(more.suits, (self._pieces[0], self._pieces[-1]))):
            return False
        nbytes, rows = self._nbytes + more.rows.nbytes, self._rows + more.rows.rows
        needed = nbytes + self._in_work(nbytes, rows)
        if needed > self._account.available_bytes or self._budget.is_exceeded(nbytes, needed):
            return False
        if nbytes <= self._checked_at or not self._pieces:
            return True
        self._checked_at = 2 * nbytes
        return self._has_few_repeats()

    def add(self, rows: LooseRows) -> None:
        """Add the rows of a batch, which `takes` them. Raises MemoryLimitExceeded if the query's memory does not."""
        self._pieces.append(rows)
        self._rows += rows.rows.rows
        self._nbytes += rows.rows.nbytes
        self._account.set(self._nbytes)

    def add_before(self, merger: GroupMerger) -> bool:
        """Take the partials of batches that came before; return False, and take none, if they are on disk, if memory does
        not take what grouping them with the rows needs, or if their keys do not suit."""
        nbytes, rows = self._nbytes + 2 * merger.nbytes, self._rows + merger.rows
        needed = nbytes + self._in_work(nbytes, rows)
        if merger.spilled or needed > self._account.available_bytes:
            return False
        pieces = [LooseRows.of_partial(partial) for partial in merger.partials]
        if not all(piece.suits(self._pieces[0]) for piece in pieces):
            return False
        merger.clear()
        self._pieces = [*pieces, *self._pieces]
        self._rows += sum(piece.rows.rows for piece in pieces)
        self._nbytes += sum(piece.rows.nbytes for piece in pieces)
        return True

    def ranges(self, at_least: int = 1) -> list[tuple[int, int]]:
        """Return ranges of divisions, each of which is grouped at a time, `at_least` or more, and count the memory that
        grouping them takes."""
        starts = [piece.rows.starts for piece in self._pieces]
        needed = self._in_work(self._nbytes, self._rows)
        room = self._account.available_bytes - self._nbytes
        if at_least > 1:  # the groups go to others, who count them
            needed, room = min(needed, LOOK_AHEAD_PER_THREAD * needed // at_least), room // 4
        self._account.set(self._nbytes + max(min(needed, room), 0))
        return ranges(starts, max(at_least, self._context.threads))

    def partial(self, bounds: tuple[int, int]) -> Partial:
        """Return the groups of the divisions from `bounds[0]` up to `bounds[1]`, excluded. Thread-safe."""
        self._context.check()
        partials: list[Partial] = []
        for is_partial, pieces in itertools.groupby(
            self._pieces, lambda piece: piece.places is None
        ):
            if is_partial:
                keys = self._pieces[0].keys
                partials += (_partial(piece.rows.slices(*bounds), keys) for piece in pieces)
            else:
                partials.append(self.grouped(list(pieces), bounds))
        partials = [partial for partial in partials if partial.groups]
        return partials[0] if len(partials) == 1 else merge_partials(partials, self._calls, 1)

    def drain(self) -> Iterator[Partial]:
        """Yield the groups of all rows, then forget the rows."""
        if self._pieces:
            yield from self._context.parallel(self.partial, self.ranges(_DRAINED_RANGES))
        self._pieces, self._rows, self._nbytes = [], 0, 0
        self._account.set(0)

    def grouped(
        self, loose: Sequence[LooseRows], bounds: tuple[int, int] = (0, DIVISIONS)
    ) -> Partial:
        """Return the groups of loose rows in the divisions from `bounds[0]` up to `bounds[1]`, excluded; by default in
        all divisions."""
        columns, ends = joined([piece.rows for piece in loose], *bounds)
        keys = columns[: loose[0].keys]
        groups = factorised(keys, ends)
        arguments = [[columns[at] for at in places] for places in loose[0].places or ()]
        states = self._states(groups, arguments)
        return Partial(first_of_groups(keys, groups), states, groups.count)

    def _has_few_repeats(self) -> bool:
        """Return whether the groups of some divisions are more than half of their rows."""
        bounds = ranges([piece.rows.starts for piece in self._pieces], _DRAINED_RANGES)[0]
        rows = sum(
            int(piece.rows.starts[bounds[1]] - piece.rows.starts[bounds[0]])
            for piece in self._pieces
        )
        return 2 * self.partial(bounds).groups > rows

    def _in_work(self, nbytes: int, rows: int) -> int:
        """Return the bytes that grouping the divisions at work at one time takes, where all rows have `nbytes`."""
        share = max(1.0 / DIVISIONS, min(1.0, tuning.DIVISION_ROWS / max(rows, 1)))
        at_a_time = LOOK_AHEAD_PER_THREAD * self._context.threads + 1
        return int(min(1.0, at_a_time * share) * (_COPIES * nbytes + _ROW_BYTES * rows))


def merged_divisions(
    partials: Sequence[Partial], calls: Sequence[AggregateCall], context: ExecutionContext
) -> list[Partial] | None:
    """Return partials without common keys that have the groups of the given ones; None where the keys of these have
    several forms."""
    pieces = [LooseRows.of_partial(partial) for partial in partials]
    if not all(piece.suits(pieces[0]) for piece in pieces):
        return None

    def merged(bounds: tuple[int, int]) -> Partial:
        """Return the merged groups of the divisions from `bounds[0]` up to `bounds[1]`, excluded."""
        partials = [_partial(piece.rows.slices(*bounds), piece.keys) for piece in pieces]
        return merge_partials([p for p in partials if p.groups], calls, 1)

    starts = [piece.rows.starts for piece in pieces]
    return list(context.parallel(merged, ranges(starts, context.threads)))


def _partial(columns: list[pa.Array], keys: int) -> Partial:
    """Return the partial whose first `keys` columns are keys, and whose others are states."""
    return Partial(columns[:keys], columns[keys:], len(columns[0]))
