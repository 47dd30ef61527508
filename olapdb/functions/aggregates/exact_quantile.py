"""quantileExact, its kin Low, High, Inclusive and Exclusive, and their forms of many levels and for
the median: from all the values, sorted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    NUMBER_OR_DATE,
    illegal_argument,
    quantile_levels,
    require_count,
    require_some,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Division, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.decimal_width import decimals_of_integers
from olapdb.functions.kernels.integer_order import floats_of_sortable_bits, order_by, sortable_bits
from olapdb.native import quantiles
from olapdb.native.library import library
from olapdb.native.values import ColumnValues, values_of, values_of_numbers
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    plain,
)
from olapdb.types.arrow_values import from_numpy

_PACKED_MAX = 1 << 62


@dataclass(frozen=True)
class _Picks:
    """The rows of the values that make the quantile of each group, -1 for an empty group, and the share of the way from
    the lower to the upper one."""

    lower: np.ndarray
    upper: np.ndarray
    share: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """All rows that are picked, some of them twice."""
        return np.concatenate([self.lower, self.upper])

    def among(self, rows: np.ndarray) -> _Picks:
        """Return the picks where only `rows`, ascending, are left."""
        lower, upper = np.searchsorted(rows, self.lower), np.searchsorted(rows, self.upper)
        return _Picks(lower, upper, self.share)


@dataclass(frozen=True)
class ExactQuantiles(Aggregate):
    """quantileExact, quantilesExact: the sorted value at position level * count, rounded down.

    At level 0.5 of an even number of values, …Low takes the lower one of the two in the middle.

    NULL and NaN are skipped. State: Array of all the values, sorted, so it is as large as the data
    and does not depend on the cut into blocks."""

    levels: tuple[float, ...] = (0.5,)

    @property
    def state_key(self) -> Hashable | None:
        """The class and argument types, never None: the levels do not change the state."""
        return type(self), self.argument_types

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's values as a sorted list, without NULL and NaN."""
        ordered = _sorted_integers(arguments[0], groups)
        if ordered is not None:
            return columns.lists_from(*ordered)
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        if pa.types.is_floating(values.type):
            numbers = ~np.isnan(columns.numpy_values(values))
            (values,), groups = group_kernels.filter_rows([values], groups, numbers)
        offsets = columns.offsets_from_counts(np.bincount(groups.codes, minlength=groups.count))
        return columns.lists_from(offsets, _sorted(values, groups))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the values of each group's states to one sorted list."""
        merged = self.merge_runs(states, groups)
        if merged is not None:
            return merged
        offsets, elements = columns.elements_of(states)
        return self.state([elements], group_kernels.element_groups(offsets, groups))

    def merge_runs(self, states: pa.Array, groups: Groups) -> pa.Array | None:
        """Count the runs of equal integers, dates or times and join them; None for values of a wide range."""
        offsets, elements = columns.elements_of(states)
        numbers = values_of(elements) if library() is not None else None
        if numbers is None or not numbers.is_integer or numbers.validity is not None:
            return None
        counted = quantiles.count_runs(numbers, offsets, groups.kernel_codes, groups.count)
        if counted is None:
            return None
        return columns.lists_from(*_counted(*counted, numbers, elements.type))

    @property
    def division(self) -> Division:
        """Return "in order": a quantile is a value, or between two, at a position that follows from the number of values."""
        return "in order"

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the values of states, floats as integers of the same order."""
        values = columns.elements_of(states)[1]
        if not pa.types.is_floating(values.type):
            return [values]
        return [from_numpy(sortable_bits(columns.numpy_values(values)))]

    def state_of_elements(self, elements: Sequence[pa.Array]) -> pa.Array:
        """Return the state of sorted values."""
        (values,) = elements
        arrow = self.state_type.arrow.value_type
        if pa.types.is_floating(arrow):
            floats = floats_of_sortable_bits(columns.numpy_values(values))
            values = columns.from_values(floats, arrow)
        return columns.lists_from(np.array([0, len(values)]), columns.retype(values, arrow))

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the quantiles of all parts' values, of which those at the wanted positions are kept."""
        picks = [self._picks(level, np.array([0, count])) for level in self.levels]
        rows = np.unique(np.concatenate([pick.rows for pick in picks]))
        chosen: list[pa.Array] = []
        before = 0
        for part in parts:
            values = columns.elements_of(part)[1]
            own = rows[(rows >= before) & (rows < before + len(values))] - before
            chosen.append(values.take(from_numpy(own)))
            before += len(values)
        elements = pa.concat_arrays(chosen)
        return self._results([self._values(pick.among(rows), elements) for pick in picks], 1)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return one quantile a group, or with quantilesExact a list of them in order of levels."""
        offsets, elements = columns.elements_of(states)
        quantiles = [self._values(self._picks(level, offsets), elements) for level in self.levels]
        return self._results(quantiles, len(states))

    def _results(self, quantiles: list[pa.Array], groups: int) -> pa.Array:
        """Return the results of groups from one array for each level."""
        if not isinstance(self.result_type, Array):
            return quantiles[0]
        count = len(self.levels)
        stacked = pa.concat_arrays(quantiles)
        rows = np.arange(groups)[:, None] + np.arange(count)[None, :] * groups
        lists = np.arange(groups + 1) * count
        return columns.lists_from(lists, stacked.take(from_numpy(rows.reshape(-1))))

    def _picks(self, level: float, offsets: np.ndarray) -> _Picks:
        """Return which values make the quantile of each group, whose sorted values begin at `offsets`."""
        counts = np.diff(offsets)
        positions = np.minimum((level * counts).astype(np.int64), counts - 1)
        if level == 0.5 and self.name.endswith("Low"):
            positions = (counts - 1) // 2
        rows = np.where(counts > 0, offsets[:-1] + positions, -1)
        return _Picks(rows, rows, np.zeros(len(rows)))

    def _values(self, picks: _Picks, elements: pa.Array) -> pa.Array:
        """Return the quantile of each group; the type's default, or NaN, for an empty group."""
        values = group_kernels.take_rows(elements, picks.lower)
        result = self.result_type
        if pa.types.is_floating(values.type) and not isinstance(result, Array):
            return values.fill_null(float("nan"))  # quantilesExact gives 0, as in ClickHouse
        missing = default_value(result.inner if isinstance(result, Array) else result)
        return pc.fill_null(values, missing) if values.null_count else values


