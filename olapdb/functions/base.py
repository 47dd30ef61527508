"""The contract of functions with the binder and the executor.

A column inside an expression is a `pa.Array` of the block's length or a `pa.Scalar`, a constant.
Kernels take and return such values and never loop over rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels.integer_order import stable_order
from olapdb.native import accumulate
from olapdb.native.group_totals import Total
from olapdb.native.library import library
from olapdb.records import dataclass
from olapdb.types import AggregateFunction, DataType, has_floats

Column: TypeAlias = pa.Array | pa.Scalar


@dataclass(frozen=True)
class Environment:
    """Values that are fixed while a query runs, for kernels that need them."""

    zone: str = "UTC"
    now_seconds: float = 0.0
    """The start of the statement, in seconds since the epoch; now() and today() read it."""
    query_id: str = ""
    database: str = "default"
    random_seed: int = 0
    opened_seconds: float = 0.0
    """When this process opened the warehouse, in seconds since the epoch; uptime() counts from it."""
    warehouse_id: str = ""
    stored_zone: str | None = None
    """The warehouse's zone where `zone` is another one, that of the setting session_timezone."""

    changed: frozenset[str] = frozenset()
    """The settings of the called function that are not at their defaults: `name`, or `name=value`."""

    def setting(self, name: str, default: str) -> str:
        """Return the value of the setting `name` that the called function reads; `default` if the setting is at its
        default."""
        for item in self.changed:
            if item.startswith(f"{name}="):
                return item[len(name) + 1 :]
        return default

    @property
    def of_warehouse(self) -> Environment:
        """The same values with the warehouse's time zone, in which keys, indexes and defaults are computed."""
        if self.stored_zone is None:
            return self
        return replace(self, zone=self.stored_zone, stored_zone=None)

    def in_zone(self, zone: str) -> Environment:
        """Return the same values for a query in the time zone `zone`; '' is the warehouse's zone."""
        own = self.of_warehouse
        return replace(own, zone=zone, stored_zone=own.zone) if zone not in ("", own.zone) else own


@dataclass(frozen=True)
class Argument:
    """An argument in the binder: its type, and its value if it is a constant.

    With `of_subquery` it is a scalar subquery: its kernel gets one value for all rows, which the binder does not know."""

    type: DataType
    constant: pa.Scalar | None = None
    of_subquery: bool = False


Volatility: TypeAlias = Literal["pure", "query", "row"]
"""pure: depends on the arguments only; query: also on the Environment (now); row: differs by row."""


@dataclass(frozen=True)
class ScalarCall:
    """A function resolved for given argument types.

    `kernel(arguments, rows, environment)` receives columns of exactly the resolved argument types
    and the block's length, and returns a column of `type.arrow`.  `lazy` marks functions (if,
    multiIf, and, or) whose branches the executor may evaluate only on the rows that need them.
    """

    name: str
    type: DataType
    kernel: Callable[[Sequence[Column], int, Environment], Column]
    volatility: Volatility = "pure"
    monotonic: bool = False
    """Non-decreasing in its only non-constant argument, so that it can prune by keys."""
    lazy: bool = False
    reads_values: bool = True
    """False for functions of their arguments' types alone, as toTypeName: the kernel is called without values. Of
    the arguments only constants are computed, so that their errors are raised."""


MergeClass: TypeAlias = Literal["exact", "ordered", "float", "sketch"]
Division: TypeAlias = Literal["none", "by value", "in order"]
"""How the state of one group that memory does not take can be divided on disk: not at all, into parts without common
values, or into stretches of its sorted values."""


