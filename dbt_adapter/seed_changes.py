"""Whether a seed's table can take the rows of the changed file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from olapdb.errors import Error
from olapdb.functions import parse_type


def fits(
    old_types: Mapping[str, str], new_types: Mapping[str, str], exact: Collection[str]
) -> bool:
    """Return whether the table has the file's columns in their order, of types that hold the values.

    Types are by column name. Columns in `exact` have a configured type, which must be the table's.
    """
    if list(old_types) != list(new_types):
        return False
    return all(_can_hold(old_types[name], new_types[name], name in exact) for name in new_types)


def _can_hold(existing: str, new: str, exact: bool) -> bool:
    """Return whether a column of type `existing` can hold values of type `new` without loss."""
    new = _canonical(new)
    return existing == new or (not exact and existing == f"Nullable({new})")


def _canonical(type_name: str) -> str:
    """Return a type as the engine spells it ("text" is String); an unknown one unchanged."""
    try:
        return str(parse_type(type_name))
    except Error:
        return type_name
