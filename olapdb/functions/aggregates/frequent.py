"""anyHeavy, singleValueOrNull and uniqUpTo: a group's most frequent value, its only one, or how many
it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, CannotConvertType, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.counted_values import MostFrequent
from olapdb.functions.aggregates.distinct import OfDistinctValues, UniqExact
from olapdb.functions.aggregates.extremes import fill_missing
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Division, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.functions.kernels.nested import truncate_lists
from olapdb.records import dataclass
from olapdb.types import (
    UINT64,
    AggregateFunction,
    Array,
    DataType,
    Map,
    Tuple,
    make_nullable,
    plain,
)

_UP_TO_MAX = 100


@dataclass(frozen=True)
class AnyHeavy(MostFrequent):
    """anyHeavy(x): the most frequent value; of equally frequent ones the smallest.

    ClickHouse's algorithm (Misra and Gries with one counter) finds a value of more than half of the
    rows, and else one that depends on the order of rows and blocks."""

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's most frequent value; the type's default for a group without values."""
        values, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(values)
        counts = columns.numpy_values(columns.elements_of(weights)[1])
        owners = columns.parents_of(offsets)
        order = order_by(owners, np.iinfo(np.uint64).max - counts)
        rows = np.full(len(states), -1, np.int64)
        filled = np.flatnonzero(np.diff(offsets) > 0)
        rows[filled] = order[offsets[:-1][filled]]
        return fill_missing(group_kernels.take_rows(elements, rows), self)


def any_heavy(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve anyHeavy of one value; maps and states are refused."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    value = plain(types[0])
    if isinstance(value, Map | AggregateFunction):
        raise illegal_argument(name, types[0], "a value that can be compared")
    state = Tuple((Array(value), Array(UINT64)), ("values", "weights"))
    return AnyHeavy(name, (), types, value, state_type_of(name, (), types, state))


@dataclass(frozen=True)
class SingleValue(OfDistinctValues):
    """singleValueOrNull(x): the value that all rows have, NULL if there are several or none.

    State: Array(T) of the distinct values, sorted."""

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's only value, or NULL."""
        offsets, elements = columns.elements_of(states)
        rows = np.where(np.diff(offsets) == 1, offsets[:-1], -1)
        return group_kernels.take_rows(elements, rows)


def single_value(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve singleValueOrNull of one value whose type may be Nullable.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    value = plain(types[0])
    if isinstance(value, Array | Map | AggregateFunction):
        raise illegal_argument(name, types[0], "a value that may be Nullable")
    state = state_type_of(name, (), types, Array(value))
    return SingleValue(name, (), types, make_nullable(value), state)


@dataclass(frozen=True)
class UniqUpTo(UniqExact):
    """uniqUpTo(n): the number of distinct values, or n + 1 if there are more than n.

    State: Array(T) of the n + 1 smallest distinct values, sorted; of Tuples for several arguments."""

    limit: int = 5

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's n + 1 smallest distinct values, sorted; rows with a NULL are skipped."""
        return truncate_lists(super().state(arguments, groups), self.limit + 1)

    @property
    def division(self) -> Division:
        """Return "none": the number is cut off, and the states are small."""
        return "none"

    def of_distinct(
        self, values: pa.Array, offsets: np.ndarray, codes: np.ndarray
    ) -> pa.Array | None:
        """Return the number of distinct values of each group from `offsets`, at most n + 1."""
        counts = np.minimum(np.diff(offsets), self.limit + 1)
        return columns.from_values(counts, self.result_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the n + 1 smallest distinct values of each group's states, sorted."""
        return truncate_lists(super().merge(states, groups), self.limit + 1)


def uniq_up_to(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve uniqUpTo(n) of one or more values; n is at most 100, and 5 if it is not given.

    Raises NumberOfArgumentsDoesntMatch, CannotConvertType, ArgumentOutOfBound and
    IllegalTypeOfArgument."""
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes one parameter.")
    limit = parameters[0] if parameters else 5
    if not isinstance(limit, int | float) or (
        isinstance(limit, float) and not 0 <= limit < 2.0**64
    ):
        raise CannotConvertType(f"The parameter of {name} is a number, not {limit!r}.")
    if not 0 <= limit < _UP_TO_MAX + 1:
        raise ArgumentOutOfBound(f"The parameter of {name} is at most {_UP_TO_MAX}, not {limit!r}.")
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} needs an argument.")
    for data_type in types:
        if isinstance(plain(data_type), Map | AggregateFunction):
            raise illegal_argument(name, data_type, "a value that can be compared")
    state = state_type_of(name, parameters, types, distinct_set_type(types))
    return UniqUpTo(name, parameters, types, UINT64, state, limit=int(limit))
