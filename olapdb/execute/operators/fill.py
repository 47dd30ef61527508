"""ORDER BY … WITH FILL: rows for the values that are missing from a sorted column.

The values are start, start + step, … for each prefix, which is the keys before the filled one. Rows and
filled values are sorted together, once, so that each filled value finds the row before it:

    rows 1 2 4 8      values 1 2 … 7      1 2 (3) 4 (5) (6) (7) 8
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import cut, make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import equal_to_previous
from olapdb.compute.row_buffer import RowBuffer
from olapdb.errors import InvalidWithFillExpression
from olapdb.execute.operators.join_pairs import missing_value
from olapdb.functions.kernels import wide_numbers
from olapdb.plan.nodes import Fill
from olapdb.types import DataType, Date, Date32, DateTime, DateTime64, Float, WideNumber, plain
from olapdb.types.arrow_values import from_numpy, scalar_of, to_numpy

_POINTS_MAX = 2.0**56
"""A number of points that no memory holds; larger numbers are accounted as this one."""
_LAST_DATE, _LAST_DATETIME = 2**16 - 1, 2**32 - 1
_BYTES_PER_POINT = 64
"""What sorting needs for each filled value."""


def fill_batches(
    node: Fill, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the child's rows, which are sorted, with those that are missing between them.

    Raises MemoryLimitExceeded for more rows than fit."""
    with context.memory.account("WITH FILL") as account:
        buffer = RowBuffer(node.schema, account)
        for batch in child:
            context.check()
            buffer.add(batch)
        rows = buffer.rows
        extra_row = [missing_value(field) for field in node.schema]
        filled = _Filled(node, buffer.concatenate(extra_row), rows, account)
        yield from cut(_interpolated(node, filled, context), context.batch_rows)


