"""count, sum, sumWithOverflow, avg, sumCount, avgWeighted and the bitwise aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import AceroAggregation, Aggregate, Groups, MergeClass, TotalsOfState
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.functions.kernels.decimal_width import (
    decimal_class,
    floats_of_decimals,
    is_short,
    with_precision,
)
from olapdb.functions.kernels.supertypes import DECIMAL_DIGITS, as_number, sum_type
from olapdb.lazy import LazyModule
from olapdb.native.group_totals import Total
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    UINT8,
    UINT64,
    Boolean,
    DataType,
    Decimal,
    Enum,
    Float,
    Integer,
    Tuple,
    WideNumber,
    plain,
)

if TYPE_CHECKING:
    from olapdb.functions.aggregates import average_times
else:
    average_times = LazyModule("olapdb.functions.aggregates.average_times")

_NO_MINIMUM = pc.ScalarAggregateOptions(skip_nulls=True, min_count=0)


@dataclass(frozen=True)
class Count(Aggregate):
    """count: the number of rows, or of rows in which no argument is NULL. State: UInt64."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the number of rows of each group in which no argument is NULL."""
        return columns.from_values(group_kernels.count_values(arguments, groups), pa.uint64())

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the count of rows that are not NULL as a total; None for several arguments."""
        if len(arguments) > 1 or not all(map(may_be_counted, arguments)):
            return None
        total = Total("count", *arguments)
        return TotalsOfState([total], lambda v: columns.from_values(v[0], pa.uint64()))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the counts of each group."""
        sums = group_kernels.sum_integers(columns.numpy_values(states), groups, np.dtype(np.uint64))
        return columns.from_values(sums, pa.uint64())

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the counts unchanged."""
        return states

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return Arrow's count for at most one argument, None for several."""
        if not self.argument_types:
            return (AceroAggregation(None, "hash_count_all"),)
        if len(self.argument_types) == 1:
            return (AceroAggregation(0, "hash_count", pc.CountOptions(mode="only_valid")),)
        return None

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return the states from the result of Arrow's count."""
        return leaves[0].cast(pa.uint64())


def may_be_counted(column: pa.Array) -> bool:
    """Return whether a `Total` can count the column's values: its NULLs are in a bitmap of its own."""
    return not (pa.types.is_null(column.type) or isinstance(column, pa.DictionaryArray))


def sum_of_total(total: np.ndarray, column: pa.Array, summed: DataType) -> pa.Array:
    """Return the values of a `Total` of sums of a column as `summed.arrow`."""
    if isinstance(summed, Decimal):
        words = np.stack([total, (total.view(np.int64) >> 63).view(np.uint64)], axis=1)
        arrow = pa.decimal128(38, column.type.scale)
        return pa.Array.from_buffers(arrow, len(total), [None, pa.py_buffer(words)])
    dtype = total.dtype if isinstance(summed, Float) else columns.dtype_of(summed.arrow)
    return columns.from_values(total.astype(dtype, copy=False), summed.arrow)


def may_be_summed(column: pa.Array, summed: DataType) -> bool:
    """Return whether a `Total` can compute the sum of the column as type `summed`."""
    if isinstance(column, pa.DictionaryArray) or isinstance(summed, WideNumber):
        return False
    if isinstance(summed, Decimal):
        return is_short(column.type)
    kind = pa.types.is_floating if isinstance(summed, Float) else pa.types.is_integer
    return bool(kind(column.type)) and not pa.types.is_float16(column.type)


def sum_by_group(array: pa.Array, summed: DataType, groups: Groups) -> pa.Array:
    """Return the sum of each group as `summed.arrow`, over values that are not null.

    Integer sums wrap, decimal sums are exact, float sums are Float64."""
    addresses = tuple(0 if buffer is None else buffer.address for buffer in array.buffers())
    key = (addresses, array.offset, len(array), array.type, summed)
    known = groups.sums.get(key)
    if known is None:  # the column is kept too: its addresses name nothing else meanwhile
        known = groups.sums[key] = (array, _sum_by_group(array, summed, groups))
    return known[1]


def _sum_by_group(array: pa.Array, summed: DataType, groups: Groups) -> pa.Array:
    """Compute the sum of each group as `sum_by_group` returns it, without its cache in `groups`."""
    arrow = summed.arrow
    if isinstance(summed, WideNumber):
        sums = group_kernels.sum_decimals(array, groups)
        return wide_numbers.column_of(wide_numbers.limbs_of(sums), summed)
    if isinstance(summed, Decimal):
        return group_kernels.sum_decimals(_widened(array, arrow), groups)
    dtype = np.dtype(np.float64) if isinstance(summed, Float) else columns.dtype_of(arrow)
    return columns.from_values(group_kernels.sum_values(array, groups, dtype), arrow)


