"""The families of types: their list, and errors about names that lack their arguments (`Array`, `Map()`)."""

from __future__ import annotations

import difflib
from types import MappingProxyType

from olapdb import errors
from olapdb.types.aliases import ALIASES, CASE_INSENSITIVE, DECIMALS
from olapdb.types.names import BY_NAME
from olapdb.types.scalars import INTERVAL_UNITS

_PARAMETRIC = (
    "AggregateFunction",
    "Array",
    "DateTime64",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Decimal256",
    "Enum8",
    "Enum16",
    "FixedString",
    "LowCardinality",
    "Map",
    "Nullable",
    "SimpleAggregateFunction",
    "Time64",
    "Tuple",
    "Variant",
)


def type_families() -> tuple[tuple[str, int, str], ...]:
    """Return (name, 1 if case-insensitive else 0, alias target or "") of each type family, sorted by name."""
    own = (*BY_NAME, *_PARAMETRIC, *(f"Interval{unit}" for unit in INTERVAL_UNITS))
    insensitive = {"BOOL", "UUID", "DECIMAL", *CASE_INSENSITIVE, *ALIASES}
    families = {name: (name, int(name.upper() in insensitive), "") for name in own}
    of_their_own = {name.upper() for name in families}
    for name, target in (*ALIASES.items(), *((name, None) for name in DECIMALS)):
        if name not in of_their_own:
            families[name] = (name, 1, "Decimal" if target is None else target.name)
    for name, target_name in (("BINARY", "FixedString"), ("ENUM", "Enum")):
        families[name] = (name, 1, target_name)
    return tuple(families[name] for name in sorted(families))


def similar_types(name: str) -> str:
    """Return "Maybe you meant: String." for a name that is similar to a type's, else where types are listed."""
    by_folded = {family.casefold(): family for family, *_ in reversed(type_families())}
    by_folded |= {own.casefold(): own for own in (*BY_NAME, *_PARAMETRIC)}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    if not close:
        return "SELECT name FROM system.data_type_families lists the types."
    return f"Maybe you meant: {by_folded[close[0]]}."


_ONE_TYPE = ("Array", "Nullable", "LowCardinality")
_SCALE = ("Decimal32", "Decimal64", "Decimal128", "Decimal256")
_FUNCTION = ("AggregateFunction", "SimpleAggregateFunction")


def arguments_missing(name: str) -> errors.ProgrammingError | None:
    """Return the error for a type of this name without arguments, in the class that ClickHouse raises; None if the
    type needs none, or is unknown."""
    kind = errors.NumberOfArgumentsDoesntMatch
    if name in _ONE_TYPE:
        return kind(f"{name} has one argument, a type.", hint=f"Write {name}(String).")
    if name == "Map":
        return kind("A Map has two types, of its keys and of its values.")
    if name in _SCALE:
        return kind(f"{name} has one argument, its scale.", hint=f"Write {name}(2).")
    if name in _FUNCTION:
        return kind(
            f"{name} has an aggregate function and the types of its arguments.",
            hint=f"Write {name}(sum, UInt64).",
        )
    if name.upper() in ("FIXEDSTRING", "BINARY"):
        return kind("FixedString has one argument, its length.")
    if name == "Variant":
        return errors.BadArguments("A Variant has at least one type.")
    if name == "Nested":
        return errors.EmptyDataPassed("A Nested has at least one column.")
    return None


RESPECTING_NULLS = MappingProxyType(
    {
        "anyRespectNulls": "any_respect_nulls",
        "anyValueRespectNulls": "any_respect_nulls",
        "any_value_respect_nulls": "any_respect_nulls",
        "firstValueRespectNulls": "any_respect_nulls",
        "first_value_respect_nulls": "any_respect_nulls",
        "anyLastRespectNulls": "anyLast_respect_nulls",
        "lastValueRespectNulls": "anyLast_respect_nulls",
        "last_value_respect_nulls": "anyLast_respect_nulls",
    }
)
"""Other names of two aggregates, as types of SimpleAggregateFunction show them."""
