"""Definitions of scalar functions: a type rule, a kernel, and the treatment that they share.

Most functions return NULL where an argument is NULL, a LowCardinality if their only non-constant
argument is one, and a constant for constants.  `define` adds this around a kernel that sees only
plain types and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import NULL_TYPE, low_cardinality_result
from olapdb.records import dataclass
from olapdb.types import (
    Array,
    DataType,
    LowCardinality,
    Map,
    Nothing,
    is_nullable,
    known_zone,
    make_nullable,
    plain,
)


@dataclass(frozen=True)
class Invocation:
    """The context of one kernel call: argument types without Nullable and LowCardinality, result type, rows and
    environment. `constants` has the value of each constant argument, None for others."""

    types: tuple[DataType, ...]
    result: DataType
    rows: int
    environment: Environment
    constants: tuple[pa.Scalar | None, ...] = ()

    def constant(self, at: int) -> object:
        """Return the Python value of argument `at`, or None if it is absent or not a constant."""
        if at >= len(self.constants):
            return None
        scalar = self.constants[at]
        return None if scalar is None else scalar.as_py()


TypeRule: TypeAlias = Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]
"""A function from (name, plain types, arguments) to the plain result type; raises if none fits."""
Kernel: TypeAlias = Callable[[list[Column], Invocation], pa.Array]
"""A function from arrays of `rows` values without nulls to one such array.

With `keeps_constants`, constant arguments stay scalars unless all arguments are constants.
"""
NativeKernel: TypeAlias = Callable[[list[Column], Invocation], Column]
"""A function of unprepared columns, with nulls and constants; it handles NULL itself."""
Resolver: TypeAlias = Callable[[str, Sequence[Argument]], ScalarCall]


@dataclass(frozen=True)
class ScalarDefinition:
    """A function by name, with bounds on its number of arguments; `maximum` None: no bound.

    `few` and `many` are the error classes for a number of arguments below and above the bounds. `by_settings` gives
    the resolver for settings that are not at their defaults."""

    name: str
    resolver: Resolver
    minimum: int
    maximum: int | None
    aliases: tuple[str, ...] = ()
    case_insensitive: bool = False
    few: type[errors.ProgrammingError] = errors.NumberOfArgumentsDoesntMatch
    many: type[errors.ProgrammingError] = errors.NumberOfArgumentsDoesntMatch
    by_settings: Callable[[frozenset[str]], Resolver] | None = None

    def resolve(self, name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Return the call for these arguments; its kernel raises only errors of `olapdb.errors`.

        Raises `few` or `many` for a number of arguments outside the bounds, or the resolver's error."""
        wrong_count = self.count_error(name, len(arguments))
        if wrong_count is not None:
            raise wrong_count

        def describe() -> str:
            """Return the call as text, the name with the argument types, for error messages."""
            return f"Function {name} of ({', '.join(str(a.type) for a in arguments)})"

        try:
            return _translating_errors(self.resolver(self.name, arguments), describe)
        except (*errors.FOREIGN, pa.ArrowException) as error:
            raise errors.foreign_error(error, describe()) or error from error

    def count_error(self, name: str, count: int) -> errors.ProgrammingError | None:
        """Return the error, `few` or `many`, for a number of arguments outside the bounds; None inside of them."""
        if self.minimum <= count and (self.maximum is None or count <= self.maximum):
            return None
        expected = str(self.minimum)
        if self.maximum is None:
            expected = f"at least {self.minimum}"
        elif self.maximum != self.minimum:
            expected = f"{self.minimum} to {self.maximum}"
        error = self.few if count < self.minimum else self.many
        return error(f"Function {name} takes {expected} argument(s), {count} given.")


def with_count_errors(
    definitions: Iterable[ScalarDefinition],
    *,
    few: type[errors.ProgrammingError] = errors.NumberOfArgumentsDoesntMatch,
    many: type[errors.ProgrammingError] = errors.NumberOfArgumentsDoesntMatch,
) -> tuple[ScalarDefinition, ...]:
    """Return the definitions with these error classes for too few and too many arguments, which differ in ClickHouse
    by function."""
    return tuple(replace(definition, few=few, many=many) for definition in definitions)


