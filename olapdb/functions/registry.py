"""Scalar functions by name. `index` says which module defines a name; that is imported at the first
lookup of the name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.errors import (
    IllegalTypeOfArgument,
    NotSupportedError,
    NumberOfArgumentsDoesntMatch,
    UnknownFunction,
)
from olapdb.functions.aggregates.name_parts import aggregate_names, is_aggregate
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.index import CASE_INSENSITIVE, LAMBDAS, NAMES
from olapdb.functions.kernels.supertypes import NULL_TYPE
from olapdb.functions.modules import all_modules, by_name, definitions_of, table_of
from olapdb.functions.refused import REFUSED, UNKNOWN
from olapdb.functions.scalar import ScalarDefinition, standard_call, strict_call
from olapdb.functions.windows import find_window
from olapdb.lazy import LazyModule
from olapdb.types import (
    STRING,
    UINT8,
    Boolean,
    DataType,
    Dynamic,
    Json,
    Nothing,
    Tuple,
    Variant,
    any_part,
    is_nullable,
    make_nullable,
    plain,
    without_inner_low_cardinality,
)

if TYPE_CHECKING:
    from olapdb.functions import settings as function_settings
    from olapdb.functions.arrays import lambda_functions
    from olapdb.functions.arrays.lambdas import LambdaDefinition
    from olapdb.functions.dynamic import calls as dynamic_calls
    from olapdb.functions.variants import calls as variant_calls
else:
    lambda_functions = LazyModule("olapdb.functions.arrays.lambda_functions")
    dynamic_calls = LazyModule("olapdb.functions.dynamic.calls")
    variant_calls = LazyModule("olapdb.functions.variants.calls")
    function_settings = LazyModule("olapdb.functions.settings")

_REFUSES_NULL = frozenset(
    [
        *("toLowCardinality", "has", "indexOf", "countEqual", "indexOfAssumeSorted"),
        *("arrayReduce", "arrayReduceInRanges", "now"),
        *("if", "multiIf", "and", "or", "tupleElement", "arrayPushBack", "arrayPushFront"),
        *("arraySlice", "arrayResize", "mapContains", "mapContainsKey", "transform"),
    ]
)
"""Functions that refuse a bare NULL beside an argument of a wrong type; others answer it with NULL."""
_REFUSES_NULL_AT_FIRST = frozenset(
    [
        *("arrayResize", "arrayRemove", "arrayWithConstant", "flattenTuple", "dateTrunc"),
        *("IPv4StringToNum", "IPv4StringToNumOrDefault", "IPv4StringToNumOrNull"),
        *("IPv6StringToNum", "IPv6StringToNumOrDefault", "IPv6StringToNumOrNull"),
        *("isIPAddressInRange", "timeZoneOf", "timezoneOf", "dateTimeToUUIDv7"),
    ]
)
"""Functions that refuse a bare NULL as their first argument."""
_KEEPS_LOW_CARDINALITY = frozenset(
    [
        "array",
        "tuple",
        "map",
        "materialize",
        "identity",
        "emptyArrayToSingle",
        "tupleElement",
        "mapFromArrays",
        "mapSort",
        "mapReverseSort",
        "mapPartialSort",
        "mapPartialReverseSort",
        "CAST",
        "accurateCast",
        "accurateCastOrNull",
        "accurateCastOrDefault",
        "toTypeName",
        "toColumnTypeName",
    ]
)
"""Functions to whose results the LowCardinality inside of an argument's type passes on."""
_BY_NUMBER = frozenset(
    [
        "tupleMultiplyByNumber",
        "tupleDivideByNumber",
        "tupleModuloByNumber",
        "tuplePositiveModuloByNumber",
        "tupleIntDivByNumber",
        "tupleIntDivOrZeroByNumber",
    ]
)
"""Functions of a tuple and a number whose result is NULL for a number that is NULL."""
_OF_TUPLES = _BY_NUMBER | frozenset(
    [
        *("plus", "minus", "multiply", "divide", "intDiv", "modulo", "negate", "tupleElement"),
        *("tuplePlus", "tupleMinus", "tupleMultiply", "tupleDivide", "tupleModulo", "tupleIntDiv"),
        *("tupleIntDivOrZero", "tupleNegate", "tupleConcat", "tupleHammingDistance", "dotProduct"),
        *("L1Norm", "L2Norm", "L2SquaredNorm", "LinfNorm", "LpNorm"),
        *("L1Distance", "L2Distance", "L2SquaredDistance", "LinfDistance", "LpDistance"),
        *("L1Normalize", "L2Normalize", "LinfNormalize", "LpNormalize", "cosineDistance"),
        *("mapAdd", "mapSubtract"),
    ]
)
"""Functions of tuples whose result is NULL for a tuple that is NULL."""
_PARAMETERS_FROM = {
    **{f"toDecimal{bits}": 1 for bits in (32, 64, 128, 256)},
    **{f"toDecimal{bits}OrZero": 1 for bits in (32, 64, 128, 256)},
    **dict.fromkeys(("toDate", "toDateTime", "toDateTimeOrZero", "toDateTime64"), 1),
    **dict.fromkeys(("toDateTime64OrZero", "toString", "toFixedString", "toTimeZone"), 1),
    **dict.fromkeys(("toInterval", "toTime64", "now64", "tumble", "hop"), 0),
}
"""Functions whose result is Nullable if an argument from this place on is: a scale, a length, a zone
or a unit. The usual treatment of NULL would only look at what is converted."""


