"""A nested structure by its name: `n` is an array of tuples of the arrays `n.a` and `n.b`."""

from __future__ import annotations

from olapdb.bind.contracts import Binder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.plan.expressions import Cast, Expression
from olapdb.types import Array, Tuple, plain


def nested_arrays(relation: Relation, parts: tuple[str, ...]) -> list[RelationColumn]:
    """Return the arrays `n.a`, `n.b` of the structure n, [] without one."""
    *qualifier, name = parts
    arrays = [
        column
        for column in relation.columns
        if column.name.startswith(f"{name}.")
        and isinstance(plain(column.type), Array)
        and (not qualifier or tuple(qualifier) in column.qualifiers)
    ]
    return [column for column in arrays if column.qualifier == arrays[0].qualifier]


def joined_elements(relation: Relation, parts: tuple[str, ...]) -> list[RelationColumn]:
    """Return the columns `n.a`, `n.b` that ARRAY JOIN made of the structure n, or of one with the alias n; [] if it did
    not join all of them."""
    *qualifier, name = parts
    elements = [
        column
        for column in relation.columns
        if column.name.startswith(f"{name}.")
        and (not qualifier or tuple(qualifier) in column.qualifiers)
    ]
    return elements if all(column.array_joined for column in elements) else []


def nested_value(binder: Binder, parts: tuple[str, ...]) -> Expression | None:
    """Return the structure of this name in FROM as an Array of named tuples; None without one.

    The first of several tables that have it counts."""
    arrays = nested_arrays(binder.relation, parts)
    if not arrays:
        return None
    prefix = f"{parts[-1]}."
    values = tuple(column.use() for column in arrays)
    elements = tuple(
        inner.inner for value in values if isinstance(inner := plain(value.type), Array)
    )
    names = tuple(column.name.removeprefix(prefix) for column in arrays)
    return Cast(Array(Tuple(elements, names)), binder.call("arrayZip", values))
