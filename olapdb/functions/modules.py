"""The modules that define scalar functions, imported one by one: a query needs few of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from olapdb.functions import (
    arrays,
    casts,
    datetime,
    dynamic,
    introspection,
    json,
    numeric,
    strings,
    variants,
)
from olapdb.functions.casts.enums import reading_enums
from olapdb.functions.scalar import ScalarDefinition

_PACKAGES = (numeric, introspection, casts, datetime, strings, arrays, json, variants, dynamic)


def all_modules() -> Iterator[str]:
    """Yield the names of the modules within this package, such as "numeric.arithmetic"."""
    for package in _PACKAGES:
        name = package.__name__.rpartition(".")[2]
        yield from (f"{name}.{module}" for module in package.MODULES)


def definitions_of(module: str) -> tuple[ScalarDefinition, ...]:
    """Return the definitions of one module."""
    defined = import_module(f"olapdb.functions.{module}").DEFINITIONS
    if not module.startswith("strings."):
        return tuple(defined)
    return tuple(d if d.name not in strings.READ_ENUMS else reading_enums(d) for d in defined)


def by_name(definitions: Iterator[ScalarDefinition]) -> Mapping[str, ScalarDefinition]:
    r"""Return a mapping from each name and alias to its definition. A case-insensitive name is also there in lower
    case, with `\0` in front."""
    table: dict[str, ScalarDefinition] = {}
    for definition in definitions:
        for name in (definition.name, *definition.aliases):
            table[name] = definition
            if definition.case_insensitive:
                table.setdefault(f"\0{name.lower()}", definition)
    return MappingProxyType(table)


@cache
def table_of(module: str) -> Mapping[str, ScalarDefinition]:
    """Return the mapping `by_name` of the definitions of one module."""
    return by_name(iter(definitions_of(module)))
