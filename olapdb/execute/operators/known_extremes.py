"""The least and the largest value of columns, and the number of rows, from what the parts know of them.

SELECT min(time), max(time), count() FROM events      reads nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.execute.operators.coded_inputs import state_of
from olapdb.execute.operators.partials import Partial
from olapdb.execute.operators.scan import scan_conditions
from olapdb.execute.pruning.granule_selection import live_parts
from olapdb.execute.pruning.interval_analysis import interval_of_bounds
from olapdb.functions.base import Groups
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds, Part
from olapdb.plan.expressions import AggregateCall, ColumnRef
from olapdb.plan.nodes import Aggregate, Scan
from olapdb.types import Date, Date32, DateTime, DateTime64, Integer, plain
from olapdb.types.arrow_values import from_numpy

_EXACT = (Integer, Date, Date32, DateTime, DateTime64)
"""The types whose bounds are values of rows."""

KnownGroups: TypeAlias = Callable[[Sequence[AggregateCall]], Iterator[Partial]]


def known_extremes(node: Aggregate, context: ExecutionContext) -> KnownGroups | None:
    """Return a function that yields the one group of min, max and count() over all rows of a stored table, which then
    is not scanned. The selection is counted, and noted for EXPLAIN ANALYZE.

    Return None for count() alone, other aggregates, keys and conditions, for FINAL that combines rows, for a table without
    parts, and where a part does not know its bounds."""
    scan = node.child
    if node.keys or node.sets or node.totals is not None or not isinstance(scan, Scan):
        return None
    if not _may_read_bounds(scan, context):
        return None
    columns = [_column(call, scan) for _, call in node.aggregates]
    if None in columns or not any(columns):
        return None
    parts = live_parts(scan, context)
    ends = {name: _ends(name, scan, parts) for name in columns if name}
    known = {name: values for name, values in ends.items() if values is not None}
    if not parts or len(known) < len(ends):
        return None
    granules = sum(max(part.granules, 1) for part in parts)
    context.count_selection(scan, (len(parts), 0), (granules, 0))
    context.note(node, "Bounds: the parts know their least and largest values")
    rows = sum(part.rows for part in parts)

    def groups(calls: Sequence[AggregateCall]) -> Iterator[Partial]:
        """Yield the one group of all rows, with the states of `calls`, from the parts' bounds."""
        yield Partial([], [_state(call, scan, known, rows) for call in calls], 1)

    return groups


def _may_read_bounds(scan: Scan, context: ExecutionContext) -> bool:
    """Return whether the parts' bounds may answer in place of their rows: the scan has no condition and combines no
    rows, and it is not for a view, whose rows must be read themselves."""
    if not context.projections or context.snapshot is None or scan.table.id in context.blocks:
        return False
    return not (scan_conditions(scan) or (scan.final and scan.table.engine.combines))


def _column(call: AggregateCall, scan: Scan) -> str | None:
    """Return the name of the stored column whose bound the call is, "" for count(), None for others."""
    if call.name == "count" and not call.arguments:
        return ""
    if call.name not in ("min", "max") or len(call.arguments) != 1:
        return None
    (argument,) = call.arguments
    if not isinstance(argument, ColumnRef) or not isinstance(plain(argument.type), _EXACT):
        return None
    return dict(scan.columns)[argument.name]


def _ends(name: str, scan: Scan, parts: Sequence[Part]) -> pa.Array | None:
    """Return the least and the largest value of a column in each part, of the column's type; None where
    a part does not know them."""
    column = next((c for c in scan.table.stored_columns if c.name == name), None)
    part_columns = PartColumns(scan.table)
    if column is None or any(part_columns.types_in(part, column) for part in parts):
        return None
    bounds: list[ColumnBounds] = []
    for part in parts:
        part_bounds = None
        if part_columns.name_in(part, column) is not None:
            part_bounds = part_columns.bounds(part).get(name)
        if part_bounds is None:
            return None
        bounds.append(part_bounds)
    interval = interval_of_bounds(bounds, column.type)
    if interval is None:
        return None
    has_values = from_numpy(interval.has_values)
    return pa.concat_arrays([interval.low.filter(has_values), interval.high.filter(has_values)])


def _state(call: AggregateCall, scan: Scan, ends: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Return the state of a call over all rows."""
    name = _column(call, scan)
    arguments = [ends[name]] if name else []
    count = len(arguments[0]) if arguments else rows
    codes = np.broadcast_to(np.zeros(1, np.int64), count)
    return state_of(call, arguments, Groups(codes, 1, are_checked=True))