@dataclass(frozen=True)
class InterpolatedQuantiles(ExactQuantiles):
    """quantileExactInclusive and …Exclusive, interpolated; Float64.

    The position from 0 is level * (n - 1), as PERCENTILE.INC of spreadsheets and type 7 of R, or
    level * (n + 1) - 1, as PERCENTILE.EXC and type 6."""

    def _picks(self, level: float, offsets: np.ndarray) -> _Picks:
        """Return the two values next to the position of each group, and its share of the way between them."""
        counts = np.diff(offsets)
        exclusive = "Exclusive" in self.name  # counted from 1, so that rounding is ClickHouse's
        position = level * (counts + 1) if exclusive else level * (counts - 1) + 1
        position = np.clip(position, 1, np.maximum(counts, 1))
        whole = np.floor(position).astype(np.int64)
        lower = whole - 1
        upper = np.minimum(lower + 1, np.maximum(counts - 1, 0))
        starts = offsets[:-1]
        filled = counts > 0
        return _Picks(
            np.where(filled, starts + lower, -1),
            np.where(filled, starts + upper, -1),
            position - whole,
        )

    def _values(self, picks: _Picks, elements: pa.Array) -> pa.Array:
        """Return the quantile of each group; NaN for an empty group."""
        values = columns.numpy_values(elements).astype(np.float64)
        out = np.full(len(picks.lower), np.nan)
        filled = picks.lower >= 0
        low, high = values[picks.lower[filled]], values[picks.upper[filled]]
        share = picks.share[filled]
        with np.errstate(invalid="ignore"):
            out[filled] = np.where(share == 0, low, low + share * (high - low))
        return columns.from_values(out, pa.float64())


