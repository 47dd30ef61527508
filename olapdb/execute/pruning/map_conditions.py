"""Conditions on a Map as conditions on the array of its keys or values, which an index may be over.

    index over      condition                      asks at least for
    mapKeys(m)      mapContains(m, 'k')            has(mapKeys(m), 'k')
    mapKeys(m)      m['k'] = 'v'                   has(mapKeys(m), 'k')
    mapValues(m)    mapContainsValue(m, 'v')       has(mapValues(m), 'v')
    mapValues(m)    m['k'] = 'v'                   has(mapValues(m), 'v')

A missing key has the default of the type as its value, so an equality with it asks for nothing.
"""

from __future__ import annotations

from olapdb.plan.conditions import scalar_call
from olapdb.plan.expressions import Call, Constant, Expression


def asked_of_map(condition: Expression, indexed: Expression) -> Expression:
    """Return a condition that is true wherever this one is, with `indexed`, mapKeys or mapValues of
    a map, in place of the map where that is possible below AND and OR."""
    match indexed:
        case Call(name="mapKeys" | "mapValues", arguments=(entries,)):
            return _asked(condition, indexed, entries)
    return condition


def _asked(condition: Expression, indexed: Call, entries: Expression) -> Expression:
    """Return a condition that `condition` implies, with `has(mapKeys(m), key)` or `has(mapValues(m), value)` in place
    of conditions on the map `entries`; other conditions unchanged."""
    keys = indexed.name == "mapKeys"
    match condition:
        case Call(name="and" | "or" as name, arguments=arguments):
            return scalar_call(name, tuple(_asked(a, indexed, entries) for a in arguments))
        case Call(name="mapContains" | "has", arguments=(asked, Constant() as key)) if (
            keys and asked == entries
        ):
            return scalar_call("has", (indexed, key))
        case Call(name="mapContainsValue", arguments=(asked, Constant() as value)) if (
            not keys and asked == entries
        ):
            return scalar_call("has", (indexed, value))
        case (
            Call(
                name="equals",
                arguments=(
                    Call(name="arrayElement", arguments=(asked, Constant() as key)),
                    Constant() as value,
                ),
            )
            | Call(
                name="equals",
                arguments=(
                    Constant() as value,
                    Call(name="arrayElement", arguments=(asked, Constant() as key)),
                ),
            )
        ) if asked == entries and _is_no_default(value):
            return scalar_call("has", (indexed, key if keys else value))
    return condition


def _is_no_default(value: Constant) -> bool:
    """Return whether the constant is a text or a whole number other than '' and 0, the values that a missing key
    has."""
    if not value.value.is_valid:
        return False
    plain = value.value.as_py()
    return isinstance(plain, str | bytes | int) and plain not in ("", b"", 0)