@cache
def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all scalar functions, package by package."""
    return tuple(d for module in all_modules() for d in definitions_of(module))


@cache
def _definitions_by_name() -> Mapping[str, ScalarDefinition]:
    """Return the mapping `by_name` of all scalar functions; imports all modules."""
    return by_name(iter(definitions()))


@lru_cache(maxsize=4096)
def _place(name: str) -> tuple[str, str] | None:
    """Return the module that defines a name of the index, and the name as `by_name` spells it; None for others.

    A search takes some 10 µs, a mapping of all names half a millisecond to make: a first query asks for few names."""
    if " " in name:
        return None
    for table, word, prefix in ((NAMES, name, ""), (CASE_INSENSITIVE, name.lower(), "\0")):
        wanted = f" {word} "
        if wanted in "".join(table.values()):
            return next(m for m, names in table.items() if wanted in names), prefix + word
    return None


def _lambda_definitions() -> Mapping[str, LambdaDefinition]:
    """Return the functions that take a lambda, by name."""
    return lambda_functions.LAMBDA_DEFINITIONS


def _is_indexed(name: str) -> bool:
    """Return whether the name is known without importing the modules of all functions: it is in the index, or an
    aggregate's or window function's name."""
    return is_listed(name) or is_aggregate(name) or find_window(name) is not None


def find(name: str) -> ScalarDefinition | None:
    """Return the definition of a name, or None if it is unknown. Case is ignored for names where ClickHouse ignores
    it. Imports the module that the index gives for the name; all modules for a name that is not in the index."""
    place = _place(name)
    if place is not None:
        module, key = place
        return table_of(module)[key]
    if _is_indexed(name):
        return None
    table = _definitions_by_name()
    return table.get(name) or table.get(f"\0{name.lower()}")


def find_lambda(name: str) -> LambdaDefinition | None:
    """Return the definition of a function that takes a lambda, or None if the function takes none."""
    if name not in LAMBDAS and _is_indexed(name):
        return None
    return _lambda_definitions().get(name)


def is_listed(name: str) -> bool:
    """Return whether the index lists a scalar function of this name, with or without a lambda. Imports no module of
    functions."""
    return _place(name) is not None or name in LAMBDAS


def is_scalar(name: str) -> bool:
    """Return whether a scalar function, with or without a lambda, has this name. Imports no module of functions for
    a name of the index, an aggregate's or a window function's."""
    if is_listed(name):
        return True
    return not _is_indexed(name) and (find(name) is not None or find_lambda(name) is not None)


def function_names() -> tuple[str, ...]:
    """Return all names and aliases of scalar functions, those with a lambda included, sorted."""
    names = {name for name in _definitions_by_name() if not name.startswith("\0")}
    return tuple(sorted(names | set(_lambda_definitions())))


def function_descriptions() -> list[tuple[str, bool, str]]:
    """Return (name, whether its case is ignored, the name that it is an alias of, or "") of all functions, sorted by
    name."""
    descriptions = []
    for name in function_names():
        definition = find(name)
        alias_to = "" if definition is None or name == definition.name else definition.name
        case_insensitive = definition is not None and definition.case_insensitive
        descriptions.append((name, case_insensitive, alias_to))
    return descriptions


def resolve_scalar(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call of a function for these arguments.

    Raises UnknownFunction (with the nearest name), NotSupportedError for a function of ClickHouse
    that is not there, NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument, BadArguments,
    NoCommonType.
    """
    if " " in name:
        changed = function_settings.settings_in_name(name)[1]
        try:
            call = _call(_under_settings(name), name, arguments)
        except IllegalTypeOfArgument:
            if "variant_throw_on_type_mismatch" not in changed:
                raise
            call = standard_call(name, [Argument(NULL_TYPE)], NULL_TYPE, None)
        under = function_settings.under_settings(call, name, changed)
        return replace(under, monotonic=call.monotonic)
    definition = find(name)
    if definition is None and find_lambda(name) is not None:
        if len(arguments) < 2:
            raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a lambda and what it maps.")
        raise IllegalTypeOfArgument(
            f"The first argument of function {name} must be a lambda.",
            hint=f"Write {name}(x -> …, a).",
        )
    if definition is None and name in REFUSED:
        raise NotSupportedError(f"Function {name} is not supported: {REFUSED[name]}.")
    if definition is None and name in UNKNOWN:
        raise UnknownFunction(f"Function {name} does not exist: {UNKNOWN[name]}.")
    if definition is None:
        raise UnknownFunction(f"Function with name {name} does not exist.", hint=_nearest(name))
    return _call(definition, name, arguments)


