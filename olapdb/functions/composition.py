"""Functions that are compositions of other functions: their types and values follow from those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.functions.base import Argument, Column, Environment, ScalarCall, Volatility
from olapdb.functions.kernels.constants import constant
from olapdb.functions.kernels.supertypes import NULL_TYPE, low_cardinality_result
from olapdb.functions.registry import resolve_scalar
from olapdb.functions.scalar import ScalarDefinition, custom, standard_call
from olapdb.records import dataclass
from olapdb.types import DataType, Nothing, plain

Compute = Callable[[Sequence[Column], int, Environment], Column]


@dataclass(frozen=True)
class Term:
    """A part of a composition: its type, its value if it is a constant, and the function that computes it from the
    arguments of the composed function."""

    type: DataType
    constant: pa.Scalar | None
    compute: Compute
    volatility: Volatility = "pure"


def literal(value: object, data_type: DataType) -> Term:
    """Return a constant term of this value and type."""
    scalar = constant(value, data_type)
    return Term(data_type, scalar, lambda values, rows, environment: scalar)


def call(name: str, *parts: Term) -> Term:
    """Return the term that calls the registered function `name` on terms. Raises the errors of `resolve_scalar`."""
    inner = resolve_scalar(name, [Argument(part.type, part.constant) for part in parts])

    def compute(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compute the parts, and call the function with their values."""
        computed = [part.compute(values, rows, environment) for part in parts]
        return inner.kernel(computed, rows, environment)

    volatilities = {inner.volatility, *(part.volatility for part in parts)}
    worst: Volatility = (
        "row" if "row" in volatilities else "query" if "query" in volatilities else "pure"
    )
    return Term(inner.type, None, compute, worst)


def parts_of(arguments: Sequence[Argument]) -> list[Term]:
    """Return the arguments of a call as parts that take their values."""
    return [_argument(at, argument) for at, argument in enumerate(arguments)]


def _argument(at: int, argument: Argument) -> Term:
    """Return the part that takes the value of argument number `at`, from 0."""
    return Term(argument.type, argument.constant, lambda values, rows, environment: values[at])


def as_call(name: str, whole: Term) -> ScalarCall:
    """Return a composition as the call of the function `name`."""
    return ScalarCall(name, whole.type, whole.compute, whole.volatility)


def compose(
    name: str,
    build: Callable[..., Term],
    *,
    count: int | tuple[int, int | None],
    aliases: tuple[str, ...] = (),
    insensitive: bool = False,
    standard: bool = False,
) -> ScalarDefinition:
    """Define a function by composition of others: `build` receives one term for each argument and returns the term of
    the result. With `standard` a bare NULL gives NULL, and LowCardinality is kept where `define` keeps it."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call: build the composition of the arguments."""
        if not standard:
            return as_call(spelt, build(*parts_of(arguments)))
        if any(isinstance(plain(argument.type), Nothing) for argument in arguments):
            return standard_call(spelt, arguments, NULL_TYPE, None)
        whole = as_call(spelt, build(*parts_of(arguments)))
        fixed = [argument.constant is not None for argument in arguments]
        shown = low_cardinality_result(whole.type, [a.type for a in arguments], fixed)
        return replace(whole, type=shown)

    return custom(name, resolve, count=count, aliases=aliases, insensitive=insensitive)
