"""What a function is: the contract between the binder, the executor and the kernels.

A column inside an expression is a `pa.Array` of the block's length or a `pa.Scalar`, a constant.
Kernels take and return such values and never loop over rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.types import AggregateFunction, DataType

Column: TypeAlias = pa.Array | pa.Scalar


@dataclass(frozen=True)
class Environment:
    """What a query holds fixed while it runs, for kernels that need it."""

    zone: str = "UTC"
    now_seconds: float = 0.0
    """Seconds since the epoch at which the statement began; now() and today() read it."""
    query_id: str = ""
    database: str = "default"
    random_seed: int = 0
    opened_seconds: float = 0.0
    """Seconds since the epoch at which this process opened the warehouse; uptime() counts from it."""
    warehouse_id: str = ""


@dataclass(frozen=True)
class Argument:
    """An argument as the binder knows it; `constant` is its value where it is one."""

    type: DataType
    constant: pa.Scalar | None = None


Volatility: TypeAlias = Literal["pure", "query", "row"]
"""pure: a value of its arguments; query: also of the Environment (now); row: new for each row."""


@dataclass(frozen=True)
class ScalarCall:
    """A function resolved for given argument types.

    `kernel(arguments, rows, environment)` gets the columns with exactly the argument types that
    were resolved, `rows` is the block's length, and returns a column of `type.arrow`.
    `lazy` names functions (if, multiIf, and, or) whose branches the executor may evaluate on the
    rows that need them only.
    """

    name: str
    type: DataType
    kernel: Callable[[Sequence[Column], int, Environment], Column]
    volatility: Volatility = "pure"
    monotonic: bool = False
    """Never decreasing in its single non-constant argument: keys can be pruned through it."""
    lazy: bool = False


MergeClass: TypeAlias = Literal["exact", "ordered", "float", "sketch"]


@dataclass(frozen=True)
class Groups:
    """Rows assigned to groups: `codes[i]` in [0, count) is the group of row i; int64, no holes
    required.  The sort by code is made once and shared by all aggregates of the block."""

    codes: np.ndarray
    count: int

    @cached_property
    def order(self) -> np.ndarray:
        """Stable order of the rows by code."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def sizes(self) -> np.ndarray:
        if self.count == 1:
            return np.array([self.codes.size])
        return np.bincount(self.codes, minlength=self.count)

    @cached_property
    def starts(self) -> np.ndarray:
        """`starts[g]` is where group g begins in `order`; shape (count,)."""
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])) if self.count else np.zeros(0, int)


@dataclass(frozen=True)
class AceroAggregation:
    """A state as Acero's hash aggregation computes it: one (`function`, options) for each leaf of
    the state, over one argument (by index, None for a bare count)."""

    argument: int | None
    function: str
    options: object | None = None


@dataclass(frozen=True)
class Aggregate(ABC):
    """An aggregate resolved for argument types: the triad state, merge, finalize.

    The law: for every cut of the rows into blocks and every merge tree,
    `finalize(merge(state(b1), state(b2), …))` is the same, to the promise of `merge_class`.
    A group without rows has the state of nothing (count 0, sum 0, min NULL-or-default).
    """

    name: str
    """With combinators but without -State/-Merge ("sumIf")."""
    parameters: tuple[object, ...]
    argument_types: tuple[DataType, ...]
    result_type: DataType
    state_type: AggregateFunction
    merge_class: MergeClass = field(default="exact", kw_only=True)
    additive: bool = field(default=False, kw_only=True)
    """The finished value may itself be summed or merged (count, sum, min, max), so that it may be
    stored in a merging target as SimpleAggregateFunction(merge_function)."""
    merge_function: str = field(default="", kw_only=True)

    @property
    def state_key(self) -> Hashable | None:
        """Aggregates of equal keys make the same states of the same arguments (quantiles of several
        levels), and merge them alike; None: no other does."""
        return None

    @abstractmethod
    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """One state for each group, of `state_type.arrow`, shape (groups.count,)."""

    @abstractmethod
    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """States of the groups' unions, shape (groups.count,)."""

    @abstractmethod
    def finalize(self, states: pa.Array) -> pa.Array:
        """The results, of `result_type.arrow`, in order."""

    def acero(self) -> tuple[AceroAggregation, ...] | None:
        """How Acero computes the state's leaves in one pass over keys, or None where it cannot.

        Equal to `state` (a property test says so); the executor uses it when every aggregate of
        a node has one."""
        return None

    def from_acero(self, leaves: Sequence[pa.Array]) -> pa.Array:
        """The states from the leaves that `acero` asked for, in its order."""
        raise NotImplementedError