class _Filled:
    """The rows and the filled values in their order.

    `batch` has them all; `is_point` marks the filled ones."""

    def __init__(
        self, node: Fill, rows_and_default: pa.RecordBatch, rows: int, account: MemoryAccount
    ) -> None:
        self._node, self._rows, self._account = node, rows, account
        self.default = rows_and_default.slice(rows)
        self._read(rows_and_default.slice(0, rows))
        groups, values = self._points()
        if self._in_sequence:
            values, order = self._between_rows(values)
            groups = np.zeros(len(values), np.int64)
        else:
            order = self._merged(groups, values)
        self.is_point = order >= rows
        self.batch = self._taken(rows_and_default, groups, values, order)

    def _read(self, own_rows: pa.RecordBatch) -> None:
        """Number the prefixes, and read the key's values as numbers that ascend."""
        node = self._node
        prefix = [own_rows.column(key.name) for key in node.prefix]
        starts = ~equal_to_previous(prefix, self._rows)
        self._groups = np.cumsum(starts) - 1
        self._first_rows = np.flatnonzero(starts)
        column = own_rows.column(node.key.name)
        numbers, self._valid, self._base = _numbers(column)
        self._direction = -1 if node.descending else 1
        lowest = np.iinfo(np.int64).min
        if node.descending and numbers.dtype.kind == "i" and (numbers == lowest).any():
            raise _too_wide()  # it has no negative
        self._values = numbers * self._direction
        self._in_sequence = not node.prefix and not self._ascends()
        if self._in_sequence:
            first = np.flatnonzero(self._valid)[0]
            self._own_values = np.where(self._valid, self._values, self._values[first])
            self._values = np.maximum.accumulate(self._own_values)

    def _ascends(self) -> bool:
        """Return whether the rows with a value follow each other without a gap, and their values, negated for a
        descending key, never decrease."""
        present = np.flatnonzero(self._valid)
        if not len(present):
            return True
        together = present[-1] - present[0] + 1 == len(present)
        return bool(together and (np.diff(self._values[present]) >= 0).all())

    def _ascending(self, bound: float | int | None) -> float | int | None:
        """Return a bound in the order in which values ascend: negated for a descending key, None for None.

        Raises InvalidWithFillExpression for one beyond 64 bits from the rows' values."""
        if bound is None:
            return None
        bound -= self._base
        if isinstance(bound, int) and abs(bound) > np.iinfo(np.int64).max:
            raise _too_wide()
        return bound * self._direction

    def _stale(self, rows: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """Return whether points are too far behind their rows for STALENESS; `rows` are the values of these rows, and
        `ahead` how far each point is behind. Nothing is filled behind a row whose limit the type cannot hold below 0 or
        beyond 64 bits, as in ClickHouse."""
        staleness = self._node.staleness
        assert staleness is not None
        too_far: np.ndarray = ahead >= staleness * self._direction
        key = plain(self._node.key.type)
        if not isinstance(key, Float):
            signed = getattr(key, "signed", isinstance(key, Date32 | DateTime64))
            bits = max(64, getattr(key, "bits", 64)) - signed
            limits = np.iinfo(np.int64)
            last = (-(2**bits) if signed else 0) if self._direction < 0 else 2**bits - 1
            last = (last - self._base - int(staleness)) * self._direction
            too_far |= rows > min(max(last, limits.min), limits.max)
        return too_far

    def _points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the group and the value of each point that WITH FILL makes; shapes (points,).

        A group is the number of a prefix. Values ascend within a group: those of a descending key
        are negated. Points at which there is a row are included. Raises MemoryLimitExceeded."""
        node = self._node
        start, stop = self._ascending(node.start), self._ascending(node.stop)
        count = max(len(self._first_rows), 0 if node.prefix else 1)
        has_value = np.zeros(count, bool)
        has_value[self._groups[self._valid]] = True
        lowest = np.zeros(count, self._values.dtype)
        highest = lowest.copy()
        rows = np.flatnonzero(self._valid)
        lowest[self._groups[rows[::-1]]] = self._values[rows[::-1]]
        highest[self._groups[rows]] = self._values[rows]
        begins = lowest if start is None else np.full(count, start, self._values.dtype)
        ends = highest if stop is None else np.full(count, stop, self._values.dtype)
        if stop is None and node.staleness is not None:
            ends = highest + node.staleness * self._direction
        usable = has_value | (start is not None and stop is not None)
        widths = np.asarray(ends, np.float64) - np.asarray(begins, np.float64)
        if self._values.dtype.kind == "i" and (usable & (np.abs(widths) >= 2.0**63)).any():
            raise _too_wide()
        spans = np.where(usable, np.maximum(ends - begins, 0), 0)
        step = abs(node.step) if not node.months else 28 * node.ticks_per_day * abs(node.months)
        with np.errstate(over="ignore"):
            wanted = np.ceil(spans / step)
        self._account.grow(int(min(float(wanted.sum()), _POINTS_MAX)) * _BYTES_PER_POINT)
        counts = wanted.astype(np.int64)
        groups = np.repeat(np.arange(count), counts)
        nth = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
        if node.months:
            values = self._months_later(begins, counts, nth)
        else:
            values = begins[groups] + nth * (node.step * self._direction)
        kept = values < ends[groups]
        return groups[kept], values[kept]

    def _months_later(self, begins: np.ndarray, counts: np.ndarray, nth: np.ndarray) -> np.ndarray:
        """Return begin + n months for each point. A day that a month lacks is its last day, and
        stays so: 31 January, 29 February, 29 March."""
        per_day = self._node.ticks_per_day
        first = begins * self._direction
        days, rest = first // per_day, first % per_day
        dates = days.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        day_of_month = (dates - months.astype("datetime64[D]")).astype(np.int64)
        groups = np.repeat(np.arange(len(begins)), counts)
        there = months[groups] + nth * self._node.months
        length = ((there + 1).astype("datetime64[D]") - there.astype("datetime64[D]")).astype(
            np.int64
        )
        day = np.minimum(day_of_month[groups], length - 1)
        for group in np.flatnonzero(day_of_month > 27):  # few: only of prefixes that begin so late
            own = groups == group
            day[own] = np.minimum.accumulate(day[own])
        later = there.astype("datetime64[D]").astype(np.int64) + day
        values: np.ndarray = (later * per_day + rest[groups]) * self._direction
        return values

    def _merged(self, groups: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the order of rows (below the number of rows) and of the points to fill."""
        rows = self._rows
        missing = np.where(self._valid, 0, -1 if self._node.nulls_first else 1)
        all_groups = np.concatenate([self._groups, groups])
        all_values = np.concatenate([self._values, values])
        all_missing = np.concatenate([missing, np.zeros(len(groups), np.int64)])
        is_point = np.arange(len(all_groups)) >= rows
        # A row comes before a point of the same value; rows of one value keep their order.
        order = np.lexsort(
            (is_point, np.where(all_missing == 0, all_values, 0), all_missing, all_groups)
        )
        is_row = (order < rows) & (all_missing[order] == 0)
        before = np.maximum.accumulate(np.where(is_row, np.arange(len(order)), -1))
        previous = order[np.maximum(before, 0)]
        same = (before >= 0) & (all_groups[previous] == all_groups[order])
        ahead = all_values[order] - all_values[previous]
        dropped = same & (ahead == 0)
        if self._node.staleness is not None:
            dropped |= ~same | self._stale(all_values[previous], ahead)
        kept: np.ndarray = order[(order < rows) | ~dropped]
        return kept

    def _between_rows(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values to fill, and the order of rows and of these, where the rows are sorted by
        other keys first and keep their places.

        A value comes before the first row that is above it. Behind a row below the value that was
        reached, that value comes again, as in ClickHouse: rows 1 4 2 6 are 1 (2) (3) 4 2 (4) (5) 6."""
        rows, highest, own = self._rows, self._values, self._own_values
        places = np.searchsorted(highest, points, side="right")
        is_of_row = (places > 0) & (highest[places - 1] == points)
        values, places = points[~is_of_row], places[~is_of_row]
        if len(points):
            nth = np.searchsorted(points, highest[:-1], side="right") - 1
            reached = points[nth]
            again = np.flatnonzero((nth >= 0) & (own[:-1] < reached) & (own[1:] > reached))
            values = np.concatenate([values, reached[again]])
            places = np.concatenate([places, again + 1])
        is_row = np.arange(rows + len(values)) < rows
        order: np.ndarray = np.lexsort(
            (
                np.concatenate([np.zeros(rows, values.dtype), values]),
                is_row,
                np.concatenate([np.arange(rows), places]),
            )
        )
        return values, order

    def _taken(
        self,
        rows_and_default: pa.RecordBatch,
        groups: np.ndarray,
        values: np.ndarray,
        order: np.ndarray,
    ) -> pa.RecordBatch:
        """Return rows and points in this order: points have the key's value, the prefix of their
        group, and defaults."""
        rows, node = self._rows, self._node
        is_point = order >= rows
        default_or_row = from_numpy(np.where(is_point, rows, order))
        points = order[is_point] - rows
        first_of_prefix = np.full(len(order), rows)
        first_of_prefix[~is_point] = order[~is_point]
        if node.prefix:
            first_of_prefix[is_point] = self._first_rows[groups[points]]
        prefix_row = from_numpy(first_of_prefix)
        prefix = {key.name for key in node.prefix}
        columns = []
        for field, column in zip(node.schema, rows_and_default.columns, strict=True):
            if field.name == node.key.name:
                filled = values[points] * self._direction + 0  # of a float: no -0
                own = _of_numbers(filled, self._base, node.key.type)
                at = order.copy()
                at[is_point] = rows + 1 + np.arange(len(points))  # behind the default row
                columns.append(pa.concat_arrays([column, own]).take(from_numpy(at)))
            else:
                columns.append(column.take(prefix_row if field.name in prefix else default_or_row))
        return make_batch(columns, node.schema, len(order))


def _interpolated(node: Fill, filled: _Filled, context: ExecutionContext) -> pa.RecordBatch:
    """Return the rows with the columns of INTERPOLATE computed, each from the row before.

    The filled rows behind one row depend on each other: all first ones are computed at once, then
    all second ones, and so on."""
    points = np.flatnonzero(filled.is_point)
    if not node.interpolated or not len(points):
        return filled.batch
    starts = np.flatnonzero(np.diff(points, prepend=-2) != 1)
    runs = np.cumsum(np.isin(np.arange(len(points)), starts)) - 1
    depth = np.arange(len(points)) - starts[runs]
    by_depth = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth))
    rows = filled.batch.num_rows
    sources = pa.Table.from_batches([filled.batch, filled.default]).combine_chunks().to_batches()[0]
    values: dict[str, list[pa.Array]] = {name: [] for name, _ in node.interpolated}
    last: dict[str, pa.Array] = {}
    begin = 0
    last_runs = runs[:0]
    for end in ends:
        context.check()
        at, own_runs = points[by_depth[begin:end]], runs[by_depth[begin:end]]
        before = sources.take(from_numpy(np.where(at > 0, at - 1, rows)))
        if begin:  # those of the last step whose run goes on
            goes_on = from_numpy(np.searchsorted(last_runs, own_runs))
            before = _with_columns(before, {n: last[n].take(goes_on) for n in last})
        last = {
            name: evaluate_array(e, before, context.environment, context.subqueries)
            for name, e in node.interpolated
        }
        for name, column in last.items():
            values[name].append(column)
        begin, last_runs = end, own_runs
    at_source = np.arange(rows)
    at_source[points[by_depth]] = rows + np.arange(len(points))
    taken = from_numpy(at_source)
    return _with_columns(
        filled.batch,
        {
            name: pa.concat_arrays([filled.batch.column(name), *chunks]).take(taken)
            for name, chunks in values.items()
        },
    )


def _with_columns(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Return the batch with some columns replaced."""
    arrays = [columns.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a column as int64 or float64, which rows have a value (neither NULL nor NaN), and a base: the number
    that is added to an integer for the value. It is 0 unless integers exceed 64 bits.

    Raises InvalidWithFillExpression for integers more than 64 bits apart."""
    valid = to_numpy(column.is_valid())
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if pa.types.is_decimal(column.type) or pa.types.is_uint64(column.type):
        return _from_base(column, valid)
    is_float = pa.types.is_floating(column.type)
    arrow = pa.float64() if is_float else pa.int64()
    column = pc.fill_null(column.cast(arrow), scalar_of(0.0 if is_float else 0, arrow))
    numbers = to_numpy(column)
    if is_float:
        valid = valid & np.isfinite(numbers)
    return numbers, valid, 0


def _from_base(column: pa.Array, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return what `_numbers` returns for integers of 64 bits without a sign, or of more: the base is the first value,
    or 0 where all are near it."""
    limbs = wide_numbers.limbs_of(column)
    limbs[~valid] = 0
    if _fits_64_bits(limbs).all():
        return limbs[:, 0].view(np.int64), valid, 0
    first = limbs[valid][:1]
    limbs = np.where(valid[:, None], wide_numbers.added(limbs, wide_numbers.negated(first)), 0)
    if not _fits_64_bits(limbs).all():
        raise _too_wide()
    base = int(wide_numbers.python_integers(first)[0])
    return np.ascontiguousarray(limbs[:, 0]).view(np.int64), valid, base


def _fits_64_bits(limbs: np.ndarray) -> np.ndarray:
    """Return which numbers a signed integer of 64 bits holds."""
    fits: np.ndarray = (wide_numbers.extended(limbs[:, :1]) == limbs).all(axis=1)
    return fits


def _too_wide() -> InvalidWithFillExpression:
    """Return the error for values more than 64 bits apart, in which steps are counted."""
    return InvalidWithFillExpression(
        "WITH FILL counts in signed 64-bit numbers, which the values of this column exceed.",
        hint="Fill a smaller range, or a column of a narrower type.",
    )


def _of_numbers(values: np.ndarray, base: int, data_type: DataType) -> pa.Array:
    """Return numbers of `_numbers` as values of the key's type. Raises InvalidWithFillExpression for one beyond it."""
    key, arrow = plain(data_type), data_type.arrow
    if isinstance(key, WideNumber):
        given = np.array([base], object)
        limbs = wide_numbers.added(
            wide_numbers.extended(values.view(np.uint64).reshape(-1, 1)),
            wide_numbers.limbs_from_python(given),
        )
        if not wide_numbers.fits(limbs, key).all():
            raise _beyond(key)
        return wide_numbers.column_of(limbs, key)
    if base:
        return from_numpy(values.view(np.uint64) + np.uint64(base)).cast(arrow)
    last = {Date: _LAST_DATE, DateTime: _LAST_DATETIME}.get(type(key))
    if last is not None and len(values) and not 0 <= values.min() <= values.max() <= last:
        raise _beyond(key)
    if pa.types.is_temporal(arrow) and arrow.bit_width == 32:
        return from_numpy(values.astype(np.int32)).cast(arrow)
    try:
        return from_numpy(values).cast(arrow)
    except pa.ArrowInvalid as error:
        raise _beyond(key) from error


def _beyond(key: DataType) -> InvalidWithFillExpression:
    """Return the error for a filled value that the key's type does not have."""
    return InvalidWithFillExpression(
        f"A filled value is beyond the type {key} of the column.",
        hint="End the series by TO, or CAST the column to a wider type.",
    )
