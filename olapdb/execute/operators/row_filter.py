"""The rows of a batch that meet the conditions of a scan, as a mask.

What keeps a range of one column's values is found first, by one kernel a column (`compute/value_ranges.py`), then what
keeps the integers of a set, as the keys of a join, by a bit for each number (`compute/number_set.py`): no row is copied for it.
The other conditions follow in their order.  In a condition of AND and OR alone NULL counts as false:
so does it in each operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import rows_only
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.compute.hash_table import Lookup
from olapdb.compute.number_set import Members
from olapdb.compute.short_circuit import is_safe
from olapdb.compute.value_ranges import ValueRange, bounds_as_stored, intersected, range_of
from olapdb.config import tuning
from olapdb.execute.operators.compact_columns import decoded, is_compact
from olapdb.functions.kernels.columns import true_positions
from olapdb.native import selection
from olapdb.native.library import library
from olapdb.plan.conditions import conjuncts, disjuncts
from olapdb.plan.expressions import ColumnRef, Expression, InSubquery, inputs_of
from olapdb.types.arrow_values import FALSE, from_numpy

_NARROWED_SHARE = 0.5
"""Select the rows that remain before the next condition if they are fewer than this part."""


def cannot_fail(condition: Expression, context: ExecutionContext) -> bool:
    """Return whether a condition is cheap and raises an error for no row.

    AND and OR are so if all their operands are, and so is a comparison that keeps a range of one column's values."""
    parts = conjuncts(condition)
    if len(parts) > 1:
        return all(cannot_fail(part, context) for part in parts)
    operands = disjuncts(condition)
    if len(operands) > 1:
        return all(cannot_fail(operand, context) for operand in operands)
    return is_safe(condition) or range_of(condition, context.environment) is not None