@dataclass(frozen=True)
class Groups:
    """The assignment of rows to groups: row i belongs to group `codes[i]`, int64 in [0, count).

    Groups may be empty.  All aggregates of a block share the one sort by code.
    """

    codes: np.ndarray
    count: int
    are_checked: bool = False
    """Whether the codes are known to be groups, in contiguous memory."""

    @cached_property
    def order(self) -> np.ndarray:
        """The positions of the rows, sorted by code; stable."""
        return stable_order(self.codes)

    @cached_property
    def sums(self) -> dict[Hashable, tuple[pa.Array, pa.Array]]:
        """A cache of sums by group, with the summed columns, that `sum_by_group` fills: `sum(x), avg(x)` adds x up
        once."""
        return {}

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of rows of each group; shape (count,)."""
        if self.count == 1:
            return np.array([self.codes.size])
        codes = self.kernel_codes
        if library() is not None and codes is not None:
            return accumulate.count(None, len(codes), codes, self.count)
        return np.bincount(self.codes, minlength=self.count)

    @cached_property
    def kernel_codes(self) -> np.ndarray | None:
        """Return the codes as compiled kernels take them; None if all rows are in one group. Checks that each code is
        a group, since kernels write where a code points."""
        if self.count == 1:
            return None
        if self.are_checked:
            return self.codes
        codes = np.ascontiguousarray(self.codes, np.int64)
        if codes.size and int(codes.view(np.uint64).max()) >= self.count:  # -1 is the largest
            raise IndexError(f"A code is not in 0 … {self.count - 1}.")
        return codes

    @cached_property
    def starts(self) -> np.ndarray:
        """The position in `order` at which each group begins; shape (count,)."""
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])) if self.count else np.zeros(0, int)


@dataclass(frozen=True)
class AceroAggregation:
    """A hash aggregate `function` of Acero, with `options`, that computes one leaf of a state.

    `argument` is the index of the argument, None for a bare count."""

    argument: int | None
    function: str
    options: object | None = None


@dataclass(frozen=True)
class TotalsOfState:
    """Totals by group from which the states of an aggregate follow, and the function that makes the states from the
    totals' values."""

    totals: Sequence[Total]
    states: Callable[[Sequence[np.ndarray]], pa.Array]


ChooseRows: TypeAlias = Callable[[np.ndarray, np.ndarray | None, bool], np.ndarray]
"""Finds the row with the extreme key of each set of rows, -1 for none: takes integer keys, which rows have one (None:
all), and whether the largest is wanted."""


