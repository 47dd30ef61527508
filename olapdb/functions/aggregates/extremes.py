"""min, max, any, argMin and argMax. Results depend on the values only, not on the order of rows.

`any` returns the smallest value. If keys are equal, argMin and argMax return the smallest argument.
ClickHouse promises nothing about either; this promise makes views over them provable.
NaN is an extreme only if a group has no other value; -0.0 sorts below 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    boxed,
    illegal_argument,
    optional_type,
    optional_value_type,
    require_count,
    require_no_parameters,
    state_type_of,
    unboxed,
)
from olapdb.functions.base import AceroAggregation, Aggregate, ChooseRows, Groups, TotalsOfState
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.decimal_width import is_short, lengthened
from olapdb.functions.kernels.nested_order import nested_ranks
from olapdb.lazy import lazy_modules
from olapdb.native.group_totals import Total
from olapdb.records import dataclass
from olapdb.types import (
    AggregateFunction,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Integer,
    Json,
    LowCardinality,
    Time,
    Time64,
    Tuple,
    has_types_by_row,
    is_nullable,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.functions.dynamic import order
else:
    (order,) = lazy_modules("olapdb.functions.dynamic", "order")


def extreme_order_keys(array: pa.Array, *, largest: bool) -> np.ndarray:
    """Return integers that order as the values do, except that NaN (and NULL inside a value) is chosen last, for the
    smallest value as for the largest."""
    if pa.types.is_nested(array.type):
        return nested_ranks(array, missing_low=largest, zeros_apart=True)
    keys = group_kernels.order_keys(array)
    if largest and pa.types.is_floating(array.type):
        keys = np.where(np.isnan(columns.numpy_values(array)), np.iinfo(np.int64).min, keys)
    return keys


def _keys_of_type(array: pa.Array, data_type: DataType, *, largest: bool) -> np.ndarray:
    """Return `extreme_order_keys` of values of a type. JSON values follow the order of ORDER BY, which their Arrow
    form does not have."""
    if isinstance(plain(data_type), Json):
        array = order.order_keys(array, data_type)
    return extreme_order_keys(array, largest=largest)


def fill_missing(values: pa.Array, aggregate: Aggregate) -> pa.Array:
    """Replace nulls by the default of the aggregate's result type, unless that type is Nullable."""
    if not values.null_count or is_nullable(aggregate.result_type):
        return values
    missing = default_value(aggregate.result_type)
    if pa.types.is_nested(values.type):
        null_rows = np.asarray(values.is_null())
        rows = np.where(null_rows, len(values), np.arange(len(values)))
        return pa.concat_arrays([values, columns.single(missing)]).take(from_numpy(rows))
    return pc.fill_null(values, missing)


