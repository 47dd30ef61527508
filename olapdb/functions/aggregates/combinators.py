"""Combinators: -If, -Distinct, -OrNull, -OrDefault, -State, -Merge, -SimpleState, and NULLs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.masks import null_unless
from olapdb.functions.aggregates.sums import Average, Count, Sum, may_be_counted
from olapdb.functions.base import AceroAggregation, Aggregate, Division, Groups, TotalsOfState
from olapdb.functions.kernels import columns
from olapdb.lazy import lazy_modules
from olapdb.native.group_totals import Total
from olapdb.records import dataclass
from olapdb.types import has_floats

if TYPE_CHECKING:
    from olapdb.functions.aggregates import distinct, extremes
else:
    distinct, extremes = lazy_modules("olapdb.functions.aggregates", "distinct", "extremes")


@dataclass(frozen=True)
class Combinator(Aggregate):
    """An aggregate that wraps another one and by default forwards every call to it."""

    inner: Aggregate

    @property
    def takes_nulls(self) -> bool:
        """Return whether the inner aggregate takes a NULL as a value."""
        return self.inner.takes_nulls

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the inner aggregate's states of the groups."""
        return self.inner.state(arguments, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the inner aggregate's merged states."""
        return self.inner.merge(states, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the inner aggregate's results."""
        return self.inner.finalize(states)

    @property
    def divides_exactly(self) -> bool:
        """Return whether the result of a group's parts is that of its whole state, to the last bit, as the inner
        aggregate says."""
        return self.inner.divides_exactly


@dataclass(frozen=True)
class SharedStateCombinator(Combinator):
    """A combinator whose states depend only on its argument types and on the wrapped aggregate."""

    @property
    def state_key(self) -> Hashable | None:
        """The combinator, its argument types and the inner key; None if the inner aggregate has no
        key.
        """
        inner = self.inner.state_key
        return None if inner is None else (type(self), self.argument_types, inner)


@dataclass(frozen=True)
class DividedLikeInner(SharedStateCombinator):
    """A combinator with the states and results of the wrapped aggregate."""

    @property
    def keeps_unordered_rows(self) -> bool:
        """Return whether the inner states are lists of rows whose order changes no result."""
        return self.inner.keeps_unordered_rows

    @property
    def division(self) -> Division:
        """Return the division of the inner aggregate."""
        return self.inner.division

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the elements of the inner states."""
        return self.inner.elements(states)

    def state_of_elements(self, elements: Sequence[pa.Array]) -> pa.Array:
        """Return the inner state of elements."""
        return self.inner.state_of_elements(elements)

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the inner result."""
        return self.inner.result_of_parts(parts, count)


@dataclass(frozen=True)
class If(DividedLikeInner):
    """-If: aggregate only the rows where the last argument is true (neither 0 nor NULL)."""

    @property
    def takes_mask(self) -> bool:
        """True: only whether the last argument is true counts."""
        return True

    @property
    def takes_short_decimals(self) -> bool:
        """Return whether the inner aggregate takes 64-bit decimals."""
        return self.inner.takes_short_decimals

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the inner states over the rows where the condition is true.

        For counts, sums and averages, rows where it is not true become NULL: nothing is copied."""
        masked = self._masked(arguments)
        if masked is not None:
            return self.inner.state([masked], groups)
        return self.inner.state(*self.matching(arguments, groups))

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the inner totals of counts, sums and averages, over rows where the condition is true."""
        masked = self._masked(arguments)
        return None if masked is None else self.inner.totals([masked])

    def _masked(self, arguments: Sequence[pa.Array]) -> pa.Array | None:
        """Return the argument with NULL where the condition is not true; None where the inner aggregate, or its
        argument's type, needs the rows to be taken."""
        *rest, condition = arguments
        if type(self.inner) is Count:
            return null_unless(rest, columns.truth(condition), counted=True)
        if isinstance(self.inner, Sum | Average) and len(rest) == 1:
            return null_unless(rest, columns.truth(condition))
        return None

    def matching(
        self, arguments: Sequence[pa.Array], groups: Groups
    ) -> tuple[Sequence[pa.Array], Groups]:
        """Return the inner aggregate's arguments, and the groups, of the rows where the condition,
        the last argument, is true."""
        *rest, condition = arguments
        true = columns.truth(condition)
        if true.true_count == len(true):
            return rest, groups
        return group_kernels.take_group_rows(rest, groups, columns.true_positions(true))


@dataclass(frozen=True)
class StateCombinator(Combinator):
    """-State: the result is the state."""

    @property
    def takes_mask(self) -> bool:
        """Return whether the inner aggregate takes a mask."""
        return self.inner.takes_mask

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the inner aggregate's totals."""
        return self.inner.totals(arguments)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the states unchanged."""
        return states

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return the inner aggregate's Arrow aggregations, or None if it has none."""
        return self.inner.acero()

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return one state a group, which the inner aggregate builds from the results of `acero`."""
        return self.inner.from_acero(leaves)


@dataclass(frozen=True)
class SimpleState(Combinator):
    """-SimpleState: the result is the finished value, of type SimpleAggregateFunction."""

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return the inner aggregate's Arrow aggregations, or None if it has none."""
        return self.inner.acero()

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return one state a group, which the inner aggregate builds from the results of `acero`."""
        return self.inner.from_acero(leaves)


@dataclass(frozen=True)
class Merge(DividedLikeInner):
    """-Merge: merge the states in the argument and return the finished value."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Merge the stored states of each group; NULL states are skipped."""
        (states,), groups = group_kernels.drop_null_rows(arguments, groups)
        return self.inner.merge(states, groups)


@dataclass(frozen=True)
class SeenRowsCombinator(DividedLikeInner):
    """A combinator that records whether a group had any row without NULLs, for Nullable arguments,
    -OrNull and -OrDefault. State: Tuple(seen UInt8, state).

    A group without such a row gives NULL, or with -OrDefault the type's default. Rows that an inner
    -If drops do not count as seen: sumIfOrNull equals sumOrNullIf.
    """

    counts: bool = False
    """Count rows that the inner -If drops as seen: countIfOrNull is 0 and avgIfOrDefault is NaN if no
    row matched, as in ClickHouse."""

    @property
    def takes_short_decimals(self) -> bool:
        """Return whether the inner aggregate takes them."""
        return self.inner.takes_short_decimals

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the states Tuple(seen, state) of the groups, over rows without NULLs."""
        if self.inner.skips_nulls and len(arguments) == 1 and not self.takes_nulls:
            seen = group_kernels.count_values(arguments, groups) > 0
            return self._with_seen_flag(seen, self.inner.state(arguments, groups))
        if not self.takes_nulls:
            arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        seen = np.zeros(groups.count, bool)
        seen[self._seen_groups(arguments, groups).codes] = True
        return self._with_seen_flag(seen, self.inner.state(arguments, groups))

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the inner aggregate's totals, preceded by the number of values that are not NULL."""
        if self.takes_nulls or not self.inner.skips_nulls:
            return None
        if len(arguments) != 1 or not may_be_counted(arguments[0]):
            return None
        inner = self.inner.totals(arguments)
        if inner is None:
            return None
        return TotalsOfState(
            [Total("count", arguments[0]), *inner.totals],
            lambda v: self._with_seen_flag(v[0] > 0, inner.states(v[1:])),
        )

    def _seen_groups(self, arguments: Sequence[pa.Array], groups: Groups) -> Groups:
        """Return the groups of the rows that count as seen, one entry a row; rows with NULLs do
        not count, unless the inner aggregate takes them.
        """
        inner = self.inner
        while isinstance(inner, If) and not self.counts:
            arguments, groups = inner.matching(arguments, groups)
            inner = inner.inner
        return groups if self.takes_nulls else group_kernels.drop_null_rows(arguments, groups)[1]

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Merge the inner states; a group is seen if any of its states is."""
        seen, inner = columns.struct_fields(states)
        seen_groups = np.zeros(groups.count, bool)
        seen_groups[groups.codes[columns.numpy_values(seen) != 0]] = True
        return self._with_seen_flag(seen_groups, self.inner.merge(inner, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the inner results; groups not seen give NULL, or the default if not Nullable."""
        seen, inner = columns.struct_fields(states)
        values = self.inner.finalize(inner)
        rows = np.where(columns.numpy_values(seen) != 0, np.arange(len(states)), -1)
        return extremes.fill_missing(group_kernels.take_rows(values, rows), self)

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the elements of the inner states."""
        return self.inner.elements(columns.struct_fields(states)[1])

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the inner result: a group with elements has seen a row."""
        return columns.retype(self.inner.result_of_parts(parts, count), self.result_type.arrow)

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return the inner Arrow aggregations and a count of values that are not NULL.

        Return None if the inner aggregate has none, or the argument is not exactly one.
        """
        leaves = self.inner.acero()
        if leaves is None or len(self.argument_types) != 1 or self.takes_nulls:
            return None
        count = AceroAggregation(0, "hash_count", pc.CountOptions(mode="only_valid"))
        return (*leaves, count)

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return the states from the inner Arrow results and the count, which is last."""
        *inner, count = leaves
        return self._with_seen_flag(columns.numpy_values(count) > 0, self.inner.from_acero(inner))

    def _with_seen_flag(self, seen: np.ndarray, inner: pa.Array) -> pa.Array:
        """Return the states Tuple(seen, state) from one bool and one inner state a group."""
        fields = [columns.from_values(seen, pa.uint8()), inner]
        return columns.structs_from(fields, self.state_type.arrow)


@dataclass(frozen=True)
class NullAggregate(Aggregate):
    """An aggregate of arguments of type Nothing: the result is always NULL. State: UInt8, always 0."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return a state of 0 for each group."""
        return columns.from_values(np.zeros(groups.count, np.uint8), pa.uint8())

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return a state of 0 for each group."""
        return self.state([states], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return NULL for each group."""
        return pa.nulls(len(states))


@dataclass(frozen=True)
class DistinctCombinator(Combinator):
    """-Distinct: aggregate each distinct value once. State: Array of the distinct values, sorted."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values, sorted; rows with a NULL are skipped."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return distinct.distinct_lists(arguments, groups, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the union of each group's distinct values, sorted."""
        return distinct.union_lists(states, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the inner result over each group's distinct values."""
        return self.inner.finalize(self._inner_states(states))

    def _inner_states(self, states: pa.Array) -> pa.Array:
        """Return the inner state of each group's distinct values."""
        offsets, elements = columns.elements_of(states)
        several = len(self.inner.argument_types) > 1
        arguments = columns.struct_fields(elements) if several else [elements]
        groups = Groups(columns.parents_of(offsets), len(states))
        return self.inner.state(arguments, groups)

    @property
    def division(self) -> Division:
        """Return "by value" if the inner state has one size, whatever the number of values, and does not depend on their
        order; else "none"."""
        if self.inner.merge_class == "ordered" or columns.has_lists(self.inner.state_type.arrow):
            return "none"
        return "by value"

    @property
    def divides_exactly(self) -> bool:
        """Return whether inner states neither depend on the order of the values nor have floats, whose sums do."""
        return self.inner.merge_class != "ordered" and not has_floats(self.inner.state_type.state)

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the values of states."""
        return [columns.elements_of(states)[1]]

    def state_of_elements(self, elements: Sequence[pa.Array]) -> pa.Array:
        """Return the state of values, which may have repeats."""
        return distinct.set_of(elements[0], self.state_type.arrow)

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the inner result over the values of all parts."""
        states = pa.concat_arrays([self._inner_states(part) for part in parts])
        return self.inner.finalize(
            self.inner.merge(states, Groups(np.zeros(len(states), np.int64), 1))
        )
