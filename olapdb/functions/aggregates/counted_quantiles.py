"""Quantiles computed from how often each value occurs: weighted ones, and those of rounded values.

The state has each distinct value once, rounded first where the function says so, and the sum of its
weights, so that no cut into blocks shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import (
    BadArguments,
    DecimalOverflow,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.counted_values import CountedValues
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    quantile_levels,
    require_count,
    require_some,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.decimal_width import decimals_of_unscaled, unscaled_floats
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT32,
    FLOAT64,
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
    plain,
)
from olapdb.types.arrow_values import from_numpy

_TIMING_MAX = 30_000
_TIMING_FEW = 31
_Times = Date | Date32 | DateTime | DateTime64


def _as_decimals(unscaled: np.ndarray, target: Decimal) -> pa.Array:
    """Convert unscaled integers to decimals of type `target`. Raises DecimalOverflow if one has too many digits."""
    if (np.abs(unscaled) >= 10.0**target.precision).any():
        raise DecimalOverflow(f"A quantile between two values is no {target}.")
    return decimals_of_unscaled(unscaled, target.arrow)


def _as_integers(numbers: np.ndarray, target: Integer) -> pa.Array:
    """Convert floats to integers of type `target`, truncated; floats beyond the type's range become its minimum or
    maximum."""
    dtype = columns.dtype_of(target.arrow)
    beyond = numbers > np.float64(np.nextafter(float(np.iinfo(dtype).max) + 1, 0))
    whole = np.where(beyond, 0.0, numbers).astype(dtype)
    whole[beyond] = np.iinfo(dtype).max
    return columns.from_values(whole, target.arrow)


@dataclass(frozen=True)
class Spread:
    """The distinct values of all groups, sorted by group and value, and their weights.

    `running` is the sum of the weights up to each value, from 0 in each group."""

    starts: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    running: np.ndarray

    @property
    def totals(self) -> np.ndarray:
        """The sum of the weights of each group."""
        return np.bincount(self.owners, self.weights, len(self.starts) - 1)

    @property
    def owners(self) -> np.ndarray:
        """The group of each value."""
        return columns.parents_of(self.starts)

    def first(self, reached: np.ndarray) -> np.ndarray:
        """Return the first position of each group at which `reached` is True, else its last one; -1
        for an empty group. `reached` never turns False again in a group."""
        before = np.bincount(self.owners[~reached], minlength=len(self.starts) - 1)
        places = np.minimum(self.starts[:-1] + before, self.starts[1:] - 1)
        return np.where(np.diff(self.starts) > 0, places, -1)


Places = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | int]
"""(lower place, upper place, distance from the lower, width) of each group: two positions among the values, -1 for none,
and where the level lies between them; divided by the width, the distance is the share of the upper value."""
Rule = Callable[[Spread, float], Places]
"""(spread, level) -> the places of the level in each group."""


def _at_least(spread: Spread, level: float) -> Places:
    """Return for each group the first value whose cumulative weight reaches the level's share. The result is (place,
    the same place, 0, 1), for a caller that interpolates between two places."""
    places = spread.first(spread.running >= (level * spread.totals)[spread.owners])
    return places, places, np.zeros(len(places)), 1


def _timed(spread: Spread, level: float) -> Places:
    """Return places as `_at_least` does; groups of small total weight take the value after the level's share."""
    share = level * spread.totals
    few = (spread.totals <= _TIMING_FEW)[spread.owners]
    wanted = np.where(few, np.floor(share)[spread.owners] + 1, np.ceil(share)[spread.owners])
    places = spread.first(spread.running >= wanted)
    return places, places, np.zeros(len(places)), 1


def _beyond(spread: Spread, level: float) -> Places:
    """Return the place of the value whose rank, from 0, is the level times the last rank, as (place, the same place,
    0, 1)."""
    places = spread.first(spread.running > (level * (spread.totals - 1))[spread.owners])
    return places, places, np.zeros(len(places)), 1


def _repeated(spread: Spread, level: float) -> Places:
    """Return the places of the level.

    They are those in the list that repeats each value as often as it weighs."""
    rank = level * (spread.totals - 1)
    low = spread.first(spread.running > np.floor(rank)[spread.owners])
    high = spread.first(spread.running > np.floor(rank + 1)[spread.owners])
    return low, high, rank - np.floor(rank), 1


def _between(spread: Spread, level: float) -> Places:
    """Return the places around the level; each value stands at the middle of its weight, as a share of all weights.

    The distance and its width are such shares too: their rounding decides a Decimal's last digit, which is truncated."""
    totals = spread.totals[spread.owners]
    middles = (spread.running - spread.weights / 2) / np.where(totals == 0, 1, totals)
    high = spread.first(middles >= level)
    low = np.where(high > spread.starts[:-1], high - 1, high)
    padded = np.append(middles, 0)
    left, right = padded[low], padded[high]
    low = np.where(level > right, high, low)
    return low, high, level - left, np.where(right > left, right - left, 1)