def _call(definition: ScalarDefinition, name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call of a definition for these arguments, written as `name`. Raises the errors of `resolve_scalar`."""
    if definition.name in _REFUSES_NULL_AT_FIRST and any(
        isinstance(plain(a.type), Nothing) for a in arguments[:1]
    ):
        raise IllegalTypeOfArgument(f"The first argument of function {name} is a bare NULL.")
    if definition.name in ORDERING:
        refuse_order_within(definition.name, [a.type for a in arguments])
    if any(isinstance(plain(a.type), Dynamic | Json) for a in arguments) and (
        dynamic_calls.takes_over(definition.name, arguments)
    ):
        wrong_count = definition.count_error(name, len(arguments))
        if wrong_count is not None:
            raise wrong_count
        return dynamic_calls.resolve_call(
            definition.name, arguments, lambda given: _call(definition, name, given)
        )
    if any(isinstance(plain(a.type), Variant) for a in arguments) and (
        variant_calls.takes_alternatives(definition.name, arguments)
    ):
        return _of_variant(definition, arguments)
    if definition.name not in _KEEPS_LOW_CARDINALITY:
        arguments = [replace(a, type=without_inner_low_cardinality(a.type)) for a in arguments]
    if definition.name in _OF_TUPLES and _may_have_null_tuples(definition.name, arguments):
        return strict_call(definition, name, arguments)
    if definition.name in _PARAMETERS_FROM and _has_nullable_parameter(definition.name, arguments):
        return strict_call(definition, name, arguments)
    try:
        return _resolved(definition, name, arguments)
    except IllegalTypeOfArgument:
        if any(isinstance(plain(a.type), Boolean) for a in arguments):
            return _of_bytes(definition, name, arguments)
        null = any(isinstance(plain(a.type), Nothing) for a in arguments)
        if not null or definition.name in _REFUSES_NULL:
            raise
        return standard_call(
            name, arguments, NULL_TYPE, None
        )  # an argument is a bare NULL: so is the result


ORDERING = frozenset(
    [
        *(
            "arraySort",
            "arrayReverseSort",
            "arrayPartialSort",
            "arrayPartialReverseSort",
            "arrayMin",
        ),
        *("arrayMax", "less", "greater", "lessOrEquals", "greaterOrEquals", "greatest", "least"),
        *("mapSort", "mapReverseSort", "mapPartialSort", "mapPartialReverseSort"),
    ]
)
"""Functions that order values, or the elements of arrays."""


def refuse_order_within(name: str, types: Sequence[DataType]) -> None:
    """Raise NotSupportedError if the function `name` compares or sorts arrays, tuples or maps that hold a Dynamic or
    a JSON: their Arrow form has another order."""
    for given_type in types:
        if not isinstance(plain(given_type), Dynamic | Json) and any_part(
            given_type, (Dynamic, Json)
        ):
            raise NotSupportedError(
                f"Function {name} of {given_type} is not supported.",
                hint="Take values of one type: arrayMap(x -> dynamicElement(x, 'Int64'), a).",
            )


_RESOLVED = {
    "splitby_max_substrings_includes_remaining_string": "splitByChar and splitByString",
    "enable_extended_results_for_datetime_functions": "toStartOfMonth, toStartOfDay and date_trunc",
}
"""Settings that a function knows by a resolver of its own, and some of these functions."""


def _under_settings(name: str) -> ScalarDefinition:
    """Return the definition of a function with settings that are not at their defaults, both encoded in `name`.
    Raises UnknownFunction."""
    function, changed = function_settings.settings_in_name(name)
    definition = find(function)
    if definition is None or not changed:
        raise UnknownFunction(f"Function with name {name} does not exist.", hint=_nearest(name))
    if definition.by_settings is not None:
        return replace(definition, resolver=definition.by_settings(changed))
    for setting in changed & _RESOLVED.keys():
        raise NotSupportedError(
            f"{setting} is not supported for {function}.", hint=f"{_RESOLVED[setting]} know it."
        )
    resolver = definition.resolver

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the function under these settings; its kernel finds them in its environment."""
        return function_settings.under_settings(resolver(spelt, arguments), name, changed)

    return replace(definition, resolver=resolve)


def _of_variant(definition: ScalarDefinition, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call of a function of a Variant: the function of each alternative; a conversion such as toUInt64
    casts instead."""
    name = definition.name
    if _CONVERSION.fullmatch(name) and isinstance(plain(arguments[0].type), Variant):
        return variant_calls.of_conversion(
            arguments, _call(definition, name, [Argument(STRING), *arguments[1:]])
        )
    return variant_calls.over_alternatives(
        name, arguments, lambda given: _call(definition, name, given)
    )


_CONVERSION = re.compile(
    r"to(U?Int\d+|Float\d+|Decimal\d+|Date|Date32|DateTime|DateTime64|Time|Time64|String|UUID|IPv[46]|Bool)"
)
"""Names of functions that convert to the type in their name."""


def _may_have_null_tuples(name: str, arguments: Sequence[Argument]) -> bool:
    """Return whether an argument may be a NULL tuple, or for a function of a tuple and a number a NULL number.

    Not for tupleElement with a default, which also stands for an element of a NULL tuple."""
    if name == "tupleElement" and len(arguments) == 3:
        return False
    if name in _BY_NUMBER and any(is_nullable(a.type) for a in arguments):
        return True
    return any(is_nullable(a.type) and isinstance(plain(a.type), Tuple) for a in arguments)


def _has_nullable_parameter(name: str, arguments: Sequence[Argument]) -> bool:
    """Return whether an argument of a function in `_PARAMETERS_FROM` makes its result Nullable."""
    parameters = arguments[_PARAMETERS_FROM[name] :]
    return any(is_nullable(a.type) and not isinstance(plain(a.type), Nothing) for a in parameters)


def _resolved(definition: ScalarDefinition, name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve the call. For too many arguments of a function that may take a lambda it raises IllegalTypeOfArgument,
    as ClickHouse does: the first argument should have been the lambda."""
    try:
        return definition.resolve(name, arguments)
    except NumberOfArgumentsDoesntMatch as error:
        if len(arguments) <= definition.minimum or find_lambda(name) is None:
            raise
        raise IllegalTypeOfArgument(error.message, hint=f"Write {name}(x -> …, a).") from error


def _of_bytes(definition: ScalarDefinition, name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve the call with UInt8 in place of each Bool argument, as ClickHouse does."""
    bools = [isinstance(plain(a.type), Boolean) for a in arguments]
    numbers = [
        replace(
            argument,
            type=make_nullable(UINT8) if is_nullable(argument.type) else UINT8,
            constant=None if argument.constant is None else argument.constant.cast(pa.uint8()),
        )
        if is_bool
        else argument
        for argument, is_bool in zip(arguments, bools, strict=True)
    ]
    call = _resolved(definition, name, numbers)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast each Bool among the arguments to UInt8, then compute the function."""
        cast = [
            value.cast(pa.uint8()) if is_bool else value
            for value, is_bool in zip(values, bools, strict=True)
        ]
        return call.kernel(cast, rows, environment)

    return replace(call, kernel=kernel)


def _nearest(name: str) -> str:
    """Return a hint that names the function or aggregate with the most similar name, ignoring case; "" if none is
    similar."""
    names = {known.lower(): known for known in (*function_names(), *aggregate_names())}
    close = difflib.get_close_matches(name.lower(), names, 1)
    return f"Maybe you meant {names[close[0]]}." if close else ""
