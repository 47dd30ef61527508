"""topK, topKWeighted and entropy, computed from how often each distinct value occurs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    CannotConvertType,
    NumberOfArgumentsDoesntMatch,
    TooManyArguments,
)
from olapdb.functions.aggregates import group_kernels
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
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    UINT64,
    AggregateFunction,
    Array,
    DataType,
    Integer,
    Map,
    Tuple,
    plain,
)
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class CountedValues(Aggregate):
    """An aggregate of the weights of distinct values.

    State: Tuple(values Array(T), weights Array(UInt64)), the distinct values, sorted, and how often
    each occurs or the sum of its weights; T is a Tuple for several arguments. The state is exact,
    so it does not depend on the cut into blocks; it is as large as the set of distinct values."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values and how often each occurs; rows with a NULL are
        skipped.
        """
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return self._state(arguments, np.ones(len(groups.codes), np.uint64), groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the weights of equal values of each group's states."""
        values, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(values)
        _, numbers = columns.elements_of(weights)
        owners = group_kernels.element_groups(offsets, groups)
        several = pa.types.is_struct(elements.type) and not isinstance(
            self.argument_types[0], Tuple
        )
        parts = columns.struct_fields(elements) if several else [elements]
        return self._state(parts, columns.numpy_values(numbers), owners)

    def _state(self, values: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> pa.Array:
        """Return the states of the groups from values with weights."""
        ranking = group_kernels.rank_rows(values)
        pairs, inverse = np.unique(
            groups.codes * max(ranking.count, 1) + ranking.ranks, return_inverse=True
        )
        sums = np.zeros(len(pairs), np.uint64)
        with np.errstate(over="ignore"):
            np.add.at(sums, inverse.reshape(-1), weights.astype(np.uint64, copy=False))
        owners, ranks = np.divmod(pairs, max(ranking.count, 1))
        rows = pa.array(ranking.rows[ranks])
        offsets = columns.offsets_from_counts(np.bincount(owners, minlength=groups.count))
        list_type = self.state_type.arrow.field(0).type
        taken = [a.take(rows) for a in values]
        if len(taken) > 1:
            elements: pa.Array = columns.structs_from(taken, list_type.value_type)
        else:
            elements = columns.retype(taken[0], list_type.value_type)
        fields = [
            columns.lists_from(offsets, elements),
            columns.lists_from(offsets, columns.from_values(sums, pa.uint64())),
        ]
        return columns.structs_from(fields, self.state_type.arrow)


@dataclass(frozen=True)
class MostFrequent(CountedValues):
    """An aggregate of the `values_max` values with the largest weights; of equal weights the smaller values come first.

    A state that memory does not take is divided by value: each part then keeps its own largest ones only."""

    @property
    def division(self) -> Division:
        """Return "by value": equal values are in one part, so that their weights add up there."""
        return "by value"

    @property
    def values_max(self) -> int:
        """The most values of which the result is made."""
        return 1

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the values of states, and their weights."""
        return [columns.elements_of(field)[1] for field in columns.struct_fields(states)]

    def state_of_elements(self, elements: Sequence[pa.Array]) -> pa.Array:
        """Return the state of values, which may have repeats, and their weights."""
        values, weights = elements
        groups = Groups(np.zeros(len(values), np.int64), 1)
        return self._state([values], columns.numpy_values(weights), groups)

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the result of the most frequent values of each part."""
        kept: list[pa.Array] = []
        for part in parts:
            values, weights = self.elements(part)
            if kept:
                values = pa.concat_arrays([kept[0], values])
                weights = pa.concat_arrays([kept[1], weights])
            kept = self._kept(values, weights)
        return self.finalize(self.state_of_elements(kept))

    def _kept(self, values: pa.Array, weights: pa.Array) -> list[pa.Array]:
        """Return the values of the largest weights, which all differ, and their weights."""
        if len(values) <= self.values_max:
            return [values, weights]
        smallest_first = np.iinfo(np.uint64).max - columns.numpy_values(weights)
        order = np.lexsort((group_kernels.rank_rows([values]).ranks, smallest_first))
        rows = from_numpy(order[: self.values_max])
        return [values.take(rows), weights.take(rows)]


@dataclass(frozen=True)
class TopK(MostFrequent):
    """topK(k), topKWeighted(k): the k values of the largest weights, largest first.

    Of equal weights the smaller value comes first. The result is exact, unlike ClickHouse's."""

    limit: int = 10
    with_counts: bool = False

    @property
    def values_max(self) -> int:
        """The most values of the result."""
        return self.limit

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the values of the largest weights of each group, at most `limit` of them.

        With `with_counts` the elements are (item, count, error), where the error is 0."""
        values, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(values)
        numbers = columns.numpy_values(columns.elements_of(weights)[1])
        counts = np.diff(offsets)
        owners = np.repeat(np.arange(len(states)), counts)
        order = order_by(owners, np.iinfo(np.uint64).max - numbers)
        position = np.arange(len(order)) - np.repeat(offsets[:-1] - offsets[0], counts)
        order = order[position < self.limit]
        kept = columns.offsets_from_counts(np.minimum(counts, self.limit))
        items = elements.take(from_numpy(order))
        if not self.with_counts:
            return columns.lists_from(kept, items)
        fields = [
            items,
            columns.from_values(numbers[order], pa.uint64()),
            columns.from_values(np.zeros(len(order), np.uint64), pa.uint64()),
        ]
        item_type = self.result_type.arrow.value_type
        return columns.lists_from(kept, columns.structs_from(fields, item_type))


@dataclass(frozen=True)
class TopKWeighted(TopK):
    """topKWeighted(k)(value, weight): the weights are integers that are not negative."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values and the sum of their weights; rows with a NULL are
        skipped."""
        (values, weights), groups = group_kernels.drop_null_rows(arguments, groups)
        return self._state([values], columns.numpy_values(weights), groups)


@dataclass(frozen=True)
class Entropy(CountedValues):
    """entropy: Shannon's entropy of the distribution of the values, in bits."""

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the entropy of each group, Float64; 0 for an empty group. NaN does not count."""
        fields = columns.struct_fields(states)
        offsets, weights = columns.elements_of(fields[1])
        numbers = columns.numpy_values(weights).astype(np.float64)
        owners = np.repeat(np.arange(len(states)), np.diff(offsets))
        _, counted = columns.elements_of(fields[0])
        if pa.types.is_floating(counted.type):
            is_number = ~np.isnan(columns.numpy_values(counted))
            numbers, owners = numbers[is_number], owners[is_number]
        totals = np.bincount(owners, numbers, len(states))
        shares = numbers / totals[owners]
        entropies = np.bincount(owners, -shares * np.log2(shares), len(states))
        return columns.from_values(entropies + 0.0, pa.float64())


def top_k(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve topK or topKWeighted with parameters (k = 10, load factor, 'counts').

    Raises IllegalTypeOfArgument."""
    weighted = name == "topKWeighted"
    require_count(name, types, 2 if weighted else 1)
    if isinstance(plain(types[0]), Map | AggregateFunction):
        raise illegal_argument(name, types[0], "a value that can be compared")
    if weighted and not isinstance(plain(types[1]), Integer):
        raise illegal_argument(name, types[1], "an integer weight")
    limit, with_counts = _top_k_parameters(name, parameters)
    value = plain(types[0])
    state = Tuple((Array(value), Array(UINT64)), ("values", "weights"))
    element = Tuple((value, UINT64, UINT64), ("item", "count", "error")) if with_counts else value
    aggregate = TopKWeighted if weighted else TopK
    state_type = state_type_of(name, parameters, types, state)
    return aggregate(name, parameters, types, Array(element), state_type, limit, with_counts)


def _top_k_parameters(name: str, parameters: tuple[object, ...]) -> tuple[int, bool]:
    """Return k and whether counts are part of the result. The load factor changes nothing, since
    the counts are exact. Raises ArgumentOutOfBound, CannotConvertType, TooManyArguments, BadArguments.
    """
    if len(parameters) > 3:
        raise TooManyArguments(f"Aggregate function {name} takes up to 3 parameters.")
    for parameter in parameters[:2]:
        if isinstance(parameter, str):
            raise CannotConvertType(f"The parameters of {name} are integers, not {parameter!r}.")
        if not isinstance(parameter, int) or isinstance(parameter, bool) or parameter <= 0:
            raise ArgumentOutOfBound(
                f"Parameter {parameter!r} is illegal for aggregate function {name}: a positive "
                "integer expected."
            )
    if len(parameters) == 3 and parameters[2] != "counts":
        raise BadArguments(f"The third parameter of {name} is 'counts', not {parameters[2]!r}.")
    limit = min(int(str(parameters[0])), 2**63 - 1) if parameters else 10
    return limit, len(parameters) == 3


def entropy(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve entropy of one or more values; maps and states are refused."""
    require_no_parameters(name, parameters)
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} needs an argument.")
    for data_type in types:
        if isinstance(plain(data_type), Map | AggregateFunction):
            raise illegal_argument(name, data_type, "a value that can be compared")
    values = distinct_set_type(types)
    state = Tuple((values, Array(UINT64)), ("values", "weights"))
    return Entropy(name, (), types, FLOAT64, state_type_of(name, (), types, state))