def _translating_errors(call: ScalarCall, describe: Callable[[], str]) -> ScalarCall:
    """Wrap the call's kernel so that errors of Python and Arrow become errors of `olapdb.errors`; `describe` gives
    the call's text for the message."""

    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Run the kernel; raise an error of Python or Arrow as one of `olapdb.errors`."""
        try:
            return call.kernel(values, rows, environment)
        except (*errors.FOREIGN, pa.ArrowException) as error:
            raise errors.foreign_error(error, describe()) or error from error

    return replace(call, kernel=run)


def define(
    name: str,
    rule: TypeRule | DataType,
    kernel: Kernel | None = None,
    *,
    count: int | tuple[int, int | None] = 1,
    aliases: tuple[str, ...] = (),
    insensitive: bool = False,
    native: NativeKernel | None = None,
    monotonic: bool = False,
    keeps_constants: bool = False,
    drops_dictionary: bool = False,
) -> ScalarDefinition:
    """Define a function with ClickHouse's usual treatment of NULL, LowCardinality and constants.

    `count` is the number of arguments, or its bounds. `insensitive`: the name is matched in any case.
    `drops_dictionary`: the result is never a LowCardinality. Either `kernel` or `native` computes the values; see
    their types."""
    minimum, maximum = count if isinstance(count, tuple) else (count, count)

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call by `standard_call`."""
        call = standard_call(spelt, arguments, rule, kernel, native, monotonic, keeps_constants)
        return without_dictionary(call) if drops_dictionary else call

    return ScalarDefinition(name, resolve, minimum, maximum, aliases, insensitive)


def standard_call(
    name: str,
    arguments: Sequence[Argument],
    rule: TypeRule | DataType,
    kernel: Kernel | None,
    native: NativeKernel | None = None,
    monotonic: bool = False,
    keeps_constants: bool = False,
) -> ScalarCall:
    """Build the call of a kernel with the treatment that `define` describes. If an argument is a bare NULL, the
    result is NULL, and the kernel is not called."""
    types = tuple(plain(a.type) for a in arguments)
    if any(isinstance(t, Nothing) for t in types):
        return ScalarCall(name, NULL_TYPE, _all_null)
    result = rule if isinstance(rule, DataType) else rule(name, types, arguments)
    constants = tuple(a.constant for a in arguments)
    nullable = any(is_nullable(a.type) for a in arguments)
    outer = make_nullable(result) if nullable else result
    fixed = [c is not None for c in constants]
    outer = low_cardinality_result(outer, [a.type for a in arguments], fixed)

    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Run the native kernel, which has its own way with NULL; if there is none, the other one under `null_safe`."""
        invocation = Invocation(types, result, rows, environment, constants)
        if native is not None:
            return native(list(values), invocation)
        assert kernel is not None
        return null_safe(kernel, values, invocation, keeps_constants)

    varying = [i for i, c in enumerate(constants) if c is None]
    return ScalarCall(name, outer, run, monotonic=monotonic and len(varying) <= 1)


def strict_call(
    definition: ScalarDefinition, name: str, arguments: Sequence[Argument]
) -> ScalarCall:
    """Return the call of a function that accepts no NULL: a row with a NULL in any argument gives NULL, and the
    function sees the other rows."""
    if any(isinstance(plain(a.type), Nothing) for a in arguments):
        return standard_call(name, arguments, NULL_TYPE, None)
    call = definition.resolve(name, [replace(a, type=plain(a.type)) for a in arguments])

    def kernel(arrays: list[Column], invocation: Invocation) -> pa.Array:
        """Run the function on the rows without NULL."""
        result = call.kernel(arrays, invocation.rows, invocation.environment)
        return columns.as_array(result, invocation.rows)

    return standard_call(name, arguments, call.type, kernel)


def without_dictionary(call: ScalarCall) -> ScalarCall:
    """Return the call with a result type that is not LowCardinality."""
    if isinstance(call.type, LowCardinality):
        return replace(call, type=call.type.inner)
    return call


def null_safe(
    kernel: Kernel, values: Sequence[Column], invocation: Invocation, keeps_constants: bool = False
) -> Column:
    """Run a kernel on the rows without NULL, and on one row if all arguments are constants.

    Rows with a NULL are NULL in the result. An Array or Map cannot be NULL: for such a result the
    kernel gets the default of the argument's type in place of NULL. The `row` of a DataError counts
    all rows, also those with a NULL.
    """
    constant = bool(values) and all(isinstance(v, pa.Scalar) for v in values)
    rows = 1 if constant else invocation.rows
    if constant:
        invocation = replace(invocation, rows=1)
    scalars_stay = keeps_constants and not constant
    arrays = [
        v if scalars_stay and isinstance(v, pa.Scalar) and v.is_valid else columns.as_array(v, rows)
        for v in values
    ]
    valid = columns.all_valid(arrays, rows)
    if valid is not None and isinstance(invocation.result, Array | Map):
        # As ClickHouse does: the result cannot be NULL, so the kernel reads the default instead.
        arrays = [_nulls_as_default(a, t) for a, t in zip(arrays, invocation.types, strict=True)]
        valid = None
    if valid is None:
        result = kernel(arrays, invocation)
    else:
        mask = pa.array(valid)
        valid_arrays = [a if isinstance(a, pa.Scalar) else a.filter(mask) for a in arrays]
        try:
            result = kernel(valid_arrays, replace(invocation, rows=int(valid.sum())))
        except errors.DataError as error:
            if error.row is not None:
                error.row = int(np.flatnonzero(valid)[error.row])
            raise
        result = columns.scatter(result, valid)
    return result[0] if constant else result


def _nulls_as_default(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return the column with NULLs replaced by the type's default."""
    return array.fill_null(default_value(data_type)) if array.null_count else array