def _widened(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Cast decimals to the digits of their sum's type; a view if the width stays. 64-bit decimals stay as they are,
    since their kernel sums in 128 bits."""
    if is_short(array.type):
        return array
    same_width = pa.types.is_decimal(array.type) and array.type.bit_width == arrow.bit_width
    if same_width and array.type.scale == arrow.scale:
        return with_precision(array, arrow)
    return array.cast(arrow)


@dataclass(frozen=True)
class Sum(Aggregate):
    """sum and sumWithOverflow.

    State: the sum as a wrapping integer, as Decimal(38 or 76, S), or as Float64."""

    @property
    def skips_nulls(self) -> bool:
        """True: `state` skips NULLs while it reads."""
        return True

    @property
    def takes_short_decimals(self) -> bool:
        """True: `state` takes 64-bit decimals as they are."""
        return True

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the sum of each group over values that are not NULL."""
        return sum_by_group(arguments[0], self.state_type.state, groups)

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the total from which the state is made; None for values whose sums need another way."""
        (column,), summed = arguments, self.state_type.state
        if not may_be_summed(column, summed):
            return None
        return TotalsOfState([Total("sum", column)], lambda v: sum_of_total(v[0], column, summed))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the sums of each group."""
        return sum_by_group(states, self.state_type.state, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sums unchanged."""
        return states

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return Arrow's sum if integers or booleans add up to 64 bits, else None."""
        argument = plain(self.argument_types[0])
        integers = isinstance(argument, Integer | Boolean)
        if integers and isinstance(self.result_type, Integer) and self.result_type.bits == 64:
            return (AceroAggregation(0, "hash_sum", _NO_MINIMUM),)
        return None

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return the states from Arrow's sums; NULL, of a group without values, becomes 0."""
        summed = leaves[0]
        if summed.null_count:
            summed = pc.fill_null(summed, pa.scalar(0, summed.type))
        return summed.cast(self.state_type.arrow, safe=False)


@dataclass(frozen=True)
class Average(Aggregate):
    """avg. State: Tuple(sum, count), the sum as `sum` has it: exact for integers and decimals."""

    @property
    def skips_nulls(self) -> bool:
        """True: `state` skips NULLs while it reads."""
        return True

    @property
    def takes_short_decimals(self) -> bool:
        """True: `state` takes 64-bit decimals as they are."""
        return True

    @property
    def summed(self) -> DataType:
        """The type of the sum in the state."""
        assert isinstance(self.state_type.state, Tuple)
        return self.state_type.state.elements[0]

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the sum and number of each group's values that are not NULL."""
        counts = group_kernels.count_values(arguments, groups)
        return self.state_of(
            sum_by_group(arguments[0], self.summed, groups),
            columns.from_values(counts, pa.uint64()),
        )

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the sum and the number of values as totals, or None if the column cannot be summed that way."""
        (column,), summed = arguments, self.summed
        if not may_be_summed(column, summed):
            return None
        return TotalsOfState(
            [Total("sum", column), Total("count", column)],
            lambda v: self.state_of(
                sum_of_total(v[0], column, summed), columns.from_values(v[1], pa.uint64())
            ),
        )

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the sums and the counts of each group."""
        sums, counts = columns.struct_fields(states)
        return self.state_of(
            sum_by_group(sums, self.summed, groups), sum_by_group(counts, UINT64, groups)
        )

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return sum / count as Float64; NaN for a group without values."""
        sums, counts = columns.struct_fields(states)
        is_decimal = pa.types.is_decimal(sums.type)
        floats = floats_of_decimals(sums) if is_decimal else sums.cast(pa.float64(), safe=False)
        totals = columns.numpy_values(floats)
        with np.errstate(divide="ignore", invalid="ignore"):
            return columns.from_values(totals / columns.numpy_values(counts), pa.float64())

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return Arrow's sum and count for integers and booleans, else None."""
        if not isinstance(plain(self.argument_types[0]), Integer | Boolean):
            return None
        return (
            AceroAggregation(0, "hash_sum", _NO_MINIMUM),
            AceroAggregation(0, "hash_count", pc.CountOptions(mode="only_valid")),
        )

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return the states from Arrow's sums and counts; a NULL sum becomes 0."""
        sums, counts = leaves
        if sums.null_count:
            sums = pc.fill_null(sums, pa.scalar(0, sums.type))
        return self.state_of(sums.cast(self.summed.arrow, safe=False), counts.cast(pa.uint64()))

    def state_of(self, sums: pa.Array, counts: pa.Array) -> pa.Array:
        """Return the states Tuple(sum, count) from one of each a group."""
        return columns.structs_from([sums, counts], self.state_type.arrow)


@dataclass(frozen=True)
class SumCount(Average):
    """sumCount: the sum, and the number of values added up. State: as of `Average`."""

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return tuples of the sum and the count."""
        return columns.structs_from(columns.struct_fields(states), self.result_type.arrow)


@dataclass(frozen=True)
class WeightedAverage(Aggregate):
    """avgWeighted(x, weight), in Float64; infinite or NaN if the weights add up to 0.

    State: Tuple(sum Float64, weight Float64), the sums of x * weight and of the weights.
    """

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the sums of x * weight and of weights, over rows without NULLs."""
        (values, weights), groups = group_kernels.drop_null_rows(arguments, groups)
        x, weight = (columns.numpy_values(array).astype(np.float64) for array in (values, weights))
        with np.errstate(over="ignore", invalid="ignore"):
            return self._state(x * weight, weight, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up both sums of each group."""
        products, weights = (columns.numpy_values(field) for field in columns.struct_fields(states))
        return self._state(products, weights, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sum of products divided by the sum of weights; NaN if both are 0."""
        products, weights = (columns.numpy_values(field) for field in columns.struct_fields(states))
        with np.errstate(divide="ignore", invalid="ignore"):
            return columns.from_values(products / weights, pa.float64())

    def _state(self, products: np.ndarray, weights: np.ndarray, groups: Groups) -> pa.Array:
        """Add up products and weights by group and return the states."""
        sums = (group_kernels.sum_floats(values, groups) for values in (products, weights))
        fields = [columns.from_values(values, pa.float64()) for values in sums]
        return columns.structs_from(fields, self.state_type.arrow)


_BITWISE = {
    "groupBitAnd": (np.bitwise_and, -1),
    "groupBitOr": (np.bitwise_or, 0),
    "groupBitXor": (np.bitwise_xor, 0),
}


@dataclass(frozen=True)
class Bitwise(Aggregate):
    """groupBitAnd, groupBitOr, groupBitXor of integers. State: the result."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Combine the bits of each group's values that are not NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return self.merge(arguments[0], groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the bits of each group's states.

        An empty group gives 0; with groupBitAnd all ones. Raises DecimalOverflow for a UInt256 of all ones.
        """
        operation, start = _BITWISE[self.state_type.function]
        if isinstance(self.result_type, WideNumber):
            limbs = np.full((groups.count, wide_numbers.LIMBS), start, np.int64).view(np.uint64)
            operation.at(limbs, groups.codes, wide_numbers.limbs_of(states))
            return wide_numbers.column_of(limbs, self.result_type)
        if pa.types.is_boolean(states.type):
            states = states.cast(pa.uint8())
        values = columns.numpy_values(states)
        out = np.full(groups.count, start, np.int64).astype(values.dtype)
        operation.at(out, groups.codes, values)
        return columns.from_values(out, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the states unchanged."""
        return states


def decimal_of_float(values: np.ndarray, target: Decimal) -> pa.Array:
    """Convert floats to decimals, truncated to the scale of `target`. A float that equals a decimal of that scale to
    15 digits becomes this decimal. Used for interpolated quantiles of decimals."""
    assert target.precision in DECIMAL_DIGITS or target.precision <= DECIMAL_DIGITS[-1]
    scaled = values * 10.0**target.scale
    nearest = np.rint(scaled)
    close = np.abs(scaled - nearest) <= np.abs(nearest) * 1e-15 * 4
    cut = np.where(close, nearest, np.trunc(scaled)) / 10.0**target.scale
    wide = pc.round(pa.array(cut), target.scale).cast(pa.decimal256(76, target.scale), safe=False)
    return with_precision(wide.cast(decimal_class(target.arrow)), target.arrow)


def count(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve count() or count(x)."""
    require_no_parameters(name, parameters)
    if types:
        require_count(name, types, 1)
    state = state_type_of(name, (), types, UINT64)
    return Count(name, (), types, UINT64, state, additive=True, merge_function="sum")


def total(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve sum, in the widest type of the argument's kind, or sumWithOverflow, in its own type.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if isinstance(argument, Enum):
        argument = argument.number_type
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    result = as_number(argument) if name == "sumWithOverflow" else sum_type(argument)
    merge_class: MergeClass = "float" if isinstance(argument, Float) else "exact"
    if result == Float(32):
        merge_class = "ordered"  # each addition rounds to 24 bits, in the order of the rows
    return Sum(
        name,
        (),
        types,
        result,
        state_type_of(name, (), types, result),
        merge_class=merge_class,
        additive=True,
        merge_function=name,
    )


def average_of_any(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve avg: `average` for numbers, `average_times` for dates, moments and times."""
    if len(types) == 1 and isinstance(plain(types[0]), Integer | Float | Decimal):
        return average(name, parameters, types)
    return average_times.average_of_times(name, parameters, types)


def average(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve avg or sumCount of numbers. Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    state = Tuple((sum_type(argument), UINT64), ("sum", "count"))
    aggregate, result = (Average, FLOAT64) if name == "avg" else (SumCount, Tuple(state.elements))
    return aggregate(
        name,
        (),
        types,
        result,
        state_type_of(name, (), types, state),
        merge_class="float" if isinstance(argument, Float) else "exact",
    )


def weighted_average(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve avgWeighted(x, weight) of numbers that are not decimals.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    state = Tuple((FLOAT64, FLOAT64), ("sum", "weight"))
    return WeightedAverage(
        name, (), types, FLOAT64, state_type_of(name, (), types, state), merge_class="float"
    )


def bitwise(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve groupBitAnd, groupBitOr or groupBitXor of an integer.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if isinstance(argument, Boolean):
        argument = UINT8
    if not isinstance(argument, Integer | WideNumber):
        raise illegal_argument(name, types[0], "an integer")
    state = state_type_of(name, (), types, argument)
    return Bitwise(name, (), types, argument, state, additive=True, merge_function=name)
