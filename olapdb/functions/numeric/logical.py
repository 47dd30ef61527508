"""and, or, not, xor in three-valued logic; Bool if an argument is one, else UInt8.

The Nullable(Bool)s of `and` and `or` do not count, as in ClickHouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow.compute as pc

from olapdb.errors import TooFewArguments
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    custom,
    define,
    illegal,
    with_count_errors,
)
from olapdb.types import (
    BOOL,
    UINT8,
    Boolean,
    DataType,
    Float,
    Integer,
    Nothing,
    Nullable,
    is_nullable,
    plain,
)


def _checked(name: str, types: Sequence[DataType]) -> DataType:
    """Return Bool if any type is Bool, else UInt8.

    Raises IllegalTypeOfArgument for a type that is no condition: neither integer, float, Bool nor NULL."""
    for data_type in types:
        if not isinstance(data_type, Integer | Boolean | Float | Nothing):
            raise illegal(name, data_type, "a condition (a number or Bool)")
    return BOOL if any(isinstance(t, Boolean) for t in types) else UINT8


def _resolver(
    connective: Callable[[Column, Column], Column],
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a lazy resolver of `and` or `or`; `connective` is Arrow's function of two conditions."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; the executor may evaluate arguments only on rows that need them."""
        result = _checked(name, [plain(a.type) for a in arguments])
        if all(is_nullable(a.type) or not isinstance(plain(a.type), Boolean) for a in arguments):
            result = UINT8
        nullable = any(is_nullable(a.type) for a in arguments)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Join the conditions from left to right; NULL is unknown."""
            merged = columns.truth(values[0])
            for value in values[1:]:
                merged = connective(merged, columns.truth(value))
            return pc.cast(merged, result.arrow)

        return ScalarCall(name, Nullable(result) if nullable else result, kernel, lazy=True)

    return resolve


def _not(values: list[Column], call: Invocation) -> Column:
    """Return the negated conditions; NULL stays NULL."""
    return pc.cast(pc.invert(columns.truth(values[0])), call.result.arrow)


def _xor(values: list[Column], call: Invocation) -> Column:
    """Return 1 where an odd number of the conditions is true, else 0; NULL if any is NULL."""
    merged = columns.truth(values[0])
    for value in values[1:]:
        merged = pc.xor(merged, columns.truth(value))
    return pc.cast(merged, call.result.arrow)


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the result type of not and xor: Bool if any argument is Bool, else UInt8.

    Raises IllegalTypeOfArgument if any argument is neither a number, Bool nor NULL.
    """
    return _checked(name, types)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("not", _rule, native=_not, insensitive=True),
    *with_count_errors(
        (
            custom("and", _resolver(pc.and_kleene), count=(2, None), insensitive=True),
            custom("or", _resolver(pc.or_kleene), count=(2, None), insensitive=True),
            define(
                "xor", _rule, native=_xor, count=(2, None), insensitive=True, drops_dictionary=True
            ),
        ),
        few=TooFewArguments,
    ),
)
