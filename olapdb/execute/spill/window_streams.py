"""Window functions over one partition that memory does not take: its sorted rows are read some at a time.

    rows on disk   . . . . . . . . . . .
    at a time          [before| core |after]      ROWS 2 PRECEDING … 1 FOLLOWING needs 2 rows before and 1 after

Ranks go on from the numbers of rows and of groups of peers that came before.  An aggregate from the first row of the
partition on keeps its state so far, and merges it with the states of the new frames.  One over the whole
partition takes a pass over the rows, which writes them to disk once more.  Other calls need all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, make_batch, single_batch, table_of
from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn, equal_to_previous
from olapdb.compute.row_buffer import evaluate_in_batches
from olapdb.execute.operators.frame_aggregates import aggregate_over, frame_states
from olapdb.execute.operators.frames import partitions_and_peers, with_frame
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels.columns import from_values
from olapdb.functions.window_definitions import Frames, WindowFunction
from olapdb.plan.expressions import Constant, WindowCall, WindowFrame
from olapdb.plan.nodes import Window
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy, to_numpy

Kind = Literal["rank", "near", "running", "whole"]

_RANKS = ("row_number", "rank", "dense_rank")
_SHIFTS = ("lag", "lead")
_FRAME_BYTES_PER_ROW = 96
"""Bounds of frames, keys of peers and values of calls."""


@dataclass(frozen=True)
class _Way:
    """A way to compute a call over some rows of a partition at a time.

    A row's value takes `before` rows in front of it and `after` rows behind it; with `needs_peers` the row's peers too."""

    kind: Kind
    before: int = 0
    after: int = 0
    needs_peers: bool = False


def may_stream(node: Window) -> bool:
    """Return whether each call of the node can be computed over some rows of a partition at a time."""
    return all(_way(call, node) is not None for _, call in node.calls)


def _way(call: WindowCall, node: Window) -> _Way | None:
    """Return how to compute a call over some rows at a time, None if it needs all rows at once."""
    frame, function = call.frame, call.function
    if isinstance(function, WindowFunction) and function.whole_partition:
        return _way_without_frame(call, node)
    if _is_whole(frame, node):
        return _Way("whole") if isinstance(function, Aggregate) else None
    starts_first = frame.start.kind == "PRECEDING" and frame.start.offset is None
    if starts_first and frame.end.kind == "CURRENT" and isinstance(function, Aggregate):
        return _Way("running", needs_peers=frame.unit != "ROWS")
    bounds = (frame.start, frame.end)
    if frame.unit != "ROWS" or any(b.offset is None and b.kind != "CURRENT" for b in bounds):
        return None
    offsets = [0 if b.offset is None else int(b.offset.value.as_py()) for b in bounds]
    signed = [-n if b.kind == "PRECEDING" else n for b, n in zip(bounds, offsets, strict=True)]
    return _Way("near", max(-min(signed), 0), max(*signed, 0))


def _way_without_frame(call: WindowCall, node: Window) -> _Way | None:
    """Return how to compute a function that ignores the frame, None if it needs all rows at once."""
    if call.name in _RANKS:
        needs_peers = call.name != "row_number"
        return None if needs_peers and not node.order_by else _Way("rank", needs_peers=needs_peers)
    if call.name not in _SHIFTS:
        return None
    offset = 1
    if len(call.arguments) > 1:
        given = call.arguments[1]
        if not isinstance(given, Constant):
            return None
        offset = int(given.value.as_py())
    return _Way("near", offset, 0) if call.name == "lag" else _Way("near", 0, offset)


def _is_whole(frame: WindowFrame, node: Window) -> bool:
    """Return whether each frame is the whole partition."""
    unbounded = [b.offset is None and b.kind != "CURRENT" for b in (frame.start, frame.end)]
    if all(unbounded) and frame.start.kind == "PRECEDING" and frame.end.kind == "FOLLOWING":
        return True
    without_offsets = frame.start.offset is None and frame.end.offset is None
    return without_offsets and not node.order_by and frame.unit != "ROWS"


class PartitionStream:
    """The calls of a window over the rows of one partition, which come in their order."""

    def __init__(
        self, node: Window, context: ExecutionContext, account: MemoryAccount, rows_at_once: int
    ) -> None:
        """Prepare for a node for which `may_stream` holds; `account` counts the rows that are held."""
        self._node, self._context, self._account = node, context, account
        self._held_bytes = account.held_bytes
        self._rows_at_once = rows_at_once
        self._ways: list[_Way] = []
        for _, call in node.calls:
            way = _way(call, node)
            assert way is not None, call.name
            self._ways.append(way)
        self._before = max((way.before for way in self._ways), default=0)
        self._after = max((way.after for way in self._ways), default=0)
        self._needs_peers = any(way.needs_peers for way in self._ways)
        self._rows_done = self._groups_done = 0
        self._states: dict[int, pa.Array] = {}
        """The state of each aggregate so far, an array of one, by its place in `node.calls`. An aggregate over the whole
        partition has here its state over all rows, from the first pass."""

    def results(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the columns of the calls. Raises MemoryLimitExceeded if the rows of a frame, or peers, need
        too much memory."""
        if not any(way.kind == "whole" for way in self._ways):
            yield from self._results(rows)
            return
        with self._context.temporary().file("Sort") as file:
            extents = []
            for batch in rows:
                self._context.check()
                extents.append(file.append(batch))
                self._add_to_whole(batch)
            yield from self._results(map(file.read, extents))

    def _add_to_whole(self, batch: pa.RecordBatch) -> None:
        """Merge the states of some rows into those of the calls over the whole partition."""
        groups = Groups(np.zeros(batch.num_rows, np.int64), 1)
        for number, (_, call) in enumerate(self._node.calls):
            function = call.function
            if self._ways[number].kind == "whole" and isinstance(function, Aggregate):
                state = function.state(self._arguments(call, batch), groups)
                self._states[number] = self._merged(function, number, state)

    def _merged(self, function: Aggregate, number: int, states: pa.Array) -> pa.Array:
        """Return the states, each merged behind the state so far of the call with this number."""
        count, so_far = len(states), self._states.get(number)
        if so_far is None:
            return states
        first = so_far.take(from_numpy(np.zeros(count, np.int64)))
        codes = np.tile(np.arange(count), 2)
        return function.merge(pa.concat_arrays([first, states]), Groups(codes, count))

    def _results(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the columns of the calls; the states over the whole partition are known."""
        schema = self._node.child.schema
        before = pa.RecordBatch.from_arrays(
            [pa.nulls(0, field.type.arrow) for field in schema], [field.name for field in schema]
        )
        waiting: list[pa.RecordBatch] = []
        enough = self._rows_at_once + self._after
        for piece in (piece for batch in rows for piece in cut(batch, self._rows_at_once)):
            self._context.check()
            waiting.append(piece)
            self._count(before, *waiting)
            if sum(batch.num_rows for batch in waiting) < enough:
                continue
            joined = single_batch(table_of(waiting, schema))
            core = self._core_rows(joined)
            if core:
                yield from self._with_calls(before, joined, core)
                before, joined = self._rows_before(before, joined, core), joined.slice(core)
                enough = self._rows_at_once + self._after
            else:  # look again when there are twice as many
                enough = 2 * joined.num_rows
            waiting = [joined]
        joined = single_batch(table_of(waiting, schema))
        if joined.num_rows:
            yield from self._with_calls(before, joined, joined.num_rows)
        self._account.set(self._held_bytes)

    def _count(self, *batches: pa.RecordBatch) -> None:
        """Count the batches' rows, and what computing the calls of them takes."""
        rows = sum(batch.num_rows for batch in batches)
        nbytes = sum(batch.nbytes for batch in batches)
        self._account.set(2 * nbytes + rows * _FRAME_BYTES_PER_ROW)

    def _core_rows(self, rows: pa.RecordBatch) -> int:
        """Return how many of the rows, of which more follow, have all rows that they need after them."""
        core: int = rows.num_rows - self._after
        if not self._needs_peers:
            return core
        keys = [order.values for order in self._order(rows)]
        begins = np.flatnonzero(~equal_to_previous(keys, rows.num_rows))
        return int(begins[np.searchsorted(begins, core, side="right") - 1])

    def _rows_before(
        self, before: pa.RecordBatch, rows: pa.RecordBatch, core: int
    ) -> pa.RecordBatch:
        """Return the last rows that were done, as many as later frames may need."""
        done = single_batch(table_of([before, rows.slice(0, core)], self._node.child.schema))
        kept = min(self._before, done.num_rows)
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

    def _with_calls(
        self, before: pa.RecordBatch, rows: pa.RecordBatch, core: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the first `core` of the rows with the columns of the calls; `before` are rows that were yielded."""
        own = rows.slice(0, core)
        frames = partitions_and_peers([], self._order(own), core)
        wide = single_batch(table_of([before, rows], self._node.child.schema))
        wide_frames = partitions_and_peers([], [], wide.num_rows)
        columns = list(own.columns)
        for number, (_, call) in enumerate(self._node.calls):
            self._context.check()
            if self._ways[number].kind == "near":
                framed = wide_frames
                if not (
                    isinstance(call.function, WindowFunction) and call.function.whole_partition
                ):
                    framed = with_frame(wide_frames, call.frame, [])
                value = _value(call, self._arguments(call, wide), framed)
                value = value.slice(before.num_rows, core)
            else:
                value = self._own_value(number, call, own, frames)
            columns.append(value if value.type == call.type.arrow else value.cast(call.type.arrow))
        self._rows_done += core
        self._groups_done += int((frames.peer_starts == frames.positions).sum())
        yield from cut(make_batch(columns, self._node.schema, core), self._context.batch_rows)

    def _own_value(
        self, number: int, call: WindowCall, rows: pa.RecordBatch, frames: Frames
    ) -> pa.Array:
        """Return the values of a call that reads no rows but `rows`, and what is known of those before."""
        function, way = call.function, self._ways[number]
        if isinstance(function, WindowFunction):
            done = self._groups_done if call.name == "dense_rank" else self._rows_done
            ranks = to_numpy(function.kernel([], frames)) + np.uint64(done)
            return from_values(ranks, function.type.arrow)
        if way.kind == "whole":
            value = function.finalize(self._states[number])
            return value.take(from_numpy(np.zeros(rows.num_rows, np.int64)))
        framed = with_frame(frames, call.frame, self._order(rows))
        states = frame_states(function, self._arguments(call, rows), framed)
        states = self._merged(function, number, states)
        self._states[number] = states.take(from_numpy(np.array([len(states) - 1])))
        return function.finalize(states)


def _value(call: WindowCall, arguments: list[pa.Array], frames: Frames) -> pa.Array:
    """Return the values of a call in rows with these frames."""
    if isinstance(call.function, WindowFunction):
        return call.function.kernel(arguments, frames)
    return aggregate_over(call.function, arguments, frames)