def _centroids(spread: Spread, level: float) -> Places:
    """Return the places as a t-digest interpolates: a value stands in the middle of its weight, one of weight 1 is
    a single point."""
    rank = level * spread.totals
    middles = spread.running - spread.weights / 2
    high = spread.first(middles >= rank[spread.owners])
    low = np.where(high > spread.starts[:-1], high - 1, high)
    half = 0.5 * (spread.weights == 1)
    padded_low, padded_high = np.append(middles + half, 0), np.append(middles - half, 0)
    left, right = padded_low[low], padded_high[high]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(right > left, (rank - left) / (right - left), rank > left)
    return low, high, np.clip(share, 0, 1), 1


@dataclass(frozen=True)
class Kind:
    """A family of quantiles: its rule for places, its result type (None: that of the argument), and whether it takes
    weights, takes decimals, and has an accuracy as first parameter."""

    rule: Rule
    result: DataType | None = None
    weighted: bool = False
    decimals: bool = False
    accuracy: type | None = None
    weightless: bool = False
    """Whether values of weight 0 have a place among the others."""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "BFloat16": Kind(_at_least, FLOAT64),
        "BFloat16Weighted": Kind(_at_least, FLOAT64, weighted=True, weightless=True),
        "TimingWeighted": Kind(_timed, FLOAT32, weighted=True),
        "TDigestWeighted": Kind(_centroids, FLOAT32, weighted=True),
        "InterpolatedWeighted": Kind(_between, weighted=True, decimals=True, weightless=True),
        "ExactWeightedInterpolated": Kind(_repeated, FLOAT64, weighted=True, decimals=True),
        "GK": Kind(_at_least, decimals=True, accuracy=int),
        "DD": Kind(_beyond, FLOAT64, accuracy=float),
    }
)
"""What follows `quantile` or `quantiles` in a name."""


