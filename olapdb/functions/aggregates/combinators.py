"""Combinators: -If, -Distinct, -OrNull, -OrDefault, -State, -Merge, -SimpleState, and NULLs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.distinct import distinct_lists, union_lists
from olapdb.functions.aggregates.extremes import fill_missing
from olapdb.functions.base import AceroAggregation, Aggregate, Groups
from olapdb.functions.kernels import columns


@dataclass(frozen=True)
class Combinator(Aggregate):
    """An aggregate around another; passes everything on."""

    inner: Aggregate

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        return self.inner.state(arguments, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        return self.inner.merge(states, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        return self.inner.finalize(states)


@dataclass(frozen=True)
class SharedStateCombinator(Combinator):
    """Has nothing of its own that its states depend on."""

    @property
    def state_key(self) -> Hashable | None:
        inner = self.inner.state_key
        return None if inner is None else (type(self), self.argument_types, inner)


@dataclass(frozen=True)
class If(SharedStateCombinator):
    """Only the rows where the last argument is true (neither 0 nor NULL)."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        return self.inner.state(*self.matching(arguments, groups))

    def matching(
        self, arguments: Sequence[pa.Array], groups: Groups
    ) -> tuple[Sequence[pa.Array], Groups]:
        """The inner aggregate's arguments on the rows where the condition is true."""
        *rest, condition = arguments
        true = columns.truth(condition)
        if true.null_count:
            true = pc.fill_null(true, False)
        return group_kernels.filter_rows(rest, groups, np.asarray(true))


@dataclass(frozen=True)
class State(Combinator):
    """-State: the result is the state."""

    def finalize(self, states: pa.Array) -> pa.Array:
        return states

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        return self.inner.acero()

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        return self.inner.from_acero(leaves)


@dataclass(frozen=True)
class SimpleState(Combinator):
    """-SimpleState: the finished value, under the type SimpleAggregateFunction."""

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        return self.inner.acero()

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        return self.inner.from_acero(leaves)


@dataclass(frozen=True)
class Merge(SharedStateCombinator):
    """-Merge: the argument holds states; the result is that of their union."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        (states,), groups = group_kernels.drop_null_rows(arguments, groups)
        return self.inner.merge(states, groups)


@dataclass(frozen=True)
class SeenRowsCombinator(SharedStateCombinator):
    """Remembers whether there was any row without NULLs. State: Tuple(seen UInt8, state).

    Arguments of Nullable types and -OrNull give NULL where there was none, -OrDefault the default
    of the type.  A row that an -If below drops was not there: sumIfOrNull is sumOrNullIf.
    """

    counts: bool = False
    """Such a row was there nevertheless: countIfOrNull is 0 where no row matched, avgIfOrDefault
    NaN, as in ClickHouse."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        rest, rows = group_kernels.drop_null_rows(arguments, groups)
        return self._state(self._touched(self._reaching(rest, rows)), self.inner.state(rest, rows))

    def _reaching(self, arguments: Sequence[pa.Array], groups: Groups) -> Groups:
        """The rows that the aggregate below its -If gets."""
        inner = self.inner
        while isinstance(inner, If) and not self.counts:
            arguments, groups = inner.matching(arguments, groups)
            inner = inner.inner
        return group_kernels.drop_null_rows(arguments, groups)[1]

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        seen, inner = columns.struct_fields(states)
        seen_groups = np.zeros(groups.count, bool)
        seen_groups[groups.codes[columns.numpy_values(seen) != 0]] = True
        return self._state(seen_groups, self.inner.merge(inner, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        seen, inner = columns.struct_fields(states)
        there = columns.numpy_values(seen) != 0
        values = self.inner.finalize(inner)
        rows = np.where(there, np.arange(len(states)), -1)
        return fill_missing(group_kernels.take_rows(values, rows), self)

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        leaves = self.inner.acero()
        if leaves is None or len(self.argument_types) != 1:
            return None
        count = AceroAggregation(0, "hash_count", pc.CountOptions(mode="only_valid"))
        return (*leaves, count)

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        *inner, count = leaves
        return self._state(columns.numpy_values(count) > 0, self.inner.from_acero(inner))

    def _touched(self, groups: Groups) -> np.ndarray:
        touched = np.zeros(groups.count, bool)
        touched[groups.codes] = True
        return touched

    def _state(self, seen: np.ndarray, inner: pa.Array) -> pa.Array:
        fields = [columns.from_values(seen, pa.uint8()), inner]
        return columns.structs_from(fields, self.state_type.arrow)


@dataclass(frozen=True)
class NullAggregate(Aggregate):
    """An aggregate over the NULL of no type: NULL, whatever the rows. State: UInt8, always 0."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        return columns.from_values(np.zeros(groups.count, np.uint8), pa.uint8())

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        return self.state([states], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        return pa.nulls(len(states))


@dataclass(frozen=True)
class DistinctCombinator(Combinator):
    """-Distinct: each value counts once. State: Array of the distinct values, sorted."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return distinct_lists(arguments, groups, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        return union_lists(states, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        several = len(self.inner.argument_types) > 1
        arguments = columns.struct_fields(elements) if several else [elements]
        groups = Groups(columns.parents_of(offsets), len(states))
        return self.inner.finalize(self.inner.state(arguments, groups))