class RowFilter:
    """Conditions of which all must hold; the operands of AND are conditions of their own. For many
    threads."""

    def __init__(self, conditions: Sequence[Expression], context: ExecutionContext) -> None:
        self._parts = [part for condition in conditions for part in conjuncts(condition)]
        self._context = context
        self._rows = 0

    def mask(
        self, batch: pa.RecordBatch, kept: pa.BooleanArray | None = None
    ) -> pa.BooleanArray | None:
        """Return a mask of the rows of `kept` (None: all) that all conditions keep, without NULL; None without
        conditions.

        A condition that may fail, or costs more than selecting rows, is evaluated only on rows that the
        ones before it keep; so are all once most rows are gone."""
        self._rows += batch.num_rows  # threads may lose some, which changes no answer
        if not self._has_many_rows:
            return self._rest(self._parts, batch, kept)
        return self._by_ranges(batch, kept)

    @property
    def _has_many_rows(self) -> bool:
        """Return whether enough rows have been filtered that the fixed cost of making ranges is worth paying."""
        return library() is not None and self._rows >= tuning.RANGE_ROWS_MIN

    def _by_ranges(
        self, batch: pa.RecordBatch, kept: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        """Return the mask that `mask` returns, with conditions that keep ranges or sets of integers judged together by
        a kernel, the others one by one."""
        ranges, others = self._ranges
        sets, not_in_sets = self._sets
        if not sets:
            within = _within(ranges, batch, kept) if ranges else None
        else:
            others = not_in_sets
            within = None
            if all(
                batch.column(name).type == members.numbers.values.type for name, members in sets
            ):
                within = _within(ranges, batch, kept, sets)
        if within is None:
            return self._rest(self._parts, batch, kept)
        return self._rest(others, batch, within)

    @cached_property
    def _sets(self) -> tuple[list[tuple[str, Members]], list[Expression]]:
        """The columns whose values must be in a set of integers, each with its set, the one that keeps the smallest
        share first; and the conditions without a range that these sets do not replace. An IN over several columns stays
        among the conditions."""
        sets: list[tuple[str, Members]] = []
        left = []
        for part in self._ranges[1]:
            sets_of_part = _sets_of(part, self._context)
            sets += sets_of_part
            if len(sets_of_part) != 1 or len(part.children()) != 1:
                left.append(part)
        return sorted(sets, key=lambda pair: pair[1].share), left

    @cached_property
    def _ranges(self) -> tuple[list[ValueRange], list[Expression]]:
        """The ranges that conditions keep, merged to one for each column, and the conditions that are no range."""
        ranges_of_parts = [
            (part, range_of(part, self._context.environment)) for part in self._parts
        ]
        ranges = intersected(kept for _, kept in ranges_of_parts if kept is not None)
        return ranges, [part for part, kept in ranges_of_parts if kept is None]

    @cached_property
    def _inputs(self) -> dict[int, frozenset[str]]:
        """The columns that each condition reads, by its `id`."""
        return {id(part): inputs_of(part) for part in self._parts}

    @cached_property
    def _alternatives(self) -> dict[int, list[RowFilter]]:
        """The operands of each condition that is an OR with ranges, none of which can fail, by its
        `id`."""
        alternatives = {}
        for part in self._parts:
            operands = disjuncts(part)
            filters = [RowFilter([operand], self._context) for operand in operands]
            has_ranges = len(operands) > 1 and any(
                alternative._ranges[0] for alternative in filters
            )
            if has_ranges and all(
                all(map(is_safe, alternative._ranges[1])) for alternative in filters
            ):
                alternatives[id(part)] = filters
        return alternatives

    def _rest(
        self, parts: Sequence[Expression], batch: pa.RecordBatch, kept: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        """Return a mask of the rows of `kept` (None: all) that all conditions in `parts` keep, judged one after the
        other. Once few rows are left, only these are evaluated. None without conditions and `kept`."""
        positions: np.ndarray | None = None
        remaining = batch
        for at, condition in enumerate(parts):
            if kept is not None:
                count = kept.true_count
                if not count:
                    break
                if count < len(kept) * (_NARROWED_SHARE if is_safe(condition) else 1):
                    chosen = true_positions(kept)
                    positions = chosen if positions is None else positions[chosen]
                    used = frozenset().union(*(self._inputs[id(part)] for part in parts[at:]))
                    remaining = _taken(remaining, used, chosen)
                    kept = None
            mask = self._meets(condition, remaining)
            kept = mask if kept is None else pc.and_(kept, mask)
        if kept is None or positions is None:
            return kept
        full = np.zeros(batch.num_rows, bool)
        full[positions[true_positions(kept)]] = True
        return from_numpy(full)

    def _meets(self, condition: Expression, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the rows for which the condition is true, without NULL."""
        if self._has_many_rows:
            alternatives = self._alternatives.get(id(condition))
            if alternatives is not None:
                masks = [alternative._by_ranges(rows, None) for alternative in alternatives]
                return reduce(pc.or_, [mask for mask in masks if mask is not None])
        context = self._context
        if is_compact(rows):
            used = self._inputs[id(condition)]
            rows = decoded(rows.select([n for n in rows.schema.names if n in used]))
        meets = evaluate_predicate(condition, rows, context.environment, context.subqueries)
        return meets.fill_null(FALSE) if meets.null_count else meets


def _sets_of(condition: Expression, context: ExecutionContext) -> list[tuple[str, Members]]:
    """Return the columns of an IN whose values must be in a set of integers, each with the set."""
    if not isinstance(condition, InSubquery) or condition.negated:
        return []
    lookup = context.subqueries.get(condition.number)
    if not isinstance(lookup, Lookup):
        return []
    pairs = zip(condition.arguments, lookup.members, strict=True)
    return [
        (e.name, members)
        for e, members in pairs
        if isinstance(e, ColumnRef) and members is not None
    ]


def _within(
    ranges: Sequence[ValueRange],
    batch: pa.RecordBatch,
    before: pa.BooleanArray | None,
    sets: Sequence[tuple[str, Members]] = (),
) -> pa.BooleanArray | None:
    """Return a mask of the rows of `before` (None: all) whose values lie in all ranges, and of the columns in `sets` in
    their set; None if a column with a range has no kernel, as a dictionary."""
    kept = selection.kept_rows(before, batch.num_rows)
    for block_range in ranges:
        column = batch.column(block_range.column)
        bounds = bounds_as_stored(block_range, column.type)
        if bounds is None and not block_range.outside:
            kept.fill(0)
            break
        if bounds is None:  # all values lie outside
            kept &= selection.kept_rows(column.is_valid(), batch.num_rows)
        elif selection.keep_between(column, *bounds, kept, outside=block_range.outside) is None:
            return None
    for name, members in sets:
        members.keep(batch.column(name), kept)
    return selection.as_mask(kept, batch.num_rows)


def _taken(rows: pa.RecordBatch, used: frozenset[str], chosen: np.ndarray) -> pa.RecordBatch:
    """Return the chosen rows, and of them the columns in `used`."""
    names = [name for name in rows.schema.names if name in used]
    return rows.select(names).take(from_numpy(chosen)) if names else rows_only(len(chosen))