def _all_null(values: Sequence[Column], rows: int, environment: Environment) -> Column:
    """Return the constant NULL: the kernel of every call that has a NULL without a type among its arguments."""
    return pa.scalar(None, pa.null())


def custom(
    name: str,
    resolver: Resolver,
    *,
    count: int | tuple[int, int | None] = 1,
    aliases: tuple[str, ...] = (),
    insensitive: bool = False,
) -> ScalarDefinition:
    """Define a function whose resolver handles NULL, constants and types itself."""
    minimum, maximum = count if isinstance(count, tuple) else (count, count)
    return ScalarDefinition(name, resolver, minimum, maximum, aliases, insensitive)


def illegal(name: str, data_type: DataType, wanted: str) -> errors.IllegalTypeOfArgument:
    """Return the error for an argument of the wrong type; `wanted`, a noun, names the expected
    types.
    """
    return errors.IllegalTypeOfArgument(
        f"Illegal type {data_type} of argument of function {name}: {wanted} expected."
    )


def require(
    name: str, types: Sequence[DataType], kinds: type | tuple[type, ...], wanted: str
) -> None:
    """Raise IllegalTypeOfArgument about the first type, if any, that is of none of the kinds.

    `wanted` names the kinds in the error.
    """
    for data_type in types:
        if not isinstance(data_type, kinds):
            raise illegal(name, data_type, wanted)


def fixed_rule(
    result: DataType, kinds: tuple[type, ...], wanted: str, checked: int | None = None
) -> TypeRule:
    """Return a type rule with a constant result.

    The first `checked` arguments, all by default, must be of these kinds; `wanted` names them in
    the error.
    """

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the constant result type; raise IllegalTypeOfArgument if a checked argument is of another kind."""
        require(name, types[:checked], kinds, wanted)
        return result

    return rule


def _not_constant(value: pa.Scalar | None) -> type[errors.ProgrammingError]:
    """Return the error class, as in ClickHouse, for an argument that must be a constant: IllegalColumn if it is
    none, IllegalTypeOfArgument for a constant of the wrong type."""
    return errors.IllegalColumn if value is None else errors.IllegalTypeOfArgument


def constant_text(name: str, arguments: Sequence[Argument], at: int, meaning: str) -> str:
    """Return the value of argument `at`, counted from 0, which must be a constant string.

    Raises IllegalColumn if it is no constant, IllegalTypeOfArgument if it is no string. `meaning`
    names it in the error.
    """
    scalar = arguments[at].constant
    text = scalar.as_py() if scalar is not None else None
    if not isinstance(text, str):
        raise _not_constant(scalar)(
            f"Argument {at + 1} of function {name}, {meaning}, must be a constant string."
        )
    return text


def constant_zone(name: str, arguments: Sequence[Argument], at: int) -> str:
    """Return the time zone that argument `at`, counted from 0 and a constant string, names.

    Raises IllegalColumn if it is no constant, IllegalTypeOfArgument if it is no string, and
    BadArguments for an unknown zone.
    """
    return known_zone(constant_text(name, arguments, at, "the time zone"))


def constant_integer(name: str, arguments: Sequence[Argument], at: int, meaning: str) -> int:
    """Return the value of argument `at`, counted from 0, which must be a constant integer.

    Raises IllegalColumn if it is no constant, IllegalTypeOfArgument if it is no integer. `meaning`
    names it in the error.
    """
    scalar = arguments[at].constant
    number = scalar.as_py() if scalar is not None else None
    if not isinstance(number, int):
        raise _not_constant(scalar)(
            f"Argument {at + 1} of function {name}, {meaning}, must be a constant integer."
        )
    return int(number)