@dataclass(frozen=True)
class Aggregate(ABC):
    """An aggregate resolved for argument types: the triad state, merge, finalize.

    The law: for every split of the rows into blocks and every merge tree,
    `finalize(merge(state(b1), state(b2), …))` is the same, up to the promise of `merge_class`.
    A group without rows has the empty state (count 0, sum 0, min NULL or default).
    """

    name: str
    """The name with combinators but without -State and -Merge ("sumIf")."""
    parameters: tuple[object, ...]
    argument_types: tuple[DataType, ...]
    result_type: DataType
    state_type: AggregateFunction
    merge_class: MergeClass = field(default="exact", kw_only=True)
    additive: bool = field(default=False, kw_only=True)
    """Whether finalized values merge like states (count, sum, min, max).

    Then a merging target may store them as SimpleAggregateFunction(merge_function).
    """
    merge_function: str = field(default="", kw_only=True)

    @property
    def state_key(self) -> Hashable | None:
        """A key that aggregates with equal states for equal arguments share; None if there is none.

        Such aggregates (quantiles of several levels) also merge alike, so that states are computed once."""
        return None

    @property
    def keeps_unordered_rows(self) -> bool:
        """Return whether a state is a list of rows whose order, that of their arrival, changes no result."""
        return False

    @property
    def takes_nulls(self) -> bool:
        """Return whether the aggregate takes a NULL as a value and does not skip it: any(x) RESPECT NULLS."""
        return False

    @property
    def skips_nulls(self) -> bool:
        """Whether `state` of one argument skips NULLs while it reads, so that it costs more to drop these rows
        first."""
        return False

    @property
    def ignores_repeats(self) -> bool:
        """Whether the state of one argument depends only on the set of its values that are not NULL, so that each
        value may be given once."""
        return False

    @property
    def keeps_distinct(self) -> bool:
        """Whether the states have the distinct values of the arguments, or a sample of them. Then repeats are found
        faster by codes than by wide numbers."""
        return False

    def of_distinct(
        self, values: pa.Array, offsets: np.ndarray, codes: np.ndarray
    ) -> pa.Array | None:
        """Return the results of groups from their distinct arguments; None unless `keeps_distinct` and the aggregate
        can do so without states.

        `offsets` cut `codes`, each of which is a position in `values`, into groups."""
        return None

    def of_marked(self, values: pa.Array, marks: np.ndarray) -> pa.Array | None:
        """Return what `of_distinct` returns; None where the aggregate needs the codes.

        `marks` has the distinct arguments of each group as bits, uint64 of shape (groups, words): the lowest bit of
        the first word stands for the first of `values`."""
        return None

    @property
    def division(self) -> Division:
        """Return how the elements of one group's states can be divided, so that memory need not take them all."""
        return "none"

    @property
    def divides_exactly(self) -> bool:
        """Return whether the result of a group's parts is that of its whole state, to the last bit. A view takes no other,
        since its rows must not depend on the memory that an INSERT had. An undivided state beside divided ones is merged
        in another order than without a limit: it is exact without floats."""
        return self.division != "none" or not has_floats(self.state_type.state)

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the elements of states of one group, a row for each; the first column is the value by which they are
        divided. Only for a `division` other than none; this base raises NotImplementedError."""
        raise NotImplementedError

    def state_of_elements(self, elements: Sequence[pa.Array]) -> pa.Array:
        """Return the one state of elements: in "by value" repeats are merged, "in order" they are sorted already. Only
        for a `division` other than none; this base raises NotImplementedError."""
        raise NotImplementedError

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the one result of a group from the states of its parts, in order of the values if the `division` is
        "in order"; the states have `count` elements together, repeats included. Only for a `division` other than none;
        this base raises NotImplementedError."""
        raise NotImplementedError

    @property
    def takes_dictionaries(self) -> bool:
        """Whether `state` also takes a text argument as an Arrow dictionary."""
        return False

    @property
    def takes_mask(self) -> bool:
        """Whether the last argument is a condition, which `state` and `totals` also take as a mask."""
        return False

    @property
    def takes_short_decimals(self) -> bool:
        """Whether `state` also takes decimals of at most 18 digits as 64-bit integers."""
        return False

    @abstractmethod
    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return one state for each group, of `state_type.arrow`, shape (groups.count,)."""

    @abstractmethod
    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Merge the states of each group into one; shape (groups.count,)."""

    def merge_runs(self, states: pa.Array, groups: Groups) -> pa.Array | None:
        """Return what `merge` returns, where the states are lists of long runs of equal values, so that merging them takes
        less time than dividing them among threads; None for other states."""
        return None

    @abstractmethod
    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the result of each state, of `result_type.arrow`, in order."""

    def totals(self, arguments: Sequence[pa.Array]) -> TotalsOfState | None:
        """Return the totals of which the states of these arguments are made; None if they are not made of totals.

        The states equal those of `state`; a kernel computes the totals of all aggregates of a node in one pass."""
        return None

    def states_of_extremes(
        self, arguments: Sequence[pa.Array], choose: ChooseRows
    ) -> pa.Array | None:
        """Return the states of sets of rows, each made of the one row that has the extreme key, which `choose`
        finds; None if a state is not that of one row."""
        return None

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """Return the Acero aggregations that compute the leaves of the states in one pass over the keys, or None if
        there are none. The states equal those of `state`, as a property test checks. The executor uses Acero only if
        every aggregate of a node supports it."""
        return None

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """Return one state a group, built from the results of the aggregations of `acero`, in its
        order. This base raises NotImplementedError."""
        raise NotImplementedError
