"""quantile, quantileTDigest, quantileTiming and their kin: exact for up to 8,192 values, then by fixed buckets.

Both forms depend only on the multiset of values, so the cut into blocks and the order of merges do
not change a result. Reservoirs, t-digest and KLL lack this property (measured).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.quantile_buckets import (
    ValueCounts,
    bucket_counts,
    bucket_middles,
    bucket_numbers,
)
from olapdb.functions.aggregates.signatures import (
    NUMBER_OR_DATE,
    illegal_argument,
    quantile_levels,
    require_count,
    require_some,
    state_type_of,
)
from olapdb.functions.aggregates.sums import decimal_of_float
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import floats_of_sortable_bits, sortable_bits
from olapdb.native import quantiles
from olapdb.native.library import library
from olapdb.native.values import values_of, values_of_numbers
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    UINT64,
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
    Tuple,
    is_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

EXACT_MAX = 8_192
_CELLS_MAX = 1 << 20
_TIMING_MAX = 30_000

Rule: TypeAlias = Literal["interpolated", "ranked", "floored"]
"""The position of a level among n sorted values: level * (n - 1), interpolated between the two
nearest values; ceil(level * n) - 1; or floor(level * n), at most n - 1."""


@dataclass(frozen=True)
class Quantiles(Aggregate):
    """quantile and quantileTDigest, and their forms of many levels. NULL and NaN are skipped.

    State: Tuple(values Array(Float64) sorted, buckets Array(Int32), counts Array(UInt64)). A group
    of at most 8,192 values fills `values`, a larger one `buckets` and `counts`.
    """

    levels: tuple[float, ...] = (0.5,)
    rule: Rule = "interpolated"

    @property
    def state_key(self) -> Hashable | None:
        """The class and argument types, never None: the levels do not change the state."""
        return type(self), self.argument_types

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's state from its values, without NULL and NaN."""
        if len(arguments) > 1:
            arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        counted = _counted(arguments[0], groups)
        if counted is not None:
            return self._state(*_few_and_many(*counted, groups.count), groups.count)
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        values = _as_floats(arguments[0])
        numbers = ~np.isnan(values)
        if not numbers.all():
            values, groups = values[numbers], Groups(groups.codes[numbers], groups.count)
        empty = np.zeros(0, np.int64)
        return self._state(values, groups.codes, empty, empty, empty, groups.count)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the values and buckets of each group's states."""
        values, buckets, counts = columns.struct_fields(states)
        value_offsets, elements = columns.elements_of(values)
        bucket_offsets, numbers = columns.elements_of(buckets)
        _, weights = columns.elements_of(counts)
        return self._state(
            columns.numpy_values(elements),
            group_kernels.element_groups(value_offsets, groups).codes,
            columns.numpy_values(numbers).astype(np.int64),
            columns.numpy_values(weights).astype(np.int64),
            group_kernels.element_groups(bucket_offsets, groups).codes,
            groups.count,
        )

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return one quantile a group, or with quantiles a list of them in order of levels.

        An empty group gives NULL if the result is Nullable, else NaN, or 0 for dates and decimals.
        """
        ordered, weights, offsets = _weighted(states)
        quantiles = np.stack(
            [_at(level, self.rule, ordered, weights, offsets) for level in self.levels], axis=1
        )
        quantiles = self._limited(quantiles)
        result = self.result_type
        if isinstance(result, Array):
            lists = np.arange(len(states) + 1, dtype=np.int64) * len(self.levels)
            return columns.lists_from(lists, _typed(quantiles.reshape(-1), result.inner))
        values = _typed(quantiles[:, 0], result)
        if is_nullable(result):
            nonempty = np.diff(offsets) > 0
            rows = np.where(nonempty, np.arange(len(states)), -1)
            return group_kernels.take_rows(values, rows)
        return values

    def _limited(self, quantiles: np.ndarray) -> np.ndarray:
        """Return the quantiles cut to the greatest value that the aggregate counts."""
        return quantiles

    def _state(
        self,
        values: np.ndarray,
        owners: np.ndarray,
        buckets: np.ndarray,
        weights: np.ndarray,
        bucket_owners: np.ndarray,
        count: int,
    ) -> pa.Array:
        """Return the states of `count` groups from single values and from buckets with weights,
        each with the group that owns it. Groups over the limit turn their values into buckets.
        """
        totals = np.bincount(owners, minlength=count)
        totals = totals + np.bincount(bucket_owners, weights, count).astype(np.int64)
        over_limit = totals > EXACT_MAX
        to_bucket = over_limit[owners]
        if to_bucket.any():
            is_single = to_bucket if not to_bucket.all() else slice(None)
            more = bucket_counts(values[is_single], owners[is_single], count)
            buckets = np.concatenate((buckets, more[0]))
            weights = np.concatenate((weights, more[1]))
            bucket_owners = np.concatenate((bucket_owners, more[2]))
            values, owners = values[~to_bucket], owners[~to_bucket]
        lists = _sorted_lists(values, owners, count)
        numbers, counts = _bucket_lists(buckets, weights, bucket_owners, count)
        return columns.structs_from([lists, numbers, counts], self.state_type.arrow)


@dataclass(frozen=True)
class Timings(Quantiles):
    """quantileTiming and quantilesTiming, of times in whole units, cut to at most 30,000.

    Negative and infinite numbers are skipped like NULL and NaN."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's state from its times."""
        (array,), groups = group_kernels.drop_null_rows(arguments, groups)
        values = np.trunc(_as_floats(array))
        usable = np.isfinite(values) & (values >= 0)
        times = pa.array(np.minimum(values[usable], _TIMING_MAX).astype(np.int32))
        return super().state([times], Groups(groups.codes[usable], groups.count))

    def _limited(self, quantiles: np.ndarray) -> np.ndarray:
        """Return quantiles of at most 30,000: the middle of the last bucket may be above."""
        limited: np.ndarray = np.minimum(quantiles, _TIMING_MAX)
        return limited


