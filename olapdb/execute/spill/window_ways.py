"""How the calls of a window are computed over some rows of a partition at a time, if they can be."""

from __future__ import annotations

from typing import Literal

from olapdb.functions.base import Aggregate
from olapdb.functions.window_definitions import WindowFunction
from olapdb.functions.windows import edge_definition
from olapdb.plan.expressions import Constant, WindowCall, WindowFrame
from olapdb.plan.nodes import Window
from olapdb.records import dataclass

Kind = Literal["rank", "near", "reach", "running", "whole", "rest"]

_RANKS = ("row_number", "rank", "dense_rank")
_SHARES = ("percent_rank", "cume_dist", "ntile")
_SHIFTS = ("lag", "lead")
_SHIFTS_IN_FRAME = ("lagInFrame", "leadInFrame")


_NTH_MAX = 65_536
_NTH_OF_REST_MAX = 1_024
"""The n of nth_value for which its first n values are kept: once, or for all rows behind each piece of a partition."""


@dataclass(frozen=True)
class Way:
    """A way to compute a call over some rows of a partition at a time.

    - rank: from the numbers of rows and of groups of peers before; with `needs_total` of all rows too
    - near: from rows near each row, a known number of them; in its frame, or with `ignores_frame` in the partition
    - reach: from the rows of its frame, whose number depends on the values of ORDER BY
    - running, rest, whole: from what the rows before, behind, or all of them left; the frames begin with the
      partition, end with it, or both

    A row's value takes `before` rows in front of it and `after` rows behind it; with `needs_peers` the row's peers too.
    The frames of a running call end `end` rows behind each row."""

    kind: Kind
    before: int = 0
    after: int = 0
    needs_peers: bool = False
    needs_total: bool = False
    ignores_frame: bool = False
    end: int = 0

    @property
    def needs_all_rows(self) -> bool:
        """Return whether all rows of the partition must be read before the first value."""
        return self.needs_total or self.kind in ("whole", "rest")


def way_of(call: WindowCall, node: Window) -> Way | None:
    """Return how to compute a call over some rows at a time, None if it needs all rows at once."""
    frame, function = call.frame, call.function
    if isinstance(function, WindowFunction):
        if function.whole_partition:
            return _without_frame(call)
        if call.function.name in _SHIFTS_IN_FRAME and (way := _shift_in_frame(call)) is not None:
            return way
    nth = nth_of(call)
    if is_edge(call) or isinstance(function, Aggregate) or (nth is not None and nth <= _NTH_MAX):
        if _is_whole(frame, node):
            return Way("whole")
        if _begins_first(frame):
            return _running(call)
        if _ends_last(frame):
            return _rest(frame, nth)
    elif frame.unit != "ROWS":
        return None
    bounds = (frame.start, frame.end)
    if any(bound.offset is None and bound.kind != "CURRENT" for bound in bounds):
        return None
    if frame.unit != "ROWS":
        return Way("reach")
    offsets = [_offset(frame, at) for at in range(2)]
    return Way("near", max(-min(offsets), 0), max(*offsets, 0))


def is_edge(call: WindowCall) -> bool:
    """Return whether the call gives the first or the last value of its frame."""
    is_function = isinstance(call.function, WindowFunction)
    return is_function and edge_definition(call.function.name, False) is not None


def nth_of(call: WindowCall) -> int | None:
    """Return the n of nth_value(x, n), None if it is no constant or the call is another one."""
    if not isinstance(call.function, WindowFunction) or call.function.name != "nth_value":
        return None
    given = call.arguments[1]
    return int(given.value.as_py()) if isinstance(given, Constant) else None


def _without_frame(call: WindowCall) -> Way | None:
    """Return how to compute a function that ignores the frame, None if it needs all rows at once."""
    name = call.function.name
    if name in _RANKS:
        return Way("rank", before=0 if name == "row_number" else 1)
    if name in _SHARES:
        return Way("rank", before=1, needs_peers=name == "cume_dist", needs_total=True)
    return _shift(call, forward=name == "lead") if name in _SHIFTS else None


def _shift(call: WindowCall, *, forward: bool) -> Way | None:
    """Return how to look at a row a constant number of rows away; None if the number is no constant."""
    offset = 1
    if len(call.arguments) > 1:
        given = call.arguments[1]
        if not isinstance(given, Constant):
            return None
        offset = int(given.value.as_py())
    before, after = (0, offset) if forward else (offset, 0)
    return Way("near", before, after, ignores_frame=True)


def _shift_in_frame(call: WindowCall) -> Way | None:
    """Return how to compute lagInFrame or leadInFrame where the row is in the frame if it is in the partition; else None."""
    frame = call.frame
    if call.function.name == "lagInFrame":
        is_in_frame = _begins_first(frame) and frame.end.kind != "PRECEDING"
        return _shift(call, forward=False) if is_in_frame else None
    is_in_frame = _ends_last(frame) and frame.start.kind != "FOLLOWING"
    return _shift(call, forward=True) if is_in_frame else None


def _running(call: WindowCall) -> Way | None:
    """Return how to compute a call whose frames begin with the partition, None if it needs all rows at once."""
    frame = call.frame
    if frame.end.kind == "CURRENT":
        return Way("running", needs_peers=frame.unit != "ROWS")
    if frame.unit != "ROWS":
        return None
    end = _offset(frame, 1)
    return Way("running", max(-end, 0), max(end, 0), end=end)


def _rest(frame: WindowFrame, nth: int | None) -> Way | None:
    """Return how to compute a call whose frames end with the partition, None if it needs all rows at once. `nth` is the n
    of nth_value, None for other calls."""
    if nth is not None and nth > _NTH_OF_REST_MAX:
        if frame.unit != "ROWS":
            return None
        start = _offset(frame, 0)
        return Way("near", max(-start, 0), max(start + nth - 1, 0))
    if frame.start.kind == "CURRENT":
        return Way("rest", needs_peers=frame.unit != "ROWS")
    if frame.unit != "ROWS":
        return None
    start = _offset(frame, 0)
    return Way("rest", max(-start, 0), max(start, 0))


def _begins_first(frame: WindowFrame) -> bool:
    """Return whether each frame begins with the first row of the partition."""
    return frame.start.kind == "PRECEDING" and frame.start.offset is None


def _ends_last(frame: WindowFrame) -> bool:
    """Return whether each frame ends with the last row of the partition."""
    return frame.end.kind == "FOLLOWING" and frame.end.offset is None


def _offset(frame: WindowFrame, at: int) -> int:
    """Return how many rows the frame's start (0) or end (1) is behind a row; negative in front of it, 0 for the row."""
    bound = (frame.start, frame.end)[at]
    if bound.offset is None:
        return 0
    rows = int(bound.offset.value.as_py())
    return -rows if bound.kind == "PRECEDING" else rows


def _is_whole(frame: WindowFrame, node: Window) -> bool:
    """Return whether each frame is the whole partition."""
    if _begins_first(frame) and _ends_last(frame):
        return True
    without_offsets = frame.start.offset is None and frame.end.offset is None
    return without_offsets and not node.order_by and frame.unit != "ROWS"
