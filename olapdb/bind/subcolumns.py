"""Parts of a value by name: `t.a` of a tuple, `a.size0` of an array, `m.keys` of a map, `n.null`."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.plan.expressions import Expression
from olapdb.types import Array, DataType, Map, Tuple, is_nullable, plain


def subcolumn(binder: Binder, base: Expression, names: Sequence[str]) -> Expression | None:
    """Return the part of a value at this path of names, outermost first.

    None if the value has no such part."""
    value = base
    for name in names:
        part = _part(binder, value, name)
        if part is None:
            return None
        value = part
    return value


def _part(binder: Binder, value: Expression, name: str) -> Expression | None:
    """Return one part of a value, None if its type has none of that name."""
    if name == "null" and is_nullable(value.type):
        return binder.call("isNull", (value,))
    container = plain(value.type)
    names = _element_names(container)
    if name in names:
        return binder.call("tupleElement", (value, constants.string(name)))
    function = None
    if isinstance(container, Array) and name == "size0":
        function = "length"
    elif isinstance(container, Map):
        function = {"keys": "mapKeys", "values": "mapValues", "size0": "length"}.get(name)
    return None if function is None else binder.call(function, (value,))


def _element_names(container: DataType) -> tuple[str, ...]:
    """Return the names of the elements of a tuple, or of the tuples in an array; () for others."""
    while isinstance(container, Array):
        container = container.inner
    return container.field_names if isinstance(container, Tuple) else ()