def _as_floats(array: pa.Array) -> np.ndarray:
    """Return numbers, dates or decimals as Float64 values."""
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return columns.numpy_values(array).astype(np.float64)


def _counted(array: pa.Array, groups: Groups) -> ValueCounts | None:
    """Count the distinct integers of all groups, as Float64 values, without NULLs. Returns None without the compiled
    kernel, for other types, and for integers of a wide range."""
    numbers = values_of(array) if library() is not None else None
    if numbers is None or not numbers.is_integer:
        return None
    counted = quantiles.count_cells(numbers, groups.kernel_codes, groups.count)
    if counted is None:
        return None
    low, cells = counted
    owners, places = np.nonzero(cells)
    integers = places.astype(np.uint64) + np.uint64(low % (1 << 64))
    if numbers.numbers.dtype.kind == "i":
        integers = integers.view(np.int64)
    return integers.astype(np.float64), cells[owners, places], owners


def _few_and_many(
    values: np.ndarray, weights: np.ndarray, owners: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Split groups by size: return the single values and their groups for small ones, and for groups over the limit
    the buckets, their weights and their groups, as `_state` takes them."""
    totals = np.bincount(owners, weights, count)
    is_many = totals[owners] > EXACT_MAX
    few = weights[~is_many]
    return (
        np.repeat(values[~is_many], few),
        np.repeat(owners[~is_many], few),
        bucket_numbers(values[is_many]).astype(np.int64),
        weights[is_many],
        owners[is_many],
    )


def _sorted_lists(values: np.ndarray, owners: np.ndarray, count: int) -> pa.Array:
    """Return the values of each of `count` groups as a sorted list; `owners` is each value's
    group.
    """
    values = values + 0.0  # -0.0 becomes 0.0: equal values, one state
    if library() is not None:
        bits = values_of_numbers(sortable_bits(values))
        offsets, ordered = quantiles.sorted_values(bits, Groups(owners, count).kernel_codes, count)
        return columns.lists_from(offsets, from_numpy(floats_of_sortable_bits(ordered)))
    order = np.argsort(values, kind="stable")
    order = order[np.argsort(owners[order], kind="stable")]
    offsets = columns.offsets_from_counts(np.bincount(owners, minlength=count))
    return columns.lists_from(offsets, from_numpy(values[order]))


def _bucket_lists(
    buckets: np.ndarray, weights: np.ndarray, owners: np.ndarray, count: int
) -> tuple[pa.Array, pa.Array]:
    """Return for each group the list of its buckets, sorted, and the list of their value counts.

    `weights` are the value counts of `buckets`, `owners` their groups, from 0 up to `count`.
    """
    least = int(buckets.min()) if len(buckets) else 0
    span = (int(buckets.max()) if len(buckets) else 0) - least + 1
    keys = owners * span + (buckets - least)
    if count * span <= max(_CELLS_MAX, 4 * len(keys)):
        totals = np.zeros(count * span, np.int64)
        np.add.at(totals, keys, weights)
        pairs = np.flatnonzero(totals)
        summed = totals[pairs]
    else:
        unique = np.unique(keys, return_inverse=True)
        pairs = unique[0]
        summed = np.zeros(len(pairs), np.int64)
        np.add.at(summed, unique[1].reshape(-1), weights)
    groups, numbers = np.divmod(pairs, span)
    offsets = columns.offsets_from_counts(np.bincount(groups.astype(np.int64), minlength=count))
    numbers = columns.from_values(numbers + least, pa.int32())
    return (
        columns.lists_from(offsets, numbers),
        columns.lists_from(offsets, columns.from_values(summed, pa.uint64())),
    )


def _weighted(states: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the values or bucket middles of all groups, sorted within each group, their weights
    (numbers of values), and the offsets of the groups."""
    values, buckets, counts = columns.struct_fields(states)
    value_offsets, elements = columns.elements_of(values)
    bucket_offsets, numbers = columns.elements_of(buckets)
    _, weights = columns.elements_of(counts)
    value_counts, bucket_counts = np.diff(value_offsets), np.diff(bucket_offsets)
    offsets = columns.offsets_from_counts(value_counts + bucket_counts)
    ordered = np.empty(int(offsets[-1]))
    value_weights = np.ones(int(offsets[-1]), np.int64)
    is_bucket = np.repeat(bucket_counts > 0, value_counts + bucket_counts)
    ordered[~is_bucket] = columns.numpy_values(elements)
    ordered[is_bucket] = bucket_middles(columns.numpy_values(numbers))
    value_weights[is_bucket] = columns.numpy_values(weights).astype(np.int64)
    return ordered, value_weights, offsets


def _at(
    level: float, rule: Rule, ordered: np.ndarray, weights: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Return the quantile of each group for one level by the rule; NaN for an empty group.

    `ordered` has the values of all groups, sorted within each, `weights` their numbers, `offsets`
    where each group begins and the last one ends.
    """
    count = len(offsets) - 1
    cumulative = np.concatenate((np.zeros(1, np.int64), np.cumsum(weights)))
    start = cumulative[offsets[:-1]]
    totals = cumulative[offsets[1:]] - start
    position = _positions(level, rule, totals)
    lower = np.floor(position).astype(np.int64)
    out = np.full(count, np.nan)
    nonempty = totals > 0
    low = ordered[_holding(cumulative, (start + lower)[nonempty])]
    upper = np.minimum(lower + 1, np.maximum(totals - 1, 0))
    high = ordered[_holding(cumulative, (start + upper)[nonempty])]
    share = (position - lower)[nonempty]
    with np.errstate(invalid="ignore"):
        between = low * (1 - share) + high * share
    out[nonempty] = np.where((share == 0) | (low == high), low, between)
    return out


def _positions(level: float, rule: Rule, totals: np.ndarray) -> np.ndarray:
    """Return the (fractional) position of the level among the sorted values of groups of `totals` values, from 0;
    Float64."""
    last = np.maximum(totals - 1, 0)
    match rule:
        case "interpolated":
            return np.asarray(level * last)
        case "ranked":
            return np.asarray(np.clip(np.ceil(level * totals) - 1, 0, last))
        case "floored":
            return np.asarray(np.minimum(np.floor(level * totals), last))


def _holding(cumulative: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the index of the element that holds each position, both from 0.

    Element i counts for the positions from cumulative[i] up to cumulative[i + 1], excluded.
    """
    return np.searchsorted(cumulative, positions, side="right") - 1


def _typed(values: np.ndarray, result: DataType) -> pa.Array:
    """Return Float64 quantiles as the result type. Dates and decimals turn NaN, an empty group's
    quantile, into 0."""
    target = plain(result)
    if isinstance(target, Float):
        with np.errstate(over="ignore"):  # a Float32 may be infinite
            return columns.from_values(values, target.arrow)
    numbers = np.where(np.isnan(values), 0.0, values)
    if isinstance(target, Decimal):
        return decimal_of_float(numbers, target)
    largest = np.nextafter(
        2.0**63, 0
    )  # a float of the last ticks of 64 bits may be rounded up to 2^63
    return columns.from_values(np.minimum(numbers, largest).astype(np.int64), target.arrow)


def quantile(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve quantile(s), quantile(s)TDigest or quantile(s)Timing, the last two in Float32.

    Raises IllegalTypeOfArgument."""
    require_some(name, types)
    argument, kind = plain(types[0]), name.removeprefix("quantiles").removeprefix("quantile")
    result: DataType = FLOAT64 if not kind else FLOAT32
    if isinstance(argument, Date | Date32 | DateTime | DateTime64):
        result = result if kind == "Timing" else argument
    elif isinstance(argument, Decimal) and not kind:
        result = argument
    elif not isinstance(argument, Integer | Float | Boolean):
        raise illegal_argument(name, types[0], "a number or date" if kind else NUMBER_OR_DATE)
    require_count(name, types, 1)
    levels = quantile_levels(name, parameters)
    state = Tuple((Array(FLOAT64), Array(INT32), Array(UINT64)), ("values", "buckets", "counts"))
    aggregate = Timings if kind == "Timing" else Quantiles
    return aggregate(
        name,
        parameters,
        types,
        Array(result) if name.startswith("quantiles") else result,
        state_type_of(name, parameters, types, state),
        levels,
        _QUANTILE_RULES[kind],
        merge_class="sketch",
    )


def deterministic_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)Deterministic(x, determinator) as quantile, since its states use no random numbers. Raises
    IllegalTypeOfArgument."""
    require_some(name, types)
    if isinstance(plain(types[0]), Decimal):
        raise illegal_argument(name, types[0], "a number or date")
    plain_name = name.replace("Deterministic", "")
    levels = parameters or ((0.5,) if name.startswith("quantiles") else ())
    aggregate = quantile(plain_name, levels, types[:1])
    require_count(name, types, 2)
    if not isinstance(plain(types[1]), Integer):
        raise illegal_argument(name, types[1], "an integer determinator")
    quantile_levels(name, parameters)
    state = state_type_of(name, parameters, types, aggregate.state_type.state)
    return replace(aggregate, name=name, argument_types=types, state_type=state)


_QUANTILE_RULES: Mapping[str, Rule] = MappingProxyType(
    {"": "interpolated", "TDigest": "ranked", "Timing": "floored"}
)
