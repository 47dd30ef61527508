"""All scalar functions by name. The table is built once, at the first question."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from olapdb.errors import IllegalTypeOfArgument, UnknownFunction
from olapdb.functions.arrays.lambdas import LambdaDefinition
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels.supertypes import NULL_TYPE
from olapdb.functions.scalar import ScalarDefinition, usual
from olapdb.types import Nothing, plain


@cache
def definitions() -> tuple[ScalarDefinition, ...]:
    """Every definition, family by family."""
    from olapdb.functions import arrays, casts, datetime, numeric, strings

    families = (numeric, casts, datetime, strings, arrays)
    return tuple(d for family in families for d in family.definitions())


@cache
def _by_name() -> Mapping[str, ScalarDefinition]:
    found: dict[str, ScalarDefinition] = {}
    for one in definitions():
        for name in (one.name, *one.aliases):
            found[name] = one
            if one.case_insensitive:
                found.setdefault(f"\0{name.lower()}", one)
    return MappingProxyType(found)


def find(name: str) -> ScalarDefinition | None:
    """The definition of a name, in any case where ClickHouse takes any."""
    table = _by_name()
    return table.get(name) or table.get(f"\0{name.lower()}")


def find_lambda(name: str) -> LambdaDefinition | None:
    """The form of a function that takes a lambda, or None where it has none."""
    from olapdb.functions.arrays.lambda_functions import LAMBDA_DEFINITIONS

    return LAMBDA_DEFINITIONS.get(name)


def is_scalar(name: str) -> bool:
    return find(name) is not None or find_lambda(name) is not None


def function_names() -> tuple[str, ...]:
    """Names and aliases, sorted."""
    from olapdb.functions.arrays.lambda_functions import LAMBDA_DEFINITIONS

    names = {n for n in _by_name() if not n.startswith("\0")}
    return tuple(sorted(names | set(LAMBDA_DEFINITIONS)))


def function_descriptions() -> list[tuple[str, bool, str]]:
    """(name, whether any case is understood, what it is an alias of or "") of all, by name."""
    described = []
    for name in function_names():
        one = find(name)
        alias_to = "" if one is None or name == one.name else one.name
        described.append((name, one is not None and one.case_insensitive, alias_to))
    return described


def resolve_scalar(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """The call for these arguments.

    Raises UnknownFunction (with the nearest name), NumberOfArgumentsDoesntMatch,
    IllegalTypeOfArgument, BadArguments, NoCommonType.
    """
    definition = find(name)
    if definition is None and find_lambda(name) is not None:
        raise IllegalTypeOfArgument(
            f"The first argument of function {name} must be a lambda.",
            hint=f"Write {name}(x -> …, a).",
        )
    if definition is None:
        raise UnknownFunction(f"Function with name {name} does not exist.", hint=_nearest(name))
    try:
        return definition.resolve(name, arguments)
    except IllegalTypeOfArgument:
        if not any(isinstance(plain(a.type), Nothing) for a in arguments):
            raise
        return usual(name, arguments, NULL_TYPE, None)  # NULL of no type: the result is NULL


def _nearest(name: str) -> str:
    """A hint at the function, or aggregate, of the most similar name, whatever its case."""
    from olapdb.functions.aggregates.registry import aggregate_names

    names = {known.lower(): known for known in (*function_names(), *aggregate_names())}
    close = difflib.get_close_matches(name.lower(), names, 1)
    return f"Maybe you meant {names[close[0]]}." if close else ""