def _sorted_integers(values: pa.Array, groups: Groups) -> tuple[np.ndarray, pa.Array] | None:
    """Sort integers, dates or times by group and value, without NULLs; return the groups' offsets and the sorted
    values. Returns None for other types and where the compiled kernel is missing."""
    numbers = values_of(values) if library() is not None else None
    if numbers is None or not numbers.is_integer:
        return None
    codes = groups.kernel_codes
    counted = quantiles.count_cells(numbers, codes, groups.count)
    if counted is None:
        offsets, ordered = quantiles.sorted_values(numbers, codes, groups.count)
        return offsets, columns.from_values(ordered, values.type)
    return _counted(*counted, numbers, values.type)


def _counted(
    low: int, cells: np.ndarray, numbers: ColumnValues, arrow: pa.DataType
) -> tuple[np.ndarray, pa.Array]:
    """Return the groups' offsets and the sorted values, of type `arrow`, from the `cells` that count `numbers`."""
    ordered = quantiles.repeated(low, cells, numbers)
    return columns.offsets_from_counts(cells.sum(axis=1)), columns.from_values(ordered, arrow)


def _sorted(values: pa.Array, groups: Groups) -> pa.Array:
    """Return the values sorted by group, then by value.

    Integers and times of a small range are packed with their group into one integer to sort."""
    keys = group_kernels.order_keys(values)
    is_float = pa.types.is_floating(values.type)
    is_long = (
        pa.types.is_decimal128(values.type) and values.type.precision <= group_kernels.LONG_DIGITS
    )
    if library() is not None and (is_float or is_long):
        numbers = values_of_numbers(keys)
        ordered = quantiles.sorted_values(numbers, groups.kernel_codes, groups.count)[1]
        if is_long:
            return decimals_of_integers(ordered, values.type)
        return columns.from_values(floats_of_sortable_bits(ordered), values.type)
    if len(keys) and (pa.types.is_integer(values.type) or pa.types.is_temporal(values.type)):
        least = int(keys.min())
        span = int(keys.max()) - least + 1
        if groups.count * span < _PACKED_MAX and abs(least) < _PACKED_MAX:
            packed = groups.codes * span + (keys.astype(np.int64) - least)
            ordered = _sorted_numbers(packed, groups.count * span)
            return columns.from_values(ordered % span + least, values.type)
    return values.take(from_numpy(order_by(groups.codes, keys)))


def _sorted_numbers(numbers: np.ndarray, limit: int) -> np.ndarray:
    """Sort integers from 0 up to `limit`, by counting if they are dense."""
    if limit > 4 * len(numbers):
        return np.sort(numbers)
    counts = np.bincount(numbers, minlength=limit)
    return np.repeat(np.arange(limit), counts)


def exact_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)Exact, …ExactLow and …ExactHigh. Raises IllegalTypeOfArgument."""
    require_some(name, types)
    argument = plain(types[0])
    numeric_types = Integer | Float | Boolean | Decimal
    if not isinstance(argument, numeric_types | Date | Date32 | DateTime | DateTime64):
        raise illegal_argument(name, types[0], NUMBER_OR_DATE)
    require_count(name, types, 1)
    levels = quantile_levels(name, parameters)
    result = Array(argument) if name.startswith("quantiles") else argument
    state = state_type_of(name, parameters, types, Array(argument))
    return ExactQuantiles(name, parameters, types, result, state, levels)


def interpolated_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)ExactInclusive and …Exclusive of numbers and dates.

    Raises IllegalTypeOfArgument and BadArguments."""
    require_some(name, types)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Boolean | Date | Date32 | DateTime | DateTime64):
        raise illegal_argument(name, types[0], "a number or date")
    require_count(name, types, 1)
    levels = quantile_levels(name, parameters)
    if name.endswith("Exclusive") and not all(0 < level < 1 for level in levels):
        raise BadArguments(f"The levels of {name} lie between 0 and 1, both excluded.")
    result = Array(FLOAT64) if name.startswith("quantiles") else FLOAT64
    state = state_type_of(name, parameters, types, Array(argument))
    return InterpolatedQuantiles(name, parameters, types, result, state, levels)
