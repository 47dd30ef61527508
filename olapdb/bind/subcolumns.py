"""Parts of a value by name: `t.a` of a tuple, `a.size0` of an array, `m.keys` of a map, `n.null`.

A part of the elements of an array is an array: `a.size1` has the sizes of the arrays in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql
from olapdb.sql.json_steps import read_json_step
from olapdb.types import (
    UINT8,
    UINT64,
    Array,
    DataType,
    Dynamic,
    Json,
    LowCardinality,
    Map,
    Nullable,
    String,
    Tuple,
    Variant,
    any_part,
    is_nullable,
    make_nullable,
    plain,
)

if TYPE_CHECKING:
    from olapdb.bind import json_paths
else:
    json_paths = LazyModule("olapdb.bind.json_paths")

_VALUE = "\ue100"
"""The name of the value while a part of it is bound: no column has it."""
_MAP_PARTS = {"keys": "mapKeys", "values": "mapValues"}


def subcolumn(binder: Binder, base: Expression, names: Sequence[str]) -> Expression | None:
    """Return the part of a value at this path of names, outermost first.

    None if the value has no such part."""
    value, origin = base, None
    while names:
        if any_part(value.type, (Dynamic, Json)) or read_json_step(names[0]) is not None:
            path = json_paths.path_part(binder, value, names, origin)
            if path is not None:
                value, names, origin = path
                continue
        part = _part(binder, value, names[0])
        if part is None:
            return None
        value, names = part, names[1:]
    return value


def _part(binder: Binder, value: Expression, name: str) -> Expression | None:
    """Return one part of a value, None if its type has none of that name."""
    container = plain(value.type)
    element = _element_of(container)
    if isinstance(element, Variant) and (
        isinstance(container, Variant) or element.place_of(name) is not None
    ):
        return _alternative(binder, value, element, name)
    if name == "null" and is_nullable(value.type):
        return binder.call("isNull", (value,))
    if name in _element_names(container):
        return binder.call("tupleElement", (value, constants.string(name)))
    if isinstance(container, Map) and name.startswith("key_") and _is_text(container.key):
        return binder.call("arrayElement", (value, constants.string(name.removeprefix("key_"))))
    part = _call(value.type, name, sql.Identifier((_VALUE,)), 0)
    if part is None:
        return None
    with binder.lambdas.within({_VALUE: value}):
        return binder.bind(part)


def _alternative(
    binder: Binder, value: Expression, variant: Variant, name: str
) -> Expression | None:
    """Return the values of one type of a Variant, None if it has no type of that name."""
    if variant.place_of(name) is None:
        return None
    return binder.call("variantElement", (value, constants.string(name)))


def _call(
    data_type: DataType, name: str, value: sql.Identifier, depth: int
) -> sql.Expression | None:
    """Return the call that makes the part `name` of a value of the type, which is an element within
    `depth` arrays; None if there is none."""
    if depth and name == "null" and is_nullable(data_type):
        return sql.Function("isNull", (value,))
    container = plain(data_type)
    if isinstance(container, String) and name == "size" and not _has_dictionary(data_type):
        return sql.Function("length", (value,))
    if isinstance(container, Array | Map) and name == f"size{depth}":
        return sql.Function("length", (value,))
    if isinstance(container, Map) and name in _MAP_PARTS:
        part = container.key if name == "keys" else container.value
        call = sql.Function(_MAP_PARTS[name], (value,))
        # a part keeps the type that is stored, where the function gives a plain one
        return sql.Cast(call, Array(part)) if isinstance(part, LowCardinality) else call
    if not isinstance(container, Array):
        return None
    element = sql.Identifier((f"{_VALUE}{depth}",))
    inner = _call(container.inner, name, element, depth + 1)
    if inner is None:
        return None
    return sql.Function("arrayMap", (sql.Lambda(element.parts, inner), value))


def _is_text(data_type: DataType) -> bool:
    """Return whether the type is a String."""
    return isinstance(plain(data_type), String)


def _has_dictionary(data_type: DataType) -> bool:
    """Return whether the type is a LowCardinality, whose texts have no size of their own."""
    return isinstance(data_type, LowCardinality)


def _element_of(container: DataType) -> DataType:
    """Return the type of the innermost elements of arrays, the type itself if it is none."""
    while isinstance(container, Array):
        container = container.inner
    return container


def _element_names(container: DataType) -> tuple[str, ...]:
    """Return the names of the elements of a tuple, or of the tuples in an array; () for others."""
    container = _element_of(container)
    return container.field_names if isinstance(container, Tuple) else ()


def all_subcolumns(data_type: DataType) -> Iterator[tuple[str, DataType]]:
    """Yield the (path, type) of each part of a type, as DESCRIBE lists them."""
    yield from _parts(data_type, 0, lambda part: part)


def _parts(
    data_type: DataType, depth: int, wrap: Callable[[DataType], DataType]
) -> Iterator[tuple[str, DataType]]:
    """Yield the parts of a type that lies within `depth` arrays; `wrap` makes the part's own type
    that of the part of the whole."""
    match data_type:
        case Nullable():
            yield "null", wrap(UINT8)
            yield from _parts(data_type.inner, depth, lambda part: wrap(Nullable(part)))
        case Array():
            yield f"size{depth}", wrap(UINT64)
            yield from _parts(data_type.inner, depth + 1, lambda part: wrap(Array(part)))
        case Map():
            yield f"size{depth}", wrap(UINT64)
            for name, inner in (("keys", data_type.key), ("values", data_type.value)):
                yield name, wrap(Array(inner))
                for path, part in _parts(inner, depth + 1, lambda part: wrap(Array(part))):
                    yield f"{name}.{path}", part
        case Variant():
            yield from _alternative_parts(data_type, depth, wrap)
        case Tuple():
            names = data_type.field_names or [
                str(at) for at in range(1, len(data_type.elements) + 1)
            ]
            for name, inner in zip(names, data_type.elements, strict=True):
                yield name, wrap(inner)
                for path, part in _parts(inner, depth, wrap):
                    yield f"{name}.{path}", part
        case Json(typed=typed):
            for name, inner in typed:
                yield name, wrap(inner)
        case String():
            yield "size", wrap(UINT64)
        case _:
            return


def _alternative_parts(
    variant: Variant, depth: int, wrap: Callable[[DataType], DataType]
) -> Iterator[tuple[str, DataType]]:
    """Yield the types of a Variant and the parts of each, then which of them are NULL."""
    types = [(t.name, make_nullable(t)) for t in variant.alternatives]
    for name, data_type in types:
        yield name, wrap(data_type)
        for path, part in _parts(data_type, depth, wrap):
            if path != "null":
                yield f"{name}.{path}", part
    for name, data_type in types:
        if is_nullable(data_type):
            yield f"{name}.null", wrap(UINT8)
