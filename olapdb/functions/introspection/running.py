"""runningDifference, neighbor, runningAccumulate and runningConcurrency: functions of the rows around in a
block.

Their results depend on how rows are cut into blocks, and on the order in which the blocks come. As in
ClickHouse all but runningConcurrency are deprecated: the binder refuses them unless the setting
`allow_deprecated_error_prone_window_functions` is on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IncorrectData
from olapdb.functions.aggregates.group_kernels import rank_rows
from olapdb.functions.aggregates.registry import parse_parameter, resolve_aggregate
from olapdb.functions.base import Aggregate, Argument, Column, Environment, Groups, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.casts.numbers import first_bad
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, illegal, standard_call
from olapdb.types import (
    FLOAT64,
    UINT32,
    AggregateFunction,
    DataType,
    Date,
    DateTime,
    DateTime64,
    Float,
    Integer,
    plain,
)


def _difference_type(name: str, data_type: DataType) -> DataType:
    """Return the signed type of differences of values of the type. Raises IllegalTypeOfArgument for types without
    differences."""
    if isinstance(data_type, Float):
        return FLOAT64
    bits = {Date: 16, DateTime: 32}.get(type(data_type), 0)
    if isinstance(data_type, Integer):
        bits = data_type.bits
    if not bits:
        raise illegal(name, data_type, "a number, a Date or a DateTime")
    return Integer(min(2 * bits, 64), True)


def _difference(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve runningDifference(x): the value minus that of the row before; NULLs are skipped. The first row of a
    block gives 0, or with runningDifferenceStartingWithFirstValue its value."""
    result = _difference_type(name, plain(arguments[0].type))
    keeps_first = name.endswith("StartingWithFirstValue")

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return each value minus the value before it."""
        dtype = columns.dtype_of(result.arrow)
        values = columns.numpy_values(arrays[0])
        values = values.astype(dtype if dtype.kind == "f" else np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            differences = np.diff(values, prepend=values[:1] * (not keeps_first))
        return columns.from_values(differences, result.arrow)

    call = standard_call(name, arguments, result, kernel)
    return ScalarCall(name, call.type, call.kernel, "row")


def _neighbor(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve neighbor(x, offset[, default]): x of the row that is `offset` rows further on.

    Beyond the block it is the default, or the default of the type."""
    if not isinstance(plain(arguments[1].type), Integer):
        raise illegal(name, arguments[1].type, "an integer offset")
    given = [argument.type for argument in (arguments[0], *arguments[2:])]
    result = common_type(given) if len(given) > 1 else given[0]

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Take each row's value at `offset` rows further on; the default beyond the block."""
        own, *others = (
            columns.as_array(cast_column(value, data_type, result, environment, strict=False), rows)
            for value, data_type in zip((values[0], *values[2:]), given, strict=True)
        )
        offsets = columns.numpy_values(columns.as_array(values[1], rows)).astype(np.int64)
        places = np.arange(rows) + np.clip(offsets, -rows, rows)
        other = others[0] if others else columns.as_array(default_value(result), rows)
        inside = (places >= 0) & (places < rows)
        chosen = np.where(inside, places, rows + np.arange(rows))
        return pa.concat_arrays([own, other]).take(pa.array(chosen))

    return ScalarCall(name, result, kernel, "row")


def _accumulate(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve runningAccumulate(state[, grouping]): the result of the states merged from the last change of the
    grouping up to the row."""
    state = arguments[0].type
    if not isinstance(state, AggregateFunction):
        raise illegal(name, state, "an AggregateFunction")
    parameters = [parse_parameter(parameter) for parameter in state.parameters]
    aggregate = resolve_aggregate(state.function, parameters, state.arguments)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Merge the states within each run of equal groupings, and finalize the running states."""
        states = columns.as_array(values[0], rows)
        starts = np.zeros(rows, np.int64)
        if len(values) > 1 and rows:
            ranks = rank_rows([columns.as_array(values[1], rows)]).ranks
            begins = np.concatenate(([0], np.flatnonzero(ranks[1:] != ranks[:-1]) + 1))
            starts = np.repeat(begins, np.diff(np.append(begins, rows)))
        return aggregate.finalize(_running(aggregate, states, starts))

    return ScalarCall(name, aggregate.result_type, kernel, "row")


def _running(aggregate: Aggregate, states: pa.Array, starts: np.ndarray) -> pa.Array:
    """Return for each row the merge of the states from its start up to it, in log2(rows) doubling steps."""
    rows = np.arange(len(states))
    step = 1
    while (further := np.flatnonzero(rows - step >= starts)).size:
        pairs = np.empty(2 * len(further), np.int64)
        pairs[0::2], pairs[1::2] = further - step, further
        codes = np.repeat(np.arange(len(further)), 2)
        merged = aggregate.merge(states.take(pa.array(pairs)), Groups(codes, len(further)))
        places = rows.copy()
        places[further] = len(states) + np.arange(len(further))
        states = pa.concat_arrays([states, merged]).take(pa.array(places))
        step *= 2
    return states


def _concurrency(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve runningConcurrency(start, end): how many of the events up to the row's are still under way at
    its start, the row's own included unless it has no duration.

    Raises IllegalTypeOfArgument unless both are Date, DateTime or DateTime64, of one type."""
    start, end = (argument.type for argument in arguments)
    if start != end and not (isinstance(start, DateTime) and isinstance(end, DateTime)):
        raise illegal(name, end, f"the type of the start, {start},")
    if not isinstance(start, Date | DateTime | DateTime64):
        raise illegal(name, start, "a Date, DateTime or DateTime64")

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Count for each row the events up to it, itself included, that have not ended at its start. Raises
        IncorrectData for an event that ends before it starts."""
        starts, ends = (columns.numpy_values(array).astype(np.int64) for array in arrays)
        wrong = first_bad(starts > ends)
        if wrong is not None:
            raise IncorrectData(
                f"{name}: an event starts at {arrays[0][wrong]} and ends before, at {arrays[1][wrong]}."
            ).at_row(wrong)
        lasting = np.flatnonzero(starts < ends)
        over = _first_reaching(starts, lasting, ends[lasting])
        changes = np.bincount(lasting, minlength=len(starts) + 1)
        changes -= np.bincount(over, minlength=len(starts) + 1)
        return columns.from_values(np.cumsum(changes)[:-1], UINT32.arrow)

    call = standard_call(name, arguments, UINT32, kernel)
    return ScalarCall(name, call.type, call.kernel, "row")


def _first_reaching(values: np.ndarray, rows: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return for each of `rows` the first later row whose value is at least the limit; the number of values if there
    is none. Searches a table of the maxima of runs of 1, 2, 4 … rows."""
    largest = [values]
    while 2 ** len(largest) <= len(values):
        half = 2 ** (len(largest) - 1)
        largest.append(np.maximum(largest[-1][:-half], largest[-1][half:]))
    reached = rows + 1
    for power in range(len(largest) - 1, -1, -1):
        inside = reached + 2**power <= len(values)
        below = inside & (largest[power][np.where(inside, reached, 0)] < limits)
        reached = np.where(below, reached + 2**power, reached)
    return reached


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("neighbor", _neighbor, count=(2, 3)),
    custom("runningDifference", _difference),
    custom("runningDifferenceStartingWithFirstValue", _difference),
    custom("runningAccumulate", _accumulate, count=(1, 2)),
    custom("runningConcurrency", _concurrency, count=2),
)
