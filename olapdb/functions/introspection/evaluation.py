"""toTypeName, throwIf, ignore, identity, materialize, finalizeAggregation,
initializeAggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import (
    BadArguments,
    Error,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
    ThrowIfNonZero,
)
from olapdb.functions.aggregates.registry import parse_parameter, resolve_aggregate
from olapdb.functions.arrays.array_reduce import aggregate_of_text
from olapdb.functions.base import Argument, Column, Environment, Groups, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import low_cardinality_result
from olapdb.functions.scalar import ScalarDefinition, custom, illegal, require, with_count_errors
from olapdb.types import (
    INT8,
    INT16,
    INT32,
    STRING,
    UINT8,
    AggregateFunction,
    Boolean,
    FixedString,
    Float,
    Integer,
    String,
    is_nullable,
    make_nullable,
    plain,
)
from olapdb.types.indented import indented_name


def _type_name(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toTypeName(x): the name of the argument's type, a constant."""
    shown = pa.scalar(indented_name(arguments[0].type))
    return ScalarCall(name, STRING, lambda v, r, e: shown, reads_values=False)


def _throw_if(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve throwIf(condition[, message]): 0, NULL for a NULL, or ThrowIfNonZero if a row's condition is not 0."""
    if len(arguments) > 2:
        raise NumberOfArgumentsDoesntMatch(
            f"The third argument of {name} needs the setting allow_custom_error_code_in_throwif.",
            hint="SET allow_custom_error_code_in_throwif = 1.",
        )
    require(name, [plain(arguments[0].type)], (Integer, Float, Boolean), "a number")
    require(name, [plain(a.type) for a in arguments[1:]], (String, FixedString), "a text")
    constant = (
        arguments[1].constant.as_py()
        if len(arguments) > 1 and arguments[1].constant is not None
        else None
    )
    message = (
        constant if isinstance(constant, str) else f"Value passed to '{name}' function is non-zero"
    )

    nullable = is_nullable(arguments[0].type)
    result = make_nullable(UINT8) if nullable else UINT8
    result = low_cardinality_result(result, [arguments[0].type], [False])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return 0, or NULL for a NULL; raise ThrowIfNonZero if any condition is true."""
        given = columns.single(values[0])
        if pc.any(columns.truth(given)).as_py():
            raise ThrowIfNonZero(message)
        if not given.null_count:
            return pa.scalar(0, pa.uint8())
        zeros = pc.if_else(given.is_null(), pa.scalar(None, pa.uint8()), pa.scalar(0, pa.uint8()))
        return zeros[0] if isinstance(values[0], pa.Scalar) else zeros

    # "row" keeps the optimizer from folding the call away
    return ScalarCall(name, result, kernel, "row")


def _error_of_code(code: int) -> type[Error]:
    """Return the class of the errors with ClickHouse's code; one of that code without a name if there is none."""
    classes: list[type[Error]] = [Error]
    for known in classes:
        if known.code == code and known is not Error:
            return known
        classes.extend(known.__subclasses__())

    class OfCode(ThrowIfNonZero, name="UNKNOWN", code=code):
        """A row for which throwIf received a non-zero value, with a code that throwIf was given."""

    return OfCode


def _throw_if_with_code(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve throwIf(condition, message, code) under allow_custom_error_code_in_throwif: the error has the code, a
    constant Int8, Int16 or Int32. Raises IllegalTypeOfArgument for another code."""
    if len(arguments) < 3:
        return _throw_if(name, arguments)
    kind, code = arguments[2].type, arguments[2].constant
    if kind not in (INT8, INT16, INT32) or code is None:
        raise IllegalTypeOfArgument(
            f"The code of {name} is a constant Int8, Int16 or Int32, not {kind}."
        )
    call = _throw_if(name, arguments[:2])
    error = _error_of_code(code.as_py())

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Do as throwIf does, but raise the error of the code."""
        try:
            return call.kernel(values[:2], rows, environment)
        except ThrowIfNonZero as failed:
            raise error(failed.message) from None

    return replace(call, kernel=kernel)


def _ignore(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve ignore(…), which is 0 for any arguments."""
    return ScalarCall(name, UINT8, lambda v, r, e: pa.scalar(0, pa.uint8()), "query")


def _identity(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve identity(x): the argument unchanged."""
    return ScalarCall(name, arguments[0].type, lambda v, r, e: v[0])


def _materialize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve materialize(x): a constant as a full column."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Repeat a constant; return a column unchanged."""
        return columns.as_array(values[0], rows)

    return ScalarCall(name, arguments[0].type, kernel)


def _finalize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve finalizeAggregation(state): the result of each state."""

    state = arguments[0].type
    if not isinstance(state, AggregateFunction):
        raise illegal(name, state, "an AggregateFunction")
    parameters = [parse_parameter(p) for p in state.parameters]
    aggregate = resolve_aggregate(state.function, parameters, state.arguments)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Finalize the states; a constant gives a constant."""
        results = aggregate.finalize(columns.single(values[0]))
        return results[0] if isinstance(values[0], pa.Scalar) else results

    return ScalarCall(name, aggregate.result_type, kernel)


def _initialize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve initializeAggregation(aggregate, x, …): the aggregate of each row alone.

    With -State it gives a state of one value.
    """
    aggregate = aggregate_of_text(name, arguments, [a.type for a in arguments[1:]])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Aggregate each row in a group of its own."""
        arrays = [columns.as_array(value, rows) for value in values[1:]]
        states = aggregate.state(arrays, Groups(np.arange(rows), rows))
        return aggregate.finalize(states)

    return ScalarCall(name, aggregate.result_type, kernel)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("toTypeName", _type_name),
    replace(
        custom("throwIf", _throw_if, count=(1, 2)),
        maximum=3,
        by_settings=lambda changed: _throw_if_with_code,
    ),
    custom("ignore", _ignore, count=(0, None)),
    custom("identity", _identity),
    custom("materialize", _materialize),
    custom("finalizeAggregation", _finalize),
    *with_count_errors(
        (custom("initializeAggregation", _initialize, count=(2, None)),), few=BadArguments
    ),
)