@dataclass(frozen=True)
class CountedQuantiles(CountedValues):
    """quantile(s) of one of KINDS. NaN is left out, and so are values of weight 0 in most of them.

    quantileGK is exact, so that its accuracy changes nothing."""

    kind: str = "GK"
    accuracy: float = 0.0
    levels: tuple[float, ...] = (0.5,)

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values, rounded, and the sums of their weights."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        values = self._rounded(arguments[0])
        weights = np.ones(len(values), np.uint64)
        if KINDS[self.kind].weighted:
            weights = columns.numpy_values(arguments[1]).astype(np.uint64)
        keep = (weights > 0) | KINDS[self.kind].weightless
        if pa.types.is_floating(values.type):
            keep &= ~np.isnan(columns.numpy_values(values))
        (values,), groups = group_kernels.filter_rows([values], groups, keep)
        return self._state([values], weights[keep], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return one quantile a group, or with quantiles… a list of them in order of levels."""
        lists, weights = columns.struct_fields(states)
        starts, values = columns.elements_of(lists)
        counts = columns.numpy_values(columns.elements_of(weights)[1]).astype(np.float64)
        running = np.append(0.0, np.cumsum(counts))
        running = running[1:] - running[starts[:-1]][columns.parents_of(starts)]
        numbers = unscaled_floats(values) if pa.types.is_decimal(values.type) else values
        spread = Spread(starts, columns.numpy_values(numbers), counts, running)
        quantiles = [self._quantile(spread, values, level) for level in self.levels]
        if not isinstance(self.result_type, Array):
            return quantiles[0]
        count = len(self.levels)
        picks = np.arange(len(states))[:, None] + np.arange(count)[None, :] * len(states)
        stacked = pa.concat_arrays(quantiles).take(from_numpy(picks.reshape(-1)))
        return columns.lists_from(np.arange(len(states) + 1) * count, stacked)

    def _quantile(self, spread: Spread, values: pa.Array, level: float) -> pa.Array:
        """Return the quantile of each group; NaN or the type's default for an empty group."""
        result = self.result_type
        result = result.inner if isinstance(result, Array) else result
        low, high, distance, width = KINDS[self.kind].rule(spread, level)
        if values.type == result.arrow and KINDS[self.kind].rule is _at_least:
            taken = group_kernels.take_rows(values, low)
        else:
            numbers = np.append(spread.values.astype(np.float64), 0.0)
            with np.errstate(invalid="ignore"):
                steps = numbers[high] - numbers[low]
                apart = (low != high) & (distance > 0)
                between = numbers[low] + np.where(apart, steps / width * distance, 0.0)
            interpolated = np.where(low < 0, 0.0, between)
            if isinstance(result, Decimal):
                taken = _as_decimals(interpolated, result)
            elif isinstance(result, Integer):
                taken = _as_integers(interpolated, result)
            else:
                taken = columns.from_values(interpolated, result.arrow)
            taken = group_kernels.take_rows(taken, np.where(low < 0, -1, np.arange(len(low))))
        if not taken.null_count:
            return taken
        is_float = isinstance(result, Float)
        return pc.fill_null(taken, float("nan") if is_float else default_value(result))

    def _rounded(self, values: pa.Array) -> pa.Array:
        """Round the values as this family counts them: unchanged, in less precision, or as representatives of
        buckets."""
        arrow = self.state_type.arrow.field(0).type.value_type
        if self.kind in ("GK", "InterpolatedWeighted", "ExactWeightedInterpolated"):
            return columns.retype(values, arrow)
        numbers = columns.numpy_values(values).astype(np.float64)
        if self.kind.startswith("BFloat16"):
            with np.errstate(over="ignore"):
                narrow = numbers.astype(np.float32)
            bits = narrow.view(np.uint32) & np.uint32(0xFFFF0000)
            numbers = bits.view(np.float32).astype(np.float64)
        elif self.kind == "TDigestWeighted":
            with np.errstate(over="ignore"):
                numbers = numbers.astype(np.float32).astype(np.float64)
        elif self.kind == "TimingWeighted":
            usable = np.isfinite(numbers) & (numbers >= 0)
            numbers = np.where(usable, np.minimum(np.trunc(numbers), _TIMING_MAX), np.nan)
        else:
            numbers = self._bucketed(numbers)
        return columns.from_values(numbers + 0.0, arrow)

    def _bucketed(self, numbers: np.ndarray) -> np.ndarray:
        """Replace each number by the representative of its logarithmic DDSketch bucket (Masson et al. 2019). Raises
        BadArguments for a number outside of all buckets."""
        if np.isinf(numbers).any():
            raise BadArguments(f"{self.name} has no bucket for an infinite value.")
        scale = 1 / np.log((1 + self.accuracy) / (1 - self.accuracy))
        sizes = np.abs(numbers)
        zero = sizes < np.finfo(np.float64).tiny
        with np.errstate(divide="ignore", invalid="ignore"):
            keys = np.floor(np.log(np.where(zero, 1.0, sizes)) * scale)
            made = np.exp(keys / scale) * (1 + self.accuracy)
        return np.where(zero, 0.0, np.copysign(made, numbers))


def counted_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s) of one of KINDS. Raises IllegalTypeOfArgument."""
    kind_name = name.removeprefix("quantiles").removeprefix("quantile")
    kind = KINDS[kind_name]
    require_some(name, types)
    value = plain(types[0])
    accepted = isinstance(value, Integer | Float | Boolean | _Times)
    if not accepted and not (kind.decimals and isinstance(value, Decimal)):
        raise illegal_argument(name, types[0], "a number or time")
    require_count(name, types, 2 if kind.weighted else 1)
    levels, accuracy = parameters, 0.0
    if kind.accuracy is not None:
        accuracy = _accuracy(name, parameters, kind.accuracy)
        levels = parameters[1:]
    numbers = quantile_levels(name, levels)
    if kind.weighted:
        weight = plain(types[1])
        if not isinstance(weight, Integer) or weight.signed:
            raise illegal_argument(name, types[1], "an unsigned integer as the weight")
    result = value
    keeps = isinstance(value, Decimal | _Times) and kind_name[:6] != "Timing"
    if kind.result is not None and not keeps:
        result = kind.result
    raw = kind_name in ("GK", "InterpolatedWeighted", "ExactWeightedInterpolated")
    state = Tuple((Array(value if raw else FLOAT64), Array(UINT64)), ("values", "weights"))
    return CountedQuantiles(
        name,
        parameters,
        types,
        Array(result) if name.startswith("quantiles") else result,
        state_type_of(name, parameters, types, state),
        kind=kind_name,
        accuracy=accuracy,
        levels=numbers,
    )


def _accuracy(name: str, parameters: tuple[object, ...], kind: type) -> float:
    """Return the accuracy, which is the first parameter. Raises NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument
    and BadArguments."""
    if not parameters:
        raise NumberOfArgumentsDoesntMatch(f"The first parameter of {name} is its accuracy.")
    accuracy = parameters[0]
    if not isinstance(accuracy, int | float) or isinstance(accuracy, float) != (kind is float):
        raise IllegalTypeOfArgument(f"The accuracy of {name} is {kind.__name__}, not {accuracy!r}.")
    if accuracy <= 0 or (kind is float and accuracy >= 1):
        raise BadArguments(f"The accuracy {accuracy} of {name} is out of range.")
    return float(accuracy)
