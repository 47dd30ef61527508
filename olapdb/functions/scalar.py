"""How scalar functions are defined: a type rule and a kernel, and what is common to all of them.

Most functions give NULL where an argument is NULL, a LowCardinality where their only varying
argument is one, and a constant of constants; `define` adds that around a kernel that sees plain
types and values only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.functions.base import Argument, Column, Environment, ScalarCall, Volatility
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import NULL_TYPE, low_cardinality_result
from olapdb.types import (
    Array,
    DataType,
    Map,
    Nothing,
    is_nullable,
    known_zone,
    make_nullable,
    plain,
)


@dataclass(frozen=True)
class Invocation:
    """What a kernel knows besides its columns: plain argument types, the plain result type, the
    number of rows, the environment, the constants (None where an argument is none)."""

    types: tuple[DataType, ...]
    result: DataType
    rows: int
    environment: Environment
    constants: tuple[pa.Scalar | None, ...] = ()

    def constant(self, at: int) -> object:
        """The Python value of a constant argument, None where it is none or not given."""
        if at >= len(self.constants):
            return None
        value = self.constants[at]
        return None if value is None else value.as_py()


TypeRule: TypeAlias = Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]
"""(name, plain types, arguments) -> plain result type; raises for types that do not fit."""
Kernel: TypeAlias = Callable[[list[Column], Invocation], pa.Array]
"""Arrays without nulls, all of `rows` values, to one like them.  One that keeps constants gets them
as scalars, never all of them."""
NativeKernel: TypeAlias = Callable[[list[Column], Invocation], Column]
"""Columns as they come, nulls and constants included; gives NULL for NULL by itself."""
Resolver: TypeAlias = Callable[[str, Sequence[Argument]], ScalarCall]


@dataclass(frozen=True)
class ScalarDefinition:
    """A function under its name; `maximum` None: any number of arguments."""

    name: str
    resolver: Resolver
    minimum: int
    maximum: int | None
    aliases: tuple[str, ...] = ()
    case_insensitive: bool = False

    def resolve(self, name: str, arguments: Sequence[Argument]) -> ScalarCall:
        count = len(arguments)
        if count < self.minimum or (self.maximum is not None and count > self.maximum):
            wanted = (
                str(self.minimum)
                if self.minimum == self.maximum
                else (
                    f"{self.minimum} to {self.maximum}"
                    if self.maximum is not None
                    else f"at least {self.minimum}"
                )
            )
            raise errors.NumberOfArgumentsDoesntMatch(
                f"Function {name} takes {wanted} argument(s), {count} given."
            )
        doing = _doing(name, arguments)
        try:
            return _telling(self.resolver(self.name, arguments), doing)
        except (*errors.FOREIGN, pa.ArrowException) as error:
            raise errors.foreign_error(error, doing()) or error from error


def _doing(name: str, arguments: Sequence[Argument]) -> Callable[[], str]:
    return lambda: f"Function {name} of ({', '.join(str(a.type) for a in arguments)})"


def _telling(call: ScalarCall, doing: Callable[[], str]) -> ScalarCall:
    """The call, which raises nothing but errors of the tree."""

    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        try:
            return call.kernel(values, rows, environment)
        except (*errors.FOREIGN, pa.ArrowException) as error:
            raise errors.foreign_error(error, doing()) or error from error

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
    volatility: Volatility = "pure",
    keeps_constants: bool = False,
) -> ScalarDefinition:
    """A function with ClickHouse's usual treatment of NULL, LowCardinality and constants."""
    minimum, maximum = count if isinstance(count, tuple) else (count, count)

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        return usual(spelt, arguments, rule, kernel, native, monotonic, volatility, keeps_constants)

    return ScalarDefinition(name, resolve, minimum, maximum, aliases, insensitive)


def usual(
    name: str,
    arguments: Sequence[Argument],
    rule: TypeRule | DataType,
    kernel: Kernel | None,
    native: NativeKernel | None = None,
    monotonic: bool = False,
    volatility: Volatility = "pure",
    keeps_constants: bool = False,
) -> ScalarCall:
    """The call, wrapped; see `define`."""
    types = tuple(plain(a.type) for a in arguments)
    if any(isinstance(t, Nothing) for t in types):
        return ScalarCall(name, NULL_TYPE, _all_null, volatility)
    result = rule if isinstance(rule, DataType) else rule(name, types, arguments)
    constants = tuple(a.constant for a in arguments)
    nullable = any(is_nullable(a.type) for a in arguments)
    outer = make_nullable(result) if nullable else result
    fixed = [c is not None for c in constants]
    outer = low_cardinality_result(outer, [a.type for a in arguments], fixed)

    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        invocation = Invocation(types, result, rows, environment, constants)
        if native is not None:
            return native(list(values), invocation)
        assert kernel is not None
        return null_safe(kernel, values, invocation, keeps_constants)

    varying = [i for i, c in enumerate(constants) if c is None]
    return ScalarCall(name, outer, run, volatility, monotonic and len(varying) <= 1)


