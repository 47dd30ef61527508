"""Window functions over one partition that memory does not take: its sorted rows are read some at a time.

    rows on disk   . . . . . . . . . . .
    at a time          [before| core |after]      ROWS 2 PRECEDING … 1 FOLLOWING needs 2 rows before and 1 after

Ranks go on from the numbers of rows and of groups of peers that came before.  A call from the first row of the
partition on keeps what these rows leave (`window_carries.py`), and joins it with the values of the new frames.  One up to
the last row, or over the whole partition, and a share of all rows take a pass over the rows first, which writes them to
disk once more.  Frames by distances of values keep the rows that they reach.  Of peers that are too many, what they leave
is computed ahead, and they are read again.  Other calls need all rows at once (`window_ways.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, make_batch, single_batch, table_of
from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn, equal_to_previous
from olapdb.compute.row_buffer import evaluate_in_batches
from olapdb.compute.spill.files import Extent, SpillFile
from olapdb.execute.operators.frame_aggregates import aggregate_over
from olapdb.execute.operators.frames import partitions_and_peers, with_frame
from olapdb.execute.spill.window_carries import carry_of, joined_carry, value_of, values_and_carry
from olapdb.execute.spill.window_ways import Way, way_of
from olapdb.functions.kernels.columns import from_values
from olapdb.functions.window_definitions import Frames, WindowFunction
from olapdb.plan.expressions import WindowCall
from olapdb.plan.nodes import Window
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

_FRAME_BYTES_PER_ROW = 96
"""Bounds of frames, keys of peers and values of calls."""
_LOOK_AHEAD = 2
"""Peers that have more rows than this many times those at once are looked through to their end before they are answered."""


def may_stream(node: Window) -> bool:
    """Return whether each call of the node can be computed over some rows of a partition at a time."""
    return all(way_of(call, node) is not None for _, call in node.calls)


@dataclass(frozen=True)
class _Peers:
    """A group of peers that is too large to be held: the position after its last row, and what its frames' rows leave, by
    the number of a call whose frames end or begin with the group."""

    end: int
    carries: dict[int, pa.Array]


@dataclass(frozen=True)
class _Rows:
    """The rows at hand: the first `before` of `wide` were answered, the `core` behind them are next, the others follow."""

    wide: pa.RecordBatch
    before: int
    core: int


class PartitionStream:
    """The calls of a window over the rows of one partition, which come in their order."""

    def __init__(
        self, node: Window, context: ExecutionContext, account: MemoryAccount, rows_at_once: int
    ) -> None:
        """Prepare for a node for which `may_stream` holds; `account` counts the rows that are held."""
        self._node, self._context, self._account = node, context, account
        self._held_bytes = account.held_bytes
        self._rows_at_once = rows_at_once
        self._ways: list[Way] = []
        for _, call in node.calls:
            way = way_of(call, node)
            assert way is not None, call.name
            self._ways.append(way)
        self._before = max((way.before for way in self._ways), default=0)
        self._after = max((way.after for way in self._ways), default=0)
        self._needs_peers = any(way.needs_peers for way in self._ways)
        self._reaches = [at for at, way in enumerate(self._ways) if way.kind == "reach"]
        self._rows_read = self._rows_done = self._groups_done = self._group_start = self._total = 0
        self._peers: _Peers | None = None
        """The group of peers whose rows are answered, if it is too large to be held."""
        self._carries: dict[int, pa.Array] = {}
        """Carries by the place of the call in `node.calls`: of a running call over the rows so far, of a call over the whole
        partition over all of its rows."""
        self._carried_rows: dict[int, int] = {}
        """The number of rows that left the carry of a running call."""
        self._rests: dict[int, dict[int, pa.Array]] = {}
        """Carries of the calls whose frames end with the partition, by the place of the call and then by a number of rows:
        the carry is over the rows behind these."""

    def results(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the columns of the calls. Raises MemoryLimitExceeded if the rows of a frame need too much
        memory."""
        if not any(way.needs_all_rows for way in self._ways):
            yield from self._results(rows)
            return
        with self._context.temporary().file("Sort") as file:
            extents = self._first_pass(rows, file)
            yield from self._results(map(file.read, extents))

    # --- all rows, before the first value

    def _first_pass(self, rows: Iterator[pa.RecordBatch], file: SpillFile) -> list[Extent]:
        """Write the rows to the file, count them, and keep what they leave of the calls that need to know."""
        extents = []
        left: dict[int, list[pa.Array]] = {
            number: [] for number, way in enumerate(self._ways) if way.kind == "rest"
        }
        for piece in (piece for batch in rows for piece in cut(batch, self._rows_at_once)):
            self._context.check()
            extents.append(file.append(piece))
            self._total += piece.num_rows
            for number, (_, call) in enumerate(self._node.calls):
                if self._ways[number].kind in ("whole", "rest"):
                    carry = carry_of(call, self._arguments(call, piece), piece.num_rows)
                    if number in left:
                        left[number].append(carry)
                        self._held_bytes += carry.nbytes
                    else:
                        so_far = self._carries.get(number)
                        self._carries[number] = joined_carry(call, so_far, carry)
            self._account.set(self._held_bytes)  # without the arguments that were computed
        ends = np.cumsum([extent.rows for extent in extents]).tolist()
        for number, carries in left.items():
            self._rests[number] = self._behind(self._node.calls[number][1], carries, ends)
        return extents

    @staticmethod
    def _behind(
        call: WindowCall, carries: list[pa.Array], ends: Sequence[int]
    ) -> dict[int, pa.Array]:
        """Return what all rows behind each piece leave, by where the piece ends. Empties `carries`, which pieces left."""
        behind: dict[int, pa.Array] = {}
        carry = None
        for end in reversed(ends):
            if carry is not None:
                behind[end] = carry
            carry = joined_carry(call, carries.pop(), carry)
        return behind

    # --- some rows at a time

    def _results(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the columns of the calls."""
        schema = self._node.child.schema
        before = pa.RecordBatch.from_arrays(
            [pa.nulls(0, field.type.arrow) for field in schema], [field.name for field in schema]
        )
        waiting: list[pa.RecordBatch] = []
        enough = self._rows_at_once + self._after
        pieces: Iterator[pa.RecordBatch] = (
            piece for batch in rows for piece in cut(batch, self._rows_at_once)
        )
        while (piece := next(pieces, None)) is not None:
            self._context.check()
            waiting.append(piece)
            self._rows_read += piece.num_rows
            self._count(before, *waiting)
            if sum(batch.num_rows for batch in waiting) < enough:
                continue
            joined = single_batch(table_of(waiting, schema))
            core, reached = self._core_rows(before, joined)
            if core:
                yield from self._with_calls(before, joined, core)
                before, joined = (
                    self._rows_before(before, joined, core, reached),
                    joined.slice(core),
                )
                enough = max(self._rows_at_once, before.num_rows // 2) + self._after
            elif self._may_look_ahead(joined):
                pieces = self._look_ahead(joined, pieces)
            else:  # look again when there are twice as many
                enough = 2 * joined.num_rows
            waiting = [joined]
        joined = single_batch(table_of(waiting, schema))
        while joined.num_rows:
            core = joined.num_rows
            if self._peers is not None:
                core = min(core, self._peers.end - self._rows_done)
            self._count(before, joined)
            yield from self._with_calls(before, joined, core)
            before, joined = self._rows_before(before, joined, core, 0), joined.slice(core)
        self._account.set(self._held_bytes)

    def _count(self, *batches: pa.RecordBatch) -> None:
        """Count the batches' rows, and what computing the calls of them takes."""
        rows = sum(batch.num_rows for batch in batches)
        nbytes = sum(batch.nbytes for batch in batches)
        self._account.set(self._held_bytes + 2 * nbytes + rows * _FRAME_BYTES_PER_ROW)

    def _core_rows(self, before: pa.RecordBatch, rows: pa.RecordBatch) -> tuple[int, int]:
        """Return how many of the rows, of which more follow, have all rows that they need after them, and how many rows
        in front of the next one its frame reaches."""
        # the frame of the row behind the core says what to keep, so one row follows it
        core: int = rows.num_rows - max(self._after, len(self._reaches[:1]))
        if self._peers is not None:
            return min(core, self._peers.end - self._rows_done), 0
        reaches = self._reached_frames(before, rows)
        for frames in reaches:
            is_open = frames.ends[before.num_rows :] == frames.rows
            if is_open.any():
                core = min(core, int(np.argmax(is_open)))
        if self._needs_peers and core > 0:
            keys = [order.values for order in self._order(rows)]
            begins = np.flatnonzero(~equal_to_previous(keys, rows.num_rows))
            core = int(begins[np.searchsorted(begins, core, side="right") - 1])
        next_row = before.num_rows + core
        reached = [next_row - int(frames.starts[next_row]) for frames in reaches]
        return max(core, 0), max(reached, default=0)

    def _reached_frames(self, before: pa.RecordBatch, rows: pa.RecordBatch) -> list[Frames]:
        """Return the frames of the calls whose frames reach over a distance of values, of rows and those before them."""
        if not self._reaches:
            return []
        wide = single_batch(table_of([before, rows], self._node.child.schema))
        order = self._order(wide)
        peers = partitions_and_peers([], order, wide.num_rows)
        return [with_frame(peers, self._node.calls[at][1].frame, order) for at in self._reaches]

    def _rows_before(
        self, before: pa.RecordBatch, rows: pa.RecordBatch, core: int, reached: int
    ) -> pa.RecordBatch:
        """Return the last rows that were done, as many as later frames may need."""
        done = single_batch(table_of([before, rows.slice(0, core)], self._node.child.schema))
        kept = min(max(self._before, reached), done.num_rows)
        # A copy: a slice would hold the memory of all rows.
        return done.take(from_numpy(np.arange(done.num_rows - kept, done.num_rows)))

    def _order(self, rows: pa.RecordBatch) -> list[OrderColumn]:
        """Return the values of the ORDER BY of some rows."""
        return [
            OrderColumn(
                evaluate_in_batches(key.expression, rows, self._context, self._account),
                key.descending,
                key.nulls_first,
            )
            for key in self._node.order_by
        ]

    def _arguments(self, call: WindowCall, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the values of a call's arguments in some rows."""
        return [evaluate_in_batches(a, rows, self._context, self._account) for a in call.arguments]

    # --- peers that are too many

    def _may_look_ahead(self, rows: pa.RecordBatch) -> bool:
        """Return whether rows are peers, all of them, that are looked through to their end. Many rows may be there only
        because a call needs the rows after its own: then the peers may end among them."""
        if not self._needs_peers or self._reaches:
            return False
        if rows.num_rows < _LOOK_AHEAD * self._rows_at_once:
            return False
        keys = [order.values for order in self._order(rows)]
        return bool(equal_to_previous(keys, rows.num_rows)[1:].all())

    def _look_ahead(
        self, peers: pa.RecordBatch, pieces: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Read the further peers of some rows, which are all peers; return the pieces from the first one on again."""
        file = self._context.temporary().file("Sort")
        calls = {
            number: call
            for number, (_, call) in enumerate(self._node.calls)
            if self._ways[number].needs_peers and self._ways[number].kind in ("running", "rest")
        }
        carries = {
            number: carry_of(call, self._arguments(call, peers), peers.num_rows)
            for number, call in calls.items()
        }
        for number, call in calls.items():
            if self._ways[number].kind == "rest":
                behind = self._rests[number].get(self._rows_read)
            else:
                behind, carries[number] = carries[number], self._carries.get(number)
            carries[number] = joined_carry(call, carries[number], behind)
        end = self._rows_done + peers.num_rows
        extents = []
        last = peers.slice(peers.num_rows - 1)
        held_bytes = self._account.held_bytes
        for piece in pieces:
            self._context.check()
            self._account.set(held_bytes)  # without what was computed of the piece before
            extents.append(file.append(piece))
            both = single_batch(table_of([last, piece], self._node.child.schema))
            is_peer = equal_to_previous([o.values for o in self._order(both)], both.num_rows)[1:]
            count = len(is_peer) if is_peer.all() else int(np.argmin(is_peer))
            own = piece.slice(0, count)
            for number, call in calls.items():
                if count and self._ways[number].kind == "running":
                    carry = carry_of(call, self._arguments(call, own), count)
                    carries[number] = joined_carry(call, carries[number], carry)
            end += count
            if count < piece.num_rows:
                break
        self._peers = _Peers(end, carries)
        return chain(_read_again(file, extents), pieces)

    # --- values

    def _with_calls(
        self, before: pa.RecordBatch, rows: pa.RecordBatch, core: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the first `core` of the rows with the columns of the calls; `before` are rows that were yielded."""
        wide = single_batch(table_of([before, rows], self._node.child.schema))
        at_hand = _Rows(wide, before.num_rows, core)
        columns = list(rows.slice(0, core).columns)
        frames = self._own_frames(at_hand)
        for number, (_, call) in enumerate(self._node.calls):
            self._context.check()
            value = self._value(number, call, at_hand, frames)
            columns.append(value if value.type == call.type.arrow else value.cast(call.type.arrow))
        self._rows_done += core
        if self._peers is not None and self._rows_done == self._peers.end:
            self._peers = None
        yield from cut(make_batch(columns, self._node.schema, core), self._context.batch_rows)

    def _own_frames(self, at_hand: _Rows) -> Frames:
        """Return the partition and peers of the next rows, as positions from the first of them on: the partition and its
        first peers may begin before. Counts the groups of peers."""
        core, done, first = at_hand.core, self._rows_done, max(at_hand.before - 1, 0)
        own = at_hand.wide.slice(first, at_hand.before - first + core)
        is_peer = equal_to_previous([o.values for o in self._order(own)], own.num_rows)
        is_peer = is_peer[at_hand.before - first :]
        starts = np.maximum.accumulate(np.where(is_peer, self._group_start - done, np.arange(core)))
        begins = np.flatnonzero(~is_peer)
        end = core if self._peers is None else self._peers.end - done
        ends = np.append(begins, end)[np.searchsorted(begins, np.arange(core), side="right")]
        self._groups_done += len(begins)
        if len(begins):
            self._group_start = done + int(begins[-1])
        partition = np.full(core, -done), np.full(core, self._total - done)
        return Frames(*partition, starts, ends, *partition)

    def _value(self, number: int, call: WindowCall, at_hand: _Rows, frames: Frames) -> pa.Array:
        """Return the values of a call in the next rows."""
        way, core = self._ways[number], at_hand.core
        match way.kind:
            case "rank":
                return self._rank(call, frames)
            case "whole":
                return value_of(call, self._carries[number], core)
            case "running" | "rest" if way.needs_peers and self._peers is not None:
                carry = self._peers.carries[number]
                if way.kind == "running":
                    self._carries[number], self._carried_rows[number] = carry, self._peers.end
                return value_of(call, carry, core)
            case "running":
                return self._running_value(number, call, at_hand, frames)
            case _:
                return self._near_value(number, call, at_hand)

    def _rank(self, call: WindowCall, frames: Frames) -> pa.Array:
        """Return ranks, or shares of all rows, of the next rows."""
        assert isinstance(call.function, WindowFunction)
        if call.function.name != "dense_rank":
            return call.function.kernel([], frames)
        begins = frames.peer_starts == frames.positions
        ranks = self._groups_done - int(begins.sum()) + np.cumsum(begins)
        return from_values(ranks, call.function.type.arrow)

    def _running_value(
        self, number: int, call: WindowCall, at_hand: _Rows, frames: Frames
    ) -> pa.Array:
        """Return the values in the next rows of a call whose frames begin with the partition."""
        way, before, wide = self._ways[number], at_hand.before, at_hand.wide
        first_row = self._rows_done - before
        ends = frames.positions + way.end + 1
        if way.needs_peers:
            ends = frames.peer_ends
        starts = np.full(at_hand.core, self._carried_rows.get(number, 0) - first_row)
        ends = np.clip(before + ends, starts, wide.num_rows)
        arguments = self._arguments(call, wide)
        values, carry = values_and_carry(
            call, arguments, wide.num_rows, (starts, ends), before=self._carries.get(number)
        )
        self._carried_rows[number] = carried = first_row + int(ends[-1])
        if carried:  # else the frames so far are empty
            self._carries[number] = carry
        return values

    def _near_value(self, number: int, call: WindowCall, at_hand: _Rows) -> pa.Array:
        """Return the values in the next rows of a call whose frames are among the rows at hand, or end behind them."""
        way, before, wide = self._ways[number], at_hand.before, at_hand.wide
        order = [] if call.frame.unit == "ROWS" or way.ignores_frame else self._order(wide)
        frames = partitions_and_peers([], order, wide.num_rows)
        if not way.ignores_frame:
            frames = with_frame(frames, call.frame, order)
        arguments = self._arguments(call, wide)
        if way.kind == "rest":
            own = slice(before, before + at_hand.core)
            behind = self._rests[number].get(self._rows_read)
            spans = frames.starts[own], frames.ends[own]
            return values_and_carry(call, arguments, wide.num_rows, spans, behind=behind)[0]
        if isinstance(call.function, WindowFunction):
            value = call.function.kernel(arguments, frames)
        else:
            value = aggregate_over(call.function, arguments, frames)
        return value.slice(before, at_hand.core)


def _read_again(file: SpillFile, extents: Sequence[Extent]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in their order, and close it."""
    with file:
        yield from map(file.read, extents)
