"""`state + state` merges two states of an aggregate; `state * n` is n such states merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    CannotAddDifferentAggregateStates,
    IllegalColumn,
    IllegalTypeOfArgument,
    MemoryLimitExceeded,
)
from olapdb.functions.aggregates.registry import parse_parameter, resolve_aggregate
from olapdb.functions.base import Aggregate, Argument, Column, Environment, Groups, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.types import AggregateFunction, Integer, plain

_GROWN_BYTES_MAX = 1 << 24
"""Bytes to which the states of one batch may grow; those of groupArray do with each merge."""
_GROWTH_MAX = 4
"""How many times as large as they were states beyond that may become."""


def resolve(name: str, operation: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve plus of two states, or multiply of a state and a constant natural number.

    Raises CannotAddDifferentAggregateStates, IllegalColumn for a number that is no constant, and
    IllegalTypeOfArgument for everything else."""
    left, right = (argument.type for argument in arguments)
    if operation == "plus" and isinstance(left, AggregateFunction):
        if isinstance(right, AggregateFunction):
            return _sum(name, left, right)
    elif operation == "multiply":
        state, number = (left, 1) if isinstance(left, AggregateFunction) else (right, 0)
        factor = plain(arguments[number].type)
        unsigned = isinstance(factor, Integer) and not factor.signed
        if isinstance(state, AggregateFunction) and unsigned:
            return _product(name, state, arguments, number)
    raise IllegalTypeOfArgument(
        f"Illegal types of arguments of function {name}: {left} and {right}."
    )


def _aggregate(state: AggregateFunction) -> Aggregate:
    """Return the aggregate function, resolved, whose states a type holds."""
    parameters = [parse_parameter(parameter) for parameter in state.parameters]
    return resolve_aggregate(state.function, parameters, state.arguments)


def _sum(name: str, left: AggregateFunction, right: AggregateFunction) -> ScalarCall:
    """Return the call that merges two columns of states, row by row."""
    if left != right:
        raise CannotAddDifferentAggregateStates(
            f"Cannot add aggregate states of different functions: {left} and {right}."
        )
    aggregate = _aggregate(left)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Merge the two states of each row."""
        return _merged(aggregate, *(columns.as_array(value, rows) for value in values))

    return ScalarCall(name, left, kernel)


def _product(
    name: str, state: AggregateFunction, arguments: Sequence[Argument], number: int
) -> ScalarCall:
    """Return the call that merges each state with itself as often as the constant argument `number` says, by repeated
    doubling.

    Raises IllegalColumn for a number that is no constant; its kernel MemoryLimitExceeded for states that grow too
    large."""
    constant = arguments[number].constant
    factor = None if constant is None else constant.as_py()
    if factor is None:
        raise IllegalColumn(
            f"The number of function {name} of an aggregate state is a constant integer."
        )
    aggregate = _aggregate(state)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Merge each row's state with itself by repeated doubling; a factor of 0 gives the empty state."""
        power, left = columns.as_array(values[1 - number], rows), factor
        bytes_max = max(_GROWN_BYTES_MAX, _GROWTH_MAX * power.nbytes)
        empty = [pa.nulls(0, argument.arrow) for argument in state.arguments]
        product = aggregate.state(empty, Groups(np.zeros(0, np.int64), rows))
        while left:
            if left & 1:
                product = _merged(aggregate, product, power)
            left >>= 1
            if product.nbytes + power.nbytes > bytes_max:
                raise MemoryLimitExceeded(
                    f"The states of function {name} need more than {bytes_max:,} bytes.",
                    hint="Multiply a state by a smaller number.",
                )
            power = _merged(aggregate, power, power) if left else power
        return product

    return ScalarCall(name, state, kernel)


def _merged(aggregate: Aggregate, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the states of both columns, merged row by row."""
    rows = np.arange(len(left))
    both = pa.concat_arrays([left, right])
    return aggregate.merge(both, Groups(np.concatenate([rows, rows]), len(left)))