@dataclass(frozen=True)
class Extreme(Aggregate):
    """min, max and any. State: Tuple(value Nullable(T)), NULL for a group without values."""

    @property
    def skips_nulls(self) -> bool:
        """True: `state` skips NULLs while it reads."""
        return True

    @property
    def ignores_repeats(self) -> bool:
        """True: the state depends on the set of values alone."""
        return True

    @property
    def takes_dictionaries(self) -> bool:
        """True: `state` takes dictionaries of texts as they are."""
        return True

    @property
    def takes_short_decimals(self) -> bool:
        """True: `state` takes 64-bit decimals as they are."""
        return True

    @property
    def largest(self) -> bool:
        """Return whether the aggregate takes the largest value, not the smallest."""
        return self.merge_function == "max"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's extreme value that is not NULL."""
        return self._state(self._extreme_values(arguments[0], groups))

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the minimum or maximum of integers, times and short decimals as a total, with the number of values
        if some are NULL; None for other types."""
        (column,) = arguments
        if is_short(column.type):
            column = columns.view(column, pa.int64())
        elif not (pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)):
            return None
        extreme = Total("largest" if self.largest else "least", column)
        seen = [Total("count", column)] if column.null_count else []

        def states(values: Sequence[np.ndarray]) -> pa.Array:
            """Build the states from the computed extremes and, where there are NULLs, the counts of values."""
            has_values = values[1] > 0 if seen else None
            best = columns.from_values(values[0], column.type, has_values)
            if column.type != arguments[0].type:
                best = lengthened(columns.view(best, arguments[0].type))
            return self._state(best)

        return TotalsOfState([extreme, *seen], states)

    def states_of_extremes(
        self, arguments: Sequence[pa.Array], choose: ChooseRows
    ) -> pa.Array | None:
        """Return the states of the rows that `choose` picks by the values' order keys; None for a dictionary."""
        (values,) = arguments
        if isinstance(values, pa.DictionaryArray):
            return None
        valid = columns.validity(values)
        present = values if valid is None else values.filter(from_numpy(valid))
        keys = _keys_of_type(present, self.argument_types[0], largest=self.largest)
        if valid is not None:
            every = np.zeros(len(values), keys.dtype)
            every[valid] = keys
            keys = every
        rows = choose(keys, valid, self.largest)
        values = lengthened(values) if is_short(values.type) else values
        return self._state(group_kernels.take_rows(values, rows))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the extreme value of each group's states."""
        return self.state([self._values(states)], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the values; a group without values gives NULL, or the default if not Nullable."""
        return fill_missing(self._values(states), self)

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return Arrow's min or max for integers and times; None for other types."""
        integer_types = Integer | Date | Date32 | DateTime | DateTime64 | Time | Time64
        if isinstance(plain(self.argument_types[0]), integer_types):
            function = "hash_max" if self.largest else "hash_min"
            return (AceroAggregation(0, function, pc.ScalarAggregateOptions(skip_nulls=True)),)
        return None

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return the states from the result of Arrow's min or max."""
        return self._state(leaves[0])

    def _extreme_values(self, values: pa.Array, groups: Groups) -> pa.Array:
        """Return each group's extreme value; null for an empty group."""
        if pa.types.is_integer(values.type) or pa.types.is_temporal(values.type):
            return group_kernels.extreme_values(values, groups, largest=self.largest)
        if is_short(values.type):
            numbers = columns.view(values, pa.int64())
            best = group_kernels.extreme_values(numbers, groups, largest=self.largest)
            return lengthened(columns.view(best, values.type))
        if isinstance(values, pa.DictionaryArray) or pa.types.is_string(values.type):
            return group_kernels.extreme_texts(values, groups, largest=self.largest)
        (values,), groups = group_kernels.drop_null_rows([values], groups)
        keys = _keys_of_type(values, self.argument_types[0], largest=self.largest)
        return group_kernels.take_rows(
            values, group_kernels.extreme_rows(keys, groups, largest=self.largest)
        )

    def _state(self, values: pa.Array) -> pa.Array:
        """Return the states Tuple(value) from one value a group."""
        arrow = self.state_type.arrow
        return columns.structs_from([boxed(values, arrow.field(0).type)], arrow)

    def _values(self, states: pa.Array) -> pa.Array:
        """Return the values of states; null for an empty group."""
        return unboxed(columns.struct_fields(states)[0], self.argument_types[0])


@dataclass(frozen=True)
class ExtremeArgument(Aggregate):
    """argMin and argMax. State: Tuple(value Nullable(R), key Nullable(K)).

    Rows in which the value or the key is NULL are skipped."""

    @property
    def largest(self) -> bool:
        """Return whether the aggregate takes the largest key, not the smallest."""
        return self.state_type.function == "argMax"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the value and key of its row with the extreme key."""
        (values, keys), groups = group_kernels.drop_null_rows(arguments, groups)
        rows = self._chosen_rows(values, keys, groups)
        arrow = self.state_type.arrow
        chosen = [
            boxed(group_kernels.take_rows(column, rows), arrow.field(i).type)
            for i, column in enumerate((values, keys))
        ]
        return columns.structs_from(chosen, arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return for each group the value and key of its state with the extreme key."""
        fields = zip(columns.struct_fields(states), self.argument_types, strict=True)
        return self.state([unboxed(field, of) for field, of in fields], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the values; a group without rows gives NULL, or the default if not Nullable."""
        values = unboxed(columns.struct_fields(states)[0], self.argument_types[0])
        return fill_missing(values, self)

    def _chosen_rows(self, values: pa.Array, keys: pa.Array, groups: Groups) -> np.ndarray:
        """Return each group's row with the extreme key and, of equal keys, the smallest value; -1
        for a group without rows."""
        ordered = _keys_of_type(keys, self.argument_types[1], largest=self.largest)
        best = group_kernels.extreme_keys(ordered, groups, largest=self.largest)
        ties = np.flatnonzero(ordered == best[groups.codes])
        tied_groups = Groups(groups.codes[ties], groups.count)
        tied_ranks = nested_ranks(values.take(from_numpy(ties)), zeros_apart=True)
        rows = group_kernels.extreme_rows(tied_ranks, tied_groups, largest=False)
        if not len(ties):
            return rows
        return np.where(rows < 0, rows, ties[rows])


def picked_type(name: str, data_type: DataType) -> DataType:
    """Return the type of a value that the aggregate picks: without LowCardinality, Nullable kept.

    Raises IllegalTypeOfArgument."""
    if isinstance(plain(data_type), AggregateFunction):
        raise illegal_argument(name, data_type, "a value, not a state,")
    return data_type.inner if isinstance(data_type, LowCardinality) else data_type


def _require_orderable(name: str, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument if values of the type have no order: states, and those of several types."""
    if isinstance(plain(data_type), AggregateFunction):
        raise illegal_argument(name, data_type, "a value, not a state,")
    has_order = isinstance(plain(data_type), Json) or not has_types_by_row(data_type)
    if name not in _PICKING and not has_order:
        raise illegal_argument(
            name, data_type, "a value of one type (variantElement and dynamicElement take it)"
        )


_PICKING = ("any",)
"""Aggregates for which it does not matter how values of two types compare."""


def extreme(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve min, max or any."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    _require_orderable(name, types[0])
    result = picked_type(name, types[0])
    state = state_type_of(name, (), types, optional_value_type(types[0]))
    return Extreme(name, (), types, result, state, additive=True, merge_function=name)


def extreme_argument(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve argMin or argMax of a value and a key; both must have an order.

    A Nullable key makes the result Nullable.
    """
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    _require_orderable(name, types[1])
    result = picked_type(name, types[0])
    if is_nullable(types[1]):
        result = make_nullable(result)
    fields = (optional_type(types[0]), optional_type(types[1]))
    state = state_type_of(name, (), types, Tuple(fields, ("value", "key")))
    return ExtremeArgument(name, (), types, result, state)