def null_safe(
    kernel: Kernel, values: Sequence[Column], invocation: Invocation, keeps_constants: bool = False
) -> Column:
    """Runs a kernel on the rows without NULL, and on one row where all is constant."""
    constant = bool(values) and all(isinstance(v, pa.Scalar) for v in values)
    rows = 1 if constant else invocation.rows
    if constant:
        invocation = _with_rows(invocation, 1)
    kept_as_they_are = keeps_constants and not constant
    arrays = [
        v
        if kept_as_they_are and isinstance(v, pa.Scalar) and v.is_valid
        else columns.as_array(v, rows)
        for v in values
    ]
    valid = columns.all_valid(arrays, rows)
    if valid is not None and isinstance(invocation.result, Array | Map):
        # these cannot be NULL: ClickHouse computes them of the default under the NULL
        arrays = [_defaulted(a, t) for a, t in zip(arrays, invocation.types, strict=True)]
        valid = None
    if valid is None:
        made = kernel(arrays, invocation)
    else:
        mask = pa.array(valid)
        kept = [a if isinstance(a, pa.Scalar) else a.filter(mask) for a in arrays]
        try:
            made = kernel(kept, _with_rows(invocation, int(valid.sum())))
        except errors.DataError as error:
            if error.row is not None:
                error.row = int(np.flatnonzero(valid)[error.row])
            raise
        made = columns.scatter(made, valid)
    return made[0] if constant else made


def _defaulted(array: pa.Array, data_type: DataType) -> pa.Array:
    return array.fill_null(default_value(data_type)) if array.null_count else array


def _with_rows(invocation: Invocation, rows: int) -> Invocation:
    return Invocation(
        invocation.types, invocation.result, rows, invocation.environment, invocation.constants
    )


def _all_null(values: Sequence[Column], rows: int, environment: Environment) -> Column:
    return pa.scalar(None, pa.null())


def custom(
    name: str,
    resolver: Resolver,
    *,
    count: int | tuple[int, int | None] = 1,
    aliases: tuple[str, ...] = (),
    insensitive: bool = False,
) -> ScalarDefinition:
    """A function that treats NULL and types by itself."""
    minimum, maximum = count if isinstance(count, tuple) else (count, count)
    return ScalarDefinition(name, resolver, minimum, maximum, aliases, insensitive)


def illegal(name: str, data_type: DataType, wanted: str) -> errors.IllegalTypeOfArgument:
    return errors.IllegalTypeOfArgument(
        f"Illegal type {data_type} of argument of function {name}: {wanted} expected."
    )


def require(
    name: str, types: Sequence[DataType], kinds: type | tuple[type, ...], wanted: str
) -> None:
    """IllegalTypeOfArgument for the first type that is of none of the kinds."""
    for one in types:
        if not isinstance(one, kinds):
            raise illegal(name, one, wanted)


def fixed_rule(result: DataType, kinds: tuple[type, ...], wanted: str) -> TypeRule:
    """A rule: all arguments of these kinds, the result always the same."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, kinds, wanted)
        return result

    return rule


def _not_constant(value: pa.Scalar | None) -> type[errors.ProgrammingError]:
    """As ClickHouse tells a wrong type from a column where a constant should be."""
    return errors.IllegalColumn if value is None else errors.IllegalTypeOfArgument


def constant_text(name: str, arguments: Sequence[Argument], at: int, meaning: str) -> str:
    """The value of an argument that must be a constant string."""
    value = arguments[at].constant
    found = value.as_py() if value is not None else None
    if not isinstance(found, str):
        raise _not_constant(value)(
            f"Argument {at + 1} of function {name}, {meaning}, must be a constant string."
        )
    return found


def constant_zone(name: str, arguments: Sequence[Argument], at: int) -> str:
    """The time zone that an argument, a constant string, names; BadArguments where none does."""
    return known_zone(constant_text(name, arguments, at, "the time zone"))


def constant_integer(name: str, arguments: Sequence[Argument], at: int, meaning: str) -> int:
    """The value of an argument that must be a constant integer."""
    value = arguments[at].constant
    found = value.as_py() if value is not None else None
    if not isinstance(found, int):
        raise _not_constant(value)(
            f"Argument {at + 1} of function {name}, {meaning}, must be a constant integer."
        )
    return int(found)
