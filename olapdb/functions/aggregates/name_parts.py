"""Names of aggregates: which there are, and what combinators a name ends in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.functions.aggregates.factories import FACTORIES
from olapdb.functions.aggregates.names import (
    CANONICAL,
    CASE_INSENSITIVE,
    COMBINED,
    MAPPED_ARRAYS,
    REFUSED,
)

ELEMENT_COMBINATORS = ("ForEach", "Resample", "Array", "Map", "Tuple")
"""Combinators over the elements of arrays, maps and tuples, or over ranges of a key."""
ARG_EXTREMES = ("ArgMin", "ArgMax")
_COMBINATORS = (
    "MergeState",
    "SimpleState",
    "OrDefault",
    "OrNull",
    "Distinct",
    "Merge",
    "State",
    "If",
    *ELEMENT_COMBINATORS,
    *ARG_EXTREMES,
)


def aggregate_names() -> tuple[str, ...]:
    """Return all names without combinators, aliases included, sorted."""
    return tuple(sorted({*FACTORIES, *MAPPED_ARRAYS, *CANONICAL, *COMBINED}))


def aggregate_descriptions() -> list[tuple[str, bool, str]]:
    """Return (name, whether it is case-insensitive, the name it is an alias of or "") of all
    aggregates, sorted by name."""
    aliases = {**CANONICAL, **{name: "".join(parts) for name, parts in COMBINED.items()}}
    return [(n, n in CASE_INSENSITIVE, aliases.get(n, "")) for n in aggregate_names()]


def canonical_name(name: str) -> str | None:
    """Return the canonical name of an aggregate's name without combinators, or None if unknown."""
    spelt = name.lower() if name.lower() in CASE_INSENSITIVE else name
    spelt = CANONICAL.get(spelt, spelt)
    return spelt if spelt in FACTORIES or spelt in MAPPED_ARRAYS else None


def split_combinator(name: str) -> tuple[str, str] | None:
    """Split the last combinator off a name: ("sum", "If") for "sumIf", None for "sum"."""
    if name.lower() in COMBINED:
        return COMBINED[name.lower()]
    for suffix in _COMBINATORS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], suffix
    return None


def is_aggregate(name: str) -> bool:
    """Return whether the name, combinators stripped, is that of an aggregate, including those that the engine knows
    but refuses."""
    return base_name(name) is not None


def base_name(name: str) -> str | None:
    """Return the name of an aggregate without its combinators, canonical; None if it is unknown."""
    while (base := canonical_name(name)) is None and name not in REFUSED:
        split = split_combinator(name)
        if split is None:
            return None
        name = split[0]
    return base or name


def respecting_nulls(name: str) -> str | None:
    """Return the name, combinators kept, of the aggregate that `name` becomes with RESPECT NULLS; None if it has no
    such form."""
    return _renamed(name, _RESPECTING_NULLS)


def ignoring_nulls(name: str) -> str:
    """Return the name, combinators kept, of the aggregate that `name` becomes with IGNORE NULLS: itself, unless it
    respects them by its name."""
    return _renamed(name, _IGNORING_NULLS) or name


def _renamed(name: str, names: Mapping[str, str]) -> str | None:
    """Return the name with the one of `names` for the aggregate without its combinators; None if it has none."""
    combinators_of = ""
    while (base := canonical_name(name)) is None:
        split = split_combinator(name)
        if split is None:
            return None
        name, combinators_of = split[0], split[1] + combinators_of
    renamed = names.get(base)
    return None if renamed is None else renamed + combinators_of


_RESPECTING_NULLS = MappingProxyType(
    {
        "any": "any_respect_nulls",
        "first_value": "any_respect_nulls",
        "any_respect_nulls": "any_respect_nulls",
        "anyLast": "anyLast_respect_nulls",
        "last_value": "anyLast_respect_nulls",
        "anyLast_respect_nulls": "anyLast_respect_nulls",
    }
)
_IGNORING_NULLS = MappingProxyType({"any_respect_nulls": "any", "anyLast_respect_nulls": "anyLast"})


def joins_texts(name: str) -> bool:
    """Return whether the name is groupConcat's, with combinators after which the first argument is still the value to
    join; those of states, arrays and maps are excluded."""
    while (base := canonical_name(name)) is None:
        split = split_combinator(name)
        if split is None or split[1] in ("Merge", "MergeState", *ELEMENT_COMBINATORS):
            return False
        name = split[0]
    return base == "groupConcat"
